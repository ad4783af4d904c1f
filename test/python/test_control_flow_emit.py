"""Loops and branches around kernels: hand-written modules, built for the host, checked as they run, compared with
numpy."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from memplan_tools import compiler, host
from random_control_flow import Generator

pytestmark = pytest.mark.usefixtures("memplan_opt")

ROW = "memref<4xf32, strided<[1], offset: ?>>"
NVCC = shutil.which("nvcc") or ("/usr/local/cuda/bin/nvcc" if Path("/usr/local/cuda/bin/nvcc").exists() else None)


def seeded(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Program:
    """`body` writes %y0, %y1, ... from %x0, %x1, ..., all memrefs of the arrays' shapes."""

    def __init__(self, body: str, inputs: list[np.ndarray], expected: list[np.ndarray], readbacks: int = 0,
                 waits: int | None = None, functions: str = ""):
        self.body, self.inputs, self.expected, self.functions = body, inputs, expected, functions
        self.readbacks, self.waits = readbacks, readbacks if waits is None else waits

    def text(self) -> str:
        def memref(array):
            element = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "i1"}[array.dtype.name]
            return "memref<" + "".join(f"{n}x" for n in array.shape) + element + ">"

        arguments = [f'%x{i}: {memref(a)} {{memplan.name = "x{i}"}}' for i, a in enumerate(self.inputs)]
        arguments += [f'%y{i}: {memref(a)} {{memplan.name = "y{i}", bufferize.result}}'
                      for i, a in enumerate(self.expected)]
        constants = "\n".join(f"  %c{n} = arith.constant {n} : index" for n in range(9))
        return f"{self.functions}\nfunc.func @main({', '.join(arguments)}) {{\n{constants}\n{self.body}\n  return\n}}\n"


def emit(program: Program, prefix: Path, *flags: str) -> str:
    source = prefix.with_suffix(".mlir")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(program.text())
    compiler.emit_cuda(source, prefix, None, "-q", *flags)
    return prefix.with_suffix(".cu").read_text()


def check_runs(program: Program, model: host.HostModel) -> None:
    for _ in range(2):  # a run leaves nothing behind
        before = model.counters()
        outputs = model.run({f"x{i}": x for i, x in enumerate(program.inputs)})
        after = model.counters()
        assert after.synchronisations - before.synchronisations == program.waits
        assert after.allocations == before.allocations
        for i, expected in enumerate(program.expected):
            np.testing.assert_allclose(outputs[f"y{i}"], expected, rtol=1e-5, atol=1e-6, err_msg=f"output {i}")


# --- the programs -----------------------------------------------------------------------------------------------


def recurrence(trips: int = 5) -> Program:
    """y[t] = exp(x[t] + h); h = tanh(x[t] + h)"""
    x = seeded(1, 5, 4)
    y, h = np.zeros((5, 4), np.float32), np.zeros(4, np.float32)
    for t in range(trips):
        y[t], h = np.exp(x[t] + h), np.tanh(x[t] + h)
    return Program(f"""
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y0 : memref<5x4xf32>)
  %h = memref.alloc() : memref<4xf32>
  linalg.fill ins(%zero : f32) outs(%h : memref<4xf32>)
  scf.for %t = %c0 to %c{trips} step %c1 {{
    %xt = memref.subview %x0[%t, 0] [1, 4] [1, 1] : memref<5x4xf32> to {ROW}
    %yt = memref.subview %y0[%t, 0] [1, 4] [1, 1] : memref<5x4xf32> to {ROW}
    %s = memref.alloc() : memref<4xf32>
    linalg.add ins(%xt, %h : {ROW}, memref<4xf32>) outs(%s : memref<4xf32>)
    linalg.tanh ins(%s : memref<4xf32>) outs(%h : memref<4xf32>)
    linalg.exp ins(%s : memref<4xf32>) outs(%yt : {ROW})
  }}
  linalg.exp ins(%h : memref<4xf32>) outs(%y1 : memref<4xf32>)""", [x], [y, np.exp(h)])


