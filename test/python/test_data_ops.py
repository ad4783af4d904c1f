"""Operators whose values, or shapes, no table of expected results can tell: random numbers, sizes of the run."""

import numpy as np
import onnx_models as om
import pytest
from memplan_tools import compiler, host

pytestmark = pytest.mark.usefixtures("memplan_opt")

N = 50_000


@pytest.fixture
def run(tmp_path, quick):
    """Compiles a model, runs it once and gives its outputs."""

    def run(nodes, inputs, outputs, values, initializers=(), opset=22, **opsets):
        made = om.model(nodes, inputs, outputs, initializers, opset=opset)
        compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
        with host.HostModel(tmp_path / "out/m", **quick) as model:
            return model.run(values)

    return run


def test_random_numbers_have_their_distribution(run):
    nodes = [om.node("RandomNormal", [], ["normal"], shape=[N], mean=2.0, scale=3.0, seed=1.0),
             om.node("RandomUniform", [], ["uniform"], shape=[N], low=-1.0, high=5.0),
             om.node("RandomNormalLike", ["x"], ["like"], dtype=om.TensorProto.DOUBLE),
             om.node("RandomUniformLike", ["x"], ["again"])]
    outputs = [om.value(name, [N], om.TensorProto.DOUBLE if name == "like" else om.FLOAT)
               for name in ("normal", "uniform", "like", "again")]
    got = run(nodes, [om.value("x", [N])], outputs, {"x": np.zeros(N, np.float32)})
    for name, mean, deviation in (("normal", 2, 3), ("uniform", 2, 6 / 12 ** 0.5), ("like", 0, 1), ("again", 0.5, 12 ** -0.5)):
        values = got[name].astype(np.float64)
        # Five standard errors of the mean; that of the deviation is smaller.
        assert abs(values.mean() - mean) < 5 * deviation / N ** 0.5, name
        assert abs(values.std() - deviation) < 5 * deviation / N ** 0.5, name
        assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / N ** 0.5, name
    assert got["uniform"].min() >= -1 and got["uniform"].max() <= 5
    assert abs(np.corrcoef(got["uniform"], got["again"])[0, 1]) < 5 / N ** 0.5, "nodes differ"


def test_a_seed_decides(run):
    nodes = [om.node("RandomUniform", [], [name], shape=[100], **({"seed": seed} if seed else {}))
             for name, seed in (("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", None))]
    got = run(nodes, [om.value("x", [1])], [om.value(name, [100]) for name in "abcd"], {"x": np.zeros(1, np.float32)})
    assert (got["a"] == got["b"]).all()
    assert (got["a"] != got["c"]).any() and (got["a"] != got["d"]).any()


def test_draws_follow_their_probabilities(run):
    p = np.array([[.1, .2, .3, .4], [.7, .1, .1, .1]], np.float32)
    nodes = [om.node("Multinomial", ["x"], ["y"], sample_size=N), om.node("Bernoulli", ["p"], ["z"], dtype=om.TensorProto.INT32)]
    outputs = [om.value("y", [2, N], om.TensorProto.INT32), om.value("z", [N], om.TensorProto.INT32)]
    got = run(nodes, [om.value("x", [2, 4]), om.value("p", [N])], outputs,
              {"x": np.log(p) + 3, "p": np.full(N, .3, np.float32)})
    for row, want in zip(got["y"], p):
        np.testing.assert_allclose(np.bincount(row, minlength=4) / N, want, atol=5 * 0.5 / N ** 0.5)
    assert set(np.unique(got["z"])) == {0, 1} and abs(got["z"].mean() - 0.3) < 5 * 0.46 / N ** 0.5


def test_dropout_in_training(run):
    got = run([om.node("Dropout", ["x", "r", "t"], ["y", "m"], seed=3)], [om.value("x", [N])],
              [om.value("y", [N]), om.value("m", [N], om.TensorProto.BOOL)], {"x": np.full(N, 3, np.float32)},
              [om.tensor("r", np.float32(.25)), om.tensor("t", True)])
    assert abs(got["m"].mean() - 0.75) < 5 * 0.44 / N ** 0.5
    np.testing.assert_allclose(got["y"], np.where(got["m"], 4, 0), rtol=1e-6)


@pytest.mark.parametrize("length", [7, 8, 1000])
def test_long_transforms_are_accurate(run, length):
    x = np.random.default_rng(0).standard_normal((2, 1000, 1)).astype(np.float32)
    nodes = [om.node("DFT", ["x", "n", "axis"], ["y"], onesided=1), om.node("DFT", ["y", "n", "axis"], ["z"], onesided=1, inverse=1)]
    bins = length // 2 + 1
    got = run(nodes, [om.value("x", [2, 1000, 1])], [om.value("y", [2, bins, 2]), om.value("z", [2, length, 1])], {"x": x},
              [om.tensor("n", np.int64(length)), om.tensor("axis", np.int64(1))])
    want = np.fft.rfft(x[:, :length, 0].astype(np.float64))
    np.testing.assert_allclose(got["y"], np.stack([want.real, want.imag], -1), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(got["z"], x[:, :length], atol=1e-5)
