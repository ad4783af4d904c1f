"""Names come from strangers: they reach comments and strings, escaped, and nothing else."""

import re

import numpy as np
import onnx
import pytest

import memplan_models
import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

#: parts of hostile names; each renamed tensor gets one of them and a number
HOSTILE = ["*/ int main() { /*", '"); system("true"); ("', "a\nb", "a\\nb", "??/", "\\", "'; DROP", "%s%n%d", "\u202egnp.exe",
           "int", "x[0]", "weights.0", "__metadata__", "\t", "//", "ü", "a b", "R\"(", ")\"", "#include </etc/passwd>",
           "../../x", "/etc/passwd", "a" * 300, "run", "nul\0l", "\x1b[31m", "\x7f", "}", "${HOME}", "`id`"]


def renamed(model: onnx.ModelProto, name_of) -> tuple[onnx.ModelProto, dict[str, str]]:
    """All tensors and nodes by other names, in subgraphs too; and the names of the tensors."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    names: dict[str, str] = {}

    def of(name: str) -> str:
        return names.setdefault(name, name_of(len(names))) if name else name

    def visit(graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = of(value.name)
        for i, node in enumerate(graph.node):
            node.name = name_of(-i)
            node.input[:] = map(of, node.input)
            node.output[:] = map(of, node.output)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)
                for subgraph in attribute.graphs:
                    visit(subgraph)

    visit(model.graph)
    return model, names


def code(text: str) -> str:
    """C++ without its comments, with every string the same, and without where the weights' file, which has a header
    of names, has what."""
    text = re.sub(r"kWeightsFile = \{.*?\};", "", text)
    text = re.sub(r'^( +\{".*", )\d+(, \d+, \d+\},)$', r"\1\2", text, flags=re.M)
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
    stripped = token.sub(lambda m: '""' if m[0][0] == '"' else m[0] if m[0][0] == "'" else " ", text)
    return re.sub(r"\s+", " ", stripped)


def hostile(i: int) -> str:
    return f"{HOSTILE[i % len(HOSTILE)]}{i}"


def plain(i: int) -> str:
    return f"t{i}" if i >= 0 else f"n{-i}"


def models(folder):
    yield onnx.load(memplan_models.write("cnn_relu", folder)), {"N": 2}
    yield onnx.load(memplan_models.write("transformer_erf", folder)), dict(memplan_models.entry("transformer_erf").dims)
    branch = [om.node("Mul", ["x", "w"], ["b"]), om.node("Add", ["b", "s"], ["c"])]
    other = [om.node("Sub", ["x", "w"], ["d"])]
    conditional = om.node("If", ["cond"], ["y"], then_branch=onnx.helper.make_graph(branch, "t", [], [om.value("c", [4])]),
                          else_branch=onnx.helper.make_graph(other, "e", [], [om.value("d", [4])]))
    yield om.model([om.node("Exp", ["x"], ["s"]), conditional],
                   [om.value("x", [4]), om.value("cond", [], onnx.TensorProto.BOOL)], [om.value("y", [4])],
                   [om.tensor("w", np.arange(4, dtype=np.float32))]), {}


@pytest.mark.parametrize("which", range(3))
def test_renaming_changes_comments_and_the_name_table_alone(which, tmp_path, quick):
    model, dims = list(models(tmp_path))[which]
    texts, outputs = {}, {}
    for kind, name_of in (("plain", plain), ("hostile", hostile)):
        made, names = renamed(model, name_of)
        path = om.write(made, tmp_path / kind / "m.onnx") if (tmp_path / kind).mkdir() is None else None
        compiler.emit_cuda(path, tmp_path / kind / "m", dims)
        texts[kind] = {suffix: (tmp_path / kind / f"m.{suffix}").read_text() for suffix in ("cu", "h")}
        inputs = {names[n]: a for n, a in reference.random_inputs(om.write(model, tmp_path / "m.onnx"), dims).items()}
        with host.HostModel(tmp_path / kind / "m", **quick) as built:
            got = built.run(inputs)
        assert list(got) == [names[o.name] for o in model.graph.output]
        outputs[kind] = list(got.values())
    for suffix in ("cu", "h"):
        assert code(texts["plain"][suffix]) == code(texts["hostile"][suffix])
        assert texts["hostile"][suffix].isascii()
    for a, b in zip(outputs["plain"], outputs["hostile"]):
        np.testing.assert_array_equal(a, b)


def test_names_that_collide_after_escaping_stay_apart(tmp_path, quick):
    """Inputs, outputs and weights; each comes back under the name that it has."""
    names = ["a\nb", "a\\nb", "a\\0Ab", "a b", "a_b", "A_b", "a\tb"]
    rng = np.random.default_rng(0)
    weights = [om.tensor(f"{n}/w", rng.standard_normal(8, dtype=np.float32)) for n in names]
    made = om.model([om.node("Mul", [n, f"{n}/w"], [f"{n}/y"]) for n in names], [om.value(n, [8]) for n in names],
                    [om.value(f"{n}/y", [8]) for n in names], weights)
    path = om.write(made, tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "out/m")
    inputs = reference.random_inputs(path)
    with host.HostModel(tmp_path / "out/m", **quick) as built:
        assert_close(built.run(inputs), reference.run(path, inputs))


def test_names_choose_no_path(tmp_path):
    made = om.model([om.node("Relu", ["/etc/x"], ["../../y"], "../../node")], [om.value("/etc/x", [4])],
                    [om.value("../../y", [4])])
    made.graph.name = "../../../graph"
    path = om.write(made, tmp_path / "m.onnx")
    done = compiler.run(path, "--emit=cuda", "-q", cwd=tmp_path)
    assert done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.cu", "m.h", "m.onnx", "m.safetensors"]


@pytest.mark.parametrize("name", ["div", "size", "uint8", "3d", "a.b", "int"])
def test_a_model_may_be_called_as_a_type_is(name, tmp_path, quick):
    path = om.write(om.relu(), tmp_path / f"{name}.onnx")
    compiler.emit_cuda(path, tmp_path / f"out/{name}")
    with host.HostModel(tmp_path / f"out/{name}", **quick) as built:
        inputs = reference.random_inputs(path)
        assert_close(built.run(inputs), reference.run(path, inputs))
