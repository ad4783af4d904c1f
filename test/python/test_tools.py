"""The test tools themselves, on a model whose emitted code was written by hand (standin/)."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memplan_tools import ROOT, bundle, compare, host

STANDIN = Path(__file__).with_name("standin")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.full((2, 3), 10, np.float32)


def difference_of(got, want):
    return compare.difference(np.array(got, np.float32), np.array(want, np.float32))


def test_tolerance_is_absolute_plus_relative():
    # At 100 the tolerance is 1e-5 + 1e-3 * 100 = 0.10001.
    assert difference_of([100.1], [100.0]).accepted
    assert not difference_of([100.11], [100.0]).accepted
    # At 0 it is 1e-5.
    assert difference_of([0.9e-5], [0.0]).accepted
    assert not difference_of([1.1e-5], [0.0]).accepted


def test_worst_element_is_named():
    worst = difference_of([[1, 2], [3, 5]], [[1, 2], [3, 4]])
    assert worst.index == (1, 1) and worst.got == 5 and worst.want == 4


def test_non_numbers():
    assert not difference_of([np.nan], [1.0]).accepted
    assert not difference_of([1.0], [np.nan]).accepted
    assert not difference_of([np.inf], [1.0]).accepted
    assert difference_of([np.inf, np.nan], [np.inf, np.nan]).accepted


def test_shape_and_type_must_agree():
    with pytest.raises(ValueError, match=r"got float32\[2\], want float32\[3\]"):
        difference_of([1, 2], [1, 2, 3])


@pytest.fixture
def standin(tmp_path) -> Path:
    for file in STANDIN.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "standin.safetensors").write_bytes(W.tobytes())
    return tmp_path / "standin"


@pytest.mark.parametrize("checked", [False, True])
def test_host_model(standin, checked):
    with host.HostModel(standin, checked=checked) as model:
        assert (model.weights_bytes, model.arena_bytes) == (256, 512)
        assert model.counters().allocations == 1
        np.testing.assert_array_equal(model.run({"x": X})["y"], 2 * X + W)
        assert model.counters().allocations == 1 and model.counters().launches == 1


def test_host_model_refuses_a_wrong_shape(standin):
    with host.HostModel(standin) as model, pytest.raises(ValueError, match=r"input 'x' is float32\[3, 2\]"):
        model.run({"x": X.T})


def test_host_model_reports_the_librarys_error(standin):
    standin.with_name("standin.safetensors").write_bytes(b"short")
    with pytest.raises(host.HostError, match="has 5 bytes, expected 24"):
        host.HostModel(standin)


def write_bundle(standin: Path, out: Path, expected: np.ndarray) -> Path:
    folder = out / "models/standin"
    shutil.copytree(standin.parent, folder, ignore=shutil.ignore_patterns("*.so", "out"))
    manifest = {"name": "standin", "c_name": "standin", "dims": {}, "weights_bytes": 256, "arena_bytes": 512,
                "no_reuse_bytes": 512, "lower_bound_bytes": 512, "lower_bound_proof": "live_bytes", "optimal": True,
                "relative": 1e-3, "absolute": 1e-5,
                "inputs": bundle._tensors(folder, "input", {"x": X}),
                "outputs": bundle._tensors(folder, "expected", {"y": expected})}
    bundle.write_frame(out, {"models": [manifest]})
    return out


def run_bundle(out: Path, *flags: str):
    # -S -E: no site-packages, since a bundle must run on the standard library alone.
    return subprocess.run([sys.executable, "-S", "-E", str(out / "run.py"), *flags], capture_output=True, text=True)


def test_bundle_on_the_host(standin, tmp_path):
    done = run_bundle(write_bundle(standin, tmp_path / "out", 2 * X + W), "--host")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 models passed" in done.stdout
    heads, _, cells = (line.split() for line in done.stdout.splitlines()[2:5])
    assert cells[0] == "standin" and "pass" in cells and "1/0" in cells


def test_bundle_finds_a_wrong_result(standin, tmp_path):
    expected = 2 * X + W
    expected[1, 2] += 0.1
    done = run_bundle(write_bundle(standin, tmp_path / "out", expected), "--host")
    assert done.returncode == 1
    assert "the result is wrong" in done.stdout and "0 of 1 models passed" in done.stdout


def test_bundle_finds_an_allocation_in_run(standin, tmp_path):
    source = standin.with_suffix(".cu")
    source.write_text(source.read_text().replace(
        "  return launch(", "  void *p; MEMPLAN_TRY(deviceAllocate(\"x\", 1, &p)); deviceFree(p);\n  return launch("))
    done = run_bundle(write_bundle(standin, tmp_path / "out", 2 * X + W), "--host")
    assert done.returncode == 1 and "run never allocate" in done.stdout


def test_bundle_compiles_for_gpus(standin, tmp_path):
    if not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()):
        pytest.skip("nvcc isn't installed")
    done = run_bundle(write_bundle(standin, tmp_path / "out", 2 * X + W), "--compile-only", "--arch", "sm_80",
                      "--arch", "sm_90")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["compiled standin for sm_80", "compiled standin for sm_90"]


def test_bundle_asks_for_a_gpu(standin, tmp_path):
    if shutil.which("nvidia-smi"):
        pytest.skip("a GPU may be here")
    done = run_bundle(write_bundle(standin, tmp_path / "out", 2 * X + W))
    assert done.returncode == 1 and "--host" in done.stderr


def test_runtime_headers_need_no_mlir():
    for header in (ROOT / "include/memplan/Runtime").glob("*.h"):
        assert "mlir/" not in header.read_text(), header


def test_bundle_finds_a_wait_in_run(standin, tmp_path):
    """Unless the model's header says that a run waits for values from the device."""
    source, header = standin.with_suffix(".cu"), standin.with_suffix(".h")
    source.write_text(source.read_text().replace(
        "  return launch(", "  MEMPLAN_TRY(synchronize(\"x\", stream));\n  return launch("))
    done = run_bundle(write_bundle(standin, tmp_path / "out", 2 * X + W), "--host")
    assert done.returncode == 1 and "run must not wait" in done.stdout
    header.write_text(header.read_text() + "/* size_t standin_num_readbacks(void) */\n")
    done = run_bundle(write_bundle(standin, tmp_path / "again", 2 * X + W), "--host")
    assert done.returncode == 0, done.stdout
