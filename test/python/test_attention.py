"""Attention's options together, against ONNX's reference: what the backend test-suite tries one at a time."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference.ops.op_attention import _compute_attention

import onnx_models as om
from memplan_tools import compiler, host
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

COUNT = 40
INPUTS = ("q", "k", "v", "mask", "past_key", "past_value", "lengths")
OUTPUTS = ("y", "present_key", "present_value", "scores")


def case(seed: int):
    """A model of one node and its inputs, both drawn from `seed`."""
    rng = np.random.default_rng(seed)
    dtype = np.float64 if rng.random() < 0.2 else np.float32
    batch, queries, new = (int(rng.integers(1, n)) for n in (4, 5, 7))
    groups, per_group, size, value_size = (int(rng.integers(1, n)) for n in (4, 4, 9, 9))
    heads = groups * per_group
    opset = int(rng.choice([23, 24, 25]))
    is_3d, is_causal = rng.random() < 0.5, rng.random() < 0.5
    has_past = rng.random() < 0.4
    has_lengths = not has_past and opset >= 24 and rng.random() < 0.4
    past = int(rng.integers(0, 5)) if has_past else 0
    total = past + new

    def floats(*shape):
        return rng.standard_normal(shape).astype(dtype)

    def tensor(count, length, width):
        return floats(batch, length, count * width) if is_3d else floats(batch, count, length, width)

    given = {"q": tensor(heads, queries, size), "k": tensor(groups, new, size), "v": tensor(groups, new, value_size)}
    if rng.random() < 0.6:
        rank = int(rng.integers(1, 5))
        shape = [int(rng.choice([1, n])) for n in (batch, heads, queries)] + [total]
        if not has_past and rng.random() < 0.3:
            shape[3] = int(rng.integers(1, total + 1))
        mask = floats(*shape[4 - rank:])
        hidden = rng.random(mask.shape) < 0.3
        if rng.random() < 0.5:
            mask = ~hidden
        elif rng.random() < 0.5:
            mask[hidden] = -np.inf
        given["mask"] = mask
    if has_past:
        given |= {"past_key": floats(batch, groups, past, size), "past_value": floats(batch, groups, past, value_size)}
    if has_lengths:
        given["lengths"] = rng.integers(0, new + 1, batch)
    attributes = {"is_causal": int(is_causal), "qk_matmul_output_mode": int(rng.integers(0, 4))}
    if is_3d:
        attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
    if rng.random() < 0.3:
        attributes["scale"] = float(rng.uniform(0.1, 1))
    if rng.random() < 0.3 and attributes["qk_matmul_output_mode"] != 0:
        attributes["softcap"] = 1.5  # of mode 0, the reference gives the capped scores
    if rng.random() < 0.3:
        attributes["softmax_precision"] = int(rng.choice([TensorProto.FLOAT, TensorProto.DOUBLE]))
    if opset >= 25 and rng.random() < 0.5:
        attributes |= {"left_window_size": int(rng.integers(-1, 4)), "right_window_size": int(rng.integers(-1, 4))}
    outputs = [n if n == "y" or (rng.random() < 0.6 and not has_lengths) else "" for n in OUTPUTS]
    if rng.random() < 0.5:
        outputs[3] = ""
    while not outputs[-1]:
        outputs.pop()
    names = [n if n in given else "" for n in INPUTS]
    while not names[-1]:
        names.pop()
    made = om.model([om.node("Attention", names, outputs, "tested", **attributes)],
                    [om.value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items()], [], opset=opset)
    made.graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs if n)
    return made, given


def expected(made, given):
    """In double. The reference takes the number of queries from the mask, where it is 1 if the mask broadcasts."""
    node = made.graph.node[0]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    precise = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in given.items()}
    if "mask" in precise:
        mask = precise["mask"]
        mask = mask[None] if mask.ndim == 1 else mask
        queries = given["q"].shape[-2]
        precise["mask"] = np.broadcast_to(mask, (*mask.shape[:-2], queries, mask.shape[-1])).copy()
    values = _compute_attention(*(precise.get(n) for n in INPUTS), **attributes, _validate_attention25=False)
    return {n: v.astype(given["q"].dtype) for n, v in zip(OUTPUTS, values) if n in node.output}


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "attention"
    folder.mkdir()
    for seed in range(COUNT):
        path = om.write(case(seed)[0], folder / f"m{seed}.onnx")
        compiler.run(path, "--emit=cuda", "-q", "-o", path.with_suffix(""))
    host.build_together([folder / f"m{seed}" for seed in range(COUNT)], folder / "all.so", checked=True)
    return folder


@pytest.mark.parametrize("seed", range(COUNT))
def test_against_the_reference(library, seed):
    made, given = case(seed)
    with host.HostModel(library / f"m{seed}", library=library / "all.so") as model:
        assert_close(model.run(given), expected(made, given))


@pytest.mark.parametrize("shapes", [
    [(0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 4)], [(1, 2, 0, 4), (1, 2, 5, 4), (1, 2, 5, 4)],
    [(1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)], [(1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 0)],
    [(1, 2, 3, 0), (1, 2, 5, 0), (1, 2, 5, 4)]])
def test_without_elements(tmp_path, quick, shapes):
    """No queries or values: no result. No keys: nothing is attended to, so zeros. No size: all keys count the same."""
    names = ["q", "k", "v"]
    made = om.model([om.node("Attention", names, ["y"], "tested")], [om.value(n, s) for n, s in zip(names, shapes)], [], opset=23)
    made.graph.output.append(onnx.ValueInfoProto(name="y"))
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "m", check=False)
    assert not done.returncode, done.stderr
    given = {n: np.ones(s, np.float32) for n, s in zip(names, shapes)}
    with host.HostModel(tmp_path / "m", **quick) as model:
        got = model.run(given)["y"]
    assert got.shape == (*shapes[0][:3], shapes[2][3])
    np.testing.assert_allclose(got, float(shapes[1][2] > 0), rtol=1e-6)


X4 = [om.value("q", [1, 4, 3, 8]), om.value("k", [1, 2, 5, 8]), om.value("v", [1, 2, 5, 8])]
X3 = [om.value("q", [1, 3, 32]), om.value("k", [1, 5, 16]), om.value("v", [1, 5, 16])]


@pytest.mark.parametrize("inputs,attributes,part", [
    (X3, {}, "'q_num_heads' = 0"),
    (X3, dict(q_num_heads=5, kv_num_heads=2), "'q_num_heads' = 5"),
    (X3, dict(q_num_heads=4, kv_num_heads=4), "do not fit"),
    (X4, dict(q_num_heads=2), "contradict"),
    (X4[:2] + [om.value("v", [1, 2, 6, 8])], {}, "do not fit"),
    (X4[:1] + [om.value("k", [1, 3, 5, 8]), om.value("v", [1, 3, 5, 8])], {}, "evenly"),
    (X4 + [om.value("mask", [2, 3, 5])], {}, "the mask 'mask'"),
    (X4 + [om.value("mask", [3, 6])], {}, "the mask 'mask'"),
    (X4 + [om.value("mask", [3, 5], TensorProto.INT64)], {}, "the mask 'mask'"),
    (X4 + [om.value("past_key", [1, 2, 1, 8])], {}, "one past state"),
    (X4 + [om.value("past_key", [1, 2, 1, 8]), om.value("past_value", [1, 2, 2, 8])], {}, "differ in length"),
    (X4 + [om.value("past_key", [1, 2, 1, 4]), om.value("past_value", [1, 2, 1, 8])], {}, "is a past state"),
    (X4 + [om.value("lengths", [2], TensorProto.INT64)], {}, "'lengths'"),
    (X4, dict(left_window_size=-2), "'left_window_size' is -2"),
    (X4, dict(qk_matmul_output_mode=4), "'qk_matmul_output_mode' is 4"),
    (X4, dict(softmax_precision=7), "'softmax_precision' is int64"),
])
def test_refused(tmp_path, inputs, attributes, part):
    given = {v.name for v in inputs}
    names = [n if n in given else "" for n in INPUTS]
    while not names[-1]:
        names.pop()
    made = om.model([om.node("Attention", names, ["y"], "tested", **attributes)], inputs, [], opset=25)
    made.graph.output.append(onnx.ValueInfoProto(name="y"))
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode in (compiler.EXIT["unsupported"], compiler.EXIT["invalid"]), done.stderr
    assert "node 'tested'" in done.stderr and part in done.stderr
