// RUN: memplan-opt %s --emit=cuda -q -o %t/m
// RUN: FileCheck %s < %t/m.cu
// RUN: g++ -std=c++17 -Wall -Wextra -Werror -x c++ -I %runtime-include -fsyntax-only %t/m.cu

// Nothing is launched for results of size zero, and nothing is left of their
// kernels; an empty sum has a result, though, which is zero.
// CHECK-NOT: compute_mul
// CHECK: rows_sum
// CHECK: // [0] sum
// CHECK-NOT: // [1]
func.func @main(%x: memref<0x4xf32>, %y: memref<0x4xf32> {bufferize.result}, %z: memref<4xf32> {bufferize.result},
                %v: memref<1x4x8x8xf32>, %w: memref<4x4x1x1xf32>, %p: memref<1x4x0x4xf32> {bufferize.result}) {
  linalg.mul ins(%x, %x : memref<0x4xf32>, memref<0x4xf32>) outs(%y : memref<0x4xf32>) loc("mul")
  memplan.rowwise ins(%x : memref<0x4xf32>) outs(%z : memref<4xf32>) row_dims = [0]
      combiners = [#memplan.combiner<sum>]
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]
    finish {
    ^bb0(%e: f32, %sum: f32):
      memplan.yield %sum : f32
    } stages {
    ^bb0(%e: f32):
      memplan.yield %e : f32
    } loc("sum")
  memplan.conv ins(%v, %w : memref<1x4x8x8xf32>, memref<4x4x1x1xf32>) outs(%p : memref<1x4x0x4xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1
      pool <average> window = [16, 2] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } loc("no window")
  return
}
