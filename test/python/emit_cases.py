"""Small modules on tensors, one a family of ops, each with inputs and what numpy says the outputs are."""

import math

import numpy as np

EPSILON = 1e-5


def seeded(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Case:
    """`body` computes %o0, %o1, ... from %a0, %a1, ...; `maps` are aliases that stand before the function."""

    def __init__(self, name: str, maps: str, body: str, inputs: list[np.ndarray], expected: list[np.ndarray]):
        self.name, self.maps, self.body, self.inputs, self.expected = name, maps, body, inputs, expected

    def text(self) -> str:
        arguments = ", ".join(f'%a{i}: {tensor_type(a)} {{memplan.name = "a{i}"}}' for i, a in enumerate(self.inputs))
        types = ", ".join(f'{tensor_type(o)} {{memplan.name = "o{i}"}}' for i, o in enumerate(self.expected))
        results = ", ".join(f"%o{i}" for i in range(len(self.expected)))
        result_types = ", ".join(tensor_type(o) for o in self.expected)
        return (f"{self.maps}\nfunc.func @main({arguments}) -> ({types}) {{\n{self.body}\n"
                f"  return {results} : {result_types}\n}}\n")


def tensor_type(array: np.ndarray) -> str:
    element = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "i1"}[array.dtype.name]
    return "tensor<" + "".join(f"{n}x" for n in array.shape) + element + ">"


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# --- linalg.generic without reductions --------------------------------------------------------------------------


def maps() -> Case:
    a, b, row = seeded(1, 3, 4, 8), seeded(2, 3, 4, 8), seeded(3, 8)
    odd, column = seeded(4, 5, 7), seeded(5, 5, 1)
    table, rows = seeded(6, 6, 3), np.array([5, 0, -1, 3], np.int64)
    ints = np.array([-7, -1, 0, 5, 2147483647], np.int32)
    body = """
  %cst0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4x8xf32>
  %o0 = linalg.generic {indexing_maps = [#id3, #id3, #last3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a0, %a1, %a2 : tensor<3x4x8xf32>, tensor<3x4x8xf32>, tensor<8xf32>) outs(%e : tensor<3x4x8xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32, %old: f32):
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      %2 = arith.maximumf %1, %cst0 : f32
      linalg.yield %2 : f32 } -> tensor<3x4x8xf32>
  %et = tensor.empty() : tensor<8x3x4xf32>
  %o1 = linalg.transpose ins(%a0 : tensor<3x4x8xf32>) outs(%et : tensor<8x3x4xf32>) permutation = [2, 0, 1]
  %eo = tensor.empty() : tensor<5x7xf32>
  %o2 = linalg.generic {indexing_maps = [#id2, #col2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%a3, %a4 : tensor<5x7xf32>, tensor<5x1xf32>) outs(%eo : tensor<5x7xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %0 = arith.cmpf ogt, %x, %y : f32
      %1 = arith.select %0, %x, %y : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32 } -> tensor<5x7xf32>
  %eg = tensor.empty() : tensor<4x3xf32>
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %o3 = linalg.generic {indexing_maps = [#row2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%a6 : tensor<4xi64>) outs(%eg : tensor<4x3xf32>) {
    ^bb0(%r: i64, %old: f32):
      %0 = arith.index_cast %r : i64 to index
      %1 = arith.cmpi slt, %0, %c0 : index
      %2 = arith.addi %0, %c6 : index
      %3 = arith.select %1, %2, %0 : index
      %4 = linalg.index 1 : index
      %5 = tensor.extract %a5[%3, %4] : tensor<6x3xf32>
      linalg.yield %5 : f32 } -> tensor<4x3xf32>
  %ei = tensor.empty() : tensor<5xi32>
  %m3 = arith.constant -3 : i32
  %c1 = arith.constant 1 : i32
  %o4, %o5 = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%a7 : tensor<5xi32>) outs(%ei, %ei : tensor<5xi32>, tensor<5xi32>) {
    ^bb0(%x: i32, %old0: i32, %old1: i32):
      %0 = arith.floordivsi %x, %m3 : i32
      %1 = arith.addi %x, %c1 : i32
      linalg.yield %0, %1 : i32, i32 } -> (tensor<5xi32>, tensor<5xi32>)
  %ec = tensor.empty() : tensor<2x6xi64>
  %o6 = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%ec : tensor<2x6xi64>) {
    ^bb0(%old: i64):
      %0 = linalg.index 0 : index
      %1 = linalg.index 1 : index
      %2 = affine.apply affine_map<(i, j) -> ((j + i * 6) mod 4)>(%0, %1)
      %3 = arith.index_cast %2 : index to i64
      linalg.yield %3 : i64 } -> tensor<2x6xi64>
  %ef = tensor.empty() : tensor<3xf32>
  %half = arith.constant 0xFF800000 : f32
  %o7 = linalg.fill ins(%half : f32) outs(%ef : tensor<3xf32>) -> tensor<3xf32>"""
    expected = [np.maximum(a * b + row, 0), a.transpose(2, 0, 1), np.exp(np.maximum(odd, column)), table[rows],
                ints // -3, (ints.astype(np.int64) + 1).astype(np.uint32).astype(np.int32),
                (np.arange(12).reshape(2, 6) % 4).astype(np.int64), np.full(3, -np.inf, np.float32)]
    maps_text = """#id1 = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
#row2 = affine_map<(i, j) -> (i)>
#col2 = affine_map<(i, j) -> (i, 0)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#last3 = affine_map<(i, j, k) -> (k)>"""
    return Case("maps", maps_text, body, [a, b, row, odd, column, table, rows, ints], expected)


