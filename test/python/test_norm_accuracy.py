"""Norms of rows whose mean is far above their deviation, against double precision: an error of the mean of half a
unit in the last place of a float would be seen in them."""

import numpy as np
import pytest

import onnx_models as om
from memplan_tools import compiler, host
from onnx_models import node, value

pytestmark = pytest.mark.usefixtures("memplan_opt")

SHAPE = (2, 6, 8, 25)
OFFSET, DEVIATION = 1000, 0.1
X = (OFFSET + DEVIATION * np.random.default_rng(1).standard_normal(SHAPE)).astype(np.float32)
ONES, ZEROS = np.ones(6, np.float32), np.zeros(6, np.float32)

CASES = {
    # name: (operator, parameters, attributes, axes of a row in `view`, view, epsilon)
    "layer": ("LayerNormalization", [np.ones(25, np.float32)], {}, (3,), SHAPE, 1e-5),
    "layer_all": ("LayerNormalization", [np.ones(SHAPE[1:], np.float32)], dict(axis=1), (1, 2, 3), SHAPE, 1e-5),
    "instance": ("InstanceNormalization", [ONES, ZEROS], {}, (2, 3), SHAPE, 1e-5),
    "group": ("GroupNormalization", [ONES, ZEROS], dict(num_groups=3), (2, 3, 4), (2, 3, 2, 8, 25), 1e-5),
    "mean_variance": ("MeanVarianceNormalization", [], {}, (0, 2, 3), SHAPE, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_against_double(tmp_path, quick, name):
    kind, parameters, attributes, axes, view, epsilon = CASES[name]
    names = [f"p{i}" for i in range(len(parameters))]
    made = om.model([node(kind, ["x", *names], ["y"], **attributes)], [value("x", SHAPE)], [value("y", SHAPE)],
                    [om.tensor(n, p) for n, p in zip(names, parameters)], 21)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    d = X.astype(np.float64).reshape(view)
    want = (d - d.mean(axes, keepdims=True)) / np.sqrt(d.var(axes, keepdims=True) + epsilon)
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"x": X})["y"]
    # The results are of the order of 1; X itself is exact.
    np.testing.assert_allclose(got, want.reshape(SHAPE), rtol=0, atol=4e-6)


def test_the_mean_of_a_row_is_exact(tmp_path, quick):
    """LayerNormalization's second output, rounded once."""
    made = om.model([node("LayerNormalization", ["x", "s"], ["y", "mean"])], [value("x", SHAPE)],
                    [value("y", SHAPE), value("mean", (*SHAPE[:-1], 1))], [om.tensor("s", np.ones(25, np.float32))], 17)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"x": X})["mean"]
    want = X.astype(np.float64).mean(3, keepdims=True).astype(np.float32)
    assert np.array_equal(got, want)
