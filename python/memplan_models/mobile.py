"""Inverted bottlenecks: MobileNetV2 (Sandler et al., 2018) and EfficientNet-B0 (Tan and Le, 2019)."""

import onnx

from .builder import Builder, image

#: expansion, channels, repeats, stride
MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
#: expansion, channels, repeats, stride, kernel
EFFICIENTNET = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
                (6, 320, 1, 1, 3))


def _squeeze_excite(net: Builder, name: str, x: str, c: int, squeezed: int) -> str:
    s = net.op("GlobalAveragePool", f"{name}/GlobalAveragePool", x)
    s = net.swish(f"{name}/act", net.conv(f"{name}/reduce", s, c, squeezed))
    s = net.op("Sigmoid", f"{name}/Sigmoid", net.conv(f"{name}/expand", s, squeezed, c))
    return net.op("Mul", f"{name}/Mul", x, s)


def _network(seed: int, name: str, blocks, activation, squeeze: bool, side: int, stem: int, head: int, classes: int,
             divide: int) -> onnx.ModelProto:
    net = Builder(seed)
    act = getattr(net, activation)
    x, c = act("stem/act", net.conv("stem", "image", 3, stem, 3, stride=2)), stem
    for i, (expansion, channels, repeats, first_stride, *kernel) in enumerate(blocks):
        channels //= divide
        for j in range(repeats):
            block, stride, width = f"block{i}.{j}", first_stride if j == 0 else 1, c * expansion
            y = x
            if expansion != 1:
                y = act(f"{block}/expand/act", net.conv(f"{block}/expand", y, c, width))
            y = act(f"{block}/depthwise/act", net.conv(f"{block}/depthwise", y, width, width, *kernel or [3], stride=stride,
                                                       groups=width))
            if squeeze:  # halves what passes; the projection makes up for it
                y = _squeeze_excite(net, f"{block}/se", y, width, max(1, c // 4))
            y = net.conv(f"{block}/project", y, width, channels, gain=4.0 if squeeze else 1.0)
            x = net.add(block, x, y) if stride == 1 and c == channels else y
            c = channels
    x = act("head/act", net.conv("head", x, c, head))
    net.classifier("classifier", x, head, classes, "scores")
    return net.model(name, image(side), {"scores": ["N", classes]})


def mobilenet_v2(seed: int) -> onnx.ModelProto:
    """MobileNetV2 at 224x224: inverted residuals, depthwise convolutions, Clip to 6"""
    return _network(seed, "mobilenet_v2", MOBILENET, "relu6", False, 224, 32, 1280, 1000, 1)


def mobilenet_v2_small(seed: int) -> onnx.ModelProto:
    """MobileNetV2's first four stages with an eighth of the channels, at 32x32"""
    return _network(seed, "mobilenet_v2_small", MOBILENET[:4], "relu6", False, 32, 4, 32, 10, 8)


def efficientnet_b0(seed: int) -> onnx.ModelProto:
    """EfficientNet-B0 at 224x224: inverted residuals with squeeze and excitation, swish from Sigmoid and Mul"""
    return _network(seed, "efficientnet_b0", EFFICIENTNET, "swish", True, 224, 32, 1280, 1000, 1)


def efficientnet_b0_small(seed: int) -> onnx.ModelProto:
    """EfficientNet-B0's first four stages with an eighth of the channels, at 32x32"""
    return _network(seed, "efficientnet_b0_small", EFFICIENTNET[:4], "swish", True, 32, 4, 32, 10, 8)