def views() -> Case:
    a, b = seeded(1, 4, 6), seeded(2, 4, 5)
    body = """
  %s = tensor.extract_slice %a0[1, 0] [2, 3] [2, 2] : tensor<4x6xf32> to tensor<2x3xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %o0 = linalg.exp ins(%s : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %ec = tensor.empty() : tensor<4x11xf32>
  %ex = tensor.empty() : tensor<4x6xf32>
  %x = linalg.exp ins(%a0 : tensor<4x6xf32>) outs(%ex : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c0 = tensor.insert_slice %x into %ec[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x11xf32>
  %o1 = tensor.insert_slice %a1 into %c0[0, 6] [4, 5] [1, 1] : tensor<4x5xf32> into tensor<4x11xf32>
  %f = tensor.collapse_shape %a0 [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %g = tensor.expand_shape %f [[0, 1, 2]] output_shape [2, 4, 3] : tensor<24xf32> into tensor<2x4x3xf32>
  %eg = tensor.empty() : tensor<2x4x3xf32>
  %o2 = linalg.abs ins(%g : tensor<2x4x3xf32>) outs(%eg : tensor<2x4x3xf32>) -> tensor<2x4x3xf32>"""
    expected = [np.exp(a[1:4:2, 0:6:2]), np.concatenate([np.exp(a), b], 1), np.abs(a.reshape(2, 4, 3))]
    return Case("views", "", body, [a, b], expected)


def reductions() -> Case:
    a, b = seeded(1, 5, 7, 6), seeded(2, 6, 4)
    x, w = seeded(3, 1, 3, 6, 6), seeded(4, 2, 3, 3, 3)
    body = """
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<5x6xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<5x6xf32>) -> tensor<5x6xf32>
  %o0 = linalg.reduce { arith.addf } ins(%a0 : tensor<5x7x6xf32>) outs(%f0 : tensor<5x6xf32>) dimensions = [1]
  %s = tensor.collapse_shape %a0 [[0, 1], [2]] : tensor<5x7x6xf32> into tensor<35x6xf32>
  %e1 = tensor.empty() : tensor<35x4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<35x4xf32>) -> tensor<35x4xf32>
  %o1 = linalg.matmul ins(%s, %a1 : tensor<35x6xf32>, tensor<6x4xf32>) outs(%f1 : tensor<35x4xf32>) -> tensor<35x4xf32>
  %e2 = tensor.empty() : tensor<1x2x2x2xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %o2 = linalg.conv_2d_nchw_fchw {strides = dense<2> : vector<2xi64>}
      ins(%a2, %a3 : tensor<1x3x6x6xf32>, tensor<2x3x3x3xf32>) outs(%f2 : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>"""
    expected = [a.sum(1), a.reshape(35, 6) @ b, conv(x, w, [2, 2], [1, 1], [0, 0], [0, 0], 1)]
    return Case("reductions", "", body, [a, b, x, w], expected)


