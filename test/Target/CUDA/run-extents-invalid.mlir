// RUN: not memplan-opt %s --emit=cuda -q -o %t/never 2>&1 | FileCheck %s
// RUN: not ls %t/never.cu

// There is no output 1.
// CHECK: error: memplan.run_dim = [1, 0] names no dim of an output, or its argument is no scalar i64
func.func @main(%x: memref<8xf32>, %y: memref<8xf32> {bufferize.result},
                %n: memref<i64> {bufferize.result, memplan.run_dim = [1, 0]}) {
  %five = arith.constant 5 : i64
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  linalg.fill ins(%five : i64) outs(%n : memref<i64>)
  return
}