def no_trips() -> Program:
    return recurrence(0)


def prefix_sums() -> Program:
    """Row t of the output from row t - 1 of it: apart, since rows are 16 bytes apart."""
    x = seeded(2, 6, 4)
    return Program(f"""
  %first = memref.subview %x0[0, 0] [1, 4] [1, 1] : memref<6x4xf32> to memref<4xf32, strided<[1]>>
  %to = memref.subview %y0[0, 0] [1, 4] [1, 1] : memref<6x4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %first, %to : memref<4xf32, strided<[1]>> to memref<4xf32, strided<[1]>>
  scf.for %t = %c1 to %c6 step %c1 {{
    %before = arith.subi %t, %c1 : index
    %xt = memref.subview %x0[%t, 0] [1, 4] [1, 1] : memref<6x4xf32> to {ROW}
    %yt = memref.subview %y0[%t, 0] [1, 4] [1, 1] : memref<6x4xf32> to {ROW}
    %yb = memref.subview %y0[%before, 0] [1, 4] [1, 1] : memref<6x4xf32> to {ROW}
    linalg.add ins(%xt, %yb : {ROW}, {ROW}) outs(%yt : {ROW})
  }}""", [x], [np.cumsum(x, axis=0)])


def odd_columns() -> Program:
    """Columns are 4 bytes apart, so that no kernel may take 16 at once; steps of 2."""
    x = seeded(3, 4, 8)
    y = np.zeros_like(x)
    y[:, 1:8:2] = np.exp(x[:, 0:7:2])
    part = "memref<4x1xf32, strided<[8, 1], offset: ?>>"
    return Program(f"""
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y0 : memref<4x8xf32>)
  scf.for %t = %c0 to %c7 step %c2 {{
    %u = arith.addi %t, %c1 : index
    %xt = memref.subview %x0[0, %t] [4, 1] [1, 1] : memref<4x8xf32> to {part}
    %yt = memref.subview %y0[0, %u] [4, 1] [1, 1] : memref<4x8xf32> to {part}
    linalg.exp ins(%xt : {part}) outs(%yt : {part})
  }}""", [x], [y])


def nested() -> Program:
    """A loop with another and a branch in it, numbers of iterations as values in kernels."""
    y = np.zeros((3, 4), np.float32)
    for i in range(3):
        for j in range(4):
            y[i, j] = 10 * i + j if (i + j) % 2 == 0 else -1
    return Program("""
  %minus = arith.constant -1.0 : f32
  %ten = arith.constant 10 : index
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %sum = arith.addi %i, %j : index
      %odd = arith.remsi %sum, %c2 : index
      %even = arith.cmpi eq, %odd, %c0 : index
      scf.if %even {
        %at = memref.subview %y0[%i, %j] [1, 1] [1, 1] : memref<3x4xf32> to memref<1xf32, strided<[1], offset: ?>>
        linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
            outs(%at : memref<1xf32, strided<[1], offset: ?>>) {
        ^bb0(%old: f32):
          %tens = arith.muli %i, %ten : index
          %n = arith.addi %tens, %j : index
          %n32 = arith.index_cast %n : index to i32
          %f = arith.sitofp %n32 : i32 to f32
          linalg.yield %f : f32
        }
      } else {
        memref.store %minus, %y0[%i, %j] : memref<3x4xf32>
      }
    }
  }""", [], [y])


def carried_scalars() -> Program:
    """Fibonacci's numbers: two scalars of the host that change places, filled in and stored."""
    y = np.array([1, 1, 2, 3, 5, 8, 13, 21], np.float32)
    return Program("""
  %one = arith.constant 1.0 : f32
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %one, %b = %one) -> (f32, f32) {
    memref.store %a, %y0[%t] : memref<8xf32>
    %sum = arith.addf %a, %b : f32
    scf.yield %b, %sum : f32, f32
  }
  linalg.fill ins(%r#0 : f32) outs(%y1 : memref<3xf32>)
  memref.store %r#1, %y1[%c1] : memref<3xf32>""", [], [y, np.array([34, 55, 34], np.float32)])


