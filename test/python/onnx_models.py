"""Small ONNX models made by hand, valid or not: nothing here calls the checker."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(name: str, values) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)


def value(name: str, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(kind: str, inputs: list[str], outputs: list[str], name: str = "", **attributes):
    return helper.make_node(kind, inputs, outputs, name=name, **attributes)


def model(nodes, inputs, outputs, initializers=(), opset: int = 17, opsets=None):
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=opsets or [helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def write(made, path) -> Path:
    path = Path(path)
    path.write_bytes(made.SerializeToString())
    return path


def relu(shape=(2, 3)):
    return model([node("Relu", ["x"], ["y"], "relu")], [value("x", shape)], [value("y", shape)])
