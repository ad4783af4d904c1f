"""A randomly wired network (Xie et al., 2019): its stages are Watts-Strogatz graphs, drawn once and for all."""

import numpy as np
import onnx

from .builder import Builder, image


def watts_strogatz(nodes: int, neighbours: int, rewired: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Edges (from, to) with from < to, in order: a ring in which each node knows its nearest `neighbours`, and each edge's
    far end is moved to a random node with probability `rewired`."""
    edges = {(i, (i + step) % nodes) for step in range(1, neighbours // 2 + 1) for i in range(nodes)}
    for step in range(1, neighbours // 2 + 1):
        for i in range(nodes):
            j = (i + step) % nodes
            if rng.random() >= rewired:
                continue
            free = [k for k in range(nodes) if k != i and not {(i, k), (k, i)} & edges]
            if free and (i, j) in edges:
                edges.remove((i, j))
                edges.add((i, free[int(rng.integers(len(free)))]))
    return sorted({(min(e), max(e)) for e in edges})


def _separable(net: Builder, path: str, x: str, c: int, f: int, stride: int) -> str:
    x = net.conv(f"{path}.depthwise", net.relu(path, x), c, c, 3, stride, groups=c)
    return net.conv(f"{path}.pointwise", x, c, f, gain=1.0)


def _stage(net: Builder, path: str, x: str, c: int, f: int, nodes: int, rng: np.random.Generator) -> str:
    edges = watts_strogatz(nodes, 4, 0.75, rng)
    results: list[str] = []
    for i in range(nodes):
        sources = [a for a, b in edges if b == i]
        node = f"{path}.{i}"
        if not sources:  # reads the stage's input, at twice the side
            results.append(_separable(net, node, x, c, f, 2))
            continue
        weights = net.weights.uniform(f"{node}.weights", (len(sources),), 0.3, 0.7)
        terms = [net.op("Mul", f"{node}/Mul_{k}", results[a], net.scalar(f"{node}/weight_{k}", weights[k]))
                 for k, a in enumerate(sources)] if len(sources) > 1 else [results[sources[0]]]
        total = terms[0]
        for k, term in enumerate(terms[1:]):
            total = net.op("Add", f"{node}/Add_{k}", total, term)
        results.append(_separable(net, node, total, f, f, 1))
    ends = [results[i] for i in range(nodes) if not any(a == i for a, _ in edges)]
    total = ends[0]
    for k, end in enumerate(ends[1:]):
        total = net.op("Add", f"{path}/Add_{k}", total, end)
    return net.op("Div", f"{path}/Div", total, net.scalar(f"{path}/count", len(ends)))


def _network(seed: int, name: str, base: int, nodes: int, stages: int, side: int, head: int, classes: int) -> onnx.ModelProto:
    net, rng = Builder(seed), np.random.default_rng(2019)  # one wiring, whatever the weights' seed
    x = net.relu("stem", net.conv("stem", "image", 3, base // 2, 3, 2))
    x, c = net.conv("stem1", x, base // 2, base, 3, 2, gain=1.0), base
    for i in range(stages):
        f = base << i
        x, c = _stage(net, f"stage{i}", x, c, f, nodes, rng), f
    x = net.relu("head", net.conv("head", net.relu("last", x), c, head))
    net.classifier("classifier", x, head, classes, "scores")
    return net.model(name, image(side), {"scores": ["N", classes]})


def randwire(seed: int) -> onnx.ModelProto:
    """A randomly wired network at 224x224: three stages of 32 nodes, Watts-Strogatz(4, 0.75), 78 channels"""
    return _network(seed, "randwire", 78, 32, 3, 224, 1280, 1000)


def randwire_small(seed: int) -> onnx.ModelProto:
    """A randomly wired network at 32x32: two stages of 10 nodes, 6 channels"""
    return _network(seed, "randwire_small", 6, 10, 2, 32, 16, 10)
