"""Inputs for a model, and what ONNX Runtime makes of them."""

import zlib

import numpy as np
import onnx
import onnxruntime


def input_types(model, dims: dict[str, int] | None = None) -> dict[str, tuple[np.dtype, list[int]]]:
    """Element type and bound shape of each graph input that isn't an initializer, in the model's order."""
    graph = onnx.load(model, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    types = {}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = []
        for d in tensor.shape.dim:
            if d.HasField("dim_value"):
                shape.append(d.dim_value)
            elif d.dim_param in (dims or {}):
                shape.append(dims[d.dim_param])
            else:
                raise ValueError(f"{model}: input {value.name!r}: dimension {d.dim_param!r} has no value")
        types[value.name] = (onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), shape)
    return types


def random_inputs(model, dims: dict[str, int] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """Standard normal floats, small non-negative integers; each input has its own seed."""
    inputs = {}
    for name, (dtype, shape) in input_types(model, dims).items():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        if np.issubdtype(dtype, np.floating):
            inputs[name] = rng.standard_normal(shape, dtype=np.float32).astype(dtype)
        elif dtype == np.bool_:
            inputs[name] = rng.random(shape) < 0.5
        else:
            inputs[name] = rng.integers(0, 8, shape).astype(dtype)
    return inputs


def session(model, optimized: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run(model, inputs: dict[str, np.ndarray], optimized: bool = True) -> dict[str, np.ndarray]:
    """Outputs by name, in the model's order. Optimized, ONNX Runtime may round less often than the model says, as
    where it computes in integers between DequantizeLinear and QuantizeLinear."""
    opened = session(model, optimized)
    names = [o.name for o in opened.get_outputs()]
    return dict(zip(names, opened.run(names, inputs)))
