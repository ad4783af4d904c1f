"""Random valid models with matrices whose number of rows only the run tells."""

import numpy as np

import onnx_models as om
from random_models import Generator


class RunSizeGenerator(Generator):
    def __init__(self, seed: int):
        super().__init__(seed)
        #: number of columns, and which matrices have as many rows: those of one origin
        self.matrices: dict[str, tuple[int, str]] = {}

    def matrix(self, kind, inputs, columns, origin, **attributes) -> str:
        name = self.add(kind, inputs, [], **attributes)
        del self.shapes[name]
        self.matrices[name] = (columns, origin or name)
        return name

    def helper(self, kind, inputs, **attributes) -> str:
        """A value that only the next nodes read."""
        name = self.add(kind, inputs, [], **attributes)
        del self.shapes[name]
        return name

    def condition(self, x, columns: int) -> str:
        """A bool for each row, by one of its elements; now and then none is true, or all are."""
        column = self.helper("Gather", [x, self.integers(int(self.rng.integers(columns)))], axis=1)
        level = self.pick([-10.0, -0.5, 0.0, 0.0, 0.5, 10.0])
        self.weights.append(om.tensor(f"w{len(self.weights)}", np.float32(level)))
        return self.helper("Greater", [column, f"w{len(self.weights) - 1}"])

    # Rows that the run chooses, of a plain matrix or of one of the run's.

    def compress(self, x):
        columns = self.matrices[x][0] if x in self.matrices else self.shapes[x][1]
        self.matrix("Compress", [x, self.condition(x, columns)], columns, None, axis=0)

    def nonzero(self, x):
        columns = self.matrices[x][0] if x in self.matrices else self.shapes[x][1]
        at = self.helper("NonZero", [self.condition(x, columns)])
        self.matrix("Gather", [x, self.helper("Squeeze", [at, self.integers([0])])], columns, None, axis=0)

    # What keeps the number of rows.

    def unary_rows(self, x):
        self.matrix(self.pick(["Relu", "Tanh", "Sigmoid", "Neg"]), [x], *self.matrices[x])

    def binary_rows(self, x):
        peers = [v for v, kind in self.matrices.items() if kind == self.matrices[x]]
        inputs = [x, self.pick([*peers, self.weight(self.matrices[x][:1])])]
        self.matrix(self.pick(["Add", "Mul", "Sub"]), inputs if self.rng.random() < 0.5 else inputs[::-1], *self.matrices[x])

    def matmul_rows(self, x):
        columns, origin = self.matrices[x]
        n = int(self.rng.integers(1, 9))
        self.matrix(self.pick(["MatMul", "Gemm"]), [x, self.weight([columns, n], columns ** -0.5)], n, origin)

    def norm_rows(self, x):
        columns, origin = self.matrices[x]
        if self.rng.random() < 0.5:
            self.matrix("Softmax", [x], columns, origin, axis=-1)
        else:
            self.matrix("LayerNormalization", [x, self.weight([columns])], columns, origin, axis=-1)

    def pick_columns(self, x):
        columns, origin = self.matrices[x]
        chosen = [int(i) for i in self.rng.integers(-columns, columns, int(self.rng.integers(1, 6)))]
        self.matrix("Gather", [x, self.integers(chosen)], len(chosen), origin, axis=1)

    def concat_columns(self, x):
        columns, origin = self.matrices[x]
        peers = [v for v, (_, other) in self.matrices.items() if other == origin]
        y = self.pick(peers)
        if columns + self.matrices[y][0] <= 64:
            self.matrix("Concat", [x, y], columns + self.matrices[y][0], origin, axis=1)

    def turn_twice(self, x):
        turned = self.helper("Transpose", [x])
        self.matrix("Transpose", [self.helper("Exp", [self.helper("Clip", [turned])])], *self.matrices[x], perm=[1, 0])

    def view(self, x):
        columns, origin = self.matrices[x]
        cube = self.helper("Reshape", [x, self.integers([-1, 1, columns])])
        self.matrix("Squeeze", [self.helper("Relu", [cube]), self.integers([1])], columns, origin)

    # What changes it.

    def concat_rows(self, x):
        columns = self.matrices[x][0]
        peers = [v for v, (other, _) in self.matrices.items() if other == columns]
        peers += [v for v, shape in self.shapes.items() if len(shape) == 2 and shape[1] == columns]
        parts = [x] + [self.pick(peers) for _ in range(int(self.rng.integers(1, 3)))]
        self.matrix("Concat", parts if self.rng.random() < 0.5 else parts[::-1], columns, None, axis=0)

    def slice_rows(self, x):
        start = int(self.rng.integers(0, 3))
        end = self.pick([1, 3, 6, 2**31 - 1])
        self.matrix("Slice", [x, self.integers([start]), self.integers([end]), self.integers([0])], self.matrices[x][0], None)

    # Back to a shape that is known.

    def reduce_rows(self, x):
        columns = self.matrices[x][0]
        if self.rng.random() < 0.5:
            self.add("ReduceSum", [x, self.integers([0])], (1, columns), keepdims=1)
        else:
            self.add(self.pick(["ReduceL1", "ReduceSumSquare"]), [x], (1, columns), axes=[0], keepdims=1)

    def reduce_columns(self, x):
        reduced = self.helper("ReduceMax", [x], axes=[1], keepdims=1)
        self.matrix("Mul", [x, reduced], *self.matrices[x])

    CHOICES = (compress, nonzero)
    ROWS = (unary_rows, binary_rows, binary_rows, matmul_rows, norm_rows, pick_columns, concat_columns, turn_twice, view,
            concat_rows, concat_rows, slice_rows, reduce_rows, reduce_columns, compress, nonzero)

    def model(self):
        inputs = []
        for i in range(int(self.rng.integers(1, 4))):
            self.shapes[f"x{i}"] = self.pick([(5, 6), (9, 4), (1, 4), (17, 3)])
            inputs.append(om.value(f"x{i}", self.shapes[f"x{i}"]))
        for _ in range(int(self.rng.integers(3, 18))):
            plain = [v for v, shape in self.shapes.items() if len(shape) == 2]
            if not self.matrices or self.rng.random() < 0.2:
                self.pick(self.CHOICES)(self, self.pick(plain))
                continue
            names = list(self.matrices)
            x = names[-1 - min(int(self.rng.exponential(3.0)), len(names) - 1)]
            self.pick(self.ROWS)(self, x)
        made = [v for n in self.nodes for v in n.output if v in self.shapes or v in self.matrices]
        outputs = [v for v in made if v not in self.read] or made[-1:]
        outputs += [v for v in made if v in self.read and v not in outputs and self.rng.random() < 0.15]
        values = [om.value(v, self.shapes[v] if v in self.shapes else [f"rows_{v}", self.matrices[v][0]]) for v in outputs]
        return om.model(self.nodes, inputs, values, self.weights, opset=17)
