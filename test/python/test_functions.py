"""Model-local functions: inlined as ONNX says, refused when they recur or stand for too much."""

import numpy as np
import pytest
from onnx import AttributeProto, helper

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from onnx_models import node, value

pytestmark = pytest.mark.usefixtures("memplan_opt")

X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 4


def refers(kind, inputs, outputs, name, to, attribute_type=AttributeProto.FLOAT, **attributes):
    """A node whose attribute `name` is the function's attribute `to`."""
    made = node(kind, inputs, outputs, **attributes)
    made.attribute.append(AttributeProto(name=name, ref_attr_name=to, type=attribute_type))
    return made


def function(name, inputs, outputs, nodes, attributes=(), defaults=(), domain="local", opsets=(("", 17), ("local", 1)),
             overload=""):
    made = helper.make_function(domain, name, inputs, outputs, nodes, [helper.make_opsetid(*o) for o in opsets],
                                list(attributes), [helper.make_attribute(k, v) for k, v in defaults])
    made.overload = overload
    return made


def model(nodes, functions, outputs=("y",), opset=17, inputs=(("x", (3, 4)),), shape=(3, 4), domains=("local",)):
    made = om.model(nodes, [value(n, s) for n, s in inputs], [value(o, shape) for o in outputs],
                    opsets=[helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)])
    made.ir_version = 10
    made.functions.extend(functions)
    return made


def local(kind, inputs, outputs, name="", **attributes):
    return node(kind, inputs, outputs, name, domain="local", **attributes)


@pytest.fixture
def agrees(tmp_path, quick):
    """Compiles and runs the model, which must give `want`, or what ONNX Runtime gives."""

    def check(made, want=None, inputs=None):
        inputs = inputs or {"x": X}
        path = om.write(made, tmp_path / "m.onnx")
        compiler.emit_cuda(path, tmp_path / "out/m")
        if want is None:
            want = reference.run(path, inputs)
        with host.HostModel(tmp_path / "out/m", **quick) as built:
            assert_close(built.run(inputs), want)

    return check


@pytest.fixture
def refused(tmp_path):
    def check(made, kind, *parts):
        path = om.write(made, tmp_path / "bad.onnx")
        done = compiler.run(path, "--emit=cuda", "-o", tmp_path / "bad", check=False, timeout=60)
        assert done.returncode == compiler.EXIT[kind], done.stderr
        for part in parts:
            assert part in done.stderr
        assert len(done.stderr) < 4000 and not (tmp_path / "bad.cu").exists()

    return check


SCALED = function("Scaled", ["a"], ["b"], [refers("LeakyRelu", ["a"], ["b"], "alpha", "slope")], ["slope"])


def test_attributes_go_through_two_functions(agrees):
    outer = function("Outer", ["a"], ["c"], [refers("Scaled", ["a"], ["b"], "slope", "s", domain="local"),
                                            node("Neg", ["b"], ["c"])], ["s"])
    agrees(model([local("Outer", ["x"], ["h"], s=0.5), local("Outer", ["h"], ["y"], s=0.25)], [outer, SCALED]))


def test_an_attribute_that_the_call_leaves_out_is_left_out(agrees):
    agrees(model([local("Scaled", ["x"], ["y"])], [SCALED]), {"y": np.where(X < 0, np.float32(0.01) * X, X)})


def test_defaults(agrees):
    defaulted = function("Scaled", ["a"], ["b"], [refers("LeakyRelu", ["a"], ["b"], "alpha", "slope")],
                         defaults=[("slope", 0.5)])
    agrees(model([local("Scaled", ["x"], ["h"]), local("Scaled", ["h"], ["y"], slope=0.25)], [defaulted]),
           {"y": np.where(X < 0, X / 8, X)})


def test_integers_and_tensors_as_attributes(agrees):
    summed = function("Sum", ["a"], ["c"], [
        refers("Constant", [], ["axes"], "value", "axes", AttributeProto.TENSOR),
        refers("ReduceSum", ["a", "axes"], ["c"], "keepdims", "keep", AttributeProto.INT)], ["axes", "keep"])
    agrees(model([local("Sum", ["x"], ["y"], axes=om.tensor("", np.array([1])), keep=0)], [summed], shape=(3,)))