# --- memplan.rowwise --------------------------------------------------------------------------------------------

SOFTMAX = """
  %{e} = tensor.empty() : {type}
  {result} = memplan.rowwise ins({input} : {type}) outs(%{e} : {type})
      row_dims = [{row}] combiners = [#memplan.combiner<max>, #memplan.combiner<sum>]
      indexing_maps = [#id{rank}, #id{rank}]
    finish {{ ^bb0(%x: f32, %max: f32, %sum: f32):
      %0 = arith.subf %x, %max : f32
      %1 = math.exp %0 : f32
      %2 = arith.divf %1, %sum : f32
      memplan.yield %2 : f32
    }} stages {{ ^bb0(%x: f32): memplan.yield %x : f32 }},
    {{ ^bb0(%x: f32, %max: f32):
      %0 = arith.subf %x, %max : f32
      %1 = math.exp %0 : f32
      memplan.yield %1 : f32 }} -> {type}"""


def rowwise() -> Case:
    warp, block, middle = seeded(1, 5, 33), seeded(2, 3, 2000), seeded(3, 2, 9, 5)
    many = seeded(4, 2, 20, 3000)
    scale, bias = seeded(5, 33), seeded(6, 33)
    body = "".join(SOFTMAX.format(e=f"e{i}", result=f"%o{i}", input=f"%a{i}", type=tensor_type(x), row=row, rank=x.ndim)
                   for i, (x, row) in enumerate([(warp, 1), (block, 1), (middle, 1), (many, 1)]))
    body += """
  %el = tensor.empty() : tensor<5x33xf32>
  %n = arith.constant 33.0 : f32
  %o4 = memplan.rowwise ins(%a0, %a4, %a5 : tensor<5x33xf32>, tensor<33xf32>, tensor<33xf32>) outs(%el : tensor<5x33xf32>)
      row_dims = [1] combiners = [#memplan.combiner<sum>, #memplan.combiner<sum>]
      indexing_maps = [#id2, #last2, #last2, #id2]
    finish { ^bb0(%x: f32, %s: f32, %b: f32, %sum: f32, %sq: f32):
      %m = arith.constant 33.0 : f32
      %eps = arith.constant 1.0e-5 : f32
      %mean = arith.divf %sum, %m : f32
      %d = arith.subf %x, %mean : f32
      %var = arith.divf %sq, %m : f32
      %v = arith.addf %var, %eps : f32
      %r = math.rsqrt %v : f32
      %0 = arith.mulf %d, %r : f32
      %1 = arith.mulf %0, %s : f32
      %2 = arith.addf %1, %b : f32
      memplan.yield %2 : f32
    } stages { ^bb0(%x: f32, %s: f32, %b: f32): memplan.yield %x : f32 },
    { ^bb0(%x: f32, %s: f32, %b: f32, %sum: f32):
      %m = arith.constant 33.0 : f32
      %mean = arith.divf %sum, %m : f32
      %d = arith.subf %x, %mean : f32
      %0 = arith.mulf %d, %d : f32
      memplan.yield %0 : f32 } -> tensor<5x33xf32>
  %er = tensor.empty() : tensor<9xf32>
  %o5 = memplan.rowwise ins(%a2 : tensor<2x9x5xf32>) outs(%er : tensor<9xf32>)
      row_dims = [0, 2] combiners = [#memplan.combiner<min>] indexing_maps = [#id3, #middle3]
    finish { ^bb0(%x: f32, %min: f32):
      %0 = arith.negf %min : f32
      memplan.yield %0 : f32
    } stages { ^bb0(%x: f32): memplan.yield %x : f32 } -> tensor<9xf32>
  %es = tensor.empty() : tensor<f32>
  %o6 = memplan.rowwise ins(%a1 : tensor<3x2000xf32>) outs(%es : tensor<f32>)
      row_dims = [0, 1] combiners = [#memplan.combiner<sum>] indexing_maps = [#id2, #none2]
    finish { ^bb0(%x: f32, %sum: f32): memplan.yield %sum : f32
    } stages { ^bb0(%x: f32):
      %0 = arith.mulf %x, %x : f32
      memplan.yield %0 : f32 } -> tensor<f32>"""
    mean = warp.mean(1, keepdims=True)
    norm = (warp - mean) / np.sqrt(((warp - mean) ** 2).mean(1, keepdims=True) + EPSILON) * scale + bias
    expected = [softmax(warp, 1), softmax(block, 1), softmax(middle, 1), softmax(many, 1), norm,
                -middle.min(axis=(0, 2)), (block.astype(np.float64) ** 2).sum().astype(np.float32)]
    maps_text = """#id2 = affine_map<(i, j) -> (i, j)>
#last2 = affine_map<(i, j) -> (j)>
#none2 = affine_map<(i, j) -> ()>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#middle3 = affine_map<(i, j, k) -> (j)>"""
    return Case("rowwise", maps_text, body, [warp, block, middle, many, scale, bias], [np.asarray(e, np.float32) for e in expected])