def choice(way: bool) -> Program:
    """Branches with results in buffers of different sizes, chosen by a value on the device."""
    x = seeded(4, 4)
    return Program("""
  %way = memref.load %x0[] : memref<i1>
  %t = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x1 : memref<4xf32>) outs(%t : memref<4xf32>)
  %r = scf.if %way -> (memref<4xf32, strided<[1], offset: ?>>) {
    %big = memref.alloc() : memref<100xf32>
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%big : memref<100xf32>)
    %part = memref.subview %big[8] [4] [1] : memref<100xf32> to memref<4xf32, strided<[1], offset: 8>>
    linalg.tanh ins(%t : memref<4xf32>) outs(%part : memref<4xf32, strided<[1], offset: 8>>)
    %cast = memref.cast %part : memref<4xf32, strided<[1], offset: 8>> to memref<4xf32, strided<[1], offset: ?>>
    scf.yield %cast : memref<4xf32, strided<[1], offset: ?>>
  } else {
    %small = memref.alloc() : memref<4xf32>
    linalg.add ins(%t, %x1 : memref<4xf32>, memref<4xf32>) outs(%small : memref<4xf32>)
    %cast = memref.cast %small : memref<4xf32> to memref<4xf32, strided<[1], offset: ?>>
    scf.yield %cast : memref<4xf32, strided<[1], offset: ?>>
  }
  linalg.add ins(%r, %t : memref<4xf32, strided<[1], offset: ?>>, memref<4xf32>) outs(%y0 : memref<4xf32>)""",
                   [np.array(way), x], [(np.tanh(np.exp(x)) if way else np.exp(x) + x) + np.exp(x)], readbacks=1)


def chosen() -> Program:
    return choice(True)


def not_chosen() -> Program:
    return choice(False)


def no_else(way: bool) -> Program:
    """A buffer that dies in the branch, or before it if that is skipped, and another in its place."""
    x = seeded(5, 64)
    return Program("""
  %t = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x1 : memref<64xf32>) outs(%t : memref<64xf32>)
  %out = memref.alloc() : memref<64xf32>
  linalg.tanh ins(%x1 : memref<64xf32>) outs(%out : memref<64xf32>)
  %way = memref.load %x0[%c1] : memref<2xi1>
  scf.if %way {
    %s = memref.alloc() : memref<64xf32>
    linalg.add ins(%t, %x1 : memref<64xf32>, memref<64xf32>) outs(%s : memref<64xf32>)
    linalg.sub ins(%s, %t : memref<64xf32>, memref<64xf32>) outs(%out : memref<64xf32>)
  }
  %u = memref.alloc() : memref<64xf32>
  linalg.exp ins(%out : memref<64xf32>) outs(%u : memref<64xf32>)
  linalg.add ins(%u, %out : memref<64xf32>, memref<64xf32>) outs(%y0 : memref<64xf32>)""",
                   [np.array([not way, way]), x],
                   [(lambda v: np.exp(v) + v)(np.exp(x) + x - np.exp(x) if way else np.tanh(x))], readbacks=1)


def taken() -> Program:
    return no_else(True)


def skipped() -> Program:
    return no_else(False)


