"""A transformer encoder of two layers, written the way exporters write it.

Batch N and sequence length S are symbolic, and the head split and merge take them from the tensor at
run time (Shape, Gather, Unsqueeze, Concat, Reshape): an importer with bound dims must fold these away.
The first layer normalises before each block (as GPT-2 does), the second after it (as BERT does).
"""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from .store import initializer
from .weights import Weights

OPSET = 17
WIDTH, HEADS, HIDDEN = 64, 4, 256


class _Graph:
    def __init__(self, seed: int):
        self.weights = Weights(seed)
        self.nodes, self.initializers, self.constants = [], [], {}

    def op(self, kind: str, name: str, *inputs: str, output: str | None = None, **attributes) -> str:
        output = output or f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def constant(self, name: str, values) -> str:
        """A Constant node, as exporters write for scalars and shapes (an initializer would be folded alike)."""
        return self.op("Constant", name, value=initializer(f"{name}_value", values))

    def parameter(self, name: str, values: np.ndarray) -> str:
        self.initializers.append(initializer(name, values))
        return name

    def linear(self, name: str, x: str, fan_in: int, fan_out: int, gain: float = 1.0) -> str:
        w = self.parameter(f"{name}.weight", self.weights.he(f"{name}.weight", (fan_in, fan_out), fan_in, gain))
        b = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (fan_out,), 0.1))
        return self.op("Add", f"{name}/Add", b, self.op("MatMul", f"{name}/MatMul", x, w))

    def norm(self, name: str, x: str, output: str | None = None) -> str:
        scale = self.parameter(f"{name}.weight", self.weights.uniform(f"{name}.weight", (WIDTH,), 0.5, 1.5))
        bias = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (WIDTH,), 0.1))
        return self.op("LayerNormalization", f"{name}/LayerNormalization", x, scale, bias, output=output,
                       axis=-1, epsilon=1e-5)

    def leading_dims(self, name: str, x: str) -> list[str]:
        """[N] and [S] as one-element tensors computed from x's shape."""
        axes = self.constant(f"{name}/axes", np.array([0], np.int64))
        dims = []
        for i in range(2):
            shape = self.op("Shape", f"{name}/Shape_{i}", x)
            index = self.constant(f"{name}/index_{i}", np.int64(i))
            dim = self.op("Gather", f"{name}/Gather_{i}", shape, index, axis=0)
            dims.append(self.op("Unsqueeze", f"{name}/Unsqueeze_{i}", dim, axes))
        return dims

    def split_heads(self, name: str, x: str, perm: list[int]) -> str:
        heads = self.constant(f"{name}/heads", np.array([HEADS], np.int64))
        depth = self.constant(f"{name}/depth", np.array([WIDTH // HEADS], np.int64))
        shape = self.op("Concat", f"{name}/Concat", *self.leading_dims(name, x), heads, depth, axis=0)
        return self.op("Transpose", f"{name}/Transpose", self.op("Reshape", f"{name}/Reshape", x, shape), perm=perm)

    def attention(self, name: str, x: str) -> str:
        q = self.split_heads(f"{name}/q", self.linear(f"{name}/query", x, WIDTH, WIDTH), [0, 2, 1, 3])
        k = self.split_heads(f"{name}/k", self.linear(f"{name}/key", x, WIDTH, WIDTH), [0, 2, 3, 1])
        v = self.split_heads(f"{name}/v", self.linear(f"{name}/value", x, WIDTH, WIDTH), [0, 2, 1, 3])
        scores = self.op("MatMul", f"{name}/scores", q, k)
        root = self.constant(f"{name}/root", np.float32(math.sqrt(WIDTH // HEADS)))
        scaled = self.op("Div", f"{name}/Div", scores, root)
        mixed = self.op("MatMul", f"{name}/mix", self.op("Softmax", f"{name}/Softmax", scaled, axis=-1), v)
        merged = self.op("Transpose", f"{name}/Transpose", mixed, perm=[0, 2, 1, 3])
        width = self.constant(f"{name}/width", np.array([WIDTH], np.int64))
        shape = self.op("Concat", f"{name}/Concat", *self.leading_dims(name, x), width, axis=0)
        return self.linear(f"{name}/out", self.op("Reshape", f"{name}/Reshape", merged, shape), WIDTH, WIDTH)

    def gelu_erf(self, name: str, x: str) -> str:
        """x * (erf(x / sqrt 2) + 1) * 0.5"""
        scaled = self.op("Div", f"{name}/Div", x, self.constant(f"{name}/root2", np.float32(math.sqrt(2.0))))
        raised = self.op("Add", f"{name}/Add", self.op("Erf", f"{name}/Erf", scaled),
                         self.constant(f"{name}/one", np.float32(1.0)))
        product = self.op("Mul", f"{name}/Mul", x, raised)
        return self.op("Mul", f"{name}/Mul_1", product, self.constant(f"{name}/half", np.float32(0.5)))

    def gelu_tanh(self, name: str, x: str) -> str:
        """0.5 * x * (tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1)"""
        cube = self.op("Pow", f"{name}/Pow", x, self.constant(f"{name}/three", np.float32(3.0)))
        cubic = self.op("Mul", f"{name}/Mul", cube, self.constant(f"{name}/cubic", np.float32(0.044715)))
        inner = self.op("Mul", f"{name}/Mul_1", self.op("Add", f"{name}/Add", x, cubic),
                        self.constant(f"{name}/slope", np.float32(math.sqrt(2.0 / math.pi))))
        raised = self.op("Add", f"{name}/Add_1", self.op("Tanh", f"{name}/Tanh", inner),
                         self.constant(f"{name}/one", np.float32(1.0)))
        half = self.op("Mul", f"{name}/Mul_2", x, self.constant(f"{name}/half", np.float32(0.5)))
        return self.op("Mul", f"{name}/Mul_3", half, raised)


def _encoder(seed: int, name: str, gelu) -> onnx.ModelProto:
    net = _Graph(seed)

    def feed_forward(prefix: str, x: str) -> str:
        hidden = gelu(net, f"{prefix}/gelu", net.linear(f"{prefix}/up", x, WIDTH, HIDDEN))
        return net.linear(f"{prefix}/down", hidden, HIDDEN, WIDTH)

    x = "tokens"
    attended = net.attention("layer0/attention", net.norm("layer0/norm1", x))
    x = net.op("Add", "layer0/residual1", x, attended)
    x = net.op("Add", "layer0/residual2", x, feed_forward("layer0/mlp", net.norm("layer0/norm2", x)))
    x = net.norm("layer1/norm1", net.op("Add", "layer1/residual1", net.attention("layer1/attention", x), x))
    x = net.norm("layer1/norm2", net.op("Add", "layer1/residual2", feed_forward("layer1/mlp", x), x), output="encoded")

    shape = ["N", "S", WIDTH]
    graph = helper.make_graph(net.nodes, name, [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("encoded", TensorProto.FLOAT, shape)], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="memplan_models")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def transformer_erf(seed: int) -> onnx.ModelProto:
    """Two encoder layers, multi-head attention, Gelu from Erf"""
    return _encoder(seed, "transformer_erf", _Graph.gelu_erf)


def transformer_tanh(seed: int) -> onnx.ModelProto:
    """Two encoder layers, multi-head attention, Gelu from Tanh"""
    return _encoder(seed, "transformer_tanh", _Graph.gelu_tanh)
