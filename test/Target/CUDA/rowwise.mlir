// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// 100 elements a row: a warp. 12 rows, 8 warps a block: 2 blocks.
// CHECK: // One row a warp.
// CHECK-NEXT: __global__ void rows_sum(
// CHECK: r0 = warpReduce<SumOp>(r0);
// CHECK-NEXT: if (threadIdx.x == 0)
// CHECK-NEXT: y[row] = compute_div(r0);
// 5000: a block.
// CHECK: // One row a block.
// CHECK: r0 = blockReduce<MaxOp>(r0);
// CHECK-NEXT: for (unsigned j = threadIdx.x; j < length; j += blockDim.x) {
// CHECK-NEXT: y[row * y_d0 + j] = compute_sub(x0[row * x0_d0 + j], r0);
// 4: too few to share.
// CHECK: // One row a thread.
// CHECK: for (unsigned j = 0; j < length; ++j) {

// CHECK: launchWithBarriers("mean", rows_sum, dim3(2), dim3(32, 8), run.stream, x0, y, 12,
// CHECK: launchWithBarriers("shift", rows_max, dim3(3), dim3(256), run.stream, x0, y,
// CHECK: launch("short", rows_sum_2, dim3(1), dim3(256), run.stream, x0, y, 7,
func.func @main(%a: memref<12x100xf32>, %b: memref<3x5000xf32>, %c: memref<7x4xf32>,
                %x: memref<12xf32> {bufferize.result}, %y: memref<3x5000xf32> {bufferize.result},
                %z: memref<7xf32> {bufferize.result}) {
  memplan.rowwise ins(%a : memref<12x100xf32>) outs(%x : memref<12xf32>)
      row_dims = [1] combiners = [#memplan.combiner<sum>] indexing_maps = [#id, #row]
    finish {
    ^bb0(%e: f32, %sum: f32):
      %n = arith.constant 100.0 : f32
      %0 = arith.divf %sum, %n : f32
      memplan.yield %0 : f32
    } stages {
    ^bb0(%e: f32):
      memplan.yield %e : f32
    } loc("mean")
  memplan.rowwise ins(%b : memref<3x5000xf32>) outs(%y : memref<3x5000xf32>)
      row_dims = [1] combiners = [#memplan.combiner<max>] indexing_maps = [#id, #id]
    finish {
    ^bb0(%e: f32, %max: f32):
      %0 = arith.subf %e, %max : f32
      memplan.yield %0 : f32
    } stages {
    ^bb0(%e: f32):
      memplan.yield %e : f32
    } loc("shift")
  memplan.rowwise ins(%c : memref<7x4xf32>) outs(%z : memref<7xf32>)
      row_dims = [1] combiners = [#memplan.combiner<sum>] indexing_maps = [#id, #row]
    finish {
    ^bb0(%e: f32, %sum: f32):
      memplan.yield %sum : f32
    } stages {
    ^bb0(%e: f32):
      memplan.yield %e : f32
    } loc("short")
  return
}