def until(limit: float) -> Program:
    """Doubles a vector until its sum passes a limit; the sum is made on the device."""
    x = np.array([1, 2, 3, 4], np.float32)
    y, rounds = x.copy(), 0
    while y.sum() < limit:
        y, rounds = y + y, rounds + 1
    return Program("""
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f32
  memref.copy %x0, %y0 : memref<4xf32> to memref<4xf32>
  %limit = memref.load %x1[] : memref<f32>
  %rounds = scf.while (%n = %none) : (i64) -> i64 {
    %s = memref.alloc() : memref<f32>
    linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
    linalg.reduce { arith.addf } ins(%y0 : memref<4xf32>) outs(%s : memref<f32>) dimensions = [0]
    %sum = memref.load %s[] : memref<f32>
    %more = arith.cmpf olt, %sum, %limit : f32
    scf.condition(%more) %n : i64
  } do {
  ^bb0(%n: i64):
    %t = memref.alloc() : memref<4xf32>
    linalg.exp ins(%y0 : memref<4xf32>) outs(%t : memref<4xf32>)
    linalg.log ins(%t : memref<4xf32>) outs(%t : memref<4xf32>)
    linalg.add ins(%t, %y0 : memref<4xf32>, memref<4xf32>) outs(%y0 : memref<4xf32>)
    %m = arith.addi %n, %one : i64
    scf.yield %m : i64
  }
  memref.store %rounds, %y1[] : memref<i64>""", [x, np.array(limit, np.float32)], [y, np.array(rounds, np.int64)],
                   readbacks=2, waits=2 + rounds)


def while_some() -> Program:
    return until(100)


def while_none() -> Program:
    return until(3)


def double_buffer(trips: int) -> Program:
    """Each round transposes from one buffer to the other, which then change places."""
    x = seeded(6, 3, 4)
    y = x.reshape(3, 4)
    for _ in range(trips):
        y = y.reshape(3, 4).T.copy()
    return Program(f"""
  %a = memref.alloc() : memref<12xf32>
  %b = memref.alloc() : memref<12xf32>
  %a2 = memref.expand_shape %a [[0, 1]] output_shape [3, 4] : memref<12xf32> into memref<3x4xf32>
  memref.copy %x0, %a2 : memref<3x4xf32> to memref<3x4xf32>
  %r:2 = scf.for %t = %c0 to %c{trips} step %c1 iter_args(%p = %a, %q = %b) -> (memref<12xf32>, memref<12xf32>) {{
    %p2 = memref.expand_shape %p [[0, 1]] output_shape [3, 4] : memref<12xf32> into memref<3x4xf32>
    %q2 = memref.expand_shape %q [[0, 1]] output_shape [4, 3] : memref<12xf32> into memref<4x3xf32>
    linalg.transpose ins(%p2 : memref<3x4xf32>) outs(%q2 : memref<4x3xf32>) permutation = [1, 0]
    scf.yield %q, %p : memref<12xf32>, memref<12xf32>
  }}
  memref.copy %r#0, %y0 : memref<12xf32> to memref<12xf32>""", [x], [y.reshape(12)])


def swapped_odd() -> Program:
    return double_buffer(5)


def swapped_never() -> Program:
    return double_buffer(0)


def selected() -> Program:
    """One of two buffers by a number of the host."""
    x = seeded(7, 2, 4)
    y = np.stack([np.exp(x[0]) if t % 2 == 0 else np.tanh(x[1]) for t in range(5)])
    return Program(f"""
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %x0a = memref.subview %x0[0, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<4xf32, strided<[1]>>
  %x0b = memref.subview %x0[1, 0] [1, 4] [1, 1] : memref<2x4xf32> to memref<4xf32, strided<[1], offset: 4>>
  linalg.exp ins(%x0a : memref<4xf32, strided<[1]>>) outs(%a : memref<4xf32>)
  linalg.tanh ins(%x0b : memref<4xf32, strided<[1], offset: 4>>) outs(%b : memref<4xf32>)
  scf.for %t = %c0 to %c5 step %c1 {{
    %odd = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %odd, %c0 : index
    %s = arith.select %even, %a, %b : memref<4xf32>
    %yt = memref.subview %y0[%t, 0] [1, 4] [1, 1] : memref<5x4xf32> to {ROW}
    memref.copy %s, %yt : memref<4xf32> to {ROW}
  }}""", [x], [y])


