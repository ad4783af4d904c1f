"""Networks whose outputs are as wide as their inputs: a U-Net (Ronneberger et al., 2015) and a detector of the YOLO family.

The detector has the structure that current ones share: cross-stage partial blocks that split, chain bottlenecks and
concatenate all of them; pyramid pooling; a feature pyramid up and down; heads that concatenate boxes and classes of three
scales and decode boxes from a distribution over 16 distances.
"""

import math

import numpy as np
import onnx

from .builder import Builder, image


def _unet(seed: int, name: str, base: int, side: int, depth: int, classes: int) -> onnx.ModelProto:
    net = Builder(seed)

    def double(path: str, x: str, c: int, f: int) -> str:
        x = net.relu(f"{path}.0", net.conv(f"{path}.0", x, c, f, 3))
        return net.relu(f"{path}.1", net.conv(f"{path}.1", x, f, f, 3))

    x, c, skips = "image", 3, []
    for level in range(depth):
        f = base << level
        x, c = double(f"down{level}", x, c, f), f
        skips.append(x)
        x = net.max_pool(f"pool{level}", x, 2, 2)
    x, c = double("middle", x, c, 2 * c), 2 * c
    for level in reversed(range(depth)):
        f, size = base << level, side >> (level + 1)
        x = net.upsample(f"up{level}", x, c, size, size)
        x = net.relu(f"up{level}", net.conv(f"up{level}.conv", x, c, f, 3))
        x, c = double(f"merge{level}", net.concat(f"merge{level}", skips.pop(), x), 2 * f, f), f
    x = net.conv("mask", x, c, classes, gain=1.0)
    net.op("Sigmoid", "mask/Sigmoid", x, output="masks")
    return net.model(name, image(side), {"masks": ["N", classes, side, side]})


def unet(seed: int) -> onnx.ModelProto:
    """U-Net at 256x256 with 64 to 1024 channels: four skips over the whole network, nearest upsampling"""
    return _unet(seed, "unet", 64, 256, 4, 2)


def unet_small(seed: int) -> onnx.ModelProto:
    """A U-Net at 32x32 with 4 to 16 channels"""
    return _unet(seed, "unet_small", 4, 32, 2, 2)


