"""Whole models of 16-bit floats, 8-bit and 4-bit integers, against onnxruntime."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnxruntime.quantization import QuantFormat

import memplan_models
import narrow_models
import onnx_models as om
from memplan_tools import compiler, host, reference

pytestmark = pytest.mark.usefixtures("memplan_opt")

DIMS = {"N": 1, "S": 12}


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> onnx.ModelProto:
    return onnx.load(memplan_models.write("transformer_tanh", tmp_path_factory.mktemp("transformer")))


def run(made, inputs, folder, quick, dims=None):
    folder.mkdir(exist_ok=True)
    path = om.write(made, folder / "model.onnx")
    compiler.emit_cuda(path, folder / "out/model", dims or {})
    with host.HostModel(folder / "out/model", **quick) as model:
        return model.run(inputs), model


@pytest.mark.parametrize("quant_format", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_resnet_in_8_bits(tmp_path, quick, quant_format):
    plain = narrow_models.resnet()
    made = narrow_models.quantized(plain, tmp_path, quant_format)
    inputs = {"image": np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype(np.float32)}
    got, model = run(made, inputs, tmp_path, quick)
    want = reference.run(tmp_path / "quantized.onnx", inputs)
    # A tie in one of the roundings moves what comes after it by a step.
    np.testing.assert_allclose(got["scores"], want["scores"], atol=0.08)
    float_result, float_model = run(plain, inputs, tmp_path / "float", quick)
    np.testing.assert_allclose(got["scores"], float_result["scores"], atol=0.3)
    # Weights take a byte an element and some parameters; so do activations.
    assert model.weights_bytes < float_model.weights_bytes * 0.55
    assert model.arena_bytes < float_model.arena_bytes * 0.5


def test_transformer_in_4_bits(tmp_path, quick, transformer):
    made = narrow_models.four_bits(transformer)
    inputs = {"tokens": np.random.default_rng(2).standard_normal((1, 12, 64)).astype(np.float32)}
    got, model = run(made, inputs, tmp_path, quick, DIMS)
    want = reference.run(tmp_path / "model.onnx", inputs)
    np.testing.assert_allclose(got["encoded"], want["encoded"], atol=0.05)
    _, float_model = run(transformer, inputs, tmp_path / "float", quick, DIMS)
    # A matrix of 64 by 256 floats would be 64 KiB. A row reduction doesn't write over a residual, as a product does.
    assert model.weights_bytes < float_model.weights_bytes / 3
    assert model.arena_bytes <= float_model.arena_bytes + 12 * 64 * 4


def test_transformer_in_float16(tmp_path, quick, transformer):
    made = narrow_models.in_type(transformer, TensorProto.FLOAT16)
    inputs = {"tokens": np.random.default_rng(3).standard_normal((1, 12, 64)).astype(np.float16)}
    got, model = run(made, inputs, tmp_path, quick, DIMS)
    want = reference.run(tmp_path / "model.onnx", inputs)
    assert got["encoded"].dtype == np.float16
    np.testing.assert_allclose(got["encoded"].astype(np.float32), want["encoded"].astype(np.float32), atol=0.02)
    wide = {"tokens": inputs["tokens"].astype(np.float32)}
    _, float_model = run(transformer, wide, tmp_path / "float", quick, DIMS)
    assert model.arena_bytes <= float_model.arena_bytes * 0.55


def test_transformer_in_bfloat16(tmp_path, quick, transformer):
    """onnxruntime has no kernels for it on CPUs: against its floats, with weights rounded alike."""
    made = narrow_models.in_type(transformer, TensorProto.BFLOAT16)
    rounded = narrow_models.in_type(transformer, TensorProto.FLOAT)
    for tensor in rounded.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor).astype(ml_dtypes.bfloat16).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    inputs = {"tokens": np.random.default_rng(4).standard_normal((1, 12, 64)).astype(ml_dtypes.bfloat16)}
    got, _ = run(made, inputs, tmp_path, quick, DIMS)
    want = reference.run(om.write(rounded, tmp_path / "rounded.onnx"), {"tokens": inputs["tokens"].astype(np.float32)})
    assert got["encoded"].dtype == ml_dtypes.bfloat16
    difference = np.abs(got["encoded"].astype(np.float32) - want["encoded"])
    assert difference.max() < 0.15 and difference.mean() < 0.02, (difference.max(), difference.mean())


def test_resnet_in_float16(tmp_path, quick):
    made = narrow_models.in_type(narrow_models.resnet(), TensorProto.FLOAT16)
    inputs = {"image": np.random.default_rng(5).standard_normal((1, 3, 16, 16)).astype(np.float16)}
    got, _ = run(made, inputs, tmp_path, quick)
    want = reference.run(tmp_path / "model.onnx", inputs)
    np.testing.assert_allclose(got["scores"].astype(np.float32), want["scores"].astype(np.float32), atol=0.02)
