// RUN: memplan-opt %s -split-input-file --memplan-pipeline | FileCheck %s

// Column 1 of the matrix, not its row 1: 4 elements that are 4 apart, from element 1 on.
// CHECK-LABEL: func.func @column
// CHECK: memref.subview %{{.*}}[0, 0, 1] [1, 4, 1] [1, 1, 1]
// CHECK-SAME: to memref<1x4xf32, strided<[16, 4], offset: 1>>
func.func @column(%x: tensor<1x4x4xf32>) -> tensor<1x4xf32> {
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<1x4xf32>
  %s = tensor.extract_slice %x[0, 0, %c1] [1, 4, 1] [1, 1, 1] : tensor<1x4x4xf32> to tensor<1x4xf32>
  %y = linalg.tanh ins(%s : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// -----

// The only trip of a loop makes the offset 0.
// CHECK-LABEL: func.func @only_trip
// CHECK: memref.subview %{{.*}}[0, 0, 0] [1, 6, 1] [1, 1, 1]
// CHECK-SAME: to memref<1x6xf32, strided<[6, 1]>>
func.func @only_trip(%x: tensor<1x6x1xf32>) -> tensor<1x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<1x6xf32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%old = %e) -> tensor<1x6xf32> {
    %s = tensor.extract_slice %x[0, 0, %i] [1, 6, 1] [1, 1, 1] : tensor<1x6x1xf32> to tensor<1x6xf32>
    %y = linalg.tanh ins(%s : tensor<1x6xf32>) outs(%old : tensor<1x6xf32>) -> tensor<1x6xf32>
    scf.yield %y : tensor<1x6xf32>
  }
  return %r : tensor<1x6xf32>
}
