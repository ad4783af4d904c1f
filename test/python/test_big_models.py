"""Weights of many gigabytes: mapped and never read whole; and weights that stay where they are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

MOST_BYTES = 500 << 20
GIB = 1 << 30


def external(name: str, dims: list[int], location: str, offset: int = 0) -> TensorProto:
    weight = TensorProto(name=name, data_type=om.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    size = 4 * int(np.prod(dims))
    for key, text in {"location": location, "offset": str(offset), "length": str(size)}.items():
        weight.external_data.add(key=key, value=text)
    return weight


def peak(command: list) -> int:
    """Most memory that the command held, in bytes."""
    code = ("import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss*1024)")
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def ten_gib(folder: Path) -> Path:
    """A chain of 40 products with weights of 256 MiB each, in two files that are holes."""
    n, layers = 8192, 40
    nodes, weights = [], []
    for i in range(layers):
        file, place = f"w{i % 2}.bin", i // 2 * 4 * n * n
        weights.append(external(f"w{i}", [n, n], file, place))
        nodes += [om.node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]), om.node("Relu", [f"p{i}"], [f"x{i + 1}"])]
    path = om.write(om.model(nodes, [om.value("x0", [1, n])], [om.value(f"x{layers}", [1, n])], weights),
                    folder / "big.onnx")
    for i in range(2):
        with open(folder / f"w{i}.bin", "wb") as file:
            file.truncate(4 * n * n * layers // 2)
    assert sum((folder / f"w{i}.bin").stat().st_size for i in range(2)) == 10 * GIB
    return path


@pytest.mark.parametrize("flags", [["--emit=plan"], ["--emit=cuda", "--weights=external"]])
def test_ten_gibibytes_of_weights(tmp_path, flags):
    path = ten_gib(tmp_path)
    used = peak([compiler.tool(), path, *flags, "-o", tmp_path / "out/big"])
    assert used < MOST_BYTES, f"{used >> 20} MiB"
    assert sum(f.stat().st_size for f in (tmp_path / "out").iterdir()) < 1 << 20


def test_copying_weights_takes_no_memory(tmp_path):
    """1 GiB goes through the compiler, and one file has a checksum."""
    n = 16384
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(4 * n * n)
    weight = external("w", [n, n], "w.bin")
    weight.external_data.add(key="checksum", value="2a492f15396a6768bcbca016993f4b4c8b0b5307")
    path = om.write(om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [1, n])], [om.value("y", [1, n])],
                             [weight]), tmp_path / "m.onnx")
    assert peak([compiler.tool(), path, "--emit=cuda", "-o", tmp_path / "out/m"]) < MOST_BYTES
    assert (tmp_path / "out/m.safetensors").stat().st_size > 4 * n * n


def mixed(folder: Path) -> Path:
    """Weights in the model, in two external files, and a constant that the compiler makes."""
    rng = np.random.default_rng(3)
    (folder / "sub").mkdir(parents=True)
    inside = om.tensor("a", rng.standard_normal((8, 8), dtype=np.float32))
    values = {name: rng.standard_normal((8, 8), dtype=np.float32) for name in "bc"}
    (folder / "b.bin").write_bytes(bytes(64) + values["b"].tobytes())
    (folder / "sub/c.bin").write_bytes(values["c"].tobytes())
    weights = [inside, external("b", [8, 8], "b.bin", 64), external("c", [8, 8], "sub/c.bin")]
    table = om.node("Constant", [], ["t"], value=om.tensor("t", np.arange(8, dtype=np.int64)[::-1].copy()))
    nodes = [om.node("MatMul", ["x", "a"], ["p"]), om.node("MatMul", ["p", "b"], ["q"]), om.node("MatMul", ["q", "c"], ["r"]),
             table, om.node("Gather", ["r", "t"], ["s"], axis=1),
             om.node("Resize", ["s4", "", "", "to"], ["z4"], mode="cubic"),
             om.node("Reshape", ["s", "four"], ["s4"]), om.node("Reshape", ["z4", "two"], ["y"])]
    constants = [om.tensor("four", np.array([1, 1, 3, 8])), om.tensor("to", np.array([1, 1, 5, 13])),
                 om.tensor("two", np.array([5, 13]))]
    return om.write(om.model(nodes, [om.value("x", [3, 8])], [om.value("y", [5, 13])], weights + constants),
                    folder / "m.onnx")


def test_external_weights_give_the_same_results(tmp_path, quick):
    path = mixed(tmp_path / "model")
    inputs = reference.random_inputs(path)
    compiler.emit_cuda(path, tmp_path / "copied/m")
    compiler.emit_cuda(path, tmp_path / "model/m", None, "--weights=external")
    copied, own = ((tmp_path / f / "m.safetensors").stat().st_size for f in ("copied", "model"))
    assert copied - own > 3 * 256 - 300
    with host.HostModel(tmp_path / "copied/m", **quick) as model:
        want = model.run(inputs)
    assert_close(want, reference.run(path, inputs))
    with host.HostModel(tmp_path / "model/m", weights=tmp_path / "model", **quick) as model:
        got = model.run(inputs)
    np.testing.assert_array_equal(got["y"], want["y"])


def test_external_weights_in_another_folder_are_missed(tmp_path, quick):
    path = mixed(tmp_path / "model")
    compiler.emit_cuda(path, tmp_path / "out/m", None, "--weights=external")
    with pytest.raises(host.HostError, match="status 3: .*m.onnx"):
        host.HostModel(tmp_path / "out/m", weights=tmp_path / "out", **quick)
    (tmp_path / "model/b.bin").write_bytes(bytes(10))
    shutil.copy(tmp_path / "out/m.safetensors", tmp_path / "model")
    with pytest.raises(host.HostError, match="status 4: .*b.bin' has 10 bytes, expected 320"):
        host.HostModel(tmp_path / "out/m", weights=tmp_path / "model", **quick)


def cache(folder: Path) -> Path:
    """A model cache: a snapshot of links into a folder of blobs."""
    (folder / "blobs").mkdir()
    (folder / "snapshot").mkdir()
    (folder / "blobs/aaaa").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    om.write(om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [2, 4])], [om.value("y", [2, 4])],
                      [external("w", [4, 4], "w.bin")]), folder / "blobs/bbbb")
    for name, blob in (("m.onnx", "bbbb"), ("w.bin", "aaaa")):
        (folder / "snapshot" / name).symlink_to(f"../blobs/{blob}")
    return folder / "snapshot/m.onnx"


def test_a_cache_of_links_needs_its_root(tmp_path, quick):
    path = cache(tmp_path)
    refused = compiler.run(path, "--emit=cuda", "-o", tmp_path / "out/m", check=False)
    assert refused.returncode == compiler.EXIT["invalid"] and "--external-data-root" in refused.stderr
    elsewhere = compiler.run(path, "--emit=cuda", "-o", tmp_path / "out/m", f"--external-data-root={tmp_path}/snapshot",
                             check=False)
    assert elsewhere.returncode == compiler.EXIT["invalid"]
    compiler.emit_cuda(path, tmp_path / "out/m", None, f"--external-data-root={tmp_path}/blobs")
    inputs = reference.random_inputs(path)
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run(inputs)
    np.testing.assert_allclose(got["y"], inputs["x"] @ np.arange(16, dtype=np.float32).reshape(4, 4), rtol=1e-5)


def test_a_hard_link_is_taken_from_the_root(tmp_path):
    path = om.write(om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [2, 4])], [om.value("y", [2, 4])],
                             [external("w", [4, 4], "w.bin")]), tmp_path / "m.onnx")
    (tmp_path / "other.bin").write_bytes(bytes(64))
    os.link(tmp_path / "other.bin", tmp_path / "w.bin")
    assert compiler.run(path, "--emit=plan", check=False).returncode == compiler.EXIT["invalid"]
    plan = json.loads(compiler.run(path, "--emit=plan", "-q", f"--external-data-root={tmp_path}").stdout)
    assert plan["weights_bytes"] == 256  # 64, aligned
