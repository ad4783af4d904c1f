"""What exporters write though ONNX's text would have it otherwise, and ONNX Runtime runs all the same."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")


def agrees(made, inputs: dict, tmp_path, quick, flags=()) -> str:
    """Compares with ONNX Runtime; returns what the compiler said."""
    path = om.write(made, tmp_path / "m.onnx")
    said = compiler.run(path, "--emit=cuda", "-q", "-o", tmp_path / "out/m", *flags).stderr
    with host.HostModel(tmp_path / "out/m", **quick) as built:
        got = built.run(inputs)
    assert_close(got, reference.run(path, inputs))
    return said


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def test_shapes_are_other_than_declared(tmp_path, quick):
    """PyTorch records the output shapes of the run that it traced, whatever the dims' names say."""
    made = om.model([om.node("Transpose", ["x"], ["t"], perm=[1, 0]), om.node("Exp", ["t"], ["u"]),
                     om.node("Neg", ["u"], ["y"])],
                    [om.value("x", ["n", 3])], [om.value("y", ["n", 1, "m"])])
    made.graph.value_info.extend([om.value("t", ["n", 3]), om.value("u", [5, 5])])
    said = agrees(made, {"x": floats(2, 3)}, tmp_path, quick, ("--dim", "n=2"))
    assert "warning: " in said and "declares 't' as 2x3xf32, but it is 3x2xf32" in said
    assert "2 other declared shapes" in said


def test_a_shape_is_other_than_declared_in_each_iteration(tmp_path, quick):
    """One warning, however often the body is built."""
    body = helper.make_graph(
        [om.node("Mul", ["s", "k"], ["s2"]), om.node("Concat", ["s2", "s2"], ["s3"], axis=0),
         om.node("Identity", ["c"], ["c2"])], "body",
        [om.value("i", [], TensorProto.INT64), om.value("c", [], TensorProto.BOOL), om.value("s", ["n"])],
        [om.value("c2", [], TensorProto.BOOL), om.value("s3", [7])], [om.tensor("k", np.float32(2))])
    made = om.model([helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)], [om.value("x", [3])],
                    [om.value("y", None)], [om.tensor("trips", np.int64(3))])
    said = agrees(made, {"x": floats(3)}, tmp_path, quick)
    assert said.count("warning: ") == 1 and "'s3'" in said and "other declared" not in said


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("kernel, stride, pads", [(9, 9, 0), (6, 6, 0), (7, 4, 1), (16, 16, 2)])
def test_pooling_windows_larger_than_the_input(op, kernel, stride, pads, tmp_path, quick):
    """ceil_mode=1 keeps the one window that reaches over the end, where the stride is as large as the window."""
    attributes = {"count_include_pad": 0} if op == "AveragePool" else {}
    made = om.model([om.node(op, ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pads] * 4,
                             ceil_mode=1, **attributes)],
                    [om.value("x", [1, 2, 5, 4])], [om.value("y", None)], opset=14)
    agrees(made, {"x": floats(1, 2, 5, 4)}, tmp_path, quick)
