"""Quantized operators: options that the ONNX suite has no case for, and those of com.microsoft, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler, host

pytestmark = pytest.mark.usefixtures("memplan_opt")

F32, F16, U8, I8, I32 = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32)
MS = "com.microsoft"


def build(nodes, inputs, outputs, initializers=None, opset=17):
    """`inputs` and `outputs`: (name, shape, type); `initializers`: arrays by name."""
    made = om.model(nodes, [om.value(n, s, t) for n, s, t in inputs], [om.value(n, s, t) for n, s, t in outputs],
                    [om.tensor(n, a) for n, a in (initializers or {}).items()],
                    opsets=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)])
    made.ir_version = 10
    return made


def run_both(made, inputs, tmp_path, quick, optimize=False):
    """What the host build and onnxruntime make of the model. Unoptimized, onnxruntime computes node by node."""
    tmp_path.mkdir(exist_ok=True)
    path = om.write(made, tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(names, inputs)))
    compiler.emit_cuda(path, tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        return model.run(inputs), want, model


def assert_near(got, want, steps=0, **tolerance):
    """Equal integers, but for `steps`; floats within the tolerance."""
    for name, array in want.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        if array.dtype.kind in "iu":
            apart = np.abs(got[name].astype(np.int64) - array.astype(np.int64))
            assert apart.max(initial=0) <= steps, f"{name}: {apart.max()} apart"
            assert (apart != 0).mean() < 0.02 or apart.size < 100
        else:
            np.testing.assert_allclose(got[name].astype(np.float64), array.astype(np.float64),
                                       **(tolerance or {"rtol": 1e-4, "atol": 1e-4}))


def integers(rng, dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


# --- products of integers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("a_type, b_type", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("zeros", ["none", "one", "vector"])
def test_matmul_integer(tmp_path, quick, a_type, b_type, zeros):
    rng = np.random.default_rng([a_type(1).itemsize, len(zeros)])
    a, b = integers(rng, a_type, 2, 5, 37), integers(rng, b_type, 37, 9)
    inputs, initializers = ["a", "b"], {}
    expected = a.astype(np.int64), b.astype(np.int64)
    if zeros != "none":
        inputs += ["az", "bz"]
        initializers = {"az": integers(rng, a_type) if zeros == "one" else integers(rng, a_type, 5),
                        "bz": integers(rng, b_type) if zeros == "one" else integers(rng, b_type, 9)}
        az, bz = initializers["az"].astype(np.int64), initializers["bz"].astype(np.int64)
        expected = expected[0] - (az if zeros == "one" else az[:, None]), expected[1] - bz
    made = build([om.node("MatMulInteger", inputs, ["y"])],
                 [("a", a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)),
                  ("b", b.shape, helper.np_dtype_to_tensor_dtype(b.dtype))], [("y", [2, 5, 9], I32)], initializers)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"a": a, "b": b})["y"]
    np.testing.assert_array_equal(got, (expected[0] @ expected[1]).astype(np.int32))


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_qlinear_conv(tmp_path, quick, groups):
    """A zero point a feature, padding with the input's zero point, bias, depthwise too."""
    rng = np.random.default_rng(groups)
    x, w = integers(rng, np.uint8, 2, 6, 9, 8), integers(rng, np.int8, 12, 6 // groups, 3, 3)
    parameters = {"xs": np.float32(0.02), "xz": np.uint8(131), "w": w,
                  "ws": rng.uniform(0.001, 0.01, 12).astype(np.float32), "wz": np.zeros(12, np.int8),
                  "ys": np.float32(0.15), "yz": np.uint8(120), "b": rng.integers(-3000, 3000, 12).astype(np.int32)}
    made = build([om.node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"],
                          pads=[1, 0, 1, 2], strides=[2, 1], group=groups)],
                 [("x", x.shape, U8)], [("y", [2, 12, 5, 8], U8)], parameters)
    got, want, _ = run_both(made, {"x": x}, tmp_path, quick)
    assert_near(got, want, steps=1)