# --- memplan.matmul ---------------------------------------------------------------------------------------------


class Products:
    """Collects products, each with its operands, maps and epilogue."""

    def __init__(self):
        self.inputs, self.expected, self.body = [], [], ""

    def add(self, lhs, rhs, out_shape, maps_text, expected, extras=(), extra_maps="[]", epilogue="memplan.yield %acc : f32"):
        first, number = len(self.inputs), len(self.expected)
        self.inputs += [lhs, rhs, *extras]
        names = [f"%a{first + i}" for i in range(2 + len(extras))]
        out = tensor_type(np.zeros(out_shape, np.float32))
        extra_text = ""
        if extras:
            extra_text = f"extras({', '.join(names[2:])} : {', '.join(map(tensor_type, extras))})"
        arguments = "".join(f", %e{i}: f32" for i in range(len(extras)))
        self.body += f"""
  %i{number} = tensor.empty() : {out}
  %o{number} = memplan.matmul ins({names[0]}, {names[1]} : {tensor_type(lhs)}, {tensor_type(rhs)}) {extra_text}
      outs(%i{number} : {out}) indexing_maps = {maps_text} extra_maps = {extra_maps} {{
    ^bb0(%acc: f32{arguments}):
      {epilogue}
    }} -> {out}"""
        self.expected.append(np.asarray(expected, np.float32))


def mapping(dims: str, *results: str) -> str:
    return "[" + ", ".join(f"affine_map<({dims}) -> ({r})>" for r in results) + "]"


RELU = "%zero = arith.constant 0.0 : f32\n      %r = arith.maximumf {0}, %zero : f32\n      memplan.yield %r : f32"
ADD = "%s = arith.addf %acc, %e0 : f32\n      "
GELU = """%c3 = arith.constant 0.044715 : f32
      %cs = arith.constant 0.797884583 : f32
      %one = arith.constant 1.0 : f32
      %half = arith.constant 0.5 : f32
      %g0 = arith.mulf %s, %s : f32
      %g1 = arith.mulf %g0, %s : f32
      %g2 = arith.mulf %g1, %c3 : f32
      %g3 = arith.addf %s, %g2 : f32
      %g4 = arith.mulf %g3, %cs : f32
      %g5 = math.tanh %g4 : f32
      %g6 = arith.addf %g5, %one : f32
      %g7 = arith.mulf %s, %g6 : f32
      %g8 = arith.mulf %g7, %half : f32
      memplan.yield %g8 : f32"""


