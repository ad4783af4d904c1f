"""The three ways in which an ONNX file can hold a tensor's values."""

import os
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

#: raw: `raw_data` inside the file; typed: `float_data`, `int64_data`, ...; external: a second file beside the model.
STORAGES = ("raw", "typed", "external")


def _typed(tensor: onnx.TensorProto) -> onnx.TensorProto:
    values = numpy_helper.to_array(tensor)
    return onnx.helper.make_tensor(tensor.name, tensor.data_type, list(tensor.dims), values.flatten())


def save(model: onnx.ModelProto, path, storage: str = "raw") -> Path:
    """Writes `model` (whose initializers are raw) to `path`; replaces the file only when it is complete."""
    if storage not in STORAGES:
        raise ValueError(f"storage is {storage!r}; one of {', '.join(STORAGES)} is accepted")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    if storage == "external":
        weights = path.with_suffix(".weights").name
        # onnx appends to an existing file, so that a second run would double it.
        (path.parent / weights).unlink(missing_ok=True)
        onnx.save_model(model, partial, save_as_external_data=True, all_tensors_to_one_file=True,
                        location=weights, size_threshold=0)
    else:
        if storage == "typed":
            for i, tensor in enumerate(model.graph.initializer):
                model.graph.initializer[i].CopyFrom(_typed(tensor))
        onnx.save_model(model, partial)
    os.replace(partial, path)
    return path


def initializer(name: str, values) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)
