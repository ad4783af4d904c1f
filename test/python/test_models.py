"""Every model that memplan carries, from ONNX to results: against ONNX Runtime, checked, without reuse, for GPUs.

The big models are marked slow. Emitted files and builds live in one folder for the session, so that each
model is compiled once a setting.
"""

import functools
import re
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import memplan_models
from memplan_models import light
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from plan_check import check_csv, check_plan

pytestmark = pytest.mark.usefixtures("memplan_opt")

SMALL = ["cnn_relu", "cnn_dropout", "transformer_erf", "transformer_tanh"]
LARGE = list(light.FILES)
ALL = SMALL + [pytest.param(name, marks=pytest.mark.slow) for name in LARGE]
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else None)


class Built:
    """One model's files, compiled on demand and kept for the session."""

    def __init__(self, name: str, folder: Path, storage: str = "raw"):
        self.name, self.folder = name, folder
        self.dims = memplan_models.entry(name).dims
        self.path = memplan_models.write(name, folder, storage=storage)

    def prefix(self, *flags: str) -> Path:
        """Emits with `flags` into a folder of that setting."""
        prefix = self.folder / ("cuda" + "".join(flags)) / self.name
        if not prefix.with_name(self.name + ".cu").exists():
            compiler.emit_cuda(self.path, prefix, self.dims, *flags)
        return prefix

    @functools.cached_property
    def plan(self) -> dict:
        return compiler.plan(self.path, self.dims)

    @functools.cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        return reference.random_inputs(self.path, self.dims)

    @functools.cached_property
    def expected(self) -> dict[str, np.ndarray]:
        return reference.run(self.path, self.inputs)

    @functools.cached_property
    def outputs(self) -> dict[str, np.ndarray]:
        with host.HostModel(self.prefix()) as model:
            return model.run(self.inputs)


@pytest.fixture(scope="module")
def built(build_folder):
    made: dict[str, Built] = {}

    def get(name: str) -> Built:
        if name not in made:
            # Models come one after another: what the last one left (VGG-19: 2 GB) isn't needed any more.
            for old in list(made):
                shutil.rmtree(made.pop(old).folder)
            made[name] = Built(name, build_folder / name)
        return made[name]

    return get


