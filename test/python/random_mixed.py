"""Random valid models of up to some hundred nodes: mixed element types, quantization, attention, recurrent nodes and
the operators that move data, beside what random_models.py has.

Two right implementations round differently, and where a result jumps (an integer from a float, a comparison, the
largest of several) a rounding error becomes a different answer. So such operators only get values that are exact:
those that a model's inputs and weights reach through operators whose every result IEEE 754 or integers fix."""

import numpy as np
from onnx import TensorProto, helper

import onnx_models as om
from random_models import Generator

TYPES = {np.dtype(t): getattr(TensorProto, n) for t, n in (
    (np.float32, "FLOAT"), (np.float64, "DOUBLE"), (np.float16, "FLOAT16"), (np.int8, "INT8"), (np.uint8, "UINT8"),
    (np.int32, "INT32"), (np.int64, "INT64"), (bool, "BOOL"))}

#: One rounding each, or none.
EXACT = {"Identity", "Relu", "Add", "Sub", "Mul", "Neg", "Abs", "Max", "Min", "Clip", "Where", "And", "Or", "Xor",
         "Greater", "Less", "Equal", "Transpose", "Reshape", "Concat", "Slice", "Gather", 
         "Pad", "Split", "Expand", "MaxPool", "ReduceMax", "ReduceMin", "TopK", "ArgMax", "Trilu",
         "ScatterElements", "QuantizeLinear", "DequantizeLinear",
         "MatMulInteger", "BitwiseAnd", "Mod", "Cast"}

#: What 16 bits leave of a number near 1, after some operators.
HALF = {"absolute": 5e-2, "relative": 3e-2}