def test_conv_integer_zero_point_a_feature(tmp_path, quick):
    rng = np.random.default_rng(3)
    x, w = integers(rng, np.uint8, 1, 3, 6, 6), integers(rng, np.uint8, 4, 3, 3, 3)
    xz, wz = np.uint8(7), np.array([0, 128, 255, 3], np.uint8)
    made = build([om.node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], pads=[1, 1, 1, 1])],
                 [("x", x.shape, U8)], [("y", [1, 4, 6, 6], I32)], {"w": w, "xz": xz, "wz": wz})
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"x": x})["y"]
    padded = np.pad(x.astype(np.int64) - 7, [(0, 0), (0, 0), (1, 1), (1, 1)])
    filters = w.astype(np.int64) - wz[:, None, None, None]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(got, np.einsum("nchwij,fcij->nfhw", windows, filters))


# --- QDQ chains ---------------------------------------------------------------------------------------------------


def qdq(name, tensor, scale, zero, parameters, axis=None):
    """QuantizeLinear and DequantizeLinear of a tensor."""
    parameters |= {f"{name}_s": scale, f"{name}_z": zero}
    attributes = {} if axis is None else {"axis": axis}
    return [om.node("QuantizeLinear", [tensor, f"{name}_s", f"{name}_z"], [f"{name}_q"], **attributes),
            om.node("DequantizeLinear", [f"{name}_q", f"{name}_s", f"{name}_z"], [name], **attributes)]


def test_qdq_products_keep_their_weights_as_integers(tmp_path, quick):
    """Conv, MatMul and Gemm between DequantizeLinear and QuantizeLinear: integers in, integers out, and no buffer
    for floats of a weight."""
    rng = np.random.default_rng(5)
    p = {"w": integers(rng, np.int8, 16, 8, 3, 3), "ws": rng.uniform(0.002, 0.01, 16).astype(np.float32),
         "wz": np.zeros(16, np.int8), "b": rng.standard_normal(16).astype(np.float32),
         "m": integers(rng, np.int8, 256, 40), "ms": rng.uniform(0.001, 0.002, 40).astype(np.float32),
         "mz": np.zeros(40, np.int8), "g": integers(rng, np.uint8, 24, 40), "gs": np.float32(0.003),
         "gz": np.uint8(128), "c": rng.standard_normal(24).astype(np.float32), "shape": np.array([1, 256], np.int64)}
    nodes = qdq("x8", "x", np.float32(0.03), np.uint8(127), p)
    nodes += [om.node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
              om.node("Conv", ["x8", "wf", "b"], ["y"], pads=[1, 1, 1, 1]), om.node("Relu", ["y"], ["r"])]
    nodes += qdq("r8", "r", np.float32(0.02), np.uint8(0), p)
    nodes += [om.node("Reshape", ["r8", "shape"], ["flat"]), om.node("DequantizeLinear", ["m", "ms", "mz"], ["mf"], axis=1),
              om.node("MatMul", ["r8f", "mf"], ["z"])]
    nodes[-3] = om.node("Reshape", ["r8_q", "shape"], ["flat_q"])
    nodes.insert(-1, om.node("DequantizeLinear", ["flat_q", "r8_s", "r8_z"], ["r8f"]))
    nodes += qdq("z8", "z", np.float32(0.1), np.uint8(128), p)
    nodes += [om.node("DequantizeLinear", ["g", "gs", "gz"], ["gf"]),
              om.node("Gemm", ["z8", "gf", "c"], ["out"], transB=1)]
    made = build(nodes, [("x", [1, 8, 4, 4], F32)], [("out", [1, 24], F32)], p)
    x = rng.standard_normal((1, 8, 4, 4)).astype(np.float32)
    got, want, model = run_both(made, {"x": x}, tmp_path, quick)
    # A tie in a requantization may go the other way: one step of 0.1 times a weight.
    np.testing.assert_allclose(got["out"], want["out"], atol=0.1 * 128 * 0.003)
    assert (np.abs(got["out"] - want["out"]) < 1e-4).mean() > 0.9
    # All activations together; the weights' floats would be 36 KiB, 4 KiB and more.
    assert model.arena_bytes <= 2048, model.arena_bytes
    assert model.weights_bytes < 20 * 1024, model.weights_bytes


