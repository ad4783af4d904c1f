"""The `light_*` models of the onnx package: classic image classifiers whose weights are all one constant.

Constant weights hide layout mistakes (a transposed filter of ones is still a filter of ones), so each
model also comes with seeded random weights, as ordinary initializers.
"""

import functools
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .store import initializer
from .weights import Weights

#: short name: file name in the onnx package
FILES = {
    "alexnet": "light_bvlc_alexnet",
    "densenet121": "light_densenet121",
    "inception_v1": "light_inception_v1",
    "inception_v2": "light_inception_v2",
    "resnet50": "light_resnet50",
    "shufflenet": "light_shufflenet",
    "squeezenet": "light_squeezenet",
    "vgg19": "light_vgg19",
    "zfnet512": "light_zfnet512",
}


def shipped_path(short: str) -> Path:
    from onnx.backend.test import __file__ as backend

    return Path(backend).parent / "data" / "light" / f"{FILES[short]}.onnx"


def shipped(short: str) -> onnx.ModelProto:
    """The model as the onnx package ships it: weights computed by ConstantOfShape nodes."""
    return onnx.load(shipped_path(short))


class _Uses:
    """Which node, and as which of its inputs, consumes a tensor, looking through Unsqueeze and Reshape."""

    def __init__(self, graph: onnx.GraphProto):
        self.users: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        self.producer = {output: node for node in graph.node for output in node.output}
        for node in graph.node:
            for i, name in enumerate(node.input):
                self.users.setdefault(name, []).append((node, i))

    def of(self, name: str):
        for node, i in self.users.get(name, []):
            if node.op_type in ("Unsqueeze", "Reshape"):
                yield from self.of(node.output[0])
            else:
                yield node, i

    @functools.cache
    def ends_branch(self, name: str) -> bool:
        """Is this tensor added to another branch (perhaps after BatchNormalization)?"""
        return any(node.op_type == "Sum" or
                   (node.op_type == "BatchNormalization" and self.ends_branch(node.output[0]))
                   for node, _ in self.users.get(name, []))

    @functools.cache
    def meets_relu(self, name: str) -> bool:
        """Does this tensor pass through a Relu (perhaps after a scale and shift)?"""
        through = ("BatchNormalization", "Mul", "Add", "Concat")
        return any(node.op_type == "Relu" or (node.op_type in through and self.meets_relu(node.output[0]))
                   for node, _ in self.users.get(name, []))


def _attribute(node: onnx.NodeProto, name: str, default):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _value(weights: Weights, uses: _Uses, name: str, shape: list[int]) -> np.ndarray | None:
    """Values for the tensor `name`, by what its first consumer does with it; None when nothing consumes it."""
    node, i = next(uses.of(name), (None, 0))
    if node is None:
        return None
    small = functools.partial(weights.normal, name, shape, 0.1)
    if node.op_type == "Conv":
        # Two branches that are added double the variance; a branch of a third keeps sixteen of them in bounds.
        # No Relu after it: nothing is dropped, so nothing to make up for.
        gain = (2.0 if uses.meets_relu(node.output[0]) else 1.0) * (0.3 if uses.ends_branch(node.output[0]) else 1.0)
        return weights.he(name, shape, int(np.prod(shape[1:])), gain) if i == 1 else small()
    if node.op_type == "Gemm":
        transposed = _attribute(node, "transB", 0)
        gain = 2.0 if uses.meets_relu(node.output[0]) else 1.0
        return weights.he(name, shape, shape[-1 if transposed else -2], gain) if i == 1 else small()
    if node.op_type == "BatchNormalization":  # x, scale, bias, mean, variance
        # E[scale^2] and E[1/variance] near 1, since a deep net multiplies dozens of them.
        return (weights.uniform(name, shape, 0.7, 1.3) if i == 1 else
                weights.uniform(name, shape, 0.7, 1.4) if i == 4 else small())
    if node.op_type == "Mul":
        return weights.uniform(name, shape, 0.7, 1.3)
    if node.op_type == "Add":
        return small()
    raise ValueError(f"weight {name!r} is used by {node.op_type} node {node.name!r}: no rule for its values")


def randomised(short: str, seed: int) -> onnx.ModelProto:
    """The model with seeded random weights as initializers; ConstantOfShape nodes are gone."""
    model = shipped(short)
    graph, weights = model.graph, Weights(seed)
    uses = _Uses(graph)
    known = {t.name: t for t in graph.initializer}
    declared = {i.name for i in graph.input}

    shapes: dict[str, list[int]] = {}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = numpy_helper.to_array(known[node.input[0]]).tolist()
    replaced_shapes = {n.input[0] for n in graph.node if n.op_type == "ConstantOfShape"}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) >= 1:
            shapes[tensor.name] = list(tensor.dims)

    kept = [t for t in graph.initializer if t.name not in shapes and t.name not in replaced_shapes]
    fresh = []
    for name, shape in shapes.items():
        values = _value(weights, uses, name, shape)
        if values is not None:
            fresh.append(initializer(name, values))
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    # These files are of IR version 3, in which an initializer is also listed among the graph's inputs.
    inputs = [i for i in graph.input if i.name not in replaced_shapes and (i.name in declared - shapes.keys())]
    inputs += [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, list(t.dims)) for t in fresh]

    for field, items in (("node", nodes), ("initializer", kept + fresh), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(items)
    if model.ByteSize() < 2**31:  # the checker refuses what a protobuf can't hold
        onnx.checker.check_model(model)
    return model
