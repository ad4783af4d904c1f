"""Convolutions of 64-bit types, and such as end in one, against numpy's loops over the definition."""

import itertools

import numpy as np
import onnx
import pytest

import onnx_models as om
from memplan_tools import compiler, host

pytestmark = pytest.mark.usefixtures("memplan_opt")
RNG = np.random.default_rng(0)


def convolve(x, w, groups, stride, pad):
    """ONNX Conv-22 of two spatial dimensions, in the operands' own type."""
    n, c, height, width = x.shape
    f, per_group, kh, kw = w.shape
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    oh, ow = (height + 2 * pad - kh) // stride + 1, (width + 2 * pad - kw) // stride + 1
    y = np.zeros((n, f, oh, ow), x.dtype)
    for i, j, a, b in itertools.product(range(n), range(f), range(oh), range(ow)):
        first = j // (f // groups) * per_group
        patch = padded[i, first:first + per_group, a * stride:a * stride + kh, b * stride:b * stride + kw]
        y[i, j, a, b] = (patch * w[j]).sum()
    return y


def run(model, inputs, folder):
    path = om.write(model, folder / "model.onnx")
    compiler.emit_cuda(path, folder / "model", None, "-q")
    with host.HostModel(folder / "model", folder, checked=True, flags=("-O0",)) as compiled:
        return compiled.run(inputs)["y"]


@pytest.mark.parametrize("groups,stride,pad", [(1, 1, 1), (2, 2, 0), (4, 1, 2)])
def test_doubles(groups, stride, pad, tmp_path):
    x, w = RNG.standard_normal((2, 4, 7, 6)), RNG.standard_normal((8, 4 // groups, 3, 3))
    want = np.maximum(convolve(x, w, groups, stride, pad), 0)
    double = onnx.TensorProto.DOUBLE
    nodes = [om.node("Conv", ["x", "w"], ["c"], group=groups, strides=[stride] * 2, pads=[pad] * 4),
             om.node("Relu", ["c"], ["y"])]
    model = om.model(nodes, [om.value("x", x.shape, double)], [om.value("y", want.shape, double)], [om.tensor("w", w)])
    np.testing.assert_allclose(run(model, {"x": x}, tmp_path), want, rtol=1e-13, atol=1e-13)


def test_doubles_upsampled_and_pooled(tmp_path):
    """What convolutions of floats take in, and give, through their own kernel."""
    x, w = RNG.standard_normal((1, 2, 4, 4)), RNG.standard_normal((3, 2, 3, 3))
    full = convolve(x.repeat(2, 2).repeat(2, 3), w, 1, 1, 1)
    want = full.reshape(1, 3, 4, 2, 4, 2).max((3, 5))
    double = onnx.TensorProto.DOUBLE
    nodes = [om.node("Resize", ["x", "", "s"], ["u"], mode="nearest", coordinate_transformation_mode="asymmetric",
                     nearest_mode="floor"),
             om.node("Conv", ["u", "w"], ["c"], pads=[1] * 4),
             om.node("MaxPool", ["c"], ["y"], kernel_shape=[2, 2], strides=[2, 2])]
    model = om.model(nodes, [om.value("x", x.shape, double)], [om.value("y", want.shape, double)],
                     [om.tensor("w", w), om.tensor("s", np.array([1, 1, 2, 2], np.float32))])
    np.testing.assert_allclose(run(model, {"x": x}, tmp_path), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", ["float64", "int64"])
def test_floats_cast_to_a_wide_type(kind, tmp_path):
    x = RNG.integers(-8, 8, (1, 2, 5, 5)).astype(np.float32)
    w = RNG.integers(-8, 8, (2, 2, 3, 3)).astype(np.float32)
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    want = convolve(x, w, 1, 1, 1).astype(kind)
    nodes = [om.node("Conv", ["x", "w"], ["c"], pads=[1] * 4), om.node("Cast", ["c"], ["y"], to=to)]
    model = om.model(nodes, [om.value("x", x.shape)], [om.value("y", want.shape, to)], [om.tensor("w", w)])
    np.testing.assert_array_equal(run(model, {"x": x}, tmp_path), want)
