"""Files with external data that leads, or seems to lead, somewhere else.

Of CVE-2022-25882, CVE-2024-27318, CVE-2026-27489, CVE-2026-34445 to -34447 and their neighbours.
"""

import os
from pathlib import Path

import numpy as np
from onnx import SparseTensorProto, TensorProto, helper

from cases import case, file_of, om, weighted
from onnx_models import FLOAT, node, value


def external_tensor(dims=(4,), **keys) -> TensorProto:
    weight = TensorProto(name="w", data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in keys.items():
        weight.external_data.add(key=key, value=text)
    return weight


def external(folder: Path, location: str, **keys) -> Path:
    (folder / "model").mkdir(exist_ok=True)
    return file_of(folder / "model", weighted(external_tensor(location=location, **keys)))


def secret(folder: Path) -> Path:
    """What must not be read: beside the model's folder, of the size that the weight needs."""
    path = folder / "secret.bin"
    path.write_bytes(b"secret__" * 2)
    return path


@case("invalid", "'../secret.bin'", "outside the model's folder", "--external-data-root")
def make_external_parent(folder):
    secret(folder)
    return external(folder, "../secret.bin")


@case("invalid", "outside the model's folder")
def make_external_parent_inside(folder):
    (folder / "model/sub").mkdir(parents=True)
    (folder / "model/w.bin").write_bytes(bytes(16))
    return external(folder, "sub/../w.bin")


@case("invalid", "outside the model's folder")
def make_external_parent_of_nothing(folder):
    secret(folder)
    return external(folder, "nowhere/../../secret.bin")


@case("invalid", "not a relative path")
def make_external_absolute(folder):
    return external(folder, str(secret(folder)))


@case("invalid", "not a relative path")
def make_external_absolute_device(folder):
    return external(folder, "/dev/zero")


@case("invalid", "not a relative path")
def make_external_empty(folder):
    return external(folder, "")


@case("invalid", "external file")
def make_external_without_location(folder):
    (folder / "model").mkdir()
    return file_of(folder / "model", weighted(external_tensor(offset="0")))


@case("invalid", r"w.bin\00")
def make_external_nul(folder):
    (folder / "model").mkdir()
    (folder / "model/w.bin").write_bytes(bytes(16))
    return external(folder, "w.bin\0/../../secret.bin")


@case("invalid", "outside the model's folder")
def make_external_slash_alone(folder):
    return external(folder, ".//..")


@case("invalid", "not a regular file")
def make_external_dot(folder):
    return external(folder, ".")


@case("invalid", "symbolic link")
def make_external_link(folder):
    (folder / "model").mkdir()
    (folder / "model/w.bin").symlink_to(secret(folder))
    return external(folder, "w.bin")


@case("invalid", "symbolic link")
def make_external_link_in_the_folder(folder):
    (folder / "model").mkdir()
    (folder / "model/real.bin").write_bytes(bytes(16))
    (folder / "model/w.bin").symlink_to("real.bin")
    return external(folder, "w.bin")


@case("invalid", "symbolic link")
def make_external_linked_folder(folder):
    (folder / "model").mkdir()
    secret(folder)
    (folder / "model/sub").symlink_to(folder)
    return external(folder, "sub/secret.bin")


@case("invalid", "symbolic link")
def make_external_link_loop(folder):
    (folder / "model").mkdir()
    (folder / "model/w.bin").symlink_to("w.bin")
    return external(folder, "w.bin")


@case("invalid", "hard link")
def make_external_hard_link(folder):
    (folder / "model").mkdir()
    os.link(secret(folder), folder / "model/w.bin")
    return external(folder, "w.bin")


@case("invalid", "not a regular file")
def make_external_folder(folder):
    (folder / "model/w.bin").mkdir(parents=True)
    return external(folder, "w.bin")


@case("invalid", "not a regular file")
def make_external_fifo(folder):
    (folder / "model").mkdir()
    os.mkfifo(folder / "model/w.bin")
    return external(folder, "w.bin")


@case("invalid", "w.bin")
def make_external_file_as_folder(folder):
    (folder / "model").mkdir()
    (folder / "model/w.bin").write_bytes(bytes(16))
    return external(folder, "w.bin/w.bin")


@case("usage", "cannot be opened")
def make_external_missing(folder):
    return external(folder, "w.bin")


def sized(folder: Path, size: int = 16) -> None:
    (folder / "model").mkdir()
    (folder / "model/w.bin").write_bytes(bytes(size))


@case("invalid", "'colour'", "location, offset, length and checksum")
def make_external_unknown_key(folder):
    sized(folder)
    return external(folder, "w.bin", colour="red")


@case("invalid", "two entries 'location'")
def make_external_twice(folder):
    sized(folder)
    model = weighted(external_tensor(location="w.bin"))
    model.graph.initializer[0].external_data.add(key="location", value="../secret.bin")
    return file_of(folder / "model", model)


@case("invalid", "offset '-4'")
def make_external_negative_offset(folder):
    sized(folder)
    return external(folder, "w.bin", offset="-4")


@case("invalid", "length '-1'")
def make_external_negative_length(folder):
    sized(folder)
    return external(folder, "w.bin", length="-1")


@case("invalid", "16 bytes")
def make_external_huge_offset(folder):
    sized(folder)
    return external(folder, "w.bin", offset=str(2**62))


@case("invalid", "offset '18446744073709551617'")
def make_external_offset_past_64_bits(folder):
    sized(folder)
    return external(folder, "w.bin", offset=str(2**64 + 1))


@case("invalid", "16 bytes")
def make_external_offset_and_length_wrap(folder):
    sized(folder)
    return external(folder, "w.bin", offset=str(2**63 - 8), length="16")


@case("invalid", "expected 16")
def make_external_length_of_another_shape(folder):  # CVE-2026-34445
    sized(folder, 64)
    return external(folder, "w.bin", length="64")


@case("invalid", "offset '0x4'")
def make_external_hex_offset(folder):
    sized(folder)
    return external(folder, "w.bin", offset="0x4")


@case("invalid", "SHA-1")
def make_external_wrong_checksum(folder):
    sized(folder)
    return external(folder, "w.bin", checksum="0" * 40)


@case("invalid", "more than once")
def make_external_and_raw(folder):
    sized(folder)
    weight = external_tensor(location="w.bin")
    weight.raw_data = bytes(16)
    return file_of(folder / "model", weighted(weight))


@case("invalid", "outside the model's folder")
def make_external_in_an_attribute(folder):
    secret(folder)
    (folder / "model").mkdir()
    constant = helper.make_node("Constant", [], ["w"], value=external_tensor(location="../secret.bin"))
    return file_of(folder / "model", om.model([constant, node("Add", ["x", "w"], ["y"])], [value("x", [4])],
                                              [value("y", [4])]))


@case("invalid", "outside the model's folder")
def make_external_in_a_subgraph(folder):
    secret(folder)
    (folder / "model").mkdir()
    branch = helper.make_graph([node("Add", ["x", "w"], ["b"])], "b", [], [value("b", [4])],
                               [external_tensor(location="../secret.bin")])
    branches = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    return file_of(folder / "model", om.model([branches], [value("x", [4]), value("c", [], TensorProto.BOOL)],
                                              [value("y", [4])]))


@case("unsupported", "sparse")
def make_external_in_a_sparse_tensor(folder):
    secret(folder)
    (folder / "model").mkdir()
    sparse = SparseTensorProto(values=external_tensor(location="../secret.bin"),
                               indices=om.tensor("i", np.arange(4)), dims=[4])
    model = om.model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])])
    model.graph.sparse_initializer.append(sparse)
    return file_of(folder / "model", model)
