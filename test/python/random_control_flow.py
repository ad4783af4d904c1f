"""Random programs of loops and branches over small vectors, with what numpy makes of them.

Buffers are made at random depths, so that their lives end in bodies and branches; everything read has been written on
every way there. Loops swap buffers; ways are chosen by numbers of iterations and by values on the device."""

import random

import numpy as np

WIDTH = 4
ROWS = 6
TYPE = f"memref<{WIDTH}xf32>"
ROW = f"memref<{WIDTH}xf32, strided<[1], offset: ?>>"


class Generator:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.budget = 24
        self.readbacks = 0
        rng = np.random.default_rng(seed)
        self.inputs = [rng.standard_normal((ROWS, WIDTH)).astype(np.float32), rng.integers(0, 2, 8).astype(bool),
                       rng.integers(0, ROWS, 8)]

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def say(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    # Steps are functions of the state: names to arrays or numbers.

    def make(self, depth: int, scope: list[str]):
        """A new buffer, written at once."""
        target = self.name()
        self.say(depth, f"{target} = memref.alloc() : {TYPE}")
        step = self.operation(depth, scope, target)

        def do(state):
            state[target] = np.full(WIDTH, np.nan, np.float32)
            step(state)

        scope.append(target)
        return do

    def operation(self, depth: int, scope: list[str], target: str):
        kind = self.random.choice(["tanh", "add", "mul", "copy"])
        a, b = self.random.choice(scope), self.random.choice(scope)
        if kind == "copy":
            self.say(depth, f"memref.copy {a}, {target} : {TYPE} to {TYPE}")
            return lambda state: state[target].__setitem__(..., state[a])
        if kind == "tanh":
            self.say(depth, f"linalg.tanh ins({a} : {TYPE}) outs({target} : {TYPE})")
            return lambda state: state[target].__setitem__(..., np.tanh(state[a]))
        self.say(depth, f"linalg.{kind} ins({a}, {b} : {TYPE}, {TYPE}) outs({target} : {TYPE})")
        by = np.add if kind == "add" else np.multiply
        # Products of many rounds would grow without end.
        self.say(depth, f"linalg.tanh ins({target} : {TYPE}) outs({target} : {TYPE})")
        return lambda state: state[target].__setitem__(..., np.tanh(by(state[a], state[b])))

    def row(self, depth: int, scope: list[str], numbers: list[str]):
        """A row of the input, or one of the output."""
        at = self.random.choice(numbers)
        buffer = self.random.choice(scope)
        view = self.name()
        if self.random.random() < 0.5:
            self.say(depth, f"{view} = memref.subview %x0[{at}, 0] [1, {WIDTH}] [1, 1] : memref<{ROWS}x{WIDTH}xf32> to {ROW}")
            self.say(depth, f"linalg.add ins({view}, {buffer} : {ROW}, {TYPE}) outs({buffer} : {TYPE})")
            return lambda state: state[buffer].__iadd__(state["%x0"][state[at]])
        self.say(depth, f"{view} = memref.subview %y0[{at}, 0] [1, {WIDTH}] [1, 1] : memref<{ROWS}x{WIDTH}xf32> to {ROW}")
        self.say(depth, f"linalg.tanh ins({buffer} : {TYPE}) outs({view} : {ROW})")
        return lambda state: state["%y0"][state[at]].__setitem__(..., np.tanh(state[buffer]))

    def condition(self, depth: int, numbers: list[str]):
        name = self.name()
        if self.random.random() < 0.5:
            at = self.random.randrange(8)
            self.say(depth, f"{name} = memref.load %x1[%c{at}] : memref<8xi1>")
            self.readbacks += 1
            return name, lambda state: bool(state["%x1"][at])
        number, odd = self.random.choice(numbers), self.name()
        self.say(depth, f"{odd} = arith.remui {number}, %c2 : index")
        self.say(depth, f"{name} = arith.cmpi eq, {odd}, %c0 : index")
        return name, lambda state: state[number] % 2 == 0

    def branch(self, depth: int, scope: list[str], numbers: list[str]):
        way, test = self.condition(depth, numbers)
        result = self.name() if self.random.random() < 0.5 else None
        self.say(depth, (f"{result} = " if result else "") + f"scf.if {way} " + (f"-> ({TYPE}) " if result else "") + "{")
        sides, results = [], []
        for side in range(2 if result or self.random.random() < 0.5 else 1):
            if side:
                self.say(depth, "} else {")
            inner = list(scope)
            sides.append(self.block(depth + 1, inner, numbers))
            results.append(self.random.choice(inner))
            if result:
                self.say(depth + 1, f"scf.yield {results[-1]} : {TYPE}")
        self.say(depth, "}")

        def do(state):
            side = 0 if test(state) else 1
            if side < len(sides):
                sides[side](state)
                if result:
                    state[result] = state[results[side]]

        if result:
            scope.append(result)
        return do

    def loop(self, depth: int, scope: list[str], numbers: list[str]):
        """Some trips with two buffers carried, which change places or not."""
        trips, number = self.random.randrange(4), self.name()
        starts = [self.random.choice(scope), self.random.choice(scope)]
        carried, results = [self.name(), self.name()], self.name()
        swaps = self.random.random() < 0.6
        pairs = ", ".join(f"{c} = {s}" for c, s in zip(carried, starts))
        self.say(depth, f"{results}:2 = scf.for {number} = %c0 to %c{trips} step %c1 iter_args({pairs}) -> ({TYPE}, {TYPE}) {{")
        body = self.block(depth + 1, [*scope, *carried], [*numbers, number])
        order = carried[::-1] if swaps else carried
        self.say(depth + 1, f"scf.yield {', '.join(order)} : {TYPE}, {TYPE}")
        self.say(depth, "}")

        def do(state):
            now = [state[s] for s in starts]
            for i in range(trips):
                state[number] = i
                state[carried[0]], state[carried[1]] = now
                body(state)
                now = [state[c] for c in order]
            state[f"{results}#0"], state[f"{results}#1"] = now

        scope += [f"{results}#0", f"{results}#1"]
        return do

    def rounds(self, depth: int, scope: list[str], numbers: list[str]):
        """scf.while with a number carried and compared with one on the device."""
        at, number, body_number, result = self.random.randrange(8), self.name(), self.name(), self.name()
        limit, limit_index, more, following = (self.name() for _ in range(4))
        self.say(depth, f"{result} = scf.while ({number} = %c0) : (index) -> index {{")
        before = self.block(depth + 1, list(scope), numbers)
        self.say(depth + 1, f"{limit} = memref.load %x2[%c{at}] : memref<8xi64>")
        self.say(depth + 1, f"{limit_index} = arith.index_cast {limit} : i64 to index")
        self.say(depth + 1, f"{more} = arith.cmpi slt, {number}, {limit_index} : index")
        self.say(depth + 1, f"scf.condition({more}) {number} : index")
        self.say(depth, "} do {")
        self.say(depth, f"^bb0({body_number}: index):")
        after = self.block(depth + 1, list(scope), [*numbers, body_number])
        self.say(depth + 1, f"{following} = arith.addi {body_number}, %c1 : index")
        self.say(depth + 1, f"scf.yield {following} : index")
        self.say(depth, "}")

        def do(state):
            state[body_number] = 0
            while True:
                before(state)
                if state[body_number] >= state["%x2"][at]:
                    break
                after(state)
                state[body_number] += 1
            state[result] = min(state[body_number], ROWS - 1)

        return do

    def block(self, depth: int, scope: list[str], numbers: list[str]):
        steps = []
        for _ in range(self.random.randint(1, 4)):
            self.budget -= 1
            if self.budget > 0 and depth < 5 and self.random.random() < 0.45:
                kind = self.random.choice([self.branch, self.branch, self.loop, self.loop, self.rounds])
                steps.append(kind(depth, scope, numbers))
            elif self.random.random() < 0.3:
                steps.append(self.row(depth, scope, numbers))
            elif self.random.random() < 0.5:
                steps.append(self.make(depth, scope))
            else:
                steps.append(self.operation(depth, scope, self.random.choice(scope)))

        def do(state):
            for step in steps:
                step(state)

        return do

    def program(self):
        """Text of the body, inputs, expected outputs."""
        self.say(1, "%zero = arith.constant 0.0 : f32")
        self.say(1, f"linalg.fill ins(%zero : f32) outs(%y0 : memref<{ROWS}x{WIDTH}xf32>)")
        first = self.name()
        self.say(1, f"{first} = memref.alloc() : {TYPE}")
        self.say(1, f"{first}r = memref.subview %x0[1, 0] [1, {WIDTH}] [1, 1] : memref<{ROWS}x{WIDTH}xf32> to "
                    f"memref<{WIDTH}xf32, strided<[1], offset: {WIDTH}>>")
        self.say(1, f"memref.copy {first}r, {first} : memref<{WIDTH}xf32, strided<[1], offset: {WIDTH}>> to {TYPE}")
        scope = [first]
        numbers = ["%c0", "%c1", "%c3"]
        parts = [self.make(1, scope)] + [self.block(1, scope, numbers) for _ in range(3)]
        last = self.random.choice(scope)
        self.say(1, f"memref.copy {last}, %y1 : {TYPE} to {TYPE}")
        y0 = np.zeros((ROWS, WIDTH), np.float32)
        state = {"%x0": self.inputs[0], "%x1": self.inputs[1], "%x2": self.inputs[2], "%y0": y0, "%c0": 0, "%c1": 1,
                 "%c3": 3, first: self.inputs[0][1].copy()}
        for part in parts:
            part(state)
        return "\n".join(self.lines), self.inputs, [y0, state[last].copy()]
