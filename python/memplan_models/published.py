"""Transformers of published sizes: BERT-base, one step of GPT-2 with its cache, ViT-B/16.

Weights are drawn, not trained; what exporters fold for inference (dropout, transposed weights) is folded.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from .builder import Builder, image


@dataclass(frozen=True)
class Size:
    width: int
    heads: int
    layers: int
    vocabulary: int = 0
    positions: int = 0

    @property
    def depth(self) -> int:
        return self.width // self.heads


BASE = {"width": 768, "heads": 12, "layers": 12}


def _gelu_erf(net: Builder, name: str, x: str) -> str:
    """x * (erf(x / sqrt 2) + 1) * 0.5"""
    scaled = net.op("Div", f"{name}/Div", x, net.scalar(f"{name}/root2", math.sqrt(2.0)))
    raised = net.op("Add", f"{name}/Add", net.op("Erf", f"{name}/Erf", scaled), net.scalar(f"{name}/one", 1.0))
    return net.op("Mul", f"{name}/Mul_1", net.op("Mul", f"{name}/Mul", x, raised), net.scalar(f"{name}/half", 0.5))


def _gelu_tanh(net: Builder, name: str, x: str) -> str:
    """0.5 * x * (tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1)"""
    cube = net.op("Pow", f"{name}/Pow", x, net.scalar(f"{name}/three", 3.0))
    inner = net.add(name, x, net.op("Mul", f"{name}/Mul", cube, net.scalar(f"{name}/cubic", 0.044715)))
    inner = net.op("Mul", f"{name}/Mul_1", inner, net.scalar(f"{name}/slope", math.sqrt(2.0 / math.pi)))
    raised = net.op("Add", f"{name}/Add_1", net.op("Tanh", f"{name}/Tanh", inner), net.scalar(f"{name}/one", 1.0))
    return net.op("Mul", f"{name}/Mul_3", net.op("Mul", f"{name}/Mul_2", x, net.scalar(f"{name}/half", 0.5)), raised)


def _mix(net: Builder, name: str, size: Size, q: str, k: str, v: str, mask: str | None = None) -> str:
    """softmax(q k / sqrt depth + mask) v with heads merged; q, v are [N, heads, S, depth], k is [N, heads, depth, S]."""
    scores = net.op("Div", f"{name}/Div", net.op("MatMul", f"{name}/scores", q, k),
                    net.scalar(f"{name}/root", math.sqrt(size.depth)))
    if mask:
        scores = net.op("Add", f"{name}/mask", scores, mask)
    mixed = net.op("MatMul", f"{name}/mix", net.op("Softmax", f"{name}/Softmax", scores, axis=-1), v)
    merged = net.op("Transpose", f"{name}/Transpose", mixed, perm=[0, 2, 1, 3])
    return net.reshape(f"{name}/Reshape", merged, [0, 0, size.width])


def _heads(net: Builder, name: str, size: Size, x: str, perm: list[int]) -> str:
    x = net.reshape(f"{name}/Reshape", x, [0, 0, size.heads, size.depth])
    return net.op("Transpose", f"{name}/Transpose", x, perm=perm)


def _feed_forward(net: Builder, name: str, size: Size, x: str, gelu) -> str:
    hidden = gelu(net, f"{name}/gelu", net.linear(f"{name}/up", x, size.width, 4 * size.width))
    return net.linear(f"{name}/down", hidden, 4 * size.width, size.width)


def _table(net: Builder, name: str, rows: int, width: int) -> str:
    return net.parameter(name, net.weights.normal(name, (rows, width), 0.5))


def _bert(seed: int, name: str, size: Size) -> onnx.ModelProto:
    net = Builder(seed)
    words = net.op("Gather", "embeddings/words", _table(net, "embeddings.words", size.vocabulary, size.width), "input_ids")
    # Positions 0 to S - 1, and the first segment's row for all: both are slices of tables.
    shape = net.op("Shape", "embeddings/Shape", "input_ids", start=1, end=2)
    zero, axis = net.ints("embeddings/zero", [0]), net.ints("embeddings/axis", [0])
    positions = _table(net, "embeddings.positions", size.positions, size.width)
    places = net.op("Slice", "embeddings/Slice", positions, zero, shape, axis)
    x = net.op("Add", "embeddings/Add", words, _table(net, "embeddings.segment", 1, size.width))
    x = net.norm("embeddings/norm", net.op("Add", "embeddings/Add_1", x, places), size.width, epsilon=1e-12)
    # [N, 1, 1, S]: 0 where a token is, a large negative number where padding is
    kept = net.op("Cast", "mask/Cast", "attention_mask", to=TensorProto.BOOL)
    mask = net.op("Where", "mask/Where", kept, net.scalar("mask/zero", 0.0), net.scalar("mask/low", -1e9))
    mask = net.op("Unsqueeze", "mask/Unsqueeze", mask, net.ints("mask/axes", [1, 2]))
    for i in range(size.layers):
        layer = f"layer{i}"
        q, k, v = (_heads(net, f"{layer}/{part}", size, net.linear(f"{layer}/{part}", x, size.width, size.width), perm)
                   for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])))
        y = net.linear(f"{layer}/out", _mix(net, f"{layer}/attention", size, q, k, v, mask), size.width, size.width)
        x = net.norm(f"{layer}/norm1", net.add(f"{layer}/residual1", y, x), size.width, epsilon=1e-12)
        y = _feed_forward(net, f"{layer}/mlp", size, x, _gelu_erf)
        x = net.norm(f"{layer}/norm2", net.add(f"{layer}/residual2", y, x), size.width, epsilon=1e-12,
                     output="last_hidden_state" if i == size.layers - 1 else None)
    first = net.op("Gather", "pooler/Gather", x, net.parameter("pooler/first", np.int64(0)), axis=1)
    w = net.parameter("pooler.weight", net.weights.he("pooler.weight", (size.width, size.width), size.width, 1.0))
    b = net.parameter("pooler.bias", net.weights.normal("pooler.bias", (size.width,), 0.1))
    net.op("Tanh", "pooler/Tanh", net.op("Gemm", "pooler/Gemm", first, w, b, transB=1), output="pooler_output")
    return net.model(name, {n: (TensorProto.INT64, ["N", "S"]) for n in ("input_ids", "attention_mask")},
                     {"last_hidden_state": ["N", "S", size.width], "pooler_output": ["N", size.width]})


def bert_base(seed: int) -> onnx.ModelProto:
    """BERT-base (Devlin et al., 2018): 12 layers of 768, normalised after each block, Gelu from Erf, padding mask"""
    return _bert(seed, "bert_base", Size(**BASE, vocabulary=30522, positions=512))


def bert_small(seed: int) -> onnx.ModelProto:
    """BERT with 2 layers of 32 and 50 words"""
    return _bert(seed, "bert_small", Size(32, 4, 2, vocabulary=50, positions=16))


def _gpt2_step(seed: int, name: str, size: Size) -> onnx.ModelProto:
    net = Builder(seed)
    words = _table(net, "embeddings.words", size.vocabulary, size.width)
    positions = _table(net, "embeddings.positions", size.positions, size.width)
    x = net.op("Add", "embeddings/Add", net.op("Gather", "embeddings/words", words, "input_ids"),
               net.op("Gather", "embeddings/places", positions, "position_ids"))
    inputs = {n: (TensorProto.INT64, ["N", 1]) for n in ("input_ids", "position_ids")}
    outputs = {"logits": ["N", 1, size.vocabulary]}
    for i in range(size.layers):
        layer, cache = f"layer{i}", {}
        joined = net.linear(f"{layer}/qkv", net.norm(f"{layer}/norm1", x, size.width), size.width, 3 * size.width)
        q, k, v = net.split(f"{layer}/Split", joined, [size.width] * 3, axis=2)
        q = _heads(net, f"{layer}/query", size, q, [0, 2, 1, 3])
        for part, new in (("key", k), ("value", v)):
            past, present = f"past.{i}.{part}", f"present.{i}.{part}"
            new = _heads(net, f"{layer}/{part}", size, new, [0, 2, 1, 3])
            cache[part] = net.op("Concat", f"{layer}/{part}/Concat", past, new, output=present, axis=2)
            inputs[past] = (TensorProto.FLOAT, ["N", size.heads, "P", size.depth])
            outputs[present] = ["N", size.heads, "P + 1", size.depth]
        keys = net.op("Transpose", f"{layer}/Transpose", cache["key"], perm=[0, 1, 3, 2])
        mixed = _mix(net, f"{layer}/attention", size, q, keys, cache["value"])
        x = net.add(f"{layer}/residual1", x, net.linear(f"{layer}/out", mixed, size.width, size.width))
        y = _feed_forward(net, f"{layer}/mlp", size, net.norm(f"{layer}/norm2", x, size.width), _gelu_tanh)
        x = net.add(f"{layer}/residual2", x, y)
    w = net.parameter("logits.weight", net.weights.he("logits.weight", (size.width, size.vocabulary), size.width, 1.0))
    net.op("MatMul", "logits/MatMul", net.norm("norm", x, size.width), w, output="logits")
    return net.model(name, inputs, outputs)


def gpt2_step(seed: int) -> onnx.ModelProto:
    """One token through GPT-2 (Radford et al., 2019; 124M) with keys and values of the P before it, Gelu from Tanh"""
    return _gpt2_step(seed, "gpt2_step", Size(**BASE, vocabulary=50257, positions=1024))


def gpt2_step_small(seed: int) -> onnx.ModelProto:
    """One token through a GPT-2 with 2 layers of 32 and 50 words"""
    return _gpt2_step(seed, "gpt2_step_small", Size(32, 4, 2, vocabulary=50, positions=16))


def _vit(seed: int, name: str, size: Size, side: int, patch: int, classes: int) -> onnx.ModelProto:
    net, count = Builder(seed), (side // patch) ** 2
    w = net.weights.he("patches.weight", (size.width, 3, patch, patch), 3 * patch * patch, 1.0)
    b = net.weights.normal("patches.bias", (size.width,), 0.1)
    x = net.op("Conv", "patches/Conv", "image", net.parameter("patches.weight", w), net.parameter("patches.bias", b),
               kernel_shape=[patch, patch], strides=[patch, patch])
    x = net.op("Transpose", "patches/Transpose", net.reshape("patches/Reshape", x, [0, size.width, count]), perm=[0, 2, 1])
    # The class token, once for each image
    batch = net.op("Shape", "class/Shape", "image", start=0, end=1)
    shape = net.concat("class", batch, net.ints("class/rest", [1, size.width]), axis=0)
    token = net.parameter("class.token", net.weights.normal("class.token", (1, 1, size.width), 0.5))
    token = net.op("Expand", "class/Expand", token, shape)
    places = net.parameter("positions", net.weights.normal("positions", (1, count + 1, size.width), 0.5))
    x = net.add("positions", net.concat("tokens", token, x), places)
    for i in range(size.layers):
        layer = f"block{i}"
        y = net.linear(f"{layer}/qkv", net.norm(f"{layer}/norm1", x, size.width), size.width, 3 * size.width)
        y = net.reshape(f"{layer}/Reshape", y, [0, 0, 3, size.heads, size.depth])
        y = net.op("Transpose", f"{layer}/Transpose", y, perm=[2, 0, 3, 1, 4])
        q, k, v = (net.op("Gather", f"{layer}/Gather_{j}", y, net.parameter(f"{layer}/index_{j}", np.int64(j)), axis=0)
                   for j in range(3))
        k = net.op("Transpose", f"{layer}/Transpose_1", k, perm=[0, 1, 3, 2])
        y = net.linear(f"{layer}/out", _mix(net, f"{layer}/attention", size, q, k, v), size.width, size.width)
        x = net.add(f"{layer}/residual1", x, y)
        y = _feed_forward(net, f"{layer}/mlp", size, net.norm(f"{layer}/norm2", x, size.width), _gelu_erf)
        x = net.add(f"{layer}/residual2", x, y)
    first = net.op("Gather", "head/Gather", net.norm("norm", x, size.width), net.parameter("head/first", np.int64(0)), axis=1)
    w = net.parameter("head.weight", net.weights.he("head.weight", (classes, size.width), size.width, 1.0))
    b = net.parameter("head.bias", net.weights.normal("head.bias", (classes,), 0.1))
    net.op("Gemm", "head/Gemm", first, w, b, output="scores", transB=1)
    return net.model(name, image(side), {"scores": ["N", classes]})


def vit_b16(seed: int) -> onnx.ModelProto:
    """ViT-B/16 (Dosovitskiy et al., 2020) at 224x224: 197 tokens, joined query, key and value, class token"""
    return _vit(seed, "vit_b16", Size(**BASE), 224, 16, 1000)


def vit_small(seed: int) -> onnx.ModelProto:
    """A ViT with 2 layers of 32 on 16 patches of 8x8"""
    return _vit(seed, "vit_small", Size(32, 4, 2), 32, 8, 10)
