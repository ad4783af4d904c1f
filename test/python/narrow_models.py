"""Models of narrow types, made from the float ones of memplan_models: seeded, the same each time."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from memplan_models.builder import Builder


def resnet(seed: int = 0) -> onnx.ModelProto:
    """Two residual blocks, the second with a stride and a projection, and a classifier."""
    net = Builder(seed)
    x = net.relu("stem", net.conv("stem", "image", 3, 16, 3))
    for block, (channels, features, stride) in enumerate([(16, 16, 1), (16, 32, 2)]):
        name = f"block{block}"
        y = net.relu(f"{name}.a", net.conv(f"{name}.a", x, channels, features, 3, stride))
        y = net.conv(f"{name}.b", y, features, features, 3, gain=0.5)
        if stride != 1:
            x = net.conv(f"{name}.down", x, channels, features, 1, stride, gain=1.0)
        x = net.relu(name, net.op("Add", f"{name}/Add", y, x))
    pooled = net.op("GlobalAveragePool", "pool", x)
    flat = net.op("Flatten", "flatten", pooled)
    w = net.parameter("head.weight", net.weights.he("head.weight", (10, 32), 32, 1.0))
    b = net.parameter("head.bias", net.weights.normal("head.bias", (10,), 0.1))
    net.op("Gemm", "head/Gemm", flat, w, b, output="scores", transB=1)
    graph = helper.make_graph(net.nodes, "resnet", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])], net.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.checker.check_model(made)
    return made


class _Samples(CalibrationDataReader):
    def __init__(self, name, shape, count=8):
        rng = np.random.default_rng(0)
        self.samples = iter([{name: rng.standard_normal(shape).astype(np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.samples, None)


def quantized(made: onnx.ModelProto, folder, quant_format: QuantFormat) -> onnx.ModelProto:
    """uint8 activations, int8 weights with a scale a channel: what onnxruntime's quantization writes."""
    value = made.graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    onnx.save(made, folder / "float.onnx")
    quantize_static(folder / "float.onnx", folder / "quantized.onnx", _Samples(value.name, shape),
                    quant_format=quant_format, per_channel=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8)
    return onnx.load(folder / "quantized.onnx")


def four_bits(made: onnx.ModelProto, block: int = 32) -> onnx.ModelProto:
    """Each product with a weight becomes a MatMulNBits, by absolute maxima of blocks."""
    made = onnx.ModelProto.FromString(made.SerializeToString())
    weights = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    for node in made.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        k, n = weights[node.input[1]].shape
        w = weights[node.input[1]].T.reshape(n, k // block, block)
        scale = np.abs(w).max(axis=2, keepdims=True) / 7
        codes = np.clip(np.rint(w / scale) + 8, 0, 15).astype(np.uint8)
        packed = codes[..., 0::2] | codes[..., 1::2] << 4
        name = node.input[1]
        for tensor in [t for t in made.graph.initializer if t.name == name]:
            made.graph.initializer.remove(tensor)
        made.graph.initializer.extend([numpy_helper.from_array(packed, f"{name}_packed"),
                                       numpy_helper.from_array(scale.reshape(-1).astype(np.float32), f"{name}_scales")])
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        del node.input[1:]
        node.input.extend([f"{name}_packed", f"{name}_scales"])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in
                              {"K": k, "N": n, "bits": 4, "block_size": block}.items())
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def in_type(made: onnx.ModelProto, code: int) -> onnx.ModelProto:
    """The model with another type of floats throughout; its opset is one that has it everywhere."""
    made = onnx.ModelProto.FromString(made.SerializeToString())
    dtype = helper.tensor_dtype_to_np_dtype(code)

    def convert(tensor: TensorProto):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))

    for tensor in made.graph.initializer:
        convert(tensor)
    for node in made.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                convert(attribute.t)
    for value in [*made.graph.input, *made.graph.output, *made.graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = code
    return made