def test_names_of_the_graph_mean_nothing_inside(agrees):
    inner = function("F", ["x"], ["y"], [node("Neg", ["x"], ["h"]), node("Exp", ["h"], ["y"])])
    agrees(model([node("Relu", ["x"], ["h"]), local("F", ["h"], ["g"]), node("Add", ["g", "h"], ["y"])], [inner]))


def test_overloads(agrees):
    negated = function("F", ["a"], ["b"], [node("Neg", ["a"], ["b"])])
    doubled = function("F", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], overload="twice")
    call = local("F", ["x"], ["h"])
    call.overload = "twice"
    agrees(model([call, local("F", ["h"], ["y"])], [negated, doubled]), {"y": -2 * X})


def test_a_function_has_its_own_opset(agrees):
    """Softmax of opset 11 takes all dims from `axis` on as a row."""
    old = function("Old", ["a"], ["b"], [node("Softmax", ["a"], ["b"], axis=0)], opsets=(("", 11),))
    e = np.exp(X - X.max())
    agrees(model([local("Old", ["x"], ["y"])], [old]), {"y": e / e.sum()})


def test_a_function_may_stand_before_an_operator(agrees):
    agrees(model([node("Relu", ["x"], ["y"])], [function("Relu", ["a"], ["b"], [node("Neg", ["a"], ["b"])], domain="")]),
           {"y": -X})


def test_optional_inputs_and_several_outputs(agrees):
    clipped = function("C", ["a", "low", "high"], ["b", "c"],
                       [node("Clip", ["a", "low", "high"], ["b"]), node("Neg", ["b"], ["c"])])
    made = model([node("Constant", [], ["top"], value_float=0.5), local("C", ["x", "", "top"], ["y", "z"]),
                  local("C", ["x"], ["", "w"])], [clipped], outputs=("y", "z", "w"))
    agrees(made, {"y": np.minimum(X, 0.5), "z": -np.minimum(X, 0.5), "w": -X})


def test_called_in_a_subgraph_and_with_one(agrees):
    branch = helper.make_graph([local("Scaled", ["x"], ["t"], slope=2.0)], "then", [], [value("t", (3, 4))])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "else", [], [value("e", (3, 4))])
    inside = function("Choose", ["a", "flag"], ["b"], [node("If", ["flag"], ["b"], then_branch=helper.make_graph(
        [refers("LeakyRelu", ["a"], ["t"], "alpha", "slope")], "then", [], [value("t", (3, 4))]),
        else_branch=helper.make_graph([node("Neg", ["a"], ["e"])], "else", [], [value("e", (3, 4))]))], ["slope"])
    made = model([node("ReduceMax", ["x"], ["m"], keepdims=0), node("Constant", [], ["zero"], value_float=0.0),
                  node("Greater", ["m", "zero"], ["flag"]), node("If", ["flag"], ["h"], then_branch=branch, else_branch=other),
                  local("Choose", ["h", "flag"], ["y"], slope=0.5)], [SCALED, inside])
    agrees(made, {"y": X})  # negative ones are doubled, then halved
    below = X - 2
    agrees(made, {"y": below}, {"x": below})  # negated twice


def test_weights_and_shapes_inside_are_known(agrees):
    flat = function("Flat", ["a"], ["b"], [
        node("Shape", ["a"], ["s"]), node("ReduceProd", ["s"], ["p"], keepdims=1), node("Reshape", ["a", "p"], ["b"])])
    agrees(model([local("Flat", ["x"], ["y"])], [flat], shape=(12,)))


# --- refused ------------------------------------------------------------------------------------------------------


def test_recursion(refused):
    itself = function("F", ["a"], ["b"], [local("F", ["a"], ["b"], "again")])
    refused(model([local("F", ["x"], ["y"])], [itself]), "invalid", "node 'again'", "'local.F'", "recursive")