class MixedGenerator(Generator):
    def __init__(self, seed: int):
        super().__init__(seed)
        self.types: dict[str, np.dtype] = {}
        self.exact: set[str] = set()
        self.halved: set[str] = set()
        #: about how large a value's elements get
        self.large: dict[str, float] = {}
        #: how far an output may be from another implementation's, where that's not the usual
        self.tolerances: dict[str, dict] = {}

    # Values

    def note(self, names, inputs, shapes, kind, dtype, large, exact=None):
        is_exact = kind in EXACT and all(i in self.exact or i[0] == "w" for i in inputs if i) if exact is None else exact
        for name, shape in zip(names, shapes):
            self.shapes[name], self.types[name], self.large[name] = tuple(shape), np.dtype(dtype), large
            if is_exact:
                self.exact.add(name)
            if np.dtype(dtype) == np.float16 or any(i in self.halved for i in inputs):
                self.halved.add(name)

    def node(self, kind, inputs, shapes, dtype=None, large=None, exact=None, names=None, domain="", **attributes):
        """A node with an output a shape; type and size as its first input's, if not given."""
        number = next(self.numbers)
        names = names or [f"v{number}" if len(shapes) == 1 else f"v{number}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}{number}", domain=domain, **attributes))
        self.read.update(i for i in inputs if i)
        dtype = self.types[inputs[0]] if dtype is None else dtype
        self.note(names, inputs, shapes, kind, dtype, self.size(inputs) if large is None else large, exact)
        return names

    def size(self, inputs) -> float:
        return max([self.large.get(i, 4.0) for i in inputs if i])

    def add(self, kind, inputs, shape, **attributes):
        """The inherited families': float, except that views and sums keep what they get."""
        large = self.size(inputs)
        if kind == "Mul":
            large = self.large.get(inputs[0], 4.0) * self.large.get(inputs[-1], 4.0)
        elif kind in ("Tanh", "Sigmoid", "Erf", "Softmax"):
            large = 1.0
        elif kind in ("Add", "Sub"):
            large = sum(self.large.get(i, 4.0) for i in inputs)
        elif kind in ("Conv", "MatMul"):
            large *= 8
        elif kind == "LayerNormalization":
            large = 20.0
        x = next(i for i in inputs if i in self.types)
        if large > 1e4:
            x, = self.node("Tanh", [x], [self.shapes[x]], large=1.0)
            return x
        return self.node(kind, inputs, [shape], self.types[x], large, **attributes)[0]

    def constant(self, values, dtype=None) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(om.tensor(name, np.asarray(values, dtype)))
        return name

    def such(self, *dtypes, rank=None, exact=False) -> list[str]:
        return [v for v, t in self.types.items() if t in dtypes and (rank is None or len(self.shapes[v]) == rank) and
                (not exact or v in self.exact) and np.prod(self.shapes[v])]

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self.rng.integers(low, high + 1))

    def clipped(self, x: str) -> str:
        """Within [-8, 8]."""
        bound = [self.constant(b, np.float32) for b in (-8.0, 8.0)]
        return self.node("Clip", [x, *bound], [self.shapes[x]], large=8.0)[0]

    # Element types

    def cast(self, x):
        if x in self.exact and self.rng.random() < 0.7:
            to = self.pick([np.int32, np.int64, np.int8, np.uint8, bool, np.float64])
            signless = [self.node("Abs", [x], [self.shapes[x]])[0]] if to is np.uint8 else [x]
            x = self.clipped(signless[0])
        else:
            to = self.pick([np.float64, np.float16])
            x = self.clipped(x) if to is np.float16 else x
        self.node("Cast", [x], [self.shapes[x]], to, exact=x in self.exact and to is not np.float16, to=TYPES[np.dtype(to)])

    def back(self, _):
        """A value of another type, as a float again."""
        others = self.such(*(t for t in TYPES if t != np.float32))
        if others:
            x = self.pick(others)
            self.node("Cast", [x], [self.shapes[x]], np.float32, exact=x in self.exact, to=TensorProto.FLOAT)

    def half(self, _):
        """Some arithmetic in 16 bits."""
        halves = self.such(np.dtype(np.float16))
        if halves:
            x = self.pick(halves)
            shape = self.shapes[x]
            kind = self.pick(["Tanh", "Sigmoid", "Relu", "Softmax", "MatMul", "Add", "Transpose"])
            if kind == "MatMul" and len(shape) >= 2:
                w = self.constant(self.rng.standard_normal((shape[-1], 6)) * shape[-1] ** -0.5, np.float16)
                y, = self.node("MatMul", [x, w], [(*shape[:-1], 6)])
                self.node("Tanh", [y], [(*shape[:-1], 6)], large=1.0)
            elif kind == "Add":
                y, = self.node("Add", [x, self.pick([v for v in halves if self.shapes[v] == shape])], [shape])
                self.node("Tanh", [y], [shape], large=1.0)
            elif kind == "Transpose":
                self.node(kind, [x], [shape[::-1]])
            elif kind != "MatMul":
                self.node(kind, [x], [shape])

    def integer(self, _):
        found = self.such(np.dtype(np.int32), np.dtype(np.int64))
        if found:
            x = self.pick(found)
            peers = [v for v in found if self.shapes[v] == self.shapes[x] and self.types[v] == self.types[x]]
            kind = self.pick(["Add", "Sub", "Max", "Min", "BitwiseAnd", "Mod"])
            other = self.constant(3, self.types[x]) if kind == "Mod" else self.pick(peers)
            y, = self.node(kind, [x, other], [self.shapes[x]])
            # Sums don't grow without end.
            self.node("Clip", [y, self.constant(-100, self.types[x]), self.constant(100, self.types[x])], [self.shapes[x]])

    def compare(self, _):
        found = self.such(np.dtype(np.float32), np.dtype(np.int32), exact=True)
        if found:
            x = self.pick(found)
            peers = [v for v in found if self.shapes[v] == self.shapes[x] and self.types[v] == self.types[x]]
            mask, = self.node(self.pick(["Greater", "Less", "Equal"]), [x, self.pick(peers)], [self.shapes[x]], bool)
            if self.rng.random() < 0.7:
                values = [v for v, t in self.types.items() if t == np.float32 and self.shapes[v] == self.shapes[x]]
                if values:
                    a, b = self.pick(values), self.pick(values)
                    self.node("Where", [mask, a, b], [self.shapes[x]], np.float32, self.size([a, b]))

    def logic(self, _):
        found = self.such(np.dtype(bool))
        if found:
            x = self.pick(found)
            peers = [v for v in found if self.shapes[v] == self.shapes[x]]
            self.node(self.pick(["And", "Or", "Xor"]), [x, self.pick(peers)], [self.shapes[x]])

    # Quantization

    def qdq(self, x):
        if x not in self.exact:
            return
        x, shape = self.clipped(x), self.shapes[x]
        axis = self.between(0, len(shape) - 1)
        per_axis = self.rng.random() < 0.4
        kind = self.pick([np.int8, np.uint8])
        count = (shape[axis],) if per_axis else ()
        # Powers of two, for a quotient that is no tie by chance of rounding.
        scale = self.constant(2.0 ** self.rng.integers(-5, -2, count), np.float32)
        zero = self.constant(self.rng.integers(0, 9, count), kind)
        extra = {"axis": axis} if per_axis else {}
        q, = self.node("QuantizeLinear", [x, scale, zero], [shape], kind, **extra)
        if self.rng.random() < 0.8:
            self.node("DequantizeLinear", [q, scale, zero], [shape], np.float32, 64.0, **extra)

    def integer_product(self, _):
        found = [v for v in self.such(np.dtype(np.int8), np.dtype(np.uint8), exact=True) if len(self.shapes[v]) >= 2]
        if found:
            x = self.pick(found)
            shape, n = self.shapes[x], self.between(1, 8)
            kind = self.types[x] if self.types[x] == np.uint8 or self.rng.random() < 0.5 else np.dtype(np.int8)
            w = self.constant(self.rng.integers(0, 7, (shape[-1], n)), kind)
            y, = self.node("MatMulInteger", [x, w, self.constant(2, self.types[x])], [(*shape[:-1], n)], np.int32)
            self.node("Cast", [y], [self.shapes[y]], np.float32, 1e4, to=TensorProto.FLOAT)

    def four_bits(self, x):
        """A product with weights of 4 bits in blocks."""
        shape = self.shapes[x]
        k, n, block = shape[-1], self.between(1, 8), 16
        blocks = -(-k // block)
        packed = self.constant(self.rng.integers(0, 256, (n, blocks, block // 2)), np.uint8)
        scales = self.constant(self.rng.random((n, blocks)) * 0.1, np.float32)
        self.node("MatMulNBits", [x, packed, scales], [(*shape[:-1], n)], large=8 * self.large[x], domain="com.microsoft",
                  K=k, N=n, bits=4, block_size=block)

    # Transformers, recurrent nodes

    def attention(self, _):
        found = [v for v in self.such(np.dtype(np.float32), rank=3) if self.large[v] <= 100]
        if not found:
            return
        x = self.pick(found)
        batch, length, width = self.shapes[x]
        heads, size = self.pick([1, 2, 4]), self.between(1, 4)
        q, k, v = (self.node("MatMul", [x, self.weight([width, heads * size], width ** -0.5)],
                             [(batch, length, heads * size)])[0] for _ in range(3))
        shape = [(batch, length, heads * size)]
        if self.rng.random() < 0.5:
            self.node("Attention", [q, k, v], shape, q_num_heads=heads, kv_num_heads=heads, is_causal=self.between(0, 1))
        else:
            self.node("MultiHeadAttention", [q, k, v], shape, domain="com.microsoft", num_heads=heads)

    def rms_norm(self, x):
        self.node("RMSNormalization", [x, self.weight([self.shapes[x][-1]])], [self.shapes[x]], large=20.0, axis=-1)

    def gelu(self, x):
        self.node("Gelu", [x], [self.shapes[x]], approximate=self.pick(["none", "tanh"]))

    def recurrent(self, _):
        found = [v for v in self.such(np.dtype(np.float32), rank=3) if self.large[v] <= 100]
        if found:
            x = self.pick(found)
            steps, batch, width = self.shapes[x]
            kind, gates = self.pick([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
            hidden = self.between(1, 6)
            direction, n = self.pick([("forward", 1), ("reverse", 1), ("bidirectional", 2)])
            weights = [self.weight([n, gates * hidden, width], 0.3), self.weight([n, gates * hidden, hidden], 0.3)]
            shapes = [(steps, n, batch, hidden)] + [(n, batch, hidden)] * (1 + (kind == "LSTM"))
            self.node(kind, [x, *weights], shapes, large=1.0, hidden_size=hidden, direction=direction)

    # What moves data

    def axis_of(self, x, least=1) -> int | None:
        axes = [i for i, d in enumerate(self.shapes[x]) if d >= least]
        return self.pick(axes) if axes else None

    def changed(self, x, axis, extent):
        shape = list(self.shapes[x])
        shape[axis] = extent
        return shape

    def slice(self, x):
        axis = self.axis_of(x, 2)
        if axis is None:
            return
        d, step = self.shapes[x][axis], self.pick([1, 1, 2, -1])
        first = self.between(0, d - 2)
        last = self.between(first + 1, d)
        count = -(-(last - first) // abs(step))
        start, end = (first, last) if step > 0 else (last - 1, first - 1 if first else -d - 1)
        self.node("Slice", [x, *map(self.integers, ([start], [end], [axis], [step]))], [self.changed(x, axis, count)])

    def split(self, x):
        axis = self.axis_of(x, 2)
        if axis is not None:
            d = self.shapes[x][axis]
            first = self.between(1, d - 1)
            self.node("Split", [x, self.integers([first, d - first])],
                      [self.changed(x, axis, first), self.changed(x, axis, d - first)], axis=axis)

    def gather(self, x):
        axis = self.axis_of(x)
        d, n = self.shapes[x][axis], self.between(1, 6)
        self.node("Gather", [x, self.integers([int(i) for i in self.rng.integers(-d, d, n)])], [self.changed(x, axis, n)],
                  axis=axis)

    def scatter(self, x):
        axis = self.axis_of(x)
        d = self.shapes[x][axis]
        n = self.between(1, d)
        shape = self.changed(x, axis, n)
        at = np.broadcast_to(self.rng.permutation(d)[:n].reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
        self.node("ScatterElements", [x, self.constant(at, np.int64), self.weight(shape)], [self.shapes[x]], axis=axis)

    def pad(self, x):
        shape = self.shapes[x]
        mode = self.pick(["constant", "edge", "reflect"])
        most = [min(2, d - 1) if mode == "reflect" else 2 for d in shape]
        pads = [self.between(0, m) for m in most * 2]
        new = [d + pads[i] + pads[len(shape) + i] for i, d in enumerate(shape)]
        if np.prod(new) <= 4096:
            self.node("Pad", [x, self.integers(pads)], [new], mode=mode)

    def reduce(self, x):
        axis = self.between(0, len(self.shapes[x]) - 1)
        kind = self.pick(["ReduceMax", "ReduceMean", "ReduceSum", "ReduceMin", "ReduceL2"])
        self.node(kind, [x, self.integers([axis])], [self.changed(x, axis, 1)], large=8 * self.large[x], keepdims=1)

    def expand(self, x):
        ones = [i for i, d in enumerate(self.shapes[x]) if d == 1]
        if ones:
            shape = self.changed(x, self.pick(ones), self.between(2, 6))
            if np.prod(shape) <= 4096:
                self.node("Expand", [x, self.integers(shape)], [shape])

    def top(self, x):
        axis = self.axis_of(x, 2)
        if x in self.exact and axis is not None:
            k = self.between(1, self.shapes[x][axis])
            shape = self.changed(x, axis, k)
            number = next(self.numbers)
            names = [f"v{number}_values", f"v{number}_at"]
            self.node("TopK", [x, self.integers([k])], [shape, shape], names=names, axis=axis)
            self.types[names[1]] = np.dtype(np.int64)

    def einsum(self, x):
        if len(self.shapes[x]) == 3:
            b, i, k = self.shapes[x]
            equation, shape, w = self.pick([("bik,kj->bij", (b, i, 5), (k, 5)), ("bik,bjk->bij", (b, i, 3), (b, 3, k)),
                                            ("bik,ik->b", (b,), (i, k))])
            self.node("Einsum", [x, self.weight(w, 0.3)], [shape], large=16 * self.large[x], equation=equation)

    def trilu(self, x):
        if len(self.shapes[x]) >= 2:
            self.node("Trilu", [x, self.constant(self.between(-2, 2), np.int64)], [self.shapes[x]], upper=self.between(0, 1))

    def cumsum(self, x):
        axis = self.between(0, len(self.shapes[x]) - 1)
        # The order of its sums is free.
        self.node("CumSum", [x, self.constant(axis, np.int64)], [self.shapes[x]], large=12 * self.large[x], exact=False,
                  exclusive=self.between(0, 1), reverse=self.between(0, 1))

    # Pictures

    def resize(self, x):
        shape = self.shapes[x]
        if len(shape) == 4 and np.prod(shape) <= 1024:
            new = [*shape[:2], 2 * shape[2], 2 * shape[3]]
            mode = self.pick(["nearest", "linear", "cubic"])
            self.node("Resize", [x, "", "", self.integers(new)], [new], large=2 * self.large[x], mode=mode,
                      coordinate_transformation_mode=self.pick(["half_pixel", "align_corners", "asymmetric"]))

    def conv_transpose(self, x):
        shape = self.shapes[x]
        if len(shape) == 4 and np.prod(shape) <= 1024:
            f = self.between(1, 4)
            self.node("ConvTranspose", [x, self.weight([shape[1], f, 2, 2], 0.5)], [(shape[0], f, 2 * shape[2], 2 * shape[3])],
                      large=8 * self.large[x], strides=[2, 2])

    def batch_norm(self, x):
        if len(self.shapes[x]) == 4:
            c = self.shapes[x][1]
            variance = self.constant(self.rng.random(c) + 0.5, np.float32)
            self.node("BatchNormalization", [x, self.weight([c]), self.weight([c]), self.weight([c]), variance],
                      [self.shapes[x]], large=4 * self.large[x] + 8)

    def group_norm(self, x):
        shape = self.shapes[x]
        if len(shape) == 4:
            groups = self.pick([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
            self.node("GroupNormalization", [x, self.weight([shape[1]]), self.weight([shape[1]])], [shape], large=20.0,
                      num_groups=groups)

    def inherited(self, x):
        # By name, so that this class's own forms of them are called.
        getattr(self, self.pick(Generator.OPERATORS).__name__)(x)

    #: those that take any float value
    OPERATORS = (inherited,) * 12 + (
        cast, cast, back, back, half, half, integer, compare, compare, logic, qdq, qdq, integer_product, four_bits,
        attention, attention, rms_norm, gelu, recurrent, slice, slice, split, split, gather, scatter, pad, reduce, expand,
        top, einsum, trilu, cumsum, resize, conv_transpose, batch_norm, group_norm)

    def binary(self, x):
        peers = [v for v in self.such(np.dtype(np.float32)) if self.shapes[v] == self.shapes[x]]
        self.add(self.pick(["Add", "Sub", "Mul"]), [x, self.pick(peers or [x])], self.shapes[x])

    def concat(self, x):
        hidden = {v: self.shapes.pop(v) for v in list(self.shapes) if self.types[v] != np.float32}
        super().concat(x)
        self.shapes.update(hidden)

    def model(self):
        inputs = []
        for i in range(self.between(2, 4)):
            shape = self.pick([(1, 4, 8, 8), (2, 3, 6, 5), (2, 6, 8), (3, 4, 8), (5, 12)])
            self.note([f"x{i}"], [], [shape], "", np.float32, 4.0, exact=True)
            inputs.append(om.value(f"x{i}", shape))
        # Now and then hundreds.
        for _ in range(self.between(5, 40) if self.rng.random() < 0.9 else self.between(100, 300)):
            names = self.such(np.dtype(np.float32))
            names = [v for v in names if self.shapes[v]]
            x = names[-1 - min(int(self.rng.exponential(4.0)), len(names) - 1)]
            if self.large[x] > 1e4 or x not in self.exact and self.large[x] > 1e2 and self.rng.random() < 0.5:
                x, = self.node("Tanh", [x], [self.shapes[x]], large=1.0)
            self.pick(self.OPERATORS)(self, x)
        made = [v for n in self.nodes for v in n.output]
        outputs = [v for v in made if v not in self.read and self.rng.random() < 0.9]
        outputs += [v for v in made if v in self.read and self.rng.random() < 0.05]
        outputs = list(dict.fromkeys(outputs or made[-1:]))
        self.tolerances = {v: HALF for v in outputs if v in self.halved}
        values = [om.value(v, self.shapes[v], TYPES[self.types[v]]) for v in outputs]
        return om.model(self.nodes, inputs, values, self.weights,
                        opsets=[helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])
