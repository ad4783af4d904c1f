// RUN: not memplan-opt %s --emit=cuda -q -o %t/never 2>&1 | FileCheck %s
// RUN: not ls %t/never.cu

// Nothing is written.
func.func @main(%x: memref<4xf32>, %h: memref<4xi4>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  // CHECK: error: argument 1 of type 'memref<4xi4>' is unsupported by the CUDA target
  memref.store %f, %y[%c0] : memref<4xf32>
  return
}