def matmul() -> Case:
    p = Products()
    a, b, at, bt = seeded(1, 5, 8), seeded(2, 8, 12), seeded(3, 8, 5), seeded(4, 12, 8)
    bias, residual, column = seeded(5, 12), seeded(6, 5, 12), seeded(7, 5)
    mnk = "m, n, k"
    p.add(a, b, (5, 12), mapping(mnk, "m, k", "k, n", "m, n"), a @ b)
    p.add(a, bt, (5, 12), mapping(mnk, "m, k", "n, k", "m, n"), a @ bt.T)
    p.add(at, b, (5, 12), mapping(mnk, "k, m", "k, n", "m, n"), at.T @ b)
    p.add(at, bt, (12, 5), mapping(mnk, "k, m", "n, k", "n, m"), (at.T @ bt.T).T)
    # Epilogues: those of the library, then one that it doesn't have.
    nn = mapping(mnk, "m, k", "k, n", "m, n")
    along_n, full, along_m = mapping("m, n", "n"), mapping("m, n", "m, n"), mapping("m, n", "m")
    p.add(a, b, (5, 12), nn, np.maximum(a @ b + bias, 0), [bias], along_n, ADD + RELU.format("%s"))
    p.add(a, b, (5, 12), nn, gelu_tanh(a @ b + bias), [bias], along_n, ADD + GELU)
    p.add(a, b, (5, 12), nn, a @ b + residual, [residual], full, ADD + "memplan.yield %s : f32")
    p.add(a, b, (5, 12), nn, 0.5 * (a @ b) + 2 * residual + bias, [bias, residual], mapping("m, n", "n", "m, n"),
          """%h = arith.constant 0.5 : f32
      %t = arith.constant 2.0 : f32
      %x = arith.mulf %acc, %h : f32
      %y = arith.mulf %e1, %t : f32
      %z = arith.addf %x, %y : f32
      %s = arith.addf %z, %e0 : f32
      memplan.yield %s : f32""")
    p.add(a, b, (5, 12), nn, np.exp(a @ b * column[:, None]), [column], along_m,
          "%x = arith.mulf %acc, %e0 : f32\n      %y = math.exp %x : f32\n      memplan.yield %y : f32")
    p.add(a, b, (5, 12), nn, np.maximum(a @ b / 3 + residual, 0), [residual], full,
          """%t = arith.constant 3.0 : f32
      %x = arith.divf %acc, %t : f32
      %s = arith.addf %x, %e0 : f32
      """ + RELU.format("%s"))
    # Bias along the rows of a swapped product.
    p.add(at, bt, (12, 5), mapping(mnk, "k, m", "n, k", "n, m"), (at.T @ bt.T + bias).T, [bias], mapping("n, m", "n"),
          ADD + "memplan.yield %s : f32")
    # Batches: plain, shared rhs (one tall matrix), heads in place, two that don't merge.
    ba, bb = seeded(8, 3, 5, 8), seeded(9, 3, 8, 12)
    p.add(ba, bb, (3, 5, 12), mapping("b, " + mnk, "b, m, k", "b, k, n", "b, m, n"), ba @ bb)
    p.add(ba, b, (3, 5, 12), mapping("b, " + mnk, "b, m, k", "k, n", "b, m, n"), ba @ b + bias, [bias],
          mapping("b, m, n", "n"), ADD + "memplan.yield %s : f32")
    q, k = seeded(10, 2, 6, 3, 8), seeded(11, 2, 6, 3, 8)  # batch, position, head, feature
    p.add(q, k, (2, 3, 6, 6), mapping("b, h, m, n, k", "b, m, h, k", "b, n, h, k", "b, h, m, n"),
          np.einsum("bmhk,bnhk->bhmn", q, k))
    v = seeded(12, 2, 3, 6, 8)
    s = seeded(13, 2, 3, 6, 6)
    p.add(s, v, (2, 6, 3, 8), mapping("b, h, m, n, k", "b, h, m, k", "b, h, k, n", "b, m, h, n"),
          np.einsum("bhmk,bhkn->bmhn", s, v))
    # A row, a column, and a layout that no GEMM reads: m and k are both strided in memory.
    p.add(a[:1].copy(), b, (1, 12), nn, a[:1] @ b)
    p.add(a, b[:, :1].copy(), (5, 1), nn, a @ b[:, :1])
    odd = seeded(14, 5, 3, 8, 3)
    p.add(odd, bb, (3, 5, 3, 12), mapping("b, c, m, n, k", "m, b, k, c", "b, k, n", "b, m, c, n"),
          np.einsum("mbkc,bkn->bmcn", odd, bb))
    empty = np.zeros((5, 0), np.float32)
    p.add(empty, np.zeros((0, 12), np.float32), (5, 12), nn, np.broadcast_to(np.maximum(bias, 0), (5, 12)), [bias], along_n,
          ADD + RELU.format("%s"))
    return Case("matmul", "", p.body, p.inputs, p.expected)


