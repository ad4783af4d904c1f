"""Shapes that a model computes from extents of the run, as exporters of detectors write them: against onnxruntime."""

import numpy as np
import pytest
from onnx import helper

import onnx_models as om
from test_run_sizes import check  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("memplan_opt")

INT64 = om.INT64
RUNS = [np.array(v, np.float32) for v in ([3, -1, 2, 2, 5, -4, 0, 1], [-1] * 8, [1] * 8, [0, 7, -2, np.inf, 1, 3, 3, 9])]
INTS = [om.tensor(f"i{n}", np.array([n])) for n in (-1, 0, 1, 2, 3, 4)]


def chosen():
    """The positive elements of x: `some`."""
    return [om.node("Greater", ["x", "none"], ["is"]), om.node("NonZero", ["is"], ["at"]),
            om.node("Transpose", ["at"], ["places"], perm=[1, 0]), om.node("GatherND", ["x", "places"], ["some"]),
            om.node("Shape", ["some"], ["count"])]


def run(check, nodes, outputs, runs=RUNS, opset=17):  # noqa: F811
    check(chosen() + nodes, [om.value("x", [8])], outputs, [{"x": x} for x in runs],
          [om.tensor("none", np.float32(0)), *INTS], opset)


@pytest.mark.parametrize("largest", [0, 1])
def test_topk_of_at_most_so_many(check, largest):  # noqa: F811
    """As many as there are, if fewer than 3. What lies beyond the extent is not among them, infinity is."""
    run(check, [om.node("Concat", ["count", "i3"], ["both"], axis=0), om.node("ReduceMin", ["both"], ["k0"], keepdims=0),
                om.node("Reshape", ["k0", "i1"], ["k"]), om.node("TopK", ["some", "k"], ["y", "z"], largest=largest),
                om.node("Gather", ["some", "z"], ["again"]), om.node("Sub", ["again", "y"], ["zero"])],
        [("y", None, om.FLOAT), ("z", None, INT64)])


def test_topk_of_all(check):  # noqa: F811
    run(check, [om.node("TopK", ["x", "count"], ["y", "z"])], [("y", None, om.FLOAT), ("z", None, INT64)])


def test_tensors_of_such_shapes(check):  # noqa: F811
    """Both NonZero give one extent; so do both sums of it and 2."""
    run(check, [om.node("NonZero", ["is"], ["at2"]), om.node("Squeeze", ["at2", "i0"], ["places2"]),
                om.node("Cast", ["places2"], ["floats"], to=om.FLOAT), om.node("Add", ["some", "floats"], ["sum"]),
                om.node("ConstantOfShape", ["count"], ["threes"], value=om.tensor("v", np.array([3], np.float32))),
                om.node("Mul", ["sum", "threes"], ["y"]),
                om.node("Slice", ["x", "i0", "i2"], ["two"]), om.node("Concat", ["some", "two"], ["a"], axis=0),
                om.node("Concat", ["floats", "two"], ["b"], axis=0), om.node("Add", ["a", "b"], ["z"])],
        [("y", None, om.FLOAT), ("z", None, om.FLOAT)])


def test_expand_and_range(check):  # noqa: F811
    """As PyTorch writes expand(-1, ...): an entry -1 would be 1, but there is none."""
    run(check, [om.node("Concat", ["i3", "count"], ["shape"], axis=0), om.node("Shape", ["shape"], ["rank"]),
                om.node("ConstantOfShape", ["rank"], ["ones"], value=om.tensor("v", np.array([1]))),
                om.node("Mul", ["ones", "i-1"], ["minus"]), om.node("Equal", ["shape", "minus"], ["open"]),
                om.node("Where", ["open", "ones", "shape"], ["closed"]), om.node("Expand", ["some", "closed"], ["y"]),
                om.node("Squeeze", ["count"], ["limit"]), om.node("Squeeze", ["i0"], ["start"]), om.node("Squeeze", ["i1"], ["step"]),
                om.node("Range", ["start", "limit", "step"], ["z"])],
        [("y", None, om.FLOAT), ("z", None, INT64)])


def test_reshape_to_own_extents(check):  # noqa: F811
    """[n, 1] and [1, n] by their entries; [n, 2, 2] to rows of 2, whose extent is 2 n."""
    run(check, [om.node("Concat", ["count", "i1"], ["tall"], axis=0), om.node("Reshape", ["some", "tall"], ["y"]),
                om.node("Concat", ["i1", "count"], ["wide"], axis=0), om.node("Reshape", ["some", "wide"], ["z"]),
                om.node("Concat", ["count", "i2", "i2"], ["cube"], axis=0), om.node("Unsqueeze", ["y", "i2"], ["y1"]),
                om.node("Expand", ["y1", "cube"], ["cubes"]), om.node("Concat", ["i-1", "i2"], ["rows"], axis=0),
                om.node("Reshape", ["cubes", "rows"], ["w"])],
        [("y", None, om.FLOAT), ("z", None, om.FLOAT), ("w", None, om.FLOAT)])


def test_slice_to_the_own_end(check):  # noqa: F811
    run(check, [om.node("Add", ["count", "i0"], ["end"]), om.node("Slice", ["some", "i1", "end", "i0"], ["y"])],
        [("y", None, om.FLOAT)], [r for r in RUNS if (r > 0).any()])


def test_scatter(check):  # noqa: F811
    """Updates beyond the extent move nothing, not even the element 0 that padding points to."""
    run(check, [om.node("Squeeze", ["at", "i0"], ["flat"]), om.node("Neg", ["some"], ["moved"]),
                om.node("ScatterElements", ["x", "flat", "moved"], ["y"], axis=0),
                om.node("ScatterND", ["x", "places", "moved"], ["z"])],
        [("y", None, om.FLOAT), ("z", None, om.FLOAT)])


@pytest.mark.parametrize("run_then, run_else", [(False, False), (True, False), (True, True)])
def test_branches_of_different_extents(check, run_then, run_else):  # noqa: F811
    """As batched_nms has them: nothing, or as many as are chosen."""
    then = helper.make_graph([om.node("Exp" if run_then else "Slice", ["some"] if run_then else ["x", "i0", "i0"], ["a"])], "t", [],
                             [om.value("a", None)])
    other = helper.make_graph([om.node("Neg", ["some" if run_else else "x"], ["b"])], "e", [], [om.value("b", None)])
    check(
        chosen() + [om.node("ReduceMax", ["x"], ["most"], keepdims=0), om.node("Less", ["most", "one"], ["c"]),
                    helper.make_node("If", ["c"], ["chosen"], then_branch=then, else_branch=other),
                    om.node("Mul", ["chosen", "chosen"], ["y"]), om.node("Shape", ["chosen"], ["z"])],
        [om.value("x", [8])], [("y", None, om.FLOAT), ("z", None, INT64)], [{"x": x} for x in RUNS],
        [om.tensor("none", np.float32(0)), om.tensor("one", np.float32(1)), *INTS])
