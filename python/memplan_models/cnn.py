"""The two small digit classifiers that most tutorials start from, on 1x28x28 images, any batch size N."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .store import initializer
from .weights import Weights

OPSET = 13


class _Layers:
    """Builds a chain of nodes; every node takes the last one's output."""

    def __init__(self, seed: int, first: str):
        self.weights = Weights(seed)
        self.nodes, self.initializers, self.last = [], [], first

    def _parameter(self, name: str, values: np.ndarray) -> str:
        self.initializers.append(initializer(name, values))
        return name

    def op(self, kind: str, name: str, *more: str, output: str | None = None, **attributes):
        output = output or f"{name}_out"
        self.nodes.append(helper.make_node(kind, [self.last, *more], [output], name=name, **attributes))
        self.last = output

    def conv(self, name: str, c: int, f: int, k: int):
        w = self._parameter(f"{name}.weight", self.weights.he(f"{name}.weight", (f, c, k, k), c * k * k))
        b = self._parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (f,), 0.1))
        self.op("Conv", name, w, b, kernel_shape=[k, k], strides=[1, 1], pads=[0, 0, 0, 0])

    def pool(self, name: str):
        self.op("MaxPool", name, kernel_shape=[2, 2], strides=[2, 2])

    def fc(self, name: str, c: int, f: int, output: str | None = None):
        w = self._parameter(f"{name}.weight", self.weights.he(f"{name}.weight", (f, c), c))
        b = self._parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (f,), 0.1))
        self.op("Gemm", name, w, b, output=output, transB=1)

    def model(self, name: str) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])
        scores = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, ["N", 10])
        graph = helper.make_graph(self.nodes, name, [image], [scores], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="memplan_models")
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def cnn_relu(seed: int) -> onnx.ModelProto:
    """conv(1,20,5) relu maxpool conv(20,50,5) relu maxpool flatten fc(800,500) relu fc(500,10)"""
    net = _Layers(seed, "image")
    net.conv("conv1", 1, 20, 5)
    net.op("Relu", "relu1")
    net.pool("pool1")
    net.conv("conv2", 20, 50, 5)
    net.op("Relu", "relu2")
    net.pool("pool2")
    net.op("Flatten", "flatten", axis=1)
    net.fc("fc1", 800, 500)
    net.op("Relu", "relu3")
    net.fc("fc2", 500, 10, output="scores")
    return net.model("cnn_relu")


def cnn_dropout(seed: int) -> onnx.ModelProto:
    """conv(1,10,5) maxpool relu conv(10,20,5) dropout maxpool relu flatten fc(320,50) relu dropout fc(50,10) logsoftmax"""
    net = _Layers(seed, "image")
    ratio, training = initializer("ratio", np.float32(0.5)), initializer("training", np.bool_(False))
    net.initializers += [ratio, training]
    net.conv("conv1", 1, 10, 5)
    net.pool("pool1")
    net.op("Relu", "relu1")
    net.conv("conv2", 10, 20, 5)
    net.op("Dropout", "dropout1", "ratio", "training")
    net.pool("pool2")
    net.op("Relu", "relu2")
    net.op("Flatten", "flatten", axis=1)
    net.fc("fc1", 320, 50)
    net.op("Relu", "relu3")
    net.op("Dropout", "dropout2", "ratio")
    net.fc("fc2", 50, 10)
    net.op("LogSoftmax", "logsoftmax", axis=1, output="log_probabilities")
    return net.model("cnn_dropout")