def test_mutual_recursion(refused):
    f = function("F", ["a"], ["b"], [local("G", ["a"], ["b"], "there")])
    g = function("G", ["a"], ["b"], [local("F", ["a"], ["b"], "back")])
    refused(model([local("F", ["x"], ["y"])], [f, g]), "invalid", "node 'back'", "'local.F'", "'local.G'", "recursive")


def test_recursion_through_a_subgraph(refused):
    branch = helper.make_graph([local("F", ["a", "c"], ["t"], "again")], "then", [], [value("t", (3, 4))])
    stop = helper.make_graph([node("Neg", ["a"], ["e"])], "else", [], [value("e", (3, 4))])
    f = function("F", ["a", "c"], ["b"], [node("If", ["c"], ["b"], then_branch=branch, else_branch=stop)])
    made = model([node("Constant", [], ["c"], value=om.tensor("", np.array(False))), local("F", ["x", "c"], ["y"])], [f])
    refused(made, "invalid", "node 'again'", "recursive")


def chain(length, calls=1):
    functions = []
    for i in range(length):
        nodes = [local(f"F{i + 1}", [f"h{j}"], [f"h{j + 1}"]) for j in range(calls)] if i + 1 < length else \
            [node("Neg", ["h0"], [f"h{calls}"])]
        functions.append(function(f"F{i}", ["h0"], [f"h{calls}"], nodes))
    return model([local("F0", ["x"], ["y"])], functions)


def test_work_that_doubles_with_each_level(refused):
    refused(chain(40, calls=2), "unsupported", "more than", "nodes")


@pytest.mark.parametrize("length", [120, 20000])
def test_a_long_chain_of_calls(refused, length):
    refused(chain(length), "unsupported", "deep")


def test_a_chain_that_is_deep_enough(agrees):
    agrees(chain(90), {"y": -X})


def test_two_of_a_name(refused):
    f = function("F", ["a"], ["b"], [node("Neg", ["a"], ["b"])])
    refused(model([local("F", ["x"], ["y"])], [f, f]), "invalid", "'local.F'")


def test_a_cycle_inside(refused):
    f = function("F", ["a"], ["b"], [node("Add", ["a", "c"], ["b"], "one"), node("Neg", ["b"], ["c"], "two")])
    refused(model([local("F", ["x"], ["y"])], [f]), "invalid", "cycle", "'local.F'")


def test_a_name_of_the_caller(refused):
    f = function("F", ["a"], ["b"], [node("Add", ["a", "x"], ["b"], "reads")])
    refused(model([local("F", ["x"], ["y"])], [f]), "invalid", "node 'reads'", "'local.F'", "'x'")


@pytest.mark.parametrize("call,parts", [
    (dict(inputs=["x", "x"], outputs=["y"]), ["2 inputs"]),
    (dict(inputs=["x"], outputs=["y", "z"]), ["2 outputs"]),
    (dict(inputs=["x"], outputs=["y"], other=1.0), ["'other'"]),
])
def test_calls_that_do_not_fit(refused, call, parts):
    inputs, outputs = call.pop("inputs"), call.pop("outputs")
    refused(model([local("Scaled", inputs, outputs, "call", **call)], [SCALED]), "invalid", "node 'call'", *parts)


def test_an_attribute_that_is_none_of_the_functions(refused):
    f = function("F", ["a"], ["b"], [refers("LeakyRelu", ["a"], ["b"], "alpha", "nowhere")])
    refused(model([local("F", ["x"], ["y"])], [f]), "invalid", "'nowhere'", "'local.F'")


def test_a_reference_outside_a_function(refused):
    refused(model([refers("LeakyRelu", ["x"], ["y"], "alpha", "slope")], []), "invalid", "'slope'")


def test_an_attribute_of_another_type(refused):
    refused(model([local("Scaled", ["x"], ["y"], slope="steep")], [SCALED]), "invalid", "'alpha'")


def test_unknown_operators_in_functions_are_listed(refused):
    f = function("F", ["a"], ["b"], [node("Nothing", ["a"], ["b"], "odd")])
    refused(model([local("F", ["x"], ["y"]), local("G", ["x"], ["z"])], [f], outputs=("y", "z")), "unsupported",
            "Nothing", "'odd'", "local.G")