def switch(value: int) -> Program:
    x = seeded(8, 4)
    by = {0: np.exp, 3: np.tanh}
    return Program("""
  %n = memref.load %x0[] : memref<i64>
  %i = arith.index_cast %n : i64 to index
  %r = scf.index_switch %i -> f32
  case 0 {
    linalg.exp ins(%x1 : memref<4xf32>) outs(%y0 : memref<4xf32>)
    %f = arith.constant 7.0 : f32
    scf.yield %f : f32
  }
  case 3 {
    %t = memref.alloc() : memref<4xf32>
    linalg.add ins(%x1, %x1 : memref<4xf32>, memref<4xf32>) outs(%t : memref<4xf32>)
    linalg.tanh ins(%t : memref<4xf32>) outs(%y0 : memref<4xf32>)
    %f = arith.constant 8.0 : f32
    scf.yield %f : f32
  }
  default {
    memref.copy %x1, %y0 : memref<4xf32> to memref<4xf32>
    %f = arith.sitofp %n : i64 to f32
    scf.yield %f : f32
  }
  memref.store %r, %y1[] : memref<f32>""", [np.array(value, np.int64), x],
                   [{0: np.exp(x), 3: np.tanh(x + x)}.get(value, x),
                    np.array({0: 7, 3: 8}.get(value, value), np.float32)], readbacks=1)


def switch_first() -> Program:
    return switch(0)


def switch_second() -> Program:
    return switch(3)


def switch_default() -> Program:
    return switch(-5)


def device_bounds() -> Program:
    """Bounds and step from the device; the last step would pass the end of the type."""
    far = np.iinfo(np.int64).max
    bounds = np.array([far - 10, far, 4], np.int64)
    return Program("""
  %n0 = memref.load %x0[%c0] : memref<3xi64>
  %n1 = memref.load %x0[%c1] : memref<3xi64>
  %n2 = memref.load %x0[%c2] : memref<3xi64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = scf.for %i = %n0 to %n1 step %n2 iter_args(%n = %zero) -> (i64) : i64 {
    %m = arith.addi %n, %one : i64
    memref.store %i, %y0[] : memref<i64>
    scf.yield %m : i64
  }
  memref.store %n, %y1[] : memref<i64>""", [bounds],
                   [np.array(far - 2, np.int64), np.array(3, np.int64)], readbacks=3)


def gather_rows() -> Program:
    """An offset read back from the device in each iteration."""
    x, rows = seeded(9, 6, 4), np.array([5, 0, 3], np.int64)
    return Program(f"""
  scf.for %t = %c0 to %c3 step %c1 {{
    %row = memref.load %x1[%t] : memref<3xi64>
    %i = arith.index_cast %row : i64 to index
    %xt = memref.subview %x0[%i, 0] [1, 4] [1, 1] : memref<6x4xf32> to {ROW}
    %yt = memref.subview %y0[%t, 0] [1, 4] [1, 1] : memref<3x4xf32> to {ROW}
    linalg.exp ins(%xt : {ROW}) outs(%yt : {ROW})
  }}""", [x, rows], [np.exp(x[rows])], readbacks=1, waits=3)


def products() -> Program:
    """Products of a loop's slices: rows at multiples of 16 bytes are a GEMM's."""
    a, b = seeded(10, 3, 2, 4), seeded(11, 4, 8)
    part, result = "memref<2x4xf32, strided<[4, 1], offset: ?>>", "memref<2x8xf32, strided<[8, 1], offset: ?>>"
    return Program(f"""
  scf.for %t = %c0 to %c3 step %c1 {{
    %at = memref.subview %x0[%t, 0, 0] [1, 2, 4] [1, 1, 1] : memref<3x2x4xf32> to {part}
    %yt = memref.subview %y0[%t, 0, 0] [1, 2, 8] [1, 1, 1] : memref<3x2x8xf32> to {result}
    memplan.matmul ins(%at, %x1 : {part}, memref<4x8xf32>) outs(%yt : {result})
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      extra_maps = [] {{
    ^bb0(%acc: f32):
      memplan.yield %acc : f32
    }}
  }}""", [a, b], [a @ b])


