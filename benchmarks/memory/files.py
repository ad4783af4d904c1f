"""Writes a model as a file whose shapes are all static, which our compiler and every peer are given alike."""

import os
from pathlib import Path

import memplan_models
import onnx
from onnx import numpy_helper


def _bind(graph: onnx.GraphProto, dims: dict[str, int]) -> None:
    for info in (*graph.input, *graph.output, *graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            name, _, more = dim.dim_param.partition(" + ")  # a sum, for outputs that grow
            if name in dims:
                dim.dim_value = dims[name] + int(more or 0)


def _rebatch(graph: onnx.GraphProto, batch: int) -> None:
    """Turns a model of batch size 1 into one of `batch`: its input's first dim, and the shapes that it is reshaped to."""
    constants = {t.name: t for t in graph.initializer}
    inputs = [i for i in graph.input if i.name not in constants]
    moving = {i.name for i in inputs}
    for info in (*inputs, *graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = batch
    graph.ClearField("value_info")
    for node in graph.node:
        if not moving & set(node.input):
            continue
        moving |= set(node.output)
        if node.op_type == "Reshape":
            shape = numpy_helper.to_array(constants[node.input[1]]).copy()
            if shape[0] not in (1, batch):
                raise ValueError(f"{node.name} reshapes to {shape.tolist()}, whose first dim isn't the batch")
            shape[0] = batch
            constants[node.input[1]].CopyFrom(numpy_helper.from_array(shape, node.input[1]))


def write(name: str, batch: int, folder: Path) -> Path:
    """folder/NAME.bBATCH.onnx, with the weights beside it in a file that both batch sizes share."""
    entry = memplan_models.entry(name)
    source = folder / f"{name}.onnx"
    target = folder / f"{name}.b{batch}.onnx"
    if target.exists():
        return target
    if not source.exists():
        memplan_models.write(name, folder, storage="external")
    model = onnx.load(source, load_external_data=False)
    for tensor in model.graph.initializer:  # shapes, axes, indices: ONNX Runtime and others want them in the file
        if tensor.data_type == onnx.TensorProto.INT64:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, str(folder))
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
    if "N" in entry.dims:
        _bind(model.graph, entry.dims | {"N": batch})
    elif batch != 1:
        _rebatch(model.graph, batch)
    partial = target.with_suffix(".partial")
    onnx.save(model, partial)
    os.replace(partial, target)
    return target
