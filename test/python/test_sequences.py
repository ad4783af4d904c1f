"""Sequences and optionals, which are taken apart at import: against onnx.reference."""

import numpy as np
import onnx_models as om
import pytest
from memplan_tools import compiler, host
from onnx import helper
from onnx.reference import ReferenceEvaluator

pytestmark = pytest.mark.usefixtures("memplan_opt")

INT64, BOOL, FLOAT = om.INT64, om.TensorProto.BOOL, om.FLOAT


def sequence(name, shape=None, dtype=FLOAT):
    return helper.make_tensor_sequence_value_info(name, dtype, shape)


def optional(name, inner):
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def flat(values):
    """Lists as the outputs of the compiled model: NAME[0], NAME[1], ..."""
    result = {}
    for name, value in values.items():
        if isinstance(value, list):
            result.update({f"{name}[{i}]": element for i, element in enumerate(value)})
        elif value is not None:
            result[name] = value
    return result


@pytest.fixture
def check(tmp_path, quick):
    def check(nodes, inputs, outputs, values, initializers=(), flags=(), opset=18):
        made = om.model(nodes, inputs, outputs, initializers, opset)
        want = dict(zip([o.name for o in made.graph.output], ReferenceEvaluator(made).run(None, values)))
        path = om.write(made, tmp_path / "m.onnx")
        compiler.run(path, "--emit=cuda", "-q", "-o", tmp_path / "m", *flags)
        with host.HostModel(tmp_path / "m", **quick) as model:
            got = model.run(flat(values))
        want = flat(want)
        assert list(got) == list(want)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-6, err_msg=name)

    return check


@pytest.fixture
def refuse(tmp_path):
    def refuse(code, message, nodes, inputs, outputs, initializers=(), flags=()):
        made = om.model(nodes, inputs, outputs, initializers, 18)
        done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "m", *flags, check=False)
        assert done.returncode == compiler.EXIT[code], done.stderr
        assert message in done.stderr
        assert not (tmp_path / "m.cu").exists()

    return refuse


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_sequences_are_made_and_taken_apart(check):
    nodes = [om.node("SequenceConstruct", ["a", "b"], ["s"]), om.node("SequenceInsert", ["s", "c", "first"], ["t"]),
             om.node("SequenceErase", ["t", "last"], ["u"]), om.node("SequenceInsert", ["u", "b"], ["v"]),
             om.node("SequenceAt", ["v", "last"], ["x"]), om.node("SequenceLength", ["v"], ["n"]),
             om.node("ConcatFromSequence", ["v"], ["y"], axis=1), om.node("Relu", ["x"], ["z"])]
    check(nodes, [om.value("a", [2, 3]), om.value("b", [2, 1]), om.value("c", [2, 4])],
          [om.value("y", [2, "k"]), om.value("z", [2, 1]), om.value("n", [], INT64), sequence("v")],
          {"a": numbers(2, 3), "b": numbers(2, 1), "c": numbers(2, 4)},
          [om.tensor("first", np.int64(0)), om.tensor("last", np.int64(-1))])


@pytest.mark.parametrize("split, keepdims", [(None, 1), (None, 0), (np.int64(2), 1), (np.array([1, 3, 1]), 1)])
def test_split_and_join(check, split, keepdims):
    constants = [] if split is None else [om.tensor("split", split)]
    names = ["x"] + (["split"] if split is not None else [])
    nodes = [om.node("SplitToSequence", names, ["s"], axis=1, keepdims=keepdims)]
    outputs = [sequence("s")]
    if split is None and not keepdims:
        nodes.append(om.node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1))
        outputs.append(om.value("y", [5, 3]))
    check(nodes, [om.value("x", [3, 5])], outputs, {"x": numbers(3, 5)}, constants)


@pytest.mark.parametrize("shape, flags", [
    ([None, 3], [word for i, n in enumerate((2, 4, 1)) for word in ("--dim", f"s[{i}].0={n}")]),
    (None, ["--input-shape", "s[0]=2x3", "--input-shape", "s[1]=4x3", "--input-shape", "s=1x3"])])