def test_weight_only_quantization(tmp_path, quick):
    rng = np.random.default_rng(6)
    p = {"w": integers(rng, np.int8, 64, 48), "s": rng.uniform(0.001, 0.01, 48).astype(np.float32)}
    made = build([om.node("DequantizeLinear", ["w", "s"], ["wf"], axis=1), om.node("MatMul", ["x", "wf"], ["y"])],
                 [("x", [3, 64], F32)], [("y", [3, 48], F32)], p)
    got, want, model = run_both(made, {"x": rng.standard_normal((3, 64)).astype(np.float32)}, tmp_path, quick)
    assert_near(got, want)
    assert model.arena_bytes == 0


@pytest.mark.parametrize("size", [32, 30])
def test_blocked_quantization(tmp_path, quick, size):
    """Blocks that divide the dim, and a last one that is short."""
    rng = np.random.default_rng(size)
    x = rng.standard_normal((3, size, 4)).astype(np.float32)
    p = {"s": rng.uniform(0.01, 0.05, (3, 4, 4)).astype(np.float32), "z": integers(rng, np.int8, 3, 4, 4)}
    made = build([om.node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=8),
                  om.node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=8)],
                 [("x", x.shape, F32)], [("q", x.shape, I8), ("y", x.shape, F32)], p, opset=21)
    got, want, _ = run_both(made, {"x": x}, tmp_path, quick)
    assert_near(got, want, steps=0)


def test_quantization_saturates(tmp_path, quick):
    """Ties to even; what is out of range, infinite too, becomes the nearest end."""
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf, 126.4, 127.6], np.float32)
    made = build([om.node("QuantizeLinear", ["x", "s", "z"], ["y"])], [("x", [10], F32)], [("y", [10], I8)],
                 {"s": np.float32(1), "z": np.int8(1)})
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"x": x})["y"]
    assert got.tolist() == [1, 3, 3, 1, 127, -128, 127, -128, 127, 127]


def test_dynamic_quantization_of_zeros(tmp_path, quick):
    made = build([om.node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])], [("x", [3, 40], F32)],
                 [("y", [3, 40], U8), ("s", [], F32), ("z", [], U8)])
    got, want, _ = run_both(made, {"x": np.zeros((3, 40), np.float32)}, tmp_path, quick)
    assert_near(got, want)


# --- com.microsoft ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("to", [F32, F16])
@pytest.mark.parametrize("slope", [None, -0.7])
def test_pooled_after_sums_of_integers(tmp_path, quick, pool, to, slope):
    """As dynamic quantization leaves a CNN: what is pooled is a float, though the convolution sums integers."""
    rng = np.random.default_rng(0)
    np_type = helper.tensor_dtype_to_np_dtype(to)
    nodes = [om.node("ConvInteger", ["x", "w", "xz"], ["sum"]), om.node("Cast", ["sum"], ["wide"], to=to),
             om.node("Mul", ["wide", "scale"], ["scaled"])]
    weights = {"w": rng.integers(-30, 30, (5, 3, 3, 3)).astype(np.int8), "xz": np.uint8(120),
               "scale": np.array(2e-4, np_type)}
    if slope:  # falls where the sum rises
        nodes.append(om.node("PRelu", ["scaled", "slope"], ["bent"]))
        weights["slope"] = np.full((5, 1, 1), slope, np_type)
    nodes.append(om.node(pool, [nodes[-1].output[0]], ["y"], kernel_shape=[2, 2], strides=[2, 2]))
    made = build(nodes, [("x", [2, 3, 12, 10], U8)], [("y", [2, 5, 5, 4], to)], weights)
    got, want, _ = run_both(made, {"x": rng.integers(0, 256, (2, 3, 12, 10)).astype(np.uint8)}, tmp_path, quick)
    assert len(np.unique(want["y"])) > 100
    np.testing.assert_allclose(got["y"].astype(np.float64), want["y"].astype(np.float64), rtol=4e-3 if to == F16 else 1e-6,
                               atol=1e-3 if to == F16 else 1e-6)


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_binary(tmp_path, quick, kind, dtype):
    rng = np.random.default_rng(1)
    a, b = integers(rng, dtype, 2, 3, 50), integers(rng, dtype, 3, 1)
    p = {"as": np.float32(0.02), "az": dtype(3), "bs": np.float32(0.03), "bz": dtype(100), "b": b,
         "cs": np.float32(0.05), "cz": dtype(60)}
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = build([om.node(kind, ["a", "as", "az", "b", "bs", "bz", "cs", "cz"], ["y"], domain=MS)],
                 [("a", a.shape, code)], [("y", a.shape, code)], p)
    got, want, _ = run_both(made, {"a": a}, tmp_path, quick)
    assert_near(got, want, steps=1)


