"""Random models with If, Loop, Scan and recurrent nodes, nested, with values that their bodies capture."""

import numpy as np
from onnx import TensorProto, helper

import onnx_models as om
from random_models import Generator


class ControlFlowGenerator(Generator):
    """A graph, or the body of one of its nodes, which shares its parent's numbers, weights and choices."""

    def __init__(self, seed: int, parent: "ControlFlowGenerator | None" = None):
        super().__init__(seed)
        self.depth = 0
        if parent:
            self.rng, self.weights, self.numbers = parent.rng, parent.weights, parent.numbers
            self.shapes, self.depth = dict(parent.shapes), parent.depth + 1

    def name(self) -> str:
        return f"v{next(self.numbers)}"

    def node(self, kind: str, inputs: list[str], count: int, **attributes) -> list[str]:
        outputs = [self.name() for _ in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"{kind}_{outputs[0]}", **attributes))
        self.read.update(i for i in inputs if i)
        return outputs

    def scalar(self, value, kind) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(om.tensor(name, np.array(value, kind)))
        return name

    def first(self, x: str, count: int) -> str:
        """The first elements of a value, flat."""
        flat, = self.node("Reshape", [x, self.integers([-1])], 1)
        return self.node("Slice", [flat, self.integers([0]), self.integers([count])], 1)[0]

    def condition(self, x: str) -> str:
        one = self.node("Reshape", [self.first(x, 1), self.integers([])], 1)[0]
        return self.node("Greater", [one, self.scalar(0.1, np.float32)], 1)[0]

    def trips(self, x: str) -> str:
        """A number from 0 to 3 that the data decide."""
        return self.node("ArgMax", [self.first(x, 4)], 1, axis=0, keepdims=0)[0]

    def grow(self, x: str, most: int = 4) -> None:
        """Some nodes that begin with `x`."""
        self.add(self.pick(["Tanh", "Sigmoid", "Relu"]), [x], self.shapes[x])
        for _ in range(int(self.rng.integers(0, most))):
            names = list(self.shapes)
            self.pick(self.OPERATORS)(self, names[-1 - min(int(self.rng.exponential(2.0)), len(names) - 1)])

    def last_like(self, shape) -> str:
        """The last value of that shape that this body made."""
        made = [o for n in self.nodes for o in n.output if o in self.shapes and self.shapes[o] == tuple(shape)]
        return made[-1]

    def graph(self, inputs, outputs):
        return helper.make_graph(self.nodes, self.name(), inputs, outputs)

    def body(self, x: str) -> "ControlFlowGenerator":
        child = ControlFlowGenerator(0, self)
        child.grow(x)
        return child

    def branch(self, x):
        if self.depth > 1 or np.prod(self.shapes[x]) < 1:
            return
        condition = self.condition(x)
        graphs = []
        for _ in range(2):
            child = self.body(x)
            result = child.last_like(self.shapes[x])
            if self.rng.random() < 0.15:
                result = child.node("Identity", [x], 1)[0]
            graphs.append(child.graph([], [om.value(result, self.shapes[x])]))
        out, = self.node("If", [condition], 1, then_branch=graphs[0], else_branch=graphs[1])
        self.read.add(x)
        self.shapes[out] = self.shapes[x]

    def loop(self, x):
        if self.depth > 1 or np.prod(self.shapes[x]) < 4:
            return
        states = [x] + [v for v, s in self.shapes.items() if len(s) > 1 and self.rng.random() < 0.1][:2]
        child = ControlFlowGenerator(0, self)
        carried = [child.name() for _ in states]
        for name, state in zip(carried, states):
            child.shapes[name] = self.shapes[state]
        step, go = child.name(), child.name()
        new = []
        for name in carried:
            child.grow(name)
            new.append(child.last_like(child.shapes[name]))
        if len(new) > 1 and self.shapes[states[0]] == self.shapes[states[1]] and self.rng.random() < 0.5:
            new[:2] = [carried[1], new[0]]  # a Fibonacci loop
        isKnown = self.rng.random() < 0.6
        scanned = [child.last_like(child.shapes[carried[0]])] if isKnown and self.rng.random() < 0.6 else []
        if self.rng.random() < 0.3:
            moved, = child.node("Cast", [step], 1, to=TensorProto.FLOAT)
            new[0], = child.node("Add", [new[0], moved], 1)
        if not isKnown and self.rng.random() < 0.5:
            onward = child.condition(new[0])
        else:
            onward, = child.node("Identity", [go], 1)
        scanned = [child.node("Identity", [s], 1)[0] for s in scanned]
        new = [child.node("Identity", [n], 1)[0] if n in carried or n in scanned else n for n in new]
        if len(set(new)) < len(new):
            new = [child.node("Identity", [n], 1)[0] for n in new]
        trips = int(self.rng.integers(0, 5))
        graph = child.graph(
            [om.value(step, (), TensorProto.INT64), om.value(go, (), TensorProto.BOOL)] +
            [om.value(c, self.shapes[s]) for c, s in zip(carried, states)],
            [om.value(onward, (), TensorProto.BOOL)] + [om.value(n, self.shapes[s]) for n, s in zip(new, states)] +
            [om.value(s, child.shapes[carried[0]]) for s in scanned])
        count = self.scalar(trips, np.int64) if isKnown else self.trips(x)
        outs = self.node("Loop", [count, "" if isKnown else self.scalar(True, np.bool_), *states],
                         len(states) + len(scanned), body=graph)
        for out, state in zip(outs, states):
            self.shapes[out] = self.shapes[state]
        if scanned and trips > 0:
            self.shapes[outs[-1]] = (trips, *self.shapes[x])

    def scan(self, x):
        shape = self.shapes[x]
        if self.depth > 1 or len(shape) < 2 or len(shape) > 4:
            return
        axis = int(self.rng.integers(len(shape)))
        part = shape[:axis] + shape[axis + 1:]
        child = ControlFlowGenerator(0, self)
        state, piece = child.name(), child.name()
        child.shapes[state] = child.shapes[piece] = part
        child.add(self.pick(["Add", "Mul"]), [state, piece], part)
        child.grow(list(child.shapes)[-1], 3)
        new = child.last_like(part)
        out, = child.node("Identity", [child.last_like(part)], 1)
        direction, into = int(self.rng.integers(2)), int(self.rng.integers(2))
        outAxis = int(self.rng.integers(len(part) + 1))
        final, stacked = self.node(
            "Scan", [self.weight(part), x], 2, num_scan_inputs=1, scan_input_axes=[axis],
            scan_input_directions=[direction], scan_output_axes=[outAxis], scan_output_directions=[into],
            body=child.graph([om.value(state, part), om.value(piece, part)],
                             [om.value(new, part), om.value(out, part)]))
        self.shapes[final] = part
        self.shapes[stacked] = part[:outAxis] + (shape[axis],) + part[outAxis:]

    def recurrent(self, x):
        shape = self.shapes[x]
        if len(shape) != 3 or shape[0] > 16 or min(shape) < 1:
            return
        kind = self.pick(["LSTM", "GRU", "RNN"])
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        direction = self.pick(["forward", "reverse", "bidirectional"])
        dirs, hidden = 2 if direction == "bidirectional" else 1, int(self.rng.integers(1, 6))
        steps, batch, width = shape
        inputs = [x, self.weight([dirs, gates * hidden, width], 0.5), self.weight([dirs, gates * hidden, hidden], 0.5)]
        if self.rng.random() < 0.7:
            inputs.append(self.weight([dirs, 2 * gates * hidden]))
        attributes = {"linear_before_reset": int(self.rng.integers(2))} if kind == "GRU" else {}
        outs = self.node(kind, inputs, 3 if kind == "LSTM" else 2, hidden_size=hidden, direction=direction, **attributes)
        self.shapes[outs[0]] = (steps, dirs, batch, hidden)
        for out in outs[1:]:
            self.shapes[out] = (dirs, batch, hidden)

    OPERATORS = (*Generator.OPERATORS, branch, branch, loop, loop, scan, recurrent, recurrent)
