"""Small models that once went wrong, built for the host with the plan checked and compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

RNG = np.random.default_rng(3)


def weights(**arrays):
    return [om.tensor(name, array) for name, array in arrays.items()]


def integers(*values):
    return np.array(values, np.int64)


def scale(shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model(nodes, shape, initializers, opset=21, dtype=om.FLOAT):
    output = om.value("y", None, dtype)
    output.type.tensor_type.ClearField("shape")
    return om.model(nodes, [om.value("x", shape, dtype)], [output], initializers, opset)


CASES = {
    # A stage that reads what it keeps in registers needs no index of its own.
    "group_norm": model([om.node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)], (2, 4, 5, 3),
                        weights(s=scale(4), b=scale(4))),
    # A dim that is summed over and that no operand has.
    "sum_of_stretched": model([om.node("Expand", ["x", "s"], ["e"]), om.node("ReduceSum", ["e", "a"], ["y"])],
                              (2, 3, 1, 5), weights(s=integers(2, 3, 4, 5), a=integers(2, 3))),
    # All weights are empty: there is no block.
    "empty_weight": model([om.node("MatMul", ["x", "w"], ["m"]), om.node("Relu", ["m"], ["y"])], (2, 0),
                          weights(w=scale((0, 3)))),
    # Maxima of narrow integers, all negative beside padding.
    "narrow_maximum": model([om.node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1] * 4)], (1, 1, 4, 4), [],
                            dtype=TensorProto.INT8),
    # Reduced over no axes, each element is still squared, its logarithm taken and so on.
    **{f"{op}_over_no_axes": model([om.node(op, ["x", "a"], ["y"], noop_with_empty_axes=1)], (2, 3),
                                   weights(a=integers()))
       for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare")},
    "no_axes_given": model([om.node("ReduceSumSquare", ["x"], ["y"], noop_with_empty_axes=1, keepdims=0)], (2, 3), []),
}


def inputs_of(name, path):
    if name == "narrow_maximum":
        return {"x": np.arange(-128, -112, dtype=np.int8).reshape(1, 1, 4, 4)}
    return reference.random_inputs(path)


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "awkward"
    folder.mkdir()
    for name, made in CASES.items():
        compiler.emit_cuda(om.write(made, folder / f"{name}.onnx"), folder / name, None, "-q")
    return host.build_together([folder / name for name in CASES], folder / "libawkward.so", checked=True)


@pytest.mark.parametrize("name", CASES)
def test_result(library, name):
    path = library.with_name(f"{name}.onnx")
    inputs = inputs_of(name, path)
    with host.HostModel(library.with_name(name), library=library) as built:
        assert_close(built.run(inputs), reference.run(path, inputs))
