"""Buffers of a graph as it stands in its file: what a planner sees that neither fuses nor forwards."""

import math
from dataclasses import dataclass

import onnx


@dataclass
class Tensor:
    bytes: int
    lower: int  # index of the node that writes it
    upper: int  # one past the last node that reads it


#: An output that is its input's bytes under another shape.
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}


def _bytes_of(info: onnx.ValueInfoProto) -> int | None:
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    if not all(d.HasField("dim_value") for d in tensor.shape.dim):
        return None
    size = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return size * math.prod(d.dim_value for d in tensor.shape.dim)


def buffers(model: onnx.ModelProto) -> list[Tensor]:
    """One buffer for each tensor between nodes, in the file's order, views sharing their input's.

    There are none for inputs, outputs and weights."""
    graph = model.graph
    sizes = {i.name: _bytes_of(i) for i in (*graph.value_info, *graph.output)}
    outside = {t.name for t in graph.initializer} | {i.name for i in graph.input}
    owner: dict[str, str] = {}
    found: dict[str, Tensor] = {}
    for i, node in enumerate(graph.node):
        if any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
            raise ValueError(f"{node.op_type} has a subgraph")
        for name in filter(None, node.input):
            if owner.get(name) in found:
                found[owner[name]].upper = i + 1
        for name in filter(None, node.output):
            if node.op_type in VIEWS:
                owner[name] = owner.get(node.input[0], node.input[0])
                continue
            if sizes.get(name) is None:
                raise ValueError(f"the shape of {name} ({node.op_type}) isn't known")
            owner[name] = name
            found[name] = Tensor(sizes[name], i, i + 1)
    for output in graph.output:  # is the caller's memory
        found.pop(owner.get(output.name, output.name), None)
    return [t for name, t in found.items() if name not in outside and t.bytes]
