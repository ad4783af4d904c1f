"""The weights file: valid by its own format's rules, and refused when it is another's."""

import json
import struct

import numpy as np
import pytest

from memplan_tools import compiler, host

pytestmark = pytest.mark.usefixtures("memplan_opt")

MODULE = """module attributes {{memplan.model = "m"}} {{
  memref.global "private" constant @w0 : memref<2x3xf32> = uninitialized
    {{memplan.weight = #memplan.weight<file = "{file}", offset = 4, bytes = 24>, memplan.name = "layer \\22one\\22"}}
  memref.global "private" constant @unused : memref<1000xf32> = dense<1.0>
  memref.global "private" constant @w1 : memref<5xf32> = dense<2.5>
  memref.global "private" constant @w2 : memref<3xi1> = dense<[true, false, true]>
  memref.global "private" constant @w3 : memref<3xi64> = dense<[1, -2, 3]> {{memplan.name = "w1"}}
  func.func @main(%x: memref<2x3xf32> {{memplan.name = "x"}}, %y: memref<2x3xf32> {{memplan.name = "y", bufferize.result}},
                  %z: memref<5xf32> {{memplan.name = "z", bufferize.result}},
                  %b: memref<3xi1> {{memplan.name = "b", bufferize.result}},
                  %l: memref<3xi64> {{memplan.name = "l", bufferize.result}}) {{
    %0 = memref.get_global @w0 : memref<2x3xf32>
    %1 = memref.get_global @w1 : memref<5xf32>
    %2 = memref.get_global @w2 : memref<3xi1>
    %3 = memref.get_global @w3 : memref<3xi64>
    linalg.add ins(%x, %0 : memref<2x3xf32>, memref<2x3xf32>) outs(%y : memref<2x3xf32>)
    memref.copy %1, %z : memref<5xf32> to memref<5xf32>
    memref.copy %2, %b : memref<3xi1> to memref<3xi1>
    memref.copy %3, %l : memref<3xi64> to memref<3xi64>
    return
  }}
}}
"""


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    values = np.arange(8, dtype=np.float32)
    (folder / "data.bin").write_bytes(values.tobytes())
    (folder / "m.mlir").write_text(MODULE.format(file=folder / "data.bin"))
    compiler.emit_cuda(folder / "m.mlir", folder / "out/m")
    return folder / "out/m", values[1:7].reshape(2, 3)


def parse(data: bytes):
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:], size


def test_format(emitted):
    prefix, w0 = emitted
    header, data, size = parse(prefix.with_suffix(".safetensors").read_bytes())
    assert (8 + size) % 64 == 0, "the data is aligned"
    assert header.pop("__metadata__")["model"] == "m"
    assert list(header) == ['layer "one"', "w1", "w2", "w1#1"], "names of the model, made unique; nothing unread"
    end = 0
    for entry in header.values():
        assert entry["data_offsets"][0] == end, "no holes"
        end = entry["data_offsets"][1]
    assert end == len(data) == 24 + 20 + 3 + 24

    def tensor(name, dtype):
        first, last = header[name]["data_offsets"]
        return np.frombuffer(data[first:last], dtype).reshape(header[name]["shape"])

    np.testing.assert_array_equal(tensor('layer "one"', np.float32), w0)
    np.testing.assert_array_equal(tensor("w1", np.float32), np.full(5, 2.5))
    np.testing.assert_array_equal(tensor("w2", np.uint8), [1, 0, 1])
    np.testing.assert_array_equal(tensor("w1#1", np.int64), [1, -2, 3])
    assert [header[n]["dtype"] for n in header] == ["F32", "F32", "BOOL", "I64"]


def test_loaded(emitted):
    prefix, w0 = emitted
    x = np.ones((2, 3), np.float32)
    with host.HostModel(prefix, flags=("-O1",)) as model:
        assert model.weights_bytes == 4 * 256  # four weights, each at a multiple of 256
        outputs = model.run({"x": x})
    np.testing.assert_array_equal(outputs["y"], x + w0)
    np.testing.assert_array_equal(outputs["z"], np.full(5, 2.5, np.float32))
    np.testing.assert_array_equal(outputs["b"], [True, False, True])
    np.testing.assert_array_equal(outputs["l"], [1, -2, 3])


@pytest.mark.parametrize("spoil, message", [
    (lambda data: data[:-1], "expected"),
    (lambda data: data + b"x", "expected"),
    (lambda data: data[:20] + b"?" + data[21:], "another header"),
    (lambda data: b"", "expected"),
])
def test_other_files_are_refused(emitted, tmp_path, spoil, message):
    prefix, _ = emitted
    for suffix in (".cu", ".h"):
        (tmp_path / prefix.name).with_suffix(suffix).write_bytes(prefix.with_suffix(suffix).read_bytes())
    path = (tmp_path / prefix.name).with_suffix(".safetensors")
    path.write_bytes(spoil(prefix.with_suffix(".safetensors").read_bytes()))
    with pytest.raises(host.HostError, match=message):
        host.HostModel(tmp_path / prefix.name, prefix.parent, flags=("-O1",))


@pytest.mark.parametrize("size, offset, message", [(20, 4, "has 20"), (28, 8, "8\\+24")])
def test_weights_outside_their_file(tmp_path, size, offset, message):
    (tmp_path / "data.bin").write_bytes(bytes(size))
    (tmp_path / "m.mlir").write_text(MODULE.format(file=tmp_path / "data.bin").replace("offset = 4", f"offset = {offset}"))
    with pytest.raises(RuntimeError, match=message):
        compiler.emit_cuda(tmp_path / "m.mlir", tmp_path / "out/m")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("how", ["outside", "symlink", "hard link", "absent"])
def test_mlir_text_names_no_file_of_its_user(how, tmp_path):
    """A module from a stranger must not make the compiler copy what lies elsewhere."""
    folder = tmp_path / "module"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(64))
    file = folder / "data.bin"
    if how == "outside":
        file = folder / "../secret.bin"
    elif how == "symlink":
        file.symlink_to(secret)
    elif how == "hard link":
        file.hardlink_to(secret)
    (folder / "m.mlir").write_text(MODULE.format(file=file))
    done = compiler.run(folder / "m.mlir", "--emit=cuda", "-o", tmp_path / "out/m", check=False)
    assert done.returncode == compiler.EXIT["invalid"] and "--external-data-root" in done.stderr
    assert not (tmp_path / "out").exists()
    if how != "absent":
        compiler.emit_cuda(folder / "m.mlir", tmp_path / "out/m", None, f"--external-data-root={tmp_path}")
