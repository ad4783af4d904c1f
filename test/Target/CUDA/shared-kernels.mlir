// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// Two shapes of one computation are one kernel, launched twice: 16 elements are
// 4 threads of 4, 1024 are 256.
// CHECK-COUNT-1: __global__
// CHECK-NOT: __global__
// CHECK: launch("small", map_exp, dim3(1), dim3(256), run.stream, 4, x0, y)
// CHECK: launch("large", map_exp, dim3(1), dim3(256), run.stream, 256, x0, y)
func.func @main(%a: memref<4x4xf32>, %b: memref<32x32xf32>, %c: memref<4x4xf32> {bufferize.result},
                %d: memref<32x32xf32> {bufferize.result}) {
  linalg.exp ins(%a : memref<4x4xf32>) outs(%c : memref<4x4xf32>) loc("small")
  linalg.exp ins(%b : memref<32x32xf32>) outs(%d : memref<32x32xf32>) loc("large")
  return
}
