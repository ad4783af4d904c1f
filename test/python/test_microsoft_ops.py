"""Operators of com.microsoft, as exported transformers have them, against ONNX Runtime in the checked build."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

CASES = {}
#: what ONNX Runtime's CPU provider has no kernel for: the result by numpy instead
BY_HAND = {}
RNG = np.random.default_rng(11)
OUTPUT_TYPES = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int32"): TensorProto.INT32}


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def add(name, kind, inputs, outputs=1, domain="com.microsoft", opset=17, want=None, constants=(), wanted=None, **attributes):
    """One node on `inputs`, arrays or None; those at `constants` are known when compiling. `wanted`: its outputs' names."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = wanted or [f"y{i}" for i in range(outputs)]
    given = {n: a for i, (n, a) in enumerate(zip(names, inputs)) if a is not None and i not in constants}
    made = om.model([om.node(kind, names, results, "tested", domain=domain, **attributes)],
                    [om.value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items()], [],
                    [om.tensor(f"x{i}", inputs[i]) for i in constants],
                    opsets=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    made.graph.output.extend(onnx.ValueInfoProto(name=n) for n in results if n)
    assert name not in CASES
    CASES[name] = made, given
    if want is not None:
        BY_HAND[name] = want


# --- elementwise --------------------------------------------------------------------------------------------------

X = floats(2, 3, 8)
add("gelu", "Gelu", [X])
add("fast_gelu", "FastGelu", [X])
add("fast_gelu_bias", "FastGelu", [X, floats(8)])
add("bias_gelu", "BiasGelu", [X, floats(8)])
add("quick_gelu", "QuickGelu", [X])
add("quick_gelu_alpha", "QuickGelu", [X], alpha=0.7)
_bias, _skip = floats(8), floats(2, 3, 8)
add("bias_add", "BiasAdd", [X, _bias, _skip], want={"y0": X + _bias + _skip})
_sum = (X + _bias).astype(np.float64)
_right = _sum[..., 4:]
_erf = np.vectorize(__import__("math").erf)
add("bias_split_gelu", "BiasSplitGelu", [X, _bias],
    want={"y0": (_sum[..., :4] * 0.5 * _right * (1 + _erf(_right / np.sqrt(2)))).astype(np.float32)})

# --- products -----------------------------------------------------------------------------------------------------

add("fused_matmul", "FusedMatMul", [floats(2, 3, 4), floats(2, 4, 5)], alpha=0.5)
add("fused_matmul_trans", "FusedMatMul", [floats(2, 4, 3), floats(5, 4)], transA=1, transB=1)
add("fused_matmul_batch_a", "FusedMatMul", [floats(3, 2, 4), floats(2, 4, 5)], transBatchA=1)
add("fused_matmul_batch_both", "FusedMatMul", [floats(4, 2, 6, 3), floats(5, 2, 6, 4)], transBatchA=1, transBatchB=1,
    transA=1, transB=1)
for activation, parameters in (("Relu", {}), ("LeakyRelu", dict(activation_alpha=0.3)), ("Tanh", {}), ("Sigmoid", {}),
                               ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4))):
    add(f"fused_gemm_{activation}", "FusedGemm", [floats(3, 4), floats(4, 5), floats(5)], activation=activation, **parameters)
    add(f"fused_conv_{activation}", "FusedConv", [floats(1, 2, 5, 6), floats(4, 2, 3, 3), floats(4)], pads=[1, 1, 1, 1],
        activation=activation, activation_params=list(parameters.values()) or None)
add("fused_conv_clip", "FusedConv", [floats(1, 2, 5, 6), floats(4, 2, 3, 3)], activation="Clip", activation_params=[-0.5, 1.0])
add("fused_conv_sum", "FusedConv", [floats(1, 2, 5, 6), floats(4, 2, 3, 3), floats(4), floats(1, 4, 3, 4)], activation="Relu")

add("transpose_matmul", "TransposeMatMul", [floats(2, 3, 4), floats(2, 5, 4)], transB=1, alpha=2.0)

# --- indices ------------------------------------------------------------------------------------------------------

add("trilu", "Trilu", [floats(2, 3, 4), np.array(1)], constants=[1], upper=0)
add("gather_nd", "GatherND", [floats(3, 4, 5), np.array([[0, 3], [2, -1]])])
add("grid_sample", "GridSample", [floats(1, 2, 4, 5), RNG.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(np.float32)],
    padding_mode="border", align_corners=1)

# --- norms --------------------------------------------------------------------------------------------------------

