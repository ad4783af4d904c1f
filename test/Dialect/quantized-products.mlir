// RUN: memplan-opt %s | memplan-opt | FileCheck %s

// Integers with zero points: one of the input, one a feature.
// CHECK-LABEL: @conv
// CHECK: memplan.conv
// CHECK-SAME: unsigned_input
// CHECK-SAME: input_zero(%{{.*}} : tensor<i8>)
// CHECK-SAME: filter_zero(%{{.*}} : tensor<4xi8>)
func.func @conv(%x: tensor<1x2x5xi8>, %w: tensor<4x2x3xi8>, %xz: tensor<i8>, %wz: tensor<4xi8>) -> tensor<1x4x3xf32> {
  %e = tensor.empty() : tensor<1x4x3xf32>
  %y = memplan.conv ins(%x, %w : tensor<1x2x5xi8>, tensor<4x2x3xi8>) outs(%e : tensor<1x4x3xf32>)
      unsigned_input input_zero(%xz : tensor<i8>) filter_zero(%wz : tensor<4xi8>)
      strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
  ^bb0(%acc: i32):
    %0 = arith.sitofp %acc : i32 to f32
    memplan.yield %0 : f32
  } -> tensor<1x4x3xf32>
  return %y : tensor<1x4x3xf32>
}

// Floats times integers; a zero point a column.
// CHECK-LABEL: @matmul
// CHECK: memplan.matmul
// CHECK-SAME: unsigned_rhs rhs_zero(%{{.*}} : tensor<6xi8>)
func.func @matmul(%a: tensor<3x5xf32>, %b: tensor<5x6xi8>, %z: tensor<6xi8>) -> tensor<3x6xf32> {
  %e = tensor.empty() : tensor<3x6xf32>
  %y = memplan.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x6xi8>) outs(%e : tensor<3x6xf32>)
      unsigned_rhs rhs_zero(%z : tensor<6xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (n)>]
      extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<3x6xf32>
  return %y : tensor<3x6xf32>
}