def test_a_sequence_is_an_input(check, shape, flags):
    nodes = [om.node("SequenceAt", ["s", "one"], ["x"]), om.node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    check(nodes, [sequence("s", shape)], [om.value("x", [4, 3]), om.value("y", [7, 3])],
          {"s": [numbers(2, 3), numbers(4, 3), numbers(1, 3)]}, [om.tensor("one", np.int64(1))],
          ["--sequence-length", "s=3", *flags])


def test_map_is_built_for_each_element(tmp_path, quick):
    """The body also reads a tensor of the graph around it, which onnx.reference does not let it."""
    body = helper.make_graph([om.node("Add", ["p", "q"], ["sum"]), om.node("Mul", ["p", "outer"], ["scaled"])], "body",
                             [om.value("p", None), om.value("q", None)], [om.value("sum", None), om.value("scaled", None)])
    nodes = [om.node("SplitToSequence", ["x"], ["s"], axis=0), om.node("SequenceMap", ["s", "b"], ["t", "u"], body=body)]
    made = om.model(nodes, [om.value("x", [3, 4]), om.value("b", [4]), om.value("outer", [1])], [sequence("t"), sequence("u")],
                    opset=18)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
    values = {"x": numbers(3, 4), "b": numbers(4), "outer": numbers(1)}
    with host.HostModel(tmp_path / "m", **quick) as model:
        got = model.run(values)
    assert len(got) == 6
    for i, row in enumerate(np.split(values["x"], 3)):
        np.testing.assert_allclose(got[f"t[{i}]"], row + values["b"], rtol=1e-6)
        np.testing.assert_allclose(got[f"u[{i}]"], row * values["outer"], rtol=1e-6)


@pytest.mark.parametrize("has", [True, False])
def test_an_optional_input(tmp_path, quick, has):
    """The branch of a value that is there, or of its default."""
    tensor = helper.make_tensor_type_proto(FLOAT, [2])
    there = helper.make_graph([om.node("OptionalGetElement", ["o"], ["v"])], "there", [], [om.value("v", [2])])
    absent = helper.make_graph([om.node("Identity", ["x"], ["w"])], "absent", [], [om.value("w", [2])])
    nodes = [om.node("OptionalHasElement", ["o"], ["has"]),
             om.node("If", ["has"], ["chosen"], then_branch=there, else_branch=absent), om.node("Neg", ["chosen"], ["y"])]
    made = om.model(nodes, [om.value("x", [2]), optional("o", tensor)], [om.value("y", [2])], opset=18)
    path = om.write(made, tmp_path / "m.onnx")
    compiler.run(path, "--emit=cuda", "-q", "-o", tmp_path / "m", *([] if has else ["--absent", "o"]))
    x, o = numbers(2), numbers(2) + 7
    with host.HostModel(tmp_path / "m", **quick) as model:
        assert [i.name.decode() for i in model.inputs] == ["x", "o"] if has else ["x"]
        got = model.run({"x": x, "o": o} if has else {"x": x})
    np.testing.assert_array_equal(got["y"], -(o if has else x))


def test_branches_make_sequences(tmp_path, quick):
    """Which of the two the run decides: element by element."""
    def branch(name, kind):
        return helper.make_graph([om.node(kind, ["x"], ["p" + name]), om.node("SequenceConstruct", ["p" + name, "x"], ["s" + name])],
                                 name, [], [sequence("s" + name)])
    nodes = [om.node("If", ["c"], ["s"], then_branch=branch("then", "Neg"), else_branch=branch("else", "Exp")),
             om.node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    made = om.model(nodes, [om.value("c", [], BOOL), om.value("x", [3])], [om.value("y", [6])], opset=18)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
    x = numbers(3)
    with host.HostModel(tmp_path / "m", **quick) as model:
        for c, f in ((True, np.negative), (False, np.exp)):
            np.testing.assert_allclose(model.run({"c": np.array(c), "x": x})["y"], np.concatenate([f(x), x]), rtol=1e-6)


def test_a_loop_fills_a_sequence(tmp_path, quick):
    """The state grows, so that the loop is unrolled."""
    body = helper.make_graph(
        [om.node("Identity", ["c"], ["d"]), om.node("Add", ["i", "one"], ["n"]), om.node("Unsqueeze", ["n", "zeros"], ["end"]),
         om.node("Slice", ["x", "zeros", "end"], ["part"]), om.node("SequenceInsert", ["s", "part"], ["t"])], "body",
        [om.value("i", [], INT64), om.value("c", [], BOOL), sequence("s")], [om.value("d", [], BOOL), sequence("t")])
    nodes = [om.node("SequenceEmpty", [], ["empty"]), om.node("Loop", ["trips", "", "empty"], ["s"], body=body),
             om.node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    made = om.model(nodes, [om.value("x", [5])], [om.value("y", [10]), sequence("s")],
                    [om.tensor("trips", np.int64(4)), om.tensor("one", np.int64(1)), om.tensor("zeros", np.array([0]))], 18)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
    x = numbers(5)
    with host.HostModel(tmp_path / "m", **quick) as model:
        got = model.run({"x": x})
    parts = [x[:n] for n in (1, 2, 3, 4)]
    np.testing.assert_array_equal(got["y"], np.concatenate(parts))
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(got[f"s[{i}]"], part)


ERRORS = [
    ("unsupported", "which depends on the model's inputs", [om.node("SequenceConstruct", ["x"], ["s"]), om.node("SequenceAt", ["s", "i"], ["y"])], ()),
    ("invalid", "position 1 is outside [-1, 0] of a sequence of 1", [om.node("SequenceConstruct", ["x"], ["s"]), om.node("SequenceAt", ["s", "one"], ["y"])], ()),
    ("invalid", "'s' (sequence of 1); a tensor is accepted", [om.node("SequenceConstruct", ["x"], ["s"]), om.node("Relu", ["s"], ["y"])], ()),
    ("invalid", "has nothing to join", [om.node("SequenceEmpty", [], ["s"]), om.node("ConcatFromSequence", ["s"], ["y"], axis=0)], ()),
    ("invalid", "optional without a value", [om.node("Optional", [], ["o"], type=helper.make_tensor_type_proto(FLOAT, [2])), om.node("OptionalGetElement", ["o"], ["y"])], ()),
    ("usage", "--sequence-length x names no input that is a sequence", [om.node("Relu", ["x"], ["y"])], ["--sequence-length", "x=2"]),
    ("usage", "--input-shape z names no input of the model", [om.node("Relu", ["x"], ["y"])], ["--input-shape", "z=2"]),
    ("usage", "--input-shape x=3 has 3 as dim 0, which the model fixes to 2", [om.node("Relu", ["x"], ["y"])], ["--input-shape", "x=3"]),
    ("usage", "--absent x names no input that is an optional", [om.node("Relu", ["x"], ["y"])], ["--absent", "x"]),
    ("usage", "is not NAME=N0xN1x...", [om.node("Relu", ["x"], ["y"])], ["--input-shape", "x=2y"]),
]


@pytest.mark.parametrize("code, message, nodes, flags", ERRORS, ids=[message for _, message, _, _ in ERRORS])
def test_errors(refuse, code, message, nodes, flags):
    refuse(code, message, nodes, [om.value("x", [2]), om.value("i", [], INT64)], [om.value("y", None)],
           [om.tensor("one", np.int64(1))], flags)


def test_a_sequence_needs_its_length(refuse):
    nodes = [om.node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    refuse("unbound", "is a sequence; give --sequence-length s=N", nodes, [sequence("s", [2])], [om.value("y", None)])
    refuse("unbound", "--input-shape s[0]=N0xN1", nodes, [sequence("s")], [om.value("y", None)], flags=["--sequence-length", "s=2"])