G, B = floats(8), floats(8)
add("layer_norm_1", "LayerNormalization", [X, G, B], outputs=3, domain="", opset=9, axis=-1, epsilon=1e-3)
add("simplified_layer_norm", "SimplifiedLayerNormalization", [X, G], domain="", epsilon=1e-3)
add("group_norm_18", "GroupNormalization", [floats(2, 6, 5), floats(3), floats(3)], domain="", opset=18, num_groups=3)
add("skip_layer_norm", "SkipLayerNormalization", [X, floats(2, 3, 8), G, B], epsilon=1e-4)
add("skip_layer_norm_all", "SkipLayerNormalization", [X, floats(2, 3, 8), G, B, floats(8)], wanted=["y", "", "", "sum"])
add("skip_layer_norm_broadcast", "SkipLayerNormalization", [X, floats(1, 3, 8), G])
add("skip_simplified", "SkipSimplifiedLayerNormalization", [X, floats(2, 3, 8), G], wanted=["y", "", "", "sum"], epsilon=1e-5)
add("skip_simplified_bias", "SkipSimplifiedLayerNormalization", [X, floats(2, 3, 8), G, floats(8)])

IDS = np.array([[1, 4, 0], [9, 2, 2]], np.int32)
SEGMENTS = np.array([[0, 1, 1], [1, 0, 0]], np.int32)
WORDS, POSITIONS, SEGMENT_TABLE = floats(10, 8), floats(6, 8), floats(2, 8)
MASK = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
add("embed", "EmbedLayerNormalization", [IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, G, B], outputs=2)
add("embed_mask", "EmbedLayerNormalization", [IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, G, B, MASK], outputs=3)
add("embed_positions", "EmbedLayerNormalization",
    [IDS, None, WORDS, POSITIONS, None, G, B, None, np.array([[3, 1, 0], [5, 5, 2]], np.int32)], outputs=2)

# --- attention ----------------------------------------------------------------------------------------------------

H, W, WB = floats(2, 4, 8), floats(8, 24, scale=0.4), floats(24)
KEEP = np.array([[1, 1, 1, 0], [1, 0, 1, 1]], np.int32)
add("attention", "Attention", [H, W, WB], num_heads=2)
add("attention_no_bias", "Attention", [H, W], num_heads=4, scale=0.3)
add("attention_lengths", "Attention", [H, W, WB, np.array([3, 2], np.int32)], num_heads=2)
add("attention_starts", "Attention", [H, W, WB, np.array([4, 3, 1, 0], np.int32)], num_heads=2)
add("attention_mask_2d", "Attention", [H, W, WB, KEEP], num_heads=2)
add("attention_mask_3d", "Attention", [H, W, WB, np.tril(np.ones((2, 4, 4), np.int32))], num_heads=2)
add("attention_unidirectional", "Attention", [H, W, WB, KEEP], num_heads=2, unidirectional=1)
add("attention_filter", "Attention", [H, W, WB, np.array([3, 2], np.int32)], num_heads=2, mask_filter_value=-2.0)
add("attention_sizes", "Attention", [H, floats(8, 8 + 8 + 12), floats(28)], num_heads=4, qkv_hidden_sizes=[8, 8, 12])
PAST = floats(2, 2, 2, 3, 4)
add("attention_past", "Attention", [H, W, WB, None, PAST], outputs=2, num_heads=2, unidirectional=1)
add("attention_past_mask", "Attention", [H, W, WB, np.array([[1, 1, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1]], np.int32), PAST],
    outputs=2, num_heads=2)
add("attention_added", "Attention", [H, W, WB, None, None, floats(2, 2, 4, 4)], num_heads=2)

Q, K, V, QB = floats(2, 4, 8), floats(2, 5, 8), floats(2, 5, 12), floats(28)
add("multi_head", "MultiHeadAttention", [Q, K, V], num_heads=2)
add("multi_head_bias", "MultiHeadAttention", [Q, K, V, QB], num_heads=2)
add("multi_head_lengths", "MultiHeadAttention", [Q, K, V, QB, np.array([5, 3], np.int32)], num_heads=2)
add("multi_head_mask", "MultiHeadAttention", [Q, K, V, None, np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], np.int32)], num_heads=2)
add("multi_head_added", "MultiHeadAttention", [Q, K, V, None, None, floats(1, 2, 4, 5)], num_heads=2, scale=0.2)


def plain(q, k, v):
    """Attention on (batch, length, heads, size), as (batch, length, hidden)."""
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhst,bthd->bshd", shares / shares.sum(-1, keepdims=True), v).astype(np.float32)
    return {"y0": y.reshape(*y.shape[:2], -1)}


PACKED, PACKED_KEYS = floats(2, 4, 2, 3, 4), floats(2, 5, 2, 2, 4)
add("multi_head_packed", "MultiHeadAttention", [PACKED], num_heads=2, want=plain(*np.moveaxis(PACKED, 3, 0)))
add("multi_head_packed_keys", "MultiHeadAttention", [Q, PACKED_KEYS], num_heads=2,
    want=plain(Q.reshape(2, 4, 2, 4), *np.moveaxis(PACKED_KEYS, 3, 0)))
add("multi_head_keys_in_order", "MultiHeadAttention", [Q, floats(2, 2, 5, 4), floats(2, 2, 5, 4)], num_heads=2)
add("multi_head_past", "MultiHeadAttention", [Q, floats(2, 4, 8), floats(2, 4, 8), None, None, None, floats(2, 2, 3, 4),
                                              floats(2, 2, 3, 4)], outputs=3, num_heads=2)