# --- memplan.conv -----------------------------------------------------------------------------------------------


def conv(x, w, strides, dilations, begin, end, groups):
    """Plain loops over filters, kernel and positions, of any spatial rank."""
    rank = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(begin, end)])
    out = [(x.shape[2 + d] - (w.shape[2 + d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(rank)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_group, filters = w.shape[1], w.shape[0] // groups
    for f in range(w.shape[0]):
        channels = x[:, f // filters * per_group:][:, :per_group]
        for tap in np.ndindex(*w.shape[2:]):
            window = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilations, out, strides))
            y[:, f] += np.tensordot(channels[(slice(None), slice(None), *window)], w[(f, slice(None), *tap)], (1, 0))
    return y.astype(np.float32)


def convolutions() -> Case:
    inputs, expected, body = [], [], ""

    def add(x, w, strides, dilations, begin, end, groups, extras=(), extra_maps="[]", epilogue="memplan.yield %acc : f32",
            after=lambda y: y):
        nonlocal body
        first, number = len(inputs), len(expected)
        y = after(conv(x, w, strides, dilations, begin, end, groups)).astype(np.float32)
        inputs.extend([x, w, *extras])
        expected.append(y)
        extra_text = ""
        if extras:
            names = ", ".join(f"%a{first + 2 + i}" for i in range(len(extras)))
            extra_text = f"extras({names} : {', '.join(map(tensor_type, extras))})"
        arguments = "".join(f", %e{i}: f32" for i in range(len(extras)))
        body += f"""
  %i{number} = tensor.empty() : {tensor_type(y)}
  %o{number} = memplan.conv ins(%a{first}, %a{first + 1} : {tensor_type(x)}, {tensor_type(w)}) {extra_text}
      outs(%i{number} : {tensor_type(y)}) strides = {strides} dilations = {dilations} pads_begin = {begin} pads_end = {end}
      groups = {groups} extra_maps = {extra_maps} {{
    ^bb0(%acc: f32{arguments}):
      {epilogue}
    }} -> {tensor_type(y)}"""

    bias, residual, per_image = seeded(3, 6), seeded(4, 2, 6, 4, 5), seeded(5, 2, 6, 1, 1)
    row = seeded(6, 5)
    add(seeded(1, 2, 4, 8, 9), seeded(2, 6, 4, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1], 1,
        [bias, residual, per_image, row],
        mapping("n, f, h, w", "f", "n, f, h, w", "n, f, 0, 0", "w"),
        "%0 = arith.addf %acc, %e0 : f32\n      %1 = arith.mulf %0, %e2 : f32\n      %2 = arith.addf %1, %e1 : f32\n"
        "      %3 = arith.addf %2, %e3 : f32\n      memplan.yield %3 : f32",
        lambda y: (y + bias[:, None, None]) * per_image + residual + row)
    add(seeded(7, 1, 6, 7, 7), seeded(8, 6, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], 6)
    add(seeded(9, 1, 6, 7, 6), seeded(10, 4, 3, 3, 2), [1, 2], [2, 1], [2, 0], [2, 1], 2)
    add(seeded(11, 2, 3, 10), seeded(12, 5, 3, 4), [3], [2], [1], [0], 1)
    add(seeded(13, 1, 2, 4, 5, 6), seeded(14, 3, 2, 2, 3, 3), [1, 2, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1], 1)
    return Case("convolutions", "", body, inputs, expected)


# --- memplan.reduce_window --------------------------------------------------------------------------------------


def window(x, kind, out, size, strides, dilations, begin, end):
    y = np.zeros(out)
    for at in np.ndindex(*out):
        values, places = [], 0
        for tap in np.ndindex(*size):
            where = [a * s + t * d - b for a, s, t, d, b in zip(at, strides, tap, dilations, begin)]
            places += all(-b <= p < n + e for p, n, b, e in zip(where, x.shape, begin, end))
            if all(0 <= p < n for p, n in zip(where, x.shape)):
                values.append(x[tuple(where)])
        total = float(np.sum(values)) if values else 0.0
        y[at] = {"sum": total, "max": max(values) if values else -np.inf, "average": total / max(1, len(values)),
                 "average_include_pad": total / max(1, places)}[kind]
    return y.astype(np.float32)


def windows() -> Case:
    x = seeded(1, 2, 3, 7, 9)
    inputs, expected, body = [x], [], ""
    settings = [
        ("max", (2, 3, 4, 5), (1, 1, 3, 3), (1, 1, 2, 2), (1, 1, 1, 1), (0, 0, 1, 1), (0, 0, 1, 1)),
        ("average", (2, 3, 4, 5), (1, 1, 3, 3), (1, 1, 2, 2), (1, 1, 1, 1), (0, 0, 1, 1), (0, 0, 1, 1)),
        ("average_include_pad", (2, 3, 4, 5), (1, 1, 3, 2), (1, 1, 2, 2), (1, 1, 1, 1), (0, 0, 1, 0), (0, 0, 1, 1)),
        ("max", (2, 3, 3, 4), (1, 1, 2, 2), (1, 1, 3, 2), (1, 1, 2, 3), (0, 0, 0, 1), (0, 0, 0, 0)),
        ("average", (2, 3, 4, 5), (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 1, 1), (0, 0, 0, 0), (0, 0, 0, 0)),  # hangs over
        ("average", (2, 3, 1, 1), (1, 1, 7, 9), (1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0), (0, 0, 0, 0)),
    ]
    for number, (kind, out, size, strides, dilations, begin, end) in enumerate(settings):
        y = window(x, kind, out, size, strides, dilations, begin, end)
        expected.append(y)
        lists = [list(v) for v in (size, strides, dilations, begin, end)]
        body += """
  %i{0} = tensor.empty() : {2}
  %o{0} = memplan.reduce_window <{1}> ins(%a0 : {3}) outs(%i{0} : {2})
      window = {4} strides = {5} dilations = {6} pads_begin = {7} pads_end = {8} extra_maps = []
    map {{ ^bb0(%e: f32): memplan.yield %e : f32 }} epilogue {{ ^bb0(%acc: f32): memplan.yield %acc : f32 }} -> {2}""".format(
            number, kind, tensor_type(y), tensor_type(x), *lists)
    # Local response normalization: squares over five channels, then the input again.
    body += """
  %in = tensor.empty() : tensor<2x3x7x9xf32>
  %o6 = memplan.reduce_window <sum> ins(%a0 : tensor<2x3x7x9xf32>) extras(%a0 : tensor<2x3x7x9xf32>)
      outs(%in : tensor<2x3x7x9xf32>)
      window = [1, 5, 1, 1] strides = [1, 1, 1, 1] dilations = [1, 1, 1, 1] pads_begin = [0, 2, 0, 0] pads_end = [0, 2, 0, 0]
      extra_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>]
    map { ^bb0(%e: f32):
      %0 = arith.mulf %e, %e : f32
      memplan.yield %0 : f32
    } epilogue { ^bb0(%acc: f32, %e: f32):
      %0 = arith.mulf %e, %acc : f32
      memplan.yield %0 : f32 } -> tensor<2x3x7x9xf32>"""
    squares = window(x * x, "sum", x.shape, (1, 5, 1, 1), (1,) * 4, (1,) * 4, (0, 2, 0, 0), (0, 2, 0, 0))
    expected.append((x * squares).astype(np.float32))
    return Case("windows", "", body, inputs, expected)


CASES = [maps, views, reductions, rowwise, matmul, convolutions, windows]
