"""Random valid models: branching graphs of the covered operators, with shared values, views and several outputs."""

import itertools

import numpy as np
from onnx import helper

import onnx_models as om


class Generator:
    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.shapes = [], [], {}
        self.read: set[str] = set()
        self.numbers = itertools.count()

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def weight(self, shape, scale=1.0) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(om.tensor(name, (scale * self.rng.standard_normal(shape)).astype(np.float32)))
        return name

    def integers(self, values) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(om.tensor(name, np.array(values, np.int64)))
        return name

    def add(self, kind: str, inputs: list[str], shape, **attributes) -> str:
        number = next(self.numbers)
        name = f"v{number}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}{number}", **attributes))
        self.read.update(inputs)
        self.shapes[name] = tuple(shape)
        return name

    # One method an operator or family: takes any value, returns nothing; leaves out what doesn't fit.

    def unary(self, x):
        self.add(self.pick(["Relu", "Tanh", "Sigmoid", "Erf", "Identity"]), [x], self.shapes[x])

    def binary(self, x):
        peers = [v for v, s in self.shapes.items() if s == self.shapes[x]]
        self.add(self.pick(["Add", "Sub", "Mul"]), [x, self.pick(peers)], self.shapes[x])

    def broadcast(self, x):
        shape = [d if self.rng.random() < 0.5 else 1 for d in self.shapes[x]]
        inputs = [x, self.weight(shape[int(self.rng.integers(len(shape))):])]
        self.add("Add", inputs if self.rng.random() < 0.5 else inputs[::-1], self.shapes[x])

    def transpose(self, x):
        perm = [int(i) for i in self.rng.permutation(len(self.shapes[x]))]
        self.add("Transpose", [x], [self.shapes[x][i] for i in perm], perm=perm)

    def reshape(self, x):
        shape, count = self.shapes[x], int(np.prod(self.shapes[x]))
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        first = self.pick(divisors)
        second = self.pick([d for d in divisors if (count // first) % d == 0])
        new = [first, second, count // first // second]
        if self.rng.random() < 0.3:
            new = [shape[0], count // shape[0]]
        self.add("Reshape", [x, self.integers([-1 if i == 1 else d for i, d in enumerate(new)])], new)

    def concat(self, x):
        axis = int(self.rng.integers(len(self.shapes[x])))
        fits = [v for v, s in self.shapes.items() if len(s) == len(self.shapes[x]) and
                all(a == b for i, (a, b) in enumerate(zip(s, self.shapes[x])) if i != axis)]
        parts = [x] + [self.pick(fits) for _ in range(int(self.rng.integers(1, 3)))]
        shape = list(self.shapes[x])
        shape[axis] = sum(self.shapes[p][axis] for p in parts)
        if shape[axis] <= 64:
            self.add("Concat", parts, shape, axis=axis - len(shape) if self.rng.random() < 0.5 else axis)

    def softmax(self, x):
        self.add(self.pick(["Softmax", "LogSoftmax"]), [x], self.shapes[x],
                 axis=int(self.rng.integers(-len(self.shapes[x]), len(self.shapes[x]))))

    def norm(self, x):
        c = self.shapes[x][-1]
        self.add("LayerNormalization", [x, self.weight([c]), self.weight([c])], self.shapes[x], axis=-1)

    def matmul(self, x):
        n = int(self.rng.integers(1, 9))
        shape = self.shapes[x]
        self.add("MatMul", [x, self.weight([shape[-1], n], shape[-1] ** -0.5)], [*shape[:-1], n])

    def conv(self, x):
        shape = self.shapes[x]
        if len(shape) != 4 or min(shape[2:]) < 3:
            return
        groups = self.pick([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
        f, k, stride = groups * int(self.rng.integers(1, 4)), self.pick([1, 3]), self.pick([1, 2])
        pads = [int(p) for p in self.rng.integers(0, 2, 4)]
        inputs = [x, self.weight([f, shape[1] // groups, k, k], 0.5)] + \
            ([self.weight([f])] if self.rng.random() < 0.5 else [])
        spatial = [(shape[2 + i] + pads[i] + pads[2 + i] - k) // stride + 1 for i in range(2)]
        self.add("Conv", inputs, [shape[0], f, *spatial], group=groups, kernel_shape=[k, k], strides=[stride] * 2,
                 pads=pads)

    def pool(self, x):
        shape = self.shapes[x]
        if len(shape) != 4 or min(shape[2:]) < 2:
            return
        pads = [int(p) for p in self.rng.integers(0, 2, 4)]
        spatial = [(shape[2 + i] + pads[i] + pads[2 + i] - 2) // 2 + 1 for i in range(2)]
        self.add(self.pick(["MaxPool", "AveragePool"]), [x], [*shape[:2], *spatial], kernel_shape=[2, 2],
                 strides=[2, 2], pads=pads)

    OPERATORS = (unary, unary, binary, binary, broadcast, transpose, reshape, concat, concat, softmax, norm, matmul,
                 conv, conv, pool)

    def model(self):
        inputs = []
        for i in range(int(self.rng.integers(1, 4))):
            shape = self.pick([(1, 4, 8, 8), (2, 3, 6, 5), (2, 6, 7), (5, 12)])
            self.shapes[f"x{i}"] = shape
            inputs.append(om.value(f"x{i}", shape))
        for _ in range(int(self.rng.integers(3, 25))):
            # Recent values are likelier, so that graphs get deep as well as wide.
            names = list(self.shapes)
            x = names[-1 - min(int(self.rng.exponential(3.0)), len(names) - 1)]
            self.pick(self.OPERATORS)(self, x)
        made = [v for n in self.nodes for v in n.output if v in self.shapes] or [self.add("Relu", ["x0"], self.shapes["x0"])]
        # What nobody reads, and sometimes a value that is read as well; now and then a leaf stays dead.
        outputs = [v for v in made if v not in self.read and self.rng.random() < 0.9]
        outputs += [v for v in made if v in self.read and self.rng.random() < 0.1]
        outputs = outputs or made[-1:]
        return om.model(self.nodes, inputs, [om.value(v, self.shapes[v]) for v in outputs], self.weights, opset=17)