class _Detector:
    DISTANCES = 16

    def __init__(self, seed: int, widths: list[int], repeats: list[int], side: int, classes: int):
        self.net = Builder(seed)
        self.widths, self.repeats, self.side, self.classes = widths, repeats, side, classes

    def conv(self, path: str, x: str, c: int, f: int, kernel: int = 1, stride: int = 1) -> str:
        return self.net.swish(path, self.net.conv(path, x, c, f, kernel, stride, gain=2.8))

    def stage(self, path: str, x: str, c: int, f: int, repeats: int, shortcut: bool) -> str:
        """Splits, chains bottlenecks on one half, concatenates both halves and every bottleneck's result."""
        net, half = self.net, f // 2
        parts = net.split(f"{path}/Split", self.conv(f"{path}.enter", x, c, f), [half, half], axis=1)
        for i in range(repeats):
            y = self.conv(f"{path}.{i}.0", parts[-1], half, half, 3)
            y = self.conv(f"{path}.{i}.1", y, half, half, 3)
            parts.append(net.add(f"{path}.{i}", parts[-1], y) if shortcut else y)
        return self.conv(f"{path}.leave", net.concat(path, *parts), half * len(parts), f)

    def pyramid_pool(self, path: str, x: str, c: int) -> str:
        parts = [self.conv(f"{path}.enter", x, c, c // 2)]
        for i in range(3):
            parts.append(self.net.max_pool(f"{path}.{i}", parts[-1], 5, 1, pad=2))
        return self.conv(f"{path}.leave", self.net.concat(path, *parts), 2 * c, c)

    def features(self) -> list[tuple[str, int, int]]:
        """(tensor, channels, side) at strides of 8, 16 and 32."""
        net, w, size = self.net, self.widths, self.side
        x = self.conv("stem", "image", 3, w[0], 3, 2)
        kept = []
        for i, repeats in enumerate(self.repeats):
            x = self.conv(f"down{i}", x, w[i], w[i + 1], 3, 2)
            x = self.stage(f"stage{i}", x, w[i + 1], w[i + 1], repeats, shortcut=True)
            kept.append(x)
        n = self.repeats[0]
        p5 = self.pyramid_pool("pool", kept[3], w[4])
        x = net.concat("top16", net.upsample("up16", p5, w[4], size // 32, size // 32), kept[2])
        p4 = self.stage("fuse16", x, w[4] + w[3], w[3], n, False)
        x = net.concat("top8", net.upsample("up8", p4, w[3], size // 16, size // 16), kept[1])
        p3 = self.stage("fuse8", x, w[3] + w[2], w[2], n, False)
        x = net.concat("bottom16", self.conv("back16", p3, w[2], w[2], 3, 2), p4)
        p4 = self.stage("refuse16", x, w[2] + w[3], w[3], n, False)
        x = net.concat("bottom32", self.conv("back32", p4, w[3], w[3], 3, 2), p5)
        p5 = self.stage("refuse32", x, w[3] + w[4], w[4], n, False)
        return [(p3, w[2], size // 8), (p4, w[3], size // 16), (p5, w[4], size // 32)]

    def head(self, path: str, x: str, c: int, size: int) -> str:
        """[N, 4 * DISTANCES + classes, size * size]"""
        net, boxes = self.net, 4 * self.DISTANCES
        wide, narrow = max(c, min(self.classes, 128)), max(16, boxes, c // 4)
        b = self.conv(f"{path}.box.1", self.conv(f"{path}.box.0", x, c, narrow, 3), narrow, narrow, 3)
        s = self.conv(f"{path}.class.1", self.conv(f"{path}.class.0", x, c, wide, 3), wide, wide, 3)
        both = net.concat(path, net.conv(f"{path}.box", b, narrow, boxes, gain=1.0),
                          net.conv(f"{path}.class", s, wide, self.classes, gain=1.0))
        return net.reshape(f"{path}/Reshape", both, [0, boxes + self.classes, size * size])

    def decode(self, x: str, sizes: list[int]) -> None:
        """Boxes as centre and extent in pixels, and class scores: [N, 4 + classes, anchors]."""
        net, bins = self.net, self.DISTANCES
        count = sum(s * s for s in sizes)
        box, scores = net.split("decode/Split", x, [4 * bins, self.classes], axis=1)
        x = net.op("Transpose", "decode/Transpose", net.reshape("decode/Reshape", box, [0, 4, bins, count]), perm=[0, 2, 1, 3])
        x = net.op("Softmax", "decode/Softmax", x, axis=1)
        steps = net.parameter("decode.steps", np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1))
        x = net.reshape("decode/Reshape_1", net.op("Conv", "decode/Conv", x, steps, kernel_shape=[1, 1]), [0, 4, count])
        near, far = net.split("decode/Split_1", x, [2, 2], axis=1)
        centres = np.concatenate([np.stack(np.meshgrid(np.arange(s), np.arange(s)), 0).reshape(2, -1) + 0.5 for s in sizes], 1)
        stride = np.concatenate([np.full(s * s, self.side // s) for s in sizes])
        anchors = net.parameter("decode.anchors", centres[None].astype(np.float32))
        low = net.op("Sub", "decode/Sub", anchors, near)
        high = net.op("Add", "decode/Add", anchors, far)
        centre = net.op("Div", "decode/Div", net.op("Add", "decode/Add_1", low, high), net.scalar("decode/two", 2))
        joined = net.concat("decode", centre, net.op("Sub", "decode/Sub_1", high, low))
        scale = net.parameter("decode.strides", stride[None, None].astype(np.float32))
        net.op("Concat", "decode/Concat_1", net.op("Mul", "decode/Mul", joined, scale),
               net.op("Sigmoid", "decode/Sigmoid", scores), output="detections", axis=1)

    def model(self, name: str) -> onnx.ModelProto:
        levels = self.features()
        heads = [self.head(f"head{i}", *level) for i, level in enumerate(levels)]
        sizes = [size for _, _, size in levels]
        self.decode(self.net.concat("heads", *heads, axis=2), sizes)
        count = sum(map(math.prod, zip(sizes, sizes)))
        return self.net.model(name, image(self.side), {"detections": ["N", 4 + self.classes, count]})


def yolo(seed: int) -> onnx.ModelProto:
    """A detector of the YOLO family, small size, at 640x640: split and concat in every block, three scales"""
    return _Detector(seed, [32, 64, 128, 256, 512], [1, 2, 2, 1], 640, 80).model("yolo")


def yolo_small(seed: int) -> onnx.ModelProto:
    """The same detector at 64x64 with 4 to 32 channels and 3 classes"""
    return _Detector(seed, [4, 8, 8, 16, 32], [1, 1, 1, 1], 64, 3).model("yolo_small")