@pytest.mark.parametrize("name", ALL, scope="module")
class TestModel:
    def test_plan(self, built, name):
        model = built(name)
        check_plan(model.plan)
        check_csv(compiler.run(model.path, "--emit=csv", "-q", *compiler.dim_flags(model.dims)).stdout, model.plan)
        own = compiler.plan(model.path, model.dims, "--no-reuse")
        assert model.plan["arena_bytes"] < own["no_reuse_bytes"]

    def test_weights_are_the_files(self, built, name):
        """The weights file is safetensors, read here without our code's help."""
        import json
        file = built(name).prefix().with_name(f"{name}.safetensors")
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
        header.pop("__metadata__", None)
        ends = sorted(tuple(t["data_offsets"]) for t in header.values())
        assert file.stat().st_size == 8 + length + (ends[-1][1] if ends else 0)
        assert all(a[1] <= b[0] for a, b in zip(ends, ends[1:]))
        for tensor in header.values():
            assert tensor["data_offsets"][1] - tensor["data_offsets"][0] == 4 * int(np.prod(tensor["shape"]))

    def test_result(self, built, name):
        model = built(name)
        assert_close(model.outputs, model.expected)

    def test_run_neither_allocates_nor_waits(self, built, name):
        model = built(name)
        with host.HostModel(model.prefix()) as loaded:
            before = loaded.counters()
            assert before.allocations == 1, "load makes one block"
            loaded.run(model.inputs)
            after = loaded.counters()
        assert after.launches > before.launches
        for what in ("allocations", "frees", "synchronisations"):
            assert getattr(after, what) == getattr(before, what), what

    def test_checked(self, built, name):
        model = built(name)
        with host.HostModel(model.prefix(), checked=True) as loaded:
            got = loaded.run(model.inputs)
        for key, value in model.outputs.items():
            np.testing.assert_array_equal(got[key], value)

    def test_reuse_changes_no_bit(self, built, name):
        model = built(name)
        with host.HostModel(model.prefix("--no-reuse")) as loaded:
            assert loaded.arena_bytes >= model.plan["arena_bytes"]
            got = loaded.run(model.inputs)
        for key, value in model.outputs.items():
            assert got[key].tobytes() == value.tobytes(), key

    def test_same_bytes_again(self, built, name, tmp_path):
        model = built(name)
        again = tmp_path / name
        compiler.emit_cuda(model.path, again, model.dims)
        for suffix in (".cu", ".h", ".safetensors"):
            assert again.with_suffix(suffix).read_bytes() == model.prefix().with_suffix(suffix).read_bytes()

    def test_nvcc(self, built, name, tmp_path):
        if not NVCC:
            pytest.skip("nvcc isn't installed")
        prefix = built(name).prefix()
        done = subprocess.run([NVCC, "-std=c++17", "-Werror", "all-warnings", "-gencode", "arch=compute_80,code=sm_80",
                               "-gencode", "arch=compute_90,code=sm_90", "--threads", "2", "-Xptxas", "-v",
                               "-I", host.RUNTIME_INCLUDE, "-c", f"{prefix}.cu", "-o", tmp_path / "x.o"],
                              text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        # One line a kernel and architecture, from ptxas.
        spills = re.findall(r"(\d+) bytes spill stores", done.stderr)
        assert spills and not any(map(int, spills)), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("short", LARGE)
def test_as_shipped(short, tmp_path):
    """The onnx package's own files (weights by ConstantOfShape), against ONNX Runtime, with the plan checked."""
    path = light.shipped_path(short)
    compiler.emit_cuda(path, tmp_path / short)
    inputs = reference.random_inputs(path)
    with host.HostModel(tmp_path / short, checked=True) as model:
        assert_close(model.run(inputs), reference.run(path, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("short", ["squeezenet", "resnet50"])
def test_as_shipped_gives_the_packages_own_output(short, tmp_path):
    """The onnx package ships the output for its own input: numbers that come from neither us nor ONNX Runtime."""
    stored = onnx.TensorProto.FromString(light.shipped_path(short).with_name(
        f"{light.FILES[short]}_output_0.pb").read_bytes())
    want = numpy_helper.to_array(stored)
    path = light.shipped_path(short)
    (name, (dtype, shape)), = reference.input_types(path).items()
    compiler.emit_cuda(path, tmp_path / short)
    # onnx/backend/test/runner: the input is a ramp over the element count.
    ramp = (np.arange(np.prod(shape)) / np.prod(shape)).astype(dtype).reshape(shape)
    with host.HostModel(tmp_path / short) as model:
        (got,) = model.run({name: ramp}).values()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3, 32])
@pytest.mark.parametrize("name", ["cnn_relu", "cnn_dropout"])
def test_any_batch(name, batch, tmp_path):
    path, dims = memplan_models.write(name, tmp_path), {"N": batch}
    compiler.emit_cuda(path, tmp_path / "out" / name, dims)
    inputs = reference.random_inputs(path, dims)
    with host.HostModel(tmp_path / "out" / name, flags=("-O1",)) as model:
        assert_close(model.run(inputs), reference.run(path, inputs))


def test_any_sequence(tmp_path):
    path, dims = memplan_models.write("transformer_erf", tmp_path), {"N": 1, "S": 7}
    compiler.emit_cuda(path, tmp_path / "out/t", dims)
    inputs = reference.random_inputs(path, dims)
    with host.HostModel(tmp_path / "out/t", flags=("-O1",)) as model:
        assert_close(model.run(inputs), reference.run(path, inputs))


@pytest.mark.slow
def test_densenet_compiles_in_three_seconds(tmp_path):
    """Held by the release build only: $MEMPLAN_BIN of another is asked for no speed."""
    if compiler.tool().parent.parent.name != "release":
        pytest.skip("not the release build")
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        compiler.emit_cuda(light.shipped_path("densenet121"), tmp_path / "densenet121", None, "-q")
        taken.append(time.perf_counter() - start)
    assert min(taken) < 3.0, taken
