"""Operators whose operands are views with gaps: slices with steps, and parts of a row."""

import numpy as np
import pytest

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

#: start, end, axis, step
SLICES = {"columns": (1, 7, 3, 1), "even columns": (0, 8, 3, 2), "even rows": (0, 8, 2, 2), "rows": (2, 7, 2, 1),
          "columns backwards": (7, 0, 3, -1)}
RNG = np.random.default_rng(0)


def weight(*shape):
    return om.tensor("w", RNG.standard_normal(shape).astype(np.float32))


#: kind: node, weights, channels of the result, what a kernel takes from each extent
READERS = {
    "conv": (om.node("Conv", ["part", "w"], ["y"], pads=[1] * 4), [weight(3, 4, 3, 3)], 3, 0),
    "depthwise": (om.node("Conv", ["part", "w"], ["y"], pads=[1] * 4, group=4), [weight(4, 1, 3, 3)], 4, 0),
    "transposed": (om.node("ConvTranspose", ["part", "w"], ["y"], pads=[1] * 4), [weight(4, 3, 3, 3)], 3, 0),
    "max_pool": (om.node("MaxPool", ["part"], ["y"], kernel_shape=[2, 2]), [], 4, 1),
    "softmax": (om.node("Softmax", ["part"], ["y"], axis=-1), [], 4, 0),
    "matmul": (om.node("MatMul", ["part_t", "part"], ["y"]), [], 4, None),
}


def slice_node(source, result, indices):
    names = [f"{result}_{k}" for k in ("start", "end", "axis", "step")]
    return (om.node("Slice", [source, *names], [result]),
            [om.tensor(n, np.array([v], np.int64)) for n, v in zip(names, indices)])


def check(model, folder):
    path = om.write(model, folder / "model.onnx")
    compiler.emit_cuda(path, folder / "model", None, "-q")
    inputs = reference.random_inputs(path)
    with host.HostModel(folder / "model", folder, checked=True, flags=("-O0",)) as compiled:
        got = compiled.run(inputs)
    assert_close(got, reference.run(path, inputs), absolute=1e-4)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("part", SLICES)
def test_input_is_a_part(reader, part, tmp_path):
    node, weights, channels, less = READERS[reader]
    start, end, axis, step = SLICES[part]
    extents = [8, 8]
    extents[axis - 2] = len(range(start, end, step))
    taken, constants = slice_node("x", "part", SLICES[part])
    nodes = [taken, node]
    shape = [2, channels, *(e - (less or 0) for e in extents)]
    if less is None:
        nodes.insert(1, om.node("Transpose", ["part"], ["part_t"], perm=[0, 1, 3, 2]))
        shape = [2, 4, extents[1], extents[1]]
    check(om.model(nodes, [om.value("x", (2, 4, 8, 8))], [om.value("y", shape)], weights + constants), tmp_path)


def test_filter_is_a_part(tmp_path):
    """Filters that the run computes."""
    taken, constants = slice_node("f", "part", (0, 6, 3, 2))
    conv = om.node("Conv", ["x", "part"], ["y"], "conv")
    check(om.model([taken, conv], [om.value("x", (1, 4, 5, 5)), om.value("f", (2, 4, 3, 6))],
                   [om.value("y", (1, 2, 3, 3))], constants), tmp_path)


def test_results_side_by_side(tmp_path):
    """A convolution writes where a concatenation along a row wants it, or a copy does."""
    nodes = [om.node("Conv", [x, "w"], [y], pads=[1] * 4) for x, y in (("x", "a"), ("z", "b"))]
    nodes.append(om.node("Concat", ["a", "b"], ["y"], axis=3))
    check(om.model(nodes, [om.value("x", (2, 4, 8, 8)), om.value("z", (2, 4, 8, 5))], [om.value("y", (2, 3, 8, 13))],
                   [weight(3, 4, 3, 3)]), tmp_path)