add("multi_head_unidirectional", "MultiHeadAttention", [Q, floats(2, 4, 8), floats(2, 4, 8)], num_heads=2, unidirectional=1)

# --- rotary and grouped -------------------------------------------------------------------------------------------

COS, SIN = floats(12, 2), floats(12, 2)
for interleaved in (0, 1):
    add(f"rotary_{interleaved}", "RotaryEmbedding", [Q, np.array([[0, 3, 5, 1], [2, 2, 9, 11]]), COS, SIN], num_heads=2,
        interleaved=interleaved)
add("rotary_offset", "RotaryEmbedding", [floats(2, 2, 4, 4), np.array([3]), COS, SIN])
add("rotary_partial", "RotaryEmbedding", [floats(2, 4, 16), np.array([2]), COS, SIN], num_heads=2, rotary_embedding_dim=4)


def grouped(name, length, past, total, lengths, rotary=False, packed=False, bias=False, batch=2, **attributes):
    size, heads, groups = 16, 4, 2
    query = floats(batch, length, (heads + 2 * groups if packed else heads) * size)
    keys = None if packed else floats(batch, length, groups * size)
    values = None if packed else floats(batch, length, groups * size)
    state = (floats(batch, groups, past, size), floats(batch, groups, past, size)) if past is not None else (None, None)
    tables = (floats(16, 8), floats(16, 8)) if rotary else (None, None)
    inputs = [query, keys, values, *state, np.array(lengths, np.int32), np.array(total, np.int32), *tables]
    if bias:
        inputs += [None, floats(1, heads, length, total)]
    while inputs[-1] is None:
        inputs.pop()
    add(f"grouped_{name}", "GroupQueryAttention", inputs, outputs=3, num_heads=heads, kv_num_heads=groups,
        do_rotary=int(rotary), constants=[6], **attributes)


grouped("prompt", 5, None, 5, [4, 4])
grouped("prompt_rotary", 5, None, 5, [4, 4], rotary=True)
grouped("prompt_interleaved", 5, None, 5, [4, 4], rotary=True, rotary_interleaved=1)
grouped("prompt_packed", 5, None, 5, [4, 4], packed=True, rotary=True)
grouped("prompt_window", 7, None, 7, [6, 6], local_window_size=3)
grouped("prompt_cap", 5, None, 5, [4, 4], softcap=1.5, scale=0.5)
grouped("prompt_bias", 5, None, 5, [4, 4], bias=True)
grouped("decode", 1, 6, 7, [6, 6], rotary=True)
grouped("decode_uneven", 1, 6, 7, [6, 3], rotary=True)
grouped("decode_window", 1, 6, 7, [6, 4], local_window_size=3)
grouped("decode_bias", 1, 6, 7, [6, 6], bias=True)
grouped("decode_packed", 1, 6, 7, [6, 2], packed=True)


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "microsoft"
    folder.mkdir()
    prefixes = []
    for i, (made, _) in enumerate(CASES.values()):
        path = om.write(made, folder / f"m{i}.onnx")
        compiler.run(path, "--emit=cuda", "-q", "-o", path.with_suffix(""))
        prefixes.append(path.with_suffix(""))
    host.build_together(prefixes, folder / "all.so", checked=True)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_against_onnxruntime(library, name):
    _, given = CASES[name]
    number = list(CASES).index(name)
    want = BY_HAND.get(name) or reference.run(library / f"m{number}.onnx", given)
    with host.HostModel(library / f"m{number}", library=library / "all.so") as model:
        assert_close(model.run(given), want)


# --- refused ------------------------------------------------------------------------------------------------------

REFUSED = {
    "heads": ("Attention", [H, W], dict(num_heads=3), "node 'tested'"),
    "no_heads": ("MultiHeadAttention", [Q, K, V], {}, "'num_heads' is 0"),
    "mask": ("MultiHeadAttention", [Q, K, V, None, np.ones(7, np.int32)], dict(num_heads=2), "the mask input 4"),
    "activation": ("FusedGemm", [floats(3, 4), floats(4, 5)], dict(activation="Swish"), "'activation' is 'Swish'"),
    "total": ("GroupQueryAttention", [floats(1, 2, 32), floats(1, 2, 16), floats(1, 2, 16), None, None, np.zeros(1, np.int32),
                                      np.array(2, np.int32)], dict(num_heads=2, kv_num_heads=1), "total_sequence_length"),
    "attribute": ("Gelu", [X], dict(approximate="tanh"), "'approximate' is not one of this operator's"),
    "operator": ("NGramRepeatBlock", [X], {}, "com.microsoft.NGramRepeatBlock"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    kind, inputs, attributes, part = REFUSED[name]
    add(f"refused_{name}", kind, inputs, **attributes)
    made, _ = CASES.pop(f"refused_{name}")
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode in (compiler.EXIT["unsupported"], compiler.EXIT["invalid"]), done.stderr
    assert part in done.stderr
