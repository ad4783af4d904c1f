"""If, Loop and Scan: results against ONNX Runtime in the checked build, and what is refused."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from test_bad_input import refused  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("memplan_opt")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
#: an If on an input, with branches of these bodies
IF = "g (float[2,3] x, bool c) => (float[2,3] y) {{ {before} y = If (c) <then_branch = t () => (float[2,3] a) {{ {yes} }}, else_branch = e () => (float[2,3] b) {{ {no} }}> }}"


def parse(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD.replace("17", str(opset)) + text)


def loop(state="float[2,3]", result="float[2,3]", trips="int64 m = {4}", condition="bool t = {1}", step="", more="",
         inputs="float[2,3] x", scan="", call="m, t, x"):
    """y = Loop over the state h, which `step` turns into n; with a scan output s of rows o if `scan` gives its type."""
    constants = ", ".join(filter(None, (trips, condition, more)))
    outputs, rows = (f"float[2,3] y, {scan} s".replace("float[2,3] y", f"{result} y"), f", {state} o") if scan else (f"{result} y", "")
    names = "y, s" if scan else "y"
    return parse(f"g ({inputs}) => ({outputs}) <{constants}> {{ {names} = Loop ({call}) <body = b (int64 i, bool k, {state} h) "
                 f"=> (bool d, {state} n{rows}) {{ {step} }}> }}")


SAME = "d = Identity (k) "
CASES = {
    "if": parse(IF.format(before="z = Relu (x)", yes="a = Mul (z, x)", no="w = Exp (z) b = Sub (w, x)")),
    "if_of_outer_tensors": parse(IF.format(before="z = Relu (x)", yes="a = Identity (z)", no="b = Identity (x)")),
    "if_of_constants": parse(IF.format(before="", yes="a = Constant <value = float[2,3] {1,2,3,4,5,6}> ()",
                                       no="b = Constant <value = float[2,3] {6,5,4,3,2,1}> ()")),
    "if_of_same": parse(IF.format(before="z = Relu (x)", yes="a = Identity (z)", no="b = Identity (z)")),
    "if_in_if": parse("g (float[2,3] x, bool c, bool d) => (float[2,3] y) { z = Relu (x) y = If (c) <then_branch = t () => (float[2,3] a) {"
                      "  v = Exp (z) a = If (d) <then_branch = p () => (float[2,3] q) { q = Mul (v, x) }, "
                      "else_branch = r () => (float[2,3] s) { s = Add (v, z) }> }, "
                      "else_branch = e () => (float[2,3] b) { b = Neg (z) }> }"),
    "loop": loop(step=SAME + "f = Cast <to = 1> (i) e = Add (h, f) n = Mul (e, x)"),
    "loop_with_scan": loop(step=SAME + "n = Add (h, x) o = Mul (n, h)", scan="float[4,2,3]"),
    "loop_scans_its_state": loop(step=SAME + "n = Add (h, x) o = Identity (h)", scan="float[4,2,3]"),
    "loop_keeps_its_state": loop(step=SAME + "n = Identity (h)"),
    "loop_of_constant": loop(step=SAME + "n = Constant <value = float[2,3] {1,2,3,4,5,6}> ()"),
    "loop_of_captures": loop(step=SAME + "n = Identity (x)"),
    "loop_swaps": parse("g (float[3] x, float[3] z) => (float[3] y, float[3] w) <int64 m = {5}, bool t = {1}> {"
                        "  y, w = Loop (m, t, x, z) <body = b (int64 i, bool k, float[3] p, float[3] q) => (bool d, float[3] r, float[3] s) {"
                        "  d = Identity (k) r = Identity (q) s = Add (p, q) }> }"),
    "loop_no_trips": loop(trips="int64 m = {0}", step=SAME + "n = Add (h, x) o = Exp (h)", scan="float[0,2,3]"),
    "loop_never_starts": loop(condition="bool t = {0}", step=SAME + "n = Add (h, x)"),
    "loop_counts": loop(more="int64 last = {2}", step="d = Less (i, last) n = Add (h, x) o = Exp (n)", scan="float[3,2,3]"),
    "loop_runs_once": loop(step="d = Not (k) n = Add (h, x)"),
    "loop_by_number": loop(step=SAME + "f = Cast <to = 1> (i) n = Add (h, f)", inputs="float[2,3] x, int64 m", trips=""),
    "loop_by_condition": loop(step="n = Add (h, h) r = ReduceMax <keepdims = 0> (n) d = Less (r, most)",
                              more="float most = {100}", trips="int64 m = {1000}"),
    "loop_by_condition_alone": loop(step="n = Add (h, x) l = ReduceSum <keepdims = 0> (n) j = Abs (l) d = Less (j, most)",
                                    more="float most = {10}", trips="", call=", t, x"),
    "loop_given_condition": loop(step="n = Add (h, x) r = ReduceMax <keepdims = 0> (n) d = Less (r, most)",
                                 more="float most = {2}", condition="", inputs="float[2,3] x, bool t"),
    "loop_grows": loop(state="float[A,3]", result="float[10,3]", step=SAME + "n = Concat <axis = 0> (h, x)"),
    "loop_slices_by_number": loop(inputs="float[2,3] x, float[9,3] v", more="int64[1] two = {2}, int64[1] zero = {0}",
                                  step=SAME + "l = Unsqueeze (i, zero) u = Add (l, two) p = Slice (v, l, u, zero) n = Add (h, p)"),
    "loop_in_loop": loop(step=SAME + "n = Loop (m, k, h) <body = c (int64 j, bool l, float[2,3] g) => (bool e, float[2,3] q) {"
                         " e = Identity (l) r = Mul (g, x) f = Cast <to = 1> (j) w = Cast <to = 1> (i) u = Add (f, w) q = Add (r, u) }>"),
    "if_in_loop": loop(step=SAME + "l = ReduceSum <keepdims = 0> (h) g = Greater (l, zero) n = If (g) <"
                       "then_branch = p () => (float[2,3] q) { q = Sub (h, one) }, else_branch = r () => (float[2,3] s) { s = Add (h, x) }>",
                       more="float zero = {0}, float one = {1}"),
    "loop_in_if": parse("g (float[2,3] x, bool c) => (float[2,3] y) <int64 m = {3}, bool t = {1}> { y = If (c) <"
                        "then_branch = p () => (float[2,3] a) { a = Loop (m, t, x) <body = b (int64 i, bool k, float[2,3] h) "
                        "=> (bool d, float[2,3] n) { d = Identity (k) n = Mul (h, x) }> }, "
                        "else_branch = e () => (float[2,3] b) { b = Neg (x) }> }"),
    "scan": parse("g (float[2] s, float[5,2] x) => (float[2] y, float[5,2] z) {"
                  " y, z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] v) => (float[2] n, float[2] o) { n = Add (h, v) o = Mul (n, v) }> (s, x) }"),
    "scan_backwards": parse("g (float[2] s, float[2,5] x, float[5,2] w) => (float[2] y, float[2,5] z, float[5,2] u) {"
                            " y, z, u = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0], "
                            "scan_output_axes = [-1, 0], scan_output_directions = [0, 1], "
                            "body = b (float[2] h, float[2] v, float[2] r) => (float[2] n, float[2] o, float[2] p) "
                            "{ n = Add (h, v) o = Mul (n, r) p = Sub (n, r) }> (s, x, w) }"),
    "scan_without_state": parse("g (float[3,2] x) => (float[3,2] z) { z = Scan <num_scan_inputs = 1, "
                                "body = b (float[2] v) => (float[2] o) { o = Exp (v) }> (x) }"),
    # The dim that each iteration drops stands behind one of extent 1.
    "scan_one_column": parse("g (float[1,6] s, float[1,6,1] x) => (float[1,6] y, float[1,1,6] z) {"
                             " y, z = Scan <num_scan_inputs = 1, scan_input_axes = [2], scan_input_directions = [1], "
                             "scan_output_axes = [1], body = b (float[1,6] h, float[1,6] v) => (float[1,6] n, float[1,6] o) "
                             "{ n = Add (h, v) o = Mul (n, v) }> (s, x) }"),
    # A name means what the nearest graph means by it.
    "shadowed": parse(IF.format(before="z = Relu (x)", yes="z = Exp (x) a = Add (z, x)", no="b = Add (z, x)")),
}
#: ONNX Runtime refuses a name that the graph around has as well.
RENAMED = {"shadowed": parse(IF.format(before="z = Relu (x)", yes="w = Exp (x) a = Add (w, x)", no="b = Add (z, x)"))}
VALUES = {"c": [True, False], "d": [True, False], "t": [True, False], "m": [0, 1, 5]}


def variants(path):
    """Inputs with each value of those that VALUES names."""
    given = [reference.random_inputs(path)]
    for name in given[0]:
        if name in VALUES:
            given = [{**inputs, name: np.array(v, inputs[name].dtype)} for inputs in given for v in VALUES[name]]
    return given


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "control_flow"
    folder.mkdir()
    for name, made in CASES.items():
        compiler.emit_cuda(om.write(made, folder / f"{name}.onnx"), folder / name, None, "-q")
    return host.build_together([folder / name for name in CASES], folder / "libcontrol_flow.so", checked=True)


@pytest.mark.parametrize("name", CASES)
def test_result(library, name):
    path = library.with_name(f"{name}.onnx")
    judge = om.write(RENAMED[name], path.with_suffix(".renamed.onnx")) if name in RENAMED else path
    with host.HostModel(library.with_name(name), library=library) as built:
        for inputs in variants(path):
            assert_close(built.run(inputs), reference.run(judge, inputs))


def test_a_branch_may_return_an_outer_tensor(tmp_path, quick):
    made = parse(IF.format(before="z = Relu (x)", yes="a = Identity (x)", no="b = Identity (x)"))
    branch = made.graph.node[1].attribute[0].g
    del branch.node[:]
    branch.output[0].name = "z"
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    with host.HostModel(tmp_path / "m", **quick) as model:
        assert (model.run({"x": x, "c": np.array(True)})["y"] == np.maximum(x, 0)).all()
        assert (model.run({"x": x, "c": np.array(False)})["y"] == x).all()


def test_a_node_after_what_its_subgraph_reads(tmp_path):
    made = parse(IF.format(before="z = Relu (x)", yes="a = Mul (z, x)", no="b = Sub (z, x)"))
    made.graph.node.extend([made.graph.node.pop(0)])  # If comes first now
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=mlir", "-o", "-", "-q")
    assert done.stdout.index("maximumf") < done.stdout.index("scf.if")


# --- what is refused --------------------------------------------------------------------------------------------


def test_branches_of_different_ranks(refused):
    made = parse("g (float[2,3] x, bool c) => (float y) { y = If (c) <then_branch = t () => (float[2,3] a) { a = Exp (x) }, "
                 "else_branch = e () => (float[1,3,2] b) { s = Transpose (x) z = Constant <value_ints = [0]> () b = Unsqueeze (s, z) }> }")
    made.graph.node[0].name = "choice"
    made.graph.output[0].type.tensor_type.ClearField("shape")
    refused(made, "unsupported", "choice", "'y'", "2x3xf32", "1x3x2xf32")


def test_branches_of_different_types(refused):
    made = parse("g (float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Exp (x) }, "
                 "else_branch = e () => (int32[2] b) { b = Cast <to = 6> (x) }> }")
    refused(made, "unsupported", "'y'", "2xf32", "2xi32")


def test_unknown_operators_in_subgraphs_are_listed_with_the_others(refused):
    made = parse(IF.format(before="z = Frobnicate (x)", yes="w = Frobnicate (z) a = Twiddle (w)", no="b = Exp (x)"))
    refused(made, "unsupported", "Frobnicate (2 nodes", "Twiddle (the node that makes 'a' in 'then_branch' of the node that makes 'y')")


def test_captured_name_that_nobody_has(refused):
    refused(parse(IF.format(before="", yes="a = Exp (q)", no="b = Exp (x)")), "invalid", "'q'", "'then_branch'", "enclosing")


def test_cycle_through_a_capture(refused):
    made = parse(IF.format(before="z = Relu (y)", yes="a = Exp (z)", no="b = Exp (x)"))
    refused(made, "invalid", "cycle")


def change(made, edit):
    edit(made.graph.node[0])
    return made


@pytest.mark.parametrize("edit, kind, parts", [
    (lambda n: n.attribute.pop(), "invalid", ["'body'"]),
    (lambda n: n.attribute[0].g.input.pop(), "invalid", ["'body'", "2 inputs", "3"]),
    (lambda n: n.attribute[0].g.output.pop(), "invalid", ["'body'", "1 outputs", "2"]),
    (lambda n: n.attribute[0].g.input.pop(0), "invalid", ["'body'"]),
    (lambda n: n.attribute[0].g.output.__delitem__(slice(None)), "invalid", ["no outputs", "'body'"]),
    (lambda n: n.input.__delitem__(slice(2, None)), "invalid", ["'body'"]),
])
def test_damaged_loop(refused, edit, kind, parts):
    made = change(loop(step=SAME + "n = Exp (x)"), edit)
    refused(made, kind, *parts)


def test_loop_condition_that_is_no_bool(refused):
    made = loop(step="d = Neg (i) n = Add (h, x)")
    made.graph.node[0].attribute[0].g.output[0].type.tensor_type.elem_type = TensorProto.INT64
    refused(made, "invalid", "condition", "'d'", "i64", "bool")


def test_state_that_changes_its_element_type(refused):
    made = loop(step=SAME + "n = Cast <to = 6> (h)")
    made.graph.node[0].attribute[0].g.output[1].type.tensor_type.elem_type = TensorProto.INT32
    refused(made, "invalid", "'n'", "2x3xi32", "element type")


def test_negative_trip_count(refused):
    refused(loop(trips="int64 m = {-2}", step=SAME + "n = Add (h, x)"), "invalid", "-2", "'m'")


def test_loop_without_end(refused):
    refused(loop(trips="", call=", t, x", step=SAME + "n = Add (h, x)"), "invalid", "never ends")


def test_scan_output_of_unknown_length(refused):
    made = loop(step=SAME + "n = Add (h, x) o = Exp (h)", scan="float[N,2,3]", trips="", inputs="float[2,3] x, int64 m")
    refused(made, "unsupported", "'s'", "trip count")


def test_growing_state_of_unknown_count(refused):
    made = loop(state="float[A,3]", result="float[B,3]", step=SAME + "n = Concat <axis = 0> (h, x)", trips="",
                inputs="float[2,3] x, int64 m")
    refused(made, "unsupported", "'n'", "4x3xf32")


def test_unrolling_has_a_budget(refused):
    made = loop(state="float[A,3]", result="float[B,3]", step=SAME + "n = Concat <axis = 0> (h, x)",
                trips="int64 m = {9223372036854775807}")
    refused(made, "unsupported", "10000 nodes", "note: it cannot stay a loop", "'n' (4x3xf32)")


def test_errors_in_a_body_are_at_its_node(refused):
    made = loop(step=SAME + "n = Concat <axis = 5> (h, x)")
    made.graph.node[0].name = "steps"
    made.graph.node[0].attribute[0].g.node[1].name = "joined"
    text = refused(made, "invalid", "'joined' in 'body' of node 'steps'", "axis 5")
    assert text.count("error:") == 1


def nested(depth):
    graph = onnx.helper.make_graph([om.node("Identity", ["x"], ["y"])], "leaf", [], [om.value("y", [2])])
    for i in range(depth):
        choice = onnx.helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph if i == 0 else onnx.helper.make_graph(
            [om.node("Identity", ["x"], ["y"])], "leaf", [], [om.value("y", [2])]))
        graph = onnx.helper.make_graph([choice], "level", [], [om.value("y", [2])])
    made = om.model(list(graph.node), [om.value("x", [2]), om.value("c", [], TensorProto.BOOL)], [om.value("y", [2])])
    return made


def test_nesting_up_to_32(tmp_path):
    """One more is refused: test/unit/Import, since protobuf's own limit is near."""
    compiler.run(om.write(nested(32), tmp_path / "deep.onnx"), "--emit=mlir", "-o", tmp_path / "deep.mlir", "-q")