def buffer_of_a_round() -> Program:
    """A buffer that each round makes before its condition: read after it, and by what follows the loop."""
    x = seeded(14, 4)
    y, total, n = None, np.zeros(4, np.float32), 0
    while True:
        y = np.exp(total + x)
        if n >= 3:
            break
        total, n = np.tanh(y), n + 1
    return Program("""
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y1 : memref<4xf32>)
  %r:2 = scf.while (%n = %c0) : (index) -> (memref<4xf32>, index) {
    %s = memref.alloc() : memref<4xf32>
    %t = memref.alloc() : memref<4xf32>
    linalg.add ins(%y1, %x0 : memref<4xf32>, memref<4xf32>) outs(%t : memref<4xf32>)
    linalg.exp ins(%t : memref<4xf32>) outs(%s : memref<4xf32>)
    %more = arith.cmpi slt, %n, %c3 : index
    scf.condition(%more) %s, %n : memref<4xf32>, index
  } do {
  ^bb0(%s: memref<4xf32>, %n: index):
    linalg.tanh ins(%s : memref<4xf32>) outs(%y1 : memref<4xf32>)
    %m = arith.addi %n, %c1 : index
    scf.yield %m : index
  }
  linalg.add ins(%r#0, %r#0 : memref<4xf32>, memref<4xf32>) outs(%y0 : memref<4xf32>)""", [x], [y + y, total])


