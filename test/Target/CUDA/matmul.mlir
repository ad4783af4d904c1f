// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// A bias along n and relu are the library's; the batch shares its weights, so
// that 2 matrices of 3 rows are one of 6.
// CHECK: // [0] fc
// CHECK: run.model.gemms[0].run(run.stream, a, b, y, e0)
// Heads stay where they are: rows of 3 * 8 = 24 elements, heads 8 apart, and
// the images, which don't merge with the heads, are two calls.
// CHECK: // [1] scores
// CHECK: run.model.gemms[1].run(run.stream, a, b, y)
// An image is 4 positions * 24 = 96 elements; its scores are 3 * 4 * 4 = 48.
// CHECK: // [2] scores
// CHECK: run.model.gemms[1].run(run.stream, a + 96, b + 96, y + 48)

// CHECK: model.gemms[0].create(model.gemmContext, "fc", GemmShape{/*m n k=*/6, 16, 8,
// CHECK-NEXT: /*transposed=*/false, true, /*rows of a b y=*/8, 8, 16,
// CHECK-SAME: /*batch=*/1, 0, 0, 0, /*c=*/0, 0},
// CHECK-NEXT: GemmEpilogue::BiasRelu, /*usesC=*/false)
// CHECK: model.gemms[1].create(model.gemmContext, "scores", GemmShape{/*m n k=*/4, 4, 8,
// CHECK-NEXT: /*transposed=*/false, true, /*rows of a b y=*/24, 24, 4,
// CHECK-SAME: /*batch=*/3, 8, 8, 16,
func.func @main(%x: memref<2x3x8xf32>, %w: memref<16x8xf32>, %bias: memref<16xf32>, %q: memref<2x4x3x8xf32>,
                %k: memref<2x4x3x8xf32>, %y: memref<2x3x16xf32> {bufferize.result},
                %s: memref<2x3x4x4xf32> {bufferize.result}) {
  memplan.matmul ins(%x, %w : memref<2x3x8xf32>, memref<16x8xf32>) extras(%bias : memref<16xf32>)
      outs(%y : memref<2x3x16xf32>)
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (n, k)>,
                       affine_map<(b, m, n, k) -> (b, m, n)>]
      extra_maps = [affine_map<(b, m, n) -> (n)>] {
  ^bb0(%acc: f32, %e: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.addf %acc, %e : f32
    %1 = arith.maximumf %0, %zero : f32
    memplan.yield %1 : f32
  } loc("fc")
  memplan.matmul ins(%q, %k : memref<2x4x3x8xf32>, memref<2x4x3x8xf32>) outs(%s : memref<2x3x4x4xf32>)
      indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, n, h, k)>,
                       affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
      extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } loc("scores")
  return
}
