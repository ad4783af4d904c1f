// RUN: %mlir-opt --load-pass-plugin=%plugin --load-dialect-plugin=%plugin %s \
// RUN:   --pass-pipeline='builtin.module(memplan-pipeline{alignment=64})' | FileCheck %s
// RUN: memplan-opt %s --memplan-pipeline=alignment=64 | FileCheck %s
// RUN: memplan-opt %s --memplan-pipeline="alignment=64 no-reuse" | FileCheck %s --check-prefix=NOREUSE

// The whole way in stock mlir-opt, from tensors to a verified arena. Two buffers
// of 2 x 3 floats, 24 bytes each at multiples of 64, live at once: the first
// product is read by the second, whose result the third reads.
// CHECK-LABEL: @main
// +24: 64 is where the second begins, 64 + 24 = 88.
// CHECK-SAME: #memplan.arena<bytes = 88, lower_bound = 88,
// CHECK: memref.view {{.*}}offset = 0,
// CHECK: memplan.matmul
// CHECK: memref.view {{.*}}offset = 64,
// CHECK: memplan.matmul
// CHECK: memplan.matmul {{.*}} outs(%arg2 :
// NOREUSE: #memplan.arena<bytes = 88, lower_bound = 88,
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>) -> tensor<2x3xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %a = linalg.matmul ins(%x, %w : tensor<2x3xf32>, tensor<3x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = linalg.matmul ins(%a, %w : tensor<2x3xf32>, tensor<3x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%b, %w : tensor<2x3xf32>, tensor<3x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}
