// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// The residual lies where the result goes: it is C, and y is D of the same call.
// CHECK: .run(run.stream, a, b, y, nullptr, 1.0f, e0, 1.0f)
// CHECK-NOT: launch(
func.func @main(%a: memref<8x16xf32>, %b: memref<16x16xf32>, %y: memref<8x16xf32> {bufferize.result}) {
  memplan.matmul ins(%a, %b : memref<8x16xf32>, memref<16x16xf32>) extras(%y : memref<8x16xf32>) outs(%y : memref<8x16xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [affine_map<(m, n) -> (m, n)>] {
  ^bb0(%acc: f32, %e: f32):
    %0 = arith.addf %acc, %e : f32
    memplan.yield %0 : f32
  } loc("added")
  return
}