def test_nested_loops_that_fail_take_no_time(refused):
    """Each level tries to stay a loop before it is unrolled; that must not double the work at every level."""
    body = "n0 = Concat <axis = 7> (h0, x)"
    for i in range(20):
        body = (f"n{i + 1} = Loop (m, t, h0) <body = b{i} (int64 i{i}, bool k{i}, float[2,3] g{i}) => "
                f"(bool d{i}, float[2,3] n{i}) {{ d{i} = Identity (k{i}) {body} }}>")
    made = parse(f"g (float[2,3] x) => (float[2,3] n20) <int64 m = {{3}}, bool t = {{1}}> {{ h0 = Relu (x) {body} }}")
    refused(made, "unsupported", "10000 nodes", "note: it cannot stay a loop", "axis 7")


OLD_SCAN = ("g (float[2,2] s, float[2,5,2] x{0}) => (float[2,2] y, float[2,5,2] z) {{ y, z = Scan <num_scan_inputs = 1, directions = [1], "
            "body = b (float[2] h, float[2] v) => (float[2] n, float[2] m) {{ n = Add (h, v) m = Mul (n, v) }}> ({1}, s, x) }}")


def test_old_scan(tmp_path, quick):
    """Opset 8: samples in front, steps from the last one on, by hand."""
    compiler.emit_cuda(om.write(parse(OLD_SCAN.format("", ""), opset=8), tmp_path / "m.onnx"), tmp_path / "m")
    r = np.random.default_rng(0)
    s, x = r.standard_normal((2, 2)).astype(np.float32), r.standard_normal((2, 5, 2)).astype(np.float32)
    # Step t sees row 4 - t; rows of results are in the order of the steps.
    sums = s[:, None] + np.cumsum(x[:, ::-1], axis=1)
    with host.HostModel(tmp_path / "m", **quick) as model:
        got = model.run({"s": s, "x": x})
    np.testing.assert_allclose(got["y"], sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(got["z"], sums * x[:, ::-1], rtol=1e-5)


def test_old_scan_needs_its_lengths(refused):
    refused(parse(OLD_SCAN.format(", int64[2] lengths", "lengths"), opset=8), "unsupported", "Scan", "the list of lengths")


@pytest.mark.parametrize("edit, parts", [
    (dict(scan_input_axes=[2]), ["axis 2"]), (dict(scan_input_directions=[3]), ["scan_input_directions", "3"]),
    (dict(scan_output_axes=[0, 1]), ["scan_output_axes", "2 entries"]), (dict(num_scan_inputs=9), ["num_scan_inputs", "9"]),
])
def test_damaged_scan(refused, edit, parts):
    made = onnx.ModelProto.FromString(CASES["scan"].SerializeToString())
    for name, value in edit.items():
        for old in [a for a in made.graph.node[0].attribute if a.name == name]:
            made.graph.node[0].attribute.remove(old)
        made.graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))
    refused(made, "invalid", *parts)


def test_scanned_inputs_of_different_lengths(refused):
    made = onnx.ModelProto.FromString(CASES["scan_backwards"].SerializeToString())
    made.graph.input[2].type.tensor_type.shape.dim[0].dim_value = 4
    refused(made, "invalid", "4", "5")
