// RUN: memplan-opt %s --memplan-raise-linalg --split-input-file | FileCheck %s

// Loops are put into the order (batch, m, n, k). Of the two dims that only the
// left operand has, loops 2 and 3, the last becomes the row.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d0, d1)>
// CHECK-LABEL: @contract
// CHECK-NOT: linalg.contract
// CHECK: memplan.matmul ins(%arg0, %arg1 : tensor<2x4x8xf32>, tensor<6x8xf32>)
// CHECK-SAME: indexing_maps = [#[[A]], #[[B]], #[[OUT]]]
func.func @contract(%a: tensor<2x4x8xf32>, %b: tensor<6x8xf32>) -> tensor<6x4x2xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x2xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x4x2xf32>) -> tensor<6x4x2xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(k, n, m, b) -> (b, m, k)>, affine_map<(k, n, m, b) -> (n, k)>, affine_map<(k, n, m, b) -> (n, m, b)>],
    iterator_types = ["reduction", "parallel", "parallel", "parallel"]}
    ins(%a, %b : tensor<2x4x8xf32>, tensor<6x8xf32>) outs(%f : tensor<6x4x2xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<6x4x2xf32>
  return %r : tensor<6x4x2xf32>
}

// -----

// What accumulates onto something else than zeros stays.
// CHECK-LABEL: @accumulate
// CHECK: linalg.matmul
func.func @accumulate(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @softmax
// CHECK: memplan.rowwise ins(%arg0 : tensor<4x8x2xf32>)
// CHECK-SAME: row_dims = [1] combiners = [#memplan.combiner<max>, #memplan.combiner<sum>]
func.func @softmax(%a: tensor<4x8x2xf32>) -> tensor<4x8x2xf32> {
  %e = tensor.empty() : tensor<4x8x2xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x8x2xf32>) outs(%e : tensor<4x8x2xf32>) -> tensor<4x8x2xf32>
  return %r : tensor<4x8x2xf32>
}
