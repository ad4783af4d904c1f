// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// The residual lies where the result goes: it is C, and y is D of the same call.
// CHECK: .run(run.stream, a, b, y, nullptr, 1.0f, e0, 1.0f)
// CHECK-NOT: launch(
// A factor of 0 is not left to the call, which would not read the operand: what
// isn't finite has a product with it.
// CHECK: .run(run.stream, a, b, y))
// CHECK: launch("zero times",
func.func @main(%a: memref<8x16xf32>, %b: memref<16x16xf32>, %y: memref<8x16xf32> {bufferize.result},
                %r: memref<8x16xf32>, %z: memref<8x16xf32> {bufferize.result}) {
  memplan.matmul ins(%a, %b : memref<8x16xf32>, memref<16x16xf32>) extras(%y : memref<8x16xf32>) outs(%y : memref<8x16xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [affine_map<(m, n) -> (m, n)>] {
  ^bb0(%acc: f32, %e: f32):
    %0 = arith.addf %acc, %e : f32
    memplan.yield %0 : f32
  } loc("added")
  memplan.matmul ins(%a, %b : memref<8x16xf32>, memref<16x16xf32>) extras(%r : memref<8x16xf32>) outs(%z : memref<8x16xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [affine_map<(m, n) -> (m, n)>] {
  ^bb0(%acc: f32, %e: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.mulf %e, %zero : f32
    %1 = arith.addf %acc, %0 : f32
    memplan.yield %1 : f32
  } loc("zero times")
  return
}
