"""benchmarks/memory: the parts that need no peer installed. Placements are worked out by hand beside each value."""

import json
import sys

import memplan_models
import onnx
import onnx.parser
import pytest
from memplan_tools import ROOT, compiler
from memplan_tools.reference import random_inputs, run

sys.path.insert(0, str(ROOT / "benchmarks/memory"))

import files  # noqa: E402
import table  # noqa: E402
from peers import best_fit, emx, greedy_by_size, iree  # noqa: E402
from peers.buffers import Tensor, buffers  # noqa: E402


@pytest.mark.parametrize("place", [best_fit.place, greedy_by_size.place])
def test_placements_reuse_what_is_dead(place):
    # 64 | 128 alive together, then 192 alone with the 64: a hole of 128 in between is too small for it.
    assert place([Tensor(64, 0, 3), Tensor(128, 0, 1)]) == 192
    assert place([Tensor(100, 0, 1), Tensor(100, 1, 2)]) == 128  # one after the other; 100 aligned to 64
    assert place([]) == 0


def test_best_fit_is_blind_to_what_comes():
    # In order of starts: a at 0-64, b at 64-128, then c, which needs 128 while b lives: at 128-256. The largest first: c at
    # 0-128, b at 128-192, a in front of b.
    tensors = [Tensor(64, 0, 1), Tensor(64, 0, 3), Tensor(128, 1, 3)]
    assert best_fit.place(tensors) == 256
    assert greedy_by_size.place(tensors) == 192


def test_best_fit_takes_the_smallest_hole():
    # 128 | 64 | 64 | 64: the first and third die; 64 bytes go where the third was, so 128 still fit at 0.
    tensors = [Tensor(128, 0, 1), Tensor(64, 0, 9), Tensor(64, 0, 1), Tensor(64, 0, 9), Tensor(64, 1, 9), Tensor(128, 2, 9)]
    assert best_fit.place(tensors) == 320


def test_buffers():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        net (float[2, 8] x) => (float[16] y) <int64[1] shape = {16}> {
          a = Relu(x)
          b = Reshape(a, shape)
          c = Exp(b)
          d = Add(b, c)
          y = Neg(d)
        }""")
    # b is a, so a lives until the Add (node 3); y is the caller's. 16 floats are 64 bytes.
    assert buffers(onnx.shape_inference.infer_shapes(model)) == [Tensor(64, 0, 4), Tensor(64, 2, 4), Tensor(64, 3, 5)]


def test_iree_transients():
    """Memory that lives at once, of the function: not of initializers, not external."""
    def alloca(name, kind, size):
        return (f"    %{name}, %t_{name} = stream.resource.alloca uninitialized on(#x) => "
                f"!stream.resource<{kind}>{{%c{size}}} => !stream.timepoint")

    text = "\n".join([
        "  util.initializer {", "    %c1000 = arith.constant 1000 : index", alloca("i", "transient", 1000), "  }",
        "  util.func private @main() {", "    %c256 = arith.constant 256 : index", "    %c64 = arith.constant 64 : index",
        alloca("a", "transient", 256), alloca("o", "external", 1000),
        "    %1 = stream.resource.dealloca on(#x) await(%0) => %a : !stream.resource<transient>{%c256} => !stream.timepoint",
        alloca("b", "transient", 64), alloca("c", "transient", 64), "  }"])
    assert iree._transient(text) == 256  # 256, or 64 + 64
    with pytest.raises(ValueError, match="%c7 bytes, which isn't a constant"):
        iree._transient("  util.func @main() {\n" + alloca("a", "transient", 7))


def test_emx_arrays():
    text = ("static inline void node0_conv(const float x[1][4], float y[1][4]) {\n    float pad[2][8];\n    float s = 0;\n}\n"
            "void model(const float x[1][4], float y[1][4]) {\n    float tmp0[4][4];\n    int64_t tmp1[2];\n}\n")
    assert emx._locals(text) == {"node0_conv": 2 * 8 * 4, "model": 16 * 4 + 2 * 8}


def test_columns_add_one_technique_at_a_time():
    specs = table.columns([("schedule", "-s"), ("fusion", "-f")])
    assert [(heading, flags) for heading, flags, _ in specs] == [
        ("no reuse", ("-s", "-f")), ("lifetimes", ("-s", "-f")), ("+ schedule", ("-f",)), ("arena", ()), ("bound", ())]


@pytest.mark.parametrize("name, batch", [("shufflenet", 2), ("unet_small", 3), ("gpt2_step_small", 1)])
def test_bound_files_compute_the_batch(name, batch, tmp_path):
    """The written file has no symbolic dim, and its first results are those of the model at batch 1."""
    path = files.write(name, batch, tmp_path)
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    dims = [d for i in (*graph.input, *graph.output) if i.name not in weights for d in i.type.tensor_type.shape.dim]
    assert all(d.dim_value for d in dims)
    inputs = random_inputs(path)
    assert all(x.shape[0] == batch for x in inputs.values())
    many, one = run(path, inputs), run(files.write(name, 1, tmp_path), {k: x[:1] for k, x in inputs.items()})
    for key, values in one.items():
        assert many[key].shape[0] == batch
        assert abs(many[key][:1] - values).max() < 1e-4
    assert compiler.plan(path)["arena_bytes"] > 0


def test_every_model_of_the_table_exists():
    assert set(table.MODELS) <= set(memplan_models.NAMES)


def test_peers_from_an_earlier_run(tmp_path):
    row = table.Row("net", 1, {"arena": table.Cell(6)}, True,
                    {"ort": table.Cell(8, more={"before": 128}), "emx": table.Cell(reason="time limit of 120 s")})
    assert row.best == ("ort", 8) and row.ratio == 0.75
    (tmp_path / "memory.json").write_text(json.dumps([row.as_json()]))
    assert table.earlier_peers(tmp_path / "memory.json") == {("net", 1): row.peers | {"emx": table.Cell(
        reason="time limit of 120 s", more={})}}
