"""Small models of the operators that exporters write since opset 21: a decoder's step, and a denoising U-Net."""

import numpy as np
import onnx
from onnx import TensorProto

from .builder import Builder

OPSET = 23
VOCABULARY, WIDTH, HEADS, KEY_HEADS, LAYERS, POSITIONS, STEP = 96, 64, 8, 2, 2, 64, 3


class _Decoder(Builder):
    def table(self, name: str, rows: int) -> str:
        return self.parameter(name, self.weights.normal(name, (rows, WIDTH), 1.0))

    def block(self, path: str, x: str) -> str:
        size = WIDTH // HEADS
        h = self.norm(f"{path}/norm1", x, WIDTH)
        q = self.linear(f"{path}/query", h, WIDTH, WIDTH)
        k = self.linear(f"{path}/key", h, WIDTH, KEY_HEADS * size)
        v = self.linear(f"{path}/value", h, WIDTH, KEY_HEADS * size)
        q, k = (self.op("RotaryEmbedding", f"{path}/{name}_rotary", part, "cosines", "sines", "positions", num_heads=heads)
                for name, part, heads in (("query", q, HEADS), ("key", k, KEY_HEADS)))
        outputs = [f"{path}/attention_output_0", f"present.{path}.key", f"present.{path}.value"]
        self.nodes.append(onnx.helper.make_node(
            "Attention", [q, k, v, "mask", f"past.{path}.key", f"past.{path}.value"], outputs, name=f"{path}/attention",
            q_num_heads=HEADS, kv_num_heads=KEY_HEADS))
        x = self.add(f"{path}/residual1", x, self.linear(f"{path}/out", outputs[0], WIDTH, WIDTH))
        h = self.linear(f"{path}/up", self.norm(f"{path}/norm2", x, WIDTH), WIDTH, 4 * WIDTH)
        h = self.op("Gelu", f"{path}/Gelu", h, approximate="tanh")
        return self.add(f"{path}/residual2", x, self.linear(f"{path}/down", h, 4 * WIDTH, WIDTH))


def decoder_step(seed: int) -> onnx.ModelProto:
    """Three tokens of a decoder with rotary positions and grouped heads, after P cached ones"""
    net = _Decoder(seed)
    size = WIDTH // HEADS
    angles = np.arange(POSITIONS)[:, None] / 100.0 ** (np.arange(size // 2) / (size // 2))
    net.parameter("cosines", np.cos(angles).astype(np.float32))
    net.parameter("sines", np.sin(angles).astype(np.float32))
    x = net.op("Gather", "embed", net.table("words", VOCABULARY), "tokens", axis=0)
    inputs = {"tokens": (TensorProto.INT64, ["N", STEP]), "positions": (TensorProto.INT64, ["N", STEP]),
              "mask": (TensorProto.BOOL, ["N", 1, STEP, "T"])}
    outputs = {"logits": ["N", STEP, VOCABULARY]}
    for layer in range(LAYERS):
        x = net.block(f"layer{layer}", x)
        for part in ("key", "value"):
            inputs[f"past.layer{layer}.{part}"] = TensorProto.FLOAT, ["N", KEY_HEADS, "P", size]
            outputs[f"present.layer{layer}.{part}"] = ["N", KEY_HEADS, "T", size]
    x = net.norm("norm", x, WIDTH)
    head = net.parameter("head", net.weights.he("head", (WIDTH, VOCABULARY), WIDTH, 1.0))
    net.op("MatMul", "logits/MatMul", x, head, output="logits")
    return net.model("decoder_step", inputs, outputs, OPSET)


class _Denoiser(Builder):
    def group_norm(self, name: str, x: str, c: int) -> str:
        scale = self.parameter(f"{name}.weight", self.weights.uniform(f"{name}.weight", (c,), 0.5, 1.5))
        bias = self.parameter(f"{name}.bias", self.weights.normal(f"{name}.bias", (c,), 0.1))
        return self.op("GroupNormalization", f"{name}/GroupNormalization", x, scale, bias, num_groups=4, epsilon=1e-5)

    def residual(self, path: str, x: str, time: str, c: int, f: int) -> str:
        h = self.conv(f"{path}/conv1", self.swish(f"{path}/act1", self.group_norm(f"{path}/norm1", x, c)), c, f, 3)
        t = self.linear(f"{path}/time", time, 32, f)
        h = self.add(f"{path}/shift", h, self.op("Unsqueeze", f"{path}/Unsqueeze", t, self.ints(f"{path}/axes", [2, 3])))
        h = self.conv(f"{path}/conv2", self.swish(f"{path}/act2", self.group_norm(f"{path}/norm2", h, f)), f, f, 3)
        return self.add(f"{path}/residual", h, x if c == f else self.conv(f"{path}/shortcut", x, c, f))

    def attention(self, path: str, x: str, c: int, side: int) -> str:
        h = self.reshape(f"{path}/Reshape", self.group_norm(f"{path}/norm", x, c), [0, c, side * side])
        h = self.op("Transpose", f"{path}/Transpose", h, perm=[0, 2, 1])
        q, k, v = (self.linear(f"{path}/{part}", h, c, c) for part in ("query", "key", "value"))
        h = self.op("Attention", f"{path}/attention", q, k, v, q_num_heads=4, kv_num_heads=4)
        h = self.op("Transpose", f"{path}/Transpose_1", self.linear(f"{path}/out", h, c, c), perm=[0, 2, 1])
        return self.add(f"{path}/residual", self.reshape(f"{path}/Reshape_1", h, [0, c, side, side]), x)

    def resize(self, path: str, x: str, c: int) -> str:
        scales = self.parameter(f"{path}/scales", np.array([1, 1, 2, 2], np.float32))
        x = self.op("Resize", f"{path}/Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                    nearest_mode="floor")
        return self.conv(f"{path}/conv", x, c, c, 3)


def denoiser(seed: int) -> onnx.ModelProto:
    """A U-Net with group norms, an embedded time, attention in the middle and Resize on the way up"""
    net = _Denoiser(seed)
    time = net.linear("time/up", net.swish("time/act", net.linear("time/in", "time", 16, 32)), 32, 32)
    x = net.conv("in", "latent", 4, 16, 3)
    skips, c = [x], 16
    for level, f in enumerate((16, 32)):
        x = net.residual(f"down{level}", x, time, c, f)
        skips.append(x)
        x, c = net.conv(f"down{level}/half", x, f, f, 3, stride=2), f
    x = net.residual("middle1", x, time, c, c)
    x = net.residual("middle2", net.attention("attention", x, c, 4), time, c, c)
    for level, f in enumerate((32, 16)):
        x = net.concat(f"up{level}/concat", net.resize(f"up{level}/resize", x, c), skips.pop())
        x, c = net.residual(f"up{level}", x, time, c + f, f), f
    x = net.swish("out/act", net.group_norm("out/norm", net.add("out/skip", x, skips.pop()), c))
    w = net.parameter("out.weight", net.weights.he("out.weight", (4, c, 3, 3), 9 * c, 1.0))
    net.op("Conv", "out/Conv", x, w, output="noise", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    side = 16
    return net.model("denoiser", {"latent": (TensorProto.FLOAT, ["N", 4, side, side]), "time": (TensorProto.FLOAT, ["N", 16])},
                     {"noise": ["N", 4, side, side]}, OPSET)
