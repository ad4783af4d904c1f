// RUN: memplan-opt %s --memplan-protect-inputs | FileCheck %s
// RUN: memplan-opt %s --memplan-bufferize-pipeline | FileCheck %s --check-prefix=BUF

// CHECK-LABEL: @main(%arg0: tensor<4xf32> {bufferization.writable = false})
// The input is updated in a buffer of the caller's output, never in place.
// BUF-LABEL: @main(%arg0: memref<4xf32>, %arg1: memref<4xf32> {bufferize.result})
// BUF: memref.copy %arg0, %arg1
// BUF: memref.store %{{.*}}, %arg1
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 1.0 : f32
  %i = arith.constant 2 : index
  %r = tensor.insert %c into %x[%i] : tensor<4xf32>
  return %r : tensor<4xf32>
}

// Whoever says otherwise is believed.
// CHECK-LABEL: @scratch(%arg0: tensor<4xf32> {bufferization.writable = true})
func.func @scratch(%x: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
