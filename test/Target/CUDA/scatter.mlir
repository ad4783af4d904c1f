// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// The data is copied first. Then a thread makes the three updates of a column
// in order: 4 columns, each in a loop over axis 0 of the updates.
// CHECK: __global__ void scatter_add(
// CHECK: for (unsigned r0 = 0; r0 < extent_r0; ++r0) {
// CHECK-NEXT: int64_t at0 = index0[
// CHECK-NEXT: at0 += at0 < 0 ? size0 : 0;
// CHECK-NEXT: if (at0 >= 0 && at0 < size0) {
// CHECK: y[place] = compute_add(y[place], u[
// CHECK: launch("scattered", map_copy, dim3(1), dim3(256)
// CHECK: launch("scattered", scatter_add, dim3(1), dim3(256), run.stream, 4, y, u, index0,

func.func @main(%x: memref<8x4xf32>, %u: memref<3x4xf32>, %i: memref<3x4xi64>,
                %y: memref<8x4xf32> {bufferize.result}) {
  memplan.scatter ins(%x, %u : memref<8x4xf32>, memref<3x4xf32>)
      indices(%i : memref<3x4xi64>) outs(%y : memref<8x4xf32>)
      axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i, j)>] {
  ^bb0(%old: f32, %update: f32):
    %0 = arith.addf %old, %update : f32
    memplan.yield %0 : f32
  } loc("scattered")
  return
}