def through_blocks() -> Program:
    """scf.execute_region and affine arithmetic of the host."""
    y = np.array([max(i // 2, 3 - i) * 2 + i % 3 for i in range(6)], np.int64)
    return Program("""
  scf.for %i = %c0 to %c6 step %c1 {
    %v = scf.execute_region -> index {
      %a = affine.max affine_map<(d) -> (d floordiv 2, 3 - d)>(%i)
      %b = affine.apply affine_map<(d, e) -> (d * 2 + e mod 3)>(%a, %i)
      scf.yield %b : index
    }
    %n = arith.index_cast %v : index to i64
    memref.store %n, %y0[%i] : memref<6xi64>
  }""", [], [y])


PROGRAMS = [recurrence, no_trips, prefix_sums, odd_columns, nested, carried_scalars, chosen, not_chosen, taken, skipped,
            while_some, while_none, swapped_odd, swapped_never, selected, switch_first, switch_second, switch_default,
            device_bounds, gather_rows, products, buffer_of_a_round, through_blocks]


by_name = pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)


@pytest.mark.parametrize("flags", [(), ("--no-reuse",)], ids=["reuse", "no-reuse"])
@by_name
def test_checked(make, flags, quick, tmp_path):
    program = make()
    emit(program, tmp_path / "m", *flags)
    with host.HostModel(tmp_path / "m", **quick) as model:
        check_runs(program, model)
        if program.readbacks:
            assert model.library.m_num_readbacks() == program.readbacks
        else:
            assert not hasattr(model.library, "m_num_readbacks")
    header = (tmp_path / "m.h").read_text()
    assert ("may be captured" in header) == (program.readbacks == 0)
    assert ("can't be captured" in header) == (program.readbacks != 0)


@pytest.fixture(scope="module")
def prefixes(build_folder) -> dict:
    folder = build_folder / "control_flow_emit"
    for make in PROGRAMS:
        emit(make(), folder / make.__name__)
    return {make.__name__: folder / make.__name__ for make in PROGRAMS}


@pytest.fixture(scope="module")
def optimised(prefixes, build_folder):
    """All programs as a user builds them."""
    return host.build_together(prefixes.values(), build_folder / "control_flow/all.so", flags=("-O2",))


@by_name
def test_optimised(make, prefixes, optimised):
    with host.HostModel(prefixes[make.__name__], library=optimised) as model:
        check_runs(make(), model)


def test_nvcc(prefixes, tmp_path):
    if not NVCC:
        pytest.skip("nvcc isn't installed")
    text = ['#include "memplan/Runtime/Runtime.h"', "#include <new>"]
    for name, prefix in prefixes.items():
        text += [f"namespace {name} {{", f'#include "{prefix}.cu"', "}"]
    (tmp_path / "all.cu").write_text("\n".join(text) + "\n")
    done = subprocess.run([NVCC, "-std=c++17", "-arch=sm_80", "-Werror", "all-warnings", "-I", host.RUNTIME_INCLUDE, "-c",
                           tmp_path / "all.cu", "-o", tmp_path / "all.o"], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


# --- what the checked mode finds --------------------------------------------------------------------------------


def spoil(program: Program, folder, quick, change) -> str:
    """The error of a run whose code was changed by hand: what a wrong plan would have been emitted as."""
    text = emit(program, folder / "m")
    changed = change(text)
    assert changed != text
    (folder / "m.cu").write_text(changed)
    with host.HostModel(folder / "m", **quick) as model, pytest.raises(host.HostError) as error:
        model.run({f"x{i}": x for i, x in enumerate(program.inputs)})
    return str(error.value)


def across_loop() -> Program:
    """%a is written before the loop and read in it, so that it lives as long as the loop does."""
    x = seeded(12, 4)
    return Program("""
  %a = memref.alloc() : memref<4xf32>
  %sum = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x0 : memref<4xf32>) outs(%a : memref<4xf32>)
  linalg.tanh ins(%x0 : memref<4xf32>) outs(%sum : memref<4xf32>)
  scf.for %t = %c0 to %c3 step %c1 {
    %b = memref.alloc() : memref<4xf32>
    linalg.add ins(%a, %sum : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
    linalg.sub ins(%b, %x0 : memref<4xf32>, memref<4xf32>) outs(%sum : memref<4xf32>)
  }
  linalg.exp ins(%sum : memref<4xf32>) outs(%y0 : memref<4xf32>)""", [x],
                   [np.exp(np.tanh(x) + 3 * (np.exp(x) - x))])


def places(text: str) -> list[tuple[str, str]]:
    """Offset and name of the buffers that live in the emitted code."""
    return re.findall(r"run\.begin\((\d+), 16, \"([^\"]*)\"\)", text)


def test_across_loop(quick, tmp_path):
    program = across_loop()
    emit(program, tmp_path / "m", "--no-reuse")
    with host.HostModel(tmp_path / "m", **quick) as model:
        check_runs(program, model)


def test_overlap_across_a_loop(quick, tmp_path):
    """The body's buffer in the bytes of one that lives across the loop."""

    def change(text):
        before, loop = text.split(": scf.for", 1)
        outer = places(before)[0][0]
        inner = places(loop)[0][0]
        assert inner != outer
        return before + ": scf.for" + loop.replace(f"run.begin({inner},", f"run.begin({outer},").replace(
            f"run.end({inner},", f"run.end({outer},").replace(f"<float>({inner})", f"<float>({outer})")

    assert "begins inside live buffer" in spoil(across_loop(), tmp_path, quick, change)


def test_life_that_ends_in_a_loop(quick, tmp_path):
    """What is read in each iteration is given up at the end of the first."""

    def change(text):
        before, loop = text.split(": scf.for", 1)
        outer = places(before)[0][0]
        end = loop.index("\n  }\n")
        return before + ": scf.for" + loop[:end] + f"\n    MEMPLAN_TRY(run.end({outer}, 16));" + loop[end:]

    assert "where no buffer lives" in spoil(across_loop(), tmp_path, quick, change)


def test_branch_that_ends_its_result(quick, tmp_path):
    """A result that the branch gives up is missed where it is read after it."""

    def change(text):
        end = text.index("  } else {", text.index(": scf.if"))
        (offset,) = set(re.findall(r"run\.begin\((\d+), 400", text))
        return text[:end] + f"  MEMPLAN_TRY(run.model.guard.end(run.model.arena + {offset}, 400));\n" + text[end:]

    assert "where no buffer lives" in spoil(choice(True), tmp_path, quick, change)


# --- errors of a run --------------------------------------------------------------------------------------------


def run_error(program: Program, folder, quick) -> str:
    emit(program, folder / "m")
    with host.HostModel(folder / "m", **quick) as model, pytest.raises(host.HostError) as error:
        model.run({f"x{i}": x for i, x in enumerate(program.inputs)})
    return str(error.value)


@pytest.mark.parametrize("step", [0, -1])
def test_step_that_is_not_positive(step, quick, tmp_path):
    program = device_bounds()
    program.inputs = [np.array([0, 5, step], np.int64)]
    assert f"the loop's step is {step}; it must be positive" in run_error(program, tmp_path, quick)


@pytest.mark.parametrize("numbers, expected", [((7, 2), 3), ((-7, 2), -4), ((7, 0), "division by zero"),
                                               ((np.iinfo(np.int64).min, -1), "no quotient by -1")])
def test_division_on_the_host(numbers, expected, quick, tmp_path):
    program = Program("""
  %a = memref.load %x0[%c0] : memref<2xi64>
  %b = memref.load %x0[%c1] : memref<2xi64>
  %q = arith.floordivsi %a, %b : i64
  memref.store %q, %y0[] : memref<i64>""", [np.array(numbers, np.int64)],
                      [np.array(expected if isinstance(expected, int) else 0, np.int64)], readbacks=2)
    if isinstance(expected, str):
        assert expected in run_error(program, tmp_path, quick)
        return
    emit(program, tmp_path / "m")
    with host.HostModel(tmp_path / "m", **quick) as model:
        check_runs(program, model)


# --- functions --------------------------------------------------------------------------------------------------


def test_long_programs_are_cut_where_no_variable_is_needed(quick, tmp_path):
    """40 launches, a value read back and needed 40 launches later, a loop of 40, and 40 more."""
    x = seeded(13, 4)
    more = "\n".join(f"  linalg.tanh ins(%y0 : memref<4xf32>) outs(%y0 : memref<4xf32>)" for _ in range(40))
    program = Program(f"""
  memref.copy %x0, %y0 : memref<4xf32> to memref<4xf32>
{more}
  %n = memref.load %x1[] : memref<i64>
  %i = arith.index_cast %n : i64 to index
{more}
  scf.for %t = %c0 to %i step %c1 {{
{more}
  }}
{more}""", [x, np.array(2, np.int64)], [functools.reduce(lambda v, _: np.tanh(v), range(200), x)], readbacks=1)
    text = emit(program, tmp_path / "m")
    with host.HostModel(tmp_path / "m", **quick) as model:
        check_runs(program, model)
    # 0 to 31; the load is launch 41, so that the second function runs to the loop's end, 122; then 39 are left.
    assert re.findall(r"Launches (\d+) to (\d+)", text) == [("0", "31"), ("32", "121"), ("122", "153"), ("154", "161")]


# --- random programs --------------------------------------------------------------------------------------------

SEEDS = range(int(os.environ.get("MEMPLAN_RANDOM_CONTROL_FLOW", "60")))


@pytest.fixture(scope="module")
def random_library(build_folder):
    """All of them in one library, for the time that it takes."""
    folder = build_folder / "random_control_flow"
    prefixes, programs = {}, {}
    for seed in SEEDS:
        for kind, flags in (("", ()), ("_own", ("--no-reuse",))):
            programs[seed] = Program(*Generator(seed).program())
            prefixes[seed, kind] = folder / f"seed{seed}{kind}"
            emit(programs[seed], prefixes[seed, kind], *flags)
    library = host.build_together(prefixes.values(), folder / "all.so", checked=True)
    return programs, prefixes, library


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed, random_library):
    programs, prefixes, library = random_library
    results = []
    for kind in ("", "_own"):
        with host.HostModel(prefixes[seed, kind], library=library) as model:
            results.append(model.run({f"x{i}": x for i, x in enumerate(programs[seed].inputs)}))
        for i, expected in enumerate(programs[seed].expected):
            np.testing.assert_allclose(results[-1][f"y{i}"], expected, rtol=1e-4, atol=1e-5, err_msg=f"output {i}{kind}")
