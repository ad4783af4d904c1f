"""Builds graphs of nodes for the scripted models: convolutional layers, linear layers, shapes."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .store import initializer
from .weights import Weights

OPSET = 17


class Builder:
    """Every method adds nodes and returns the name of its result; `name` is the layer's path, from which nodes and
    weights have their names. Batch normalization is folded into the convolutions, as exporters do for inference."""

    def __init__(self, seed: int):
        self.weights = Weights(seed)
        self.nodes, self.initializers = [], []

    def op(self, kind: str, name: str, *inputs: str, output: str | None = None, **attributes) -> str:
        output = output or f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def split(self, name: str, x: str, sizes: list[int], axis: int) -> list[str]:
        outputs = [f"{name}_output_{i}" for i in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [x, self.ints(f"{name}_sizes", sizes)], outputs, name=name, axis=axis))
        return outputs

    def parameter(self, name: str, values) -> str:
        self.initializers.append(initializer(name, values))
        return name

    def ints(self, name: str, values) -> str:
        return self.parameter(name, np.array(values, np.int64))

    def scalar(self, name: str, value: float) -> str:
        return self.op("Constant", name, value=initializer(f"{name}_value", np.float32(value)))

    def reshape(self, name: str, x: str, shape: list[int]) -> str:
        """0 keeps the dim, -1 is what is left."""
        return self.op("Reshape", name, x, self.ints(f"{name}_shape", shape))

    def conv(self, name: str, x: str, c: int, f: int, kernel: int = 1, stride: int = 1, groups: int = 1,
             gain: float = 2.0, bias: float = 0.1) -> str:
        """A convolution with bias and, for an odd kernel, "same" padding."""
        w = self.weights.he(f"{name}.weight", (f, c // groups, kernel, kernel), c // groups * kernel * kernel, gain)
        b = self.weights.normal(f"{name}.bias", (f,), bias)
        return self.op("Conv", f"{name}/Conv", x, self.parameter(f"{name}.weight", w), self.parameter(f"{name}.bias", b),
                       kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2 if kernel % 2 else 0] * 4,
                       dilations=[1, 1], group=groups)

    def relu(self, name: str, x: str) -> str:
        return self.op("Relu", f"{name}/Relu", x)

    def relu6(self, name: str, x: str) -> str:
        return self.op("Clip", f"{name}/Clip", x, self.scalar(f"{name}/zero", 0), self.scalar(f"{name}/six", 6))

    def swish(self, name: str, x: str) -> str:
        """x * sigmoid(x)"""
        return self.op("Mul", f"{name}/Mul", x, self.op("Sigmoid", f"{name}/Sigmoid", x))

    def add(self, name: str, x: str, y: str) -> str:
        return self.op("Add", f"{name}/Add", x, y)

    def concat(self, name: str, *inputs: str, axis: int = 1) -> str:
        return self.op("Concat", f"{name}/Concat", *inputs, axis=axis)

    def max_pool(self, name: str, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self.op("MaxPool", f"{name}/MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def upsample(self, name: str, x: str, c: int, h: int, w: int) -> str:
        """To twice h and w by repetition, as exporters write repeat_interleave and a broadcast view."""
        x = self.reshape(f"{name}/Reshape", x, [0, c, h, 1, w, 1])
        x = self.op("Expand", f"{name}/Expand", x, self.ints(f"{name}/Expand_shape", [1, c, h, 2, w, 2]))
        return self.reshape(f"{name}/Reshape_1", x, [0, c, 2 * h, 2 * w])

    def classifier(self, name: str, x: str, c: int, classes: int, output: str) -> str:
        x = self.op("Flatten", f"{name}/Flatten", self.op("GlobalAveragePool", f"{name}/GlobalAveragePool", x), axis=1)
        w = self.parameter(f"{name}.weight", self.weights.he(f"{name}.weight", (classes, c), c, 1.0))
        b = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (classes,), 0.1))
        return self.op("Gemm", f"{name}/Gemm", x, w, b, output=output, transB=1)

    def linear(self, name: str, x: str, fan_in: int, fan_out: int, gain: float = 1.0) -> str:
        w = self.parameter(f"{name}.weight", self.weights.he(f"{name}.weight", (fan_in, fan_out), fan_in, gain))
        b = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (fan_out,), 0.1))
        return self.op("Add", f"{name}/Add", b, self.op("MatMul", f"{name}/MatMul", x, w))

    def norm(self, name: str, x: str, width: int, output: str | None = None, epsilon: float = 1e-5) -> str:
        scale = self.parameter(f"{name}.weight", self.weights.uniform(f"{name}.weight", (width,), 0.5, 1.5))
        bias = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (width,), 0.1))
        return self.op("LayerNormalization", f"{name}/LayerNormalization", x, scale, bias, output=output, axis=-1,
                       epsilon=epsilon)

    def model(self, name: str, inputs: dict[str, tuple], outputs: dict[str, list], opset: int = OPSET) -> onnx.ModelProto:
        """`inputs`: name to (element type, shape); `outputs`, floats: name to shape."""
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs.items()],
            self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="memplan_models")
        model.ir_version = 8 if opset == OPSET else 10
        onnx.checker.check_model(model)
        return model


def image(side: int, channels: int = 3) -> dict[str, tuple]:
    return {"image": (TensorProto.FLOAT, ["N", channels, side, side])}