@pytest.mark.parametrize("kind, attributes", [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}),
                                              ("QLinearSoftmax", {"axis": 1, "opset": 13}),
                                              ("QLinearSoftmax", {"axis": 1, "opset": 11}),
                                              ("QLinearGlobalAveragePool", {"channels_last": 0}),
                                              ("QLinearGlobalAveragePool", {"channels_last": 1}),
                                              ("QLinearAveragePool", {"kernel_shape": [3, 2], "strides": [2, 1],
                                                                      "pads": [1, 0, 1, 1]}),
                                              ("QLinearAveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1],
                                                                      "count_include_pad": 1})])
def test_qlinear_of_one_tensor(tmp_path, quick, kind, attributes):
    rng = np.random.default_rng(2)
    x = integers(rng, np.uint8, 2, 4, 6, 5)
    softmax = kind in ("QLinearSoftmax", "QLinearSigmoid")
    p = {"xs": np.float32(0.05), "xz": np.uint8(120), "ys": np.float32(1 / 256 if softmax else 0.04),
         "yz": np.uint8(0 if softmax else 110)}
    inputs = ["x", "xs", "xz", "ys", "yz"]
    shape = list(x.shape)
    if kind == "QLinearGlobalAveragePool":
        shape = [2, 1, 1, 5] if attributes["channels_last"] else [2, 4, 1, 1]
    elif kind == "QLinearAveragePool":
        shape = [2, 4, 3, 5] if "strides" in attributes else [2, 4, 6, 5]
    made = build([om.node(kind, inputs, ["y"], domain=MS, **attributes)], [("x", x.shape, U8)], [("y", shape, U8)], p)
    got, want, _ = run_both(made, {"x": x}, tmp_path, quick)
    assert_near(got, want, steps=1)


def test_qlinear_concat(tmp_path, quick):
    rng = np.random.default_rng(4)
    a, b = integers(rng, np.uint8, 2, 3, 8), integers(rng, np.uint8, 2, 5, 8)
    p = {"ys": np.float32(0.04), "yz": np.uint8(128), "as": np.float32(0.03), "az": np.uint8(100),
         "bs": np.float32(0.04), "bz": np.uint8(128)}
    made = build([om.node("QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], ["y"], domain=MS, axis=1)],
                 [("a", a.shape, U8), ("b", b.shape, U8)], [("y", [2, 8, 8], U8)], p)
    got, want, _ = run_both(made, {"a": a, "b": b}, tmp_path, quick)
    assert_near(got, want, steps=1)


def test_dynamic_quantize_matmul(tmp_path, quick):
    rng = np.random.default_rng(7)
    p = {"b": integers(rng, np.int8, 24, 10), "bs": rng.uniform(0.01, 0.02, 10).astype(np.float32),
         "bz": np.zeros(10, np.int8), "bias": rng.standard_normal(10).astype(np.float32)}
    made = build([om.node("DynamicQuantizeMatMul", ["a", "b", "bs", "bz", "bias"], ["y"], domain=MS)],
                 [("a", [4, 24], F32)], [("y", [4, 10], F32)], p)
    got, want, _ = run_both(made, {"a": rng.standard_normal((4, 24)).astype(np.float32)}, tmp_path, quick)
    assert_near(got, want, rtol=1e-3, atol=0.05)


def test_matmul_integer_to_float(tmp_path, quick):
    rng = np.random.default_rng(8)
    a = integers(rng, np.uint8, 4, 24)
    p = {"b": integers(rng, np.uint8, 24, 10), "as": np.float32(0.02), "bs": np.float32(0.01), "az": np.uint8(120),
         "bz": np.uint8(130), "bias": rng.standard_normal(10).astype(np.float32)}
    made = build([om.node("MatMulIntegerToFloat", ["a", "b", "as", "bs", "az", "bz", "bias"], ["y"], domain=MS)],
                 [("a", a.shape, U8)], [("y", [4, 10], F32)], p)
    got, want, _ = run_both(made, {"a": a}, tmp_path, quick)
    assert_near(got, want)


def dequantized(packed, scales, zeros, bits, block, k):
    """Weights [N, K] of MatMulNBits, by its description."""
    n, blocks, _ = packed.shape
    codes = host.unpack(packed.reshape(-1), bits, np.dtype(np.uint8), [n, blocks, block]) if bits < 8 else packed
    return ((codes.astype(np.float64) - zeros.reshape(n, blocks, 1)) * scales.reshape(n, blocks, 1)).reshape(n, -1)[:, :k]


@pytest.mark.parametrize("bits, k, block, zeros, bias", [(4, 64, 16, None, False), (4, 96, 32, "packed", True),
                                                         (4, 70, 32, "float", False), (8, 64, 32, "packed", True),
                                                         (4, 160, 32, "packed", False), (8, 48, 16, None, False)])
def test_matmul_nbits(tmp_path, quick, bits, k, block, zeros, bias):
    rng = np.random.default_rng([bits, k])
    n, blocks = 12, -(-k // block)
    packed = integers(rng, np.uint8, n, blocks, block * bits // 8)
    scales = rng.uniform(0.01, 0.05, n * blocks).astype(np.float32)
    inputs, p = ["a", "b", "s"], {"b": packed, "s": scales}
    values = np.full((n, blocks), 2.0 ** (bits - 1))
    if zeros == "packed":
        row = -(-blocks * bits // 8)
        p["z"] = integers(rng, np.uint8, n * row)
        values = p["z"].reshape(n, row) if bits == 8 else host.unpack(
            p["z"], bits, np.dtype(np.uint8), [n, row * 8 // bits])[:, :blocks]
    elif zeros == "float":
        p["z"] = values = rng.uniform(4, 9, n * blocks).astype(np.float32)
    if zeros or bias:
        inputs += ["z" if zeros else "", ""]
    if bias:
        inputs += ["bias"]
        p["bias"] = rng.standard_normal(n).astype(np.float32)
    while inputs[-1] == "":
        inputs.pop()
    made = build([om.node("MatMulNBits", inputs, ["y"], domain=MS, K=k, N=n, bits=bits, block_size=block)],
                 [("a", [2, 3, k], F32)], [("y", [2, 3, n], F32)], p)
    a = rng.standard_normal((2, 3, k)).astype(np.float32)
    want = a.astype(np.float64) @ dequantized(packed, scales, np.asarray(values, np.float64), bits, block, k).T
    want = want + p.get("bias", 0)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"a": a})["y"]
        # A filled up to whole blocks, and zero points; never the weights.
        assert model.arena_bytes < n * k * 4
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    if bits == 4 and zeros != "float":
        ours, theirs, _ = run_both(made, {"a": a}, tmp_path / "ort", quick)
        assert_near(ours, theirs, rtol=1e-2, atol=2e-2)


def test_nhwc_conv(tmp_path, quick):
    rng = np.random.default_rng(9)
    p = {"w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "b": rng.standard_normal(4).astype(np.float32)}
    made = build([om.node("NhwcConv", ["x", "w", "b"], ["y"], domain=MS, pads=[1, 1, 1, 1])],
                 [("x", [1, 6, 7, 3], F32)], [("y", [1, 6, 7, 4], F32)], p)
    x = rng.standard_normal((1, 6, 7, 3)).astype(np.float32)
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        got = model.run({"x": x})["y"]
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    np.testing.assert_allclose(got, np.einsum("nhwcij,fcij->nhwf", windows, p["w"]) + p["b"], rtol=1e-4, atol=1e-4)


# --- elements that share bytes ------------------------------------------------------------------------------------


def packed_tensor(name, array, code) -> TensorProto:
    bits = 2 if code in (TensorProto.INT2, TensorProto.UINT2) else 4
    return TensorProto(name=name, data_type=code, dims=array.shape, raw_data=host.pack(array, bits).tobytes())


@pytest.mark.parametrize("code", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2,
                                  TensorProto.FLOAT4E2M1])
def test_packed_inputs_outputs_and_weights(tmp_path, quick, code):
    """Odd numbers of elements; the sizes that the API tells are those of the packed bytes."""
    dtype = helper.tensor_dtype_to_np_dtype(code)
    bits = 2 if code in (TensorProto.INT2, TensorProto.UINT2) else 4
    codes = np.random.default_rng(code).integers(0, 2 ** bits, 15 + 9 * 15).astype(np.uint8)
    every = host.unpack(host.pack(codes, bits), bits, dtype, [150])
    x, w = every[:15].reshape(3, 5), every[15:].reshape(9, 5, 3)
    made = build([om.node("Transpose", ["x"], ["t"]), om.node("Cast", ["w"], ["wf"], to=int(F32)),
                  om.node("Cast", ["t"], ["tf"], to=int(F32)), om.node("Add", ["wf", "tf"], ["y"])],
                 [("x", [3, 5], code)], [("t", [5, 3], code), ("y", [9, 5, 3], F32)], opset=25)
    made.graph.initializer.append(packed_tensor("w", w, code))
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        assert model.inputs[0].bytes == model.outputs[0].bytes == -(-15 * bits // 8)
        assert model.weights_bytes == 256  # 135 elements are 34 or 68 bytes, aligned
        got = model.run({"x": x})
    np.testing.assert_array_equal(got["t"].view(np.uint8), x.T.view(np.uint8) if x.T.flags.c_contiguous
                                  else np.ascontiguousarray(x.T).view(np.uint8))
    np.testing.assert_array_equal(got["y"], w.astype(np.float32) + x.T.astype(np.float32))


def test_packed_data_of_wrong_length(tmp_path):
    made = build([om.node("Cast", ["w"], ["y"], to=int(F32))], [("x", [1], F32)], [("y", [5, 5], F32)], opset=25)
    tensor = packed_tensor("w", np.zeros((5, 5), np.uint8), TensorProto.UINT4)
    tensor.raw_data = tensor.raw_data[:-1]
    made.graph.initializer.append(tensor)
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode == compiler.EXIT["invalid"] and "has 12 bytes of data, expected 13" in done.stderr, done.stderr


# --- what must be refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes, p, words", [
    ([om.node("Add", ["q", "q"], ["y"])], {}, "takes no elements of type int4"),
    ([om.node("QuantizeLinear", ["x", "s"], ["y"])], {"s": np.ones(3, np.float32)}, "is not one scale"),
    ([om.node("MatMulNBits", ["x", "b", "s"], ["y"], domain=MS, K=8, N=4, bits=4, block_size=32)],
     {"b": np.zeros((4, 1, 15), np.uint8), "s": np.ones(4, np.float32)}, "is not the uint8 weights"),
    ([om.node("Cast", ["x"], ["y"], to=int(TensorProto.FLOAT8E8M0), round_mode="sideways")], {}, "round_mode"),
])
def test_refused(tmp_path, nodes, p, words):
    made = build([om.node("Cast", ["x"], ["q"], to=int(TensorProto.INT4)), *nodes], [("x", [2, 8], F32)],
                 [("y", [2, 8], F32)], p, opset=24)
    made.graph.output[0].ClearField("type")
    made.graph.output[0].type.tensor_type.SetInParent()
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode != 0 and words in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
