// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// Windows along the channels: a block holds 32 lines of 7 elements, 45 elements
// apart; 2 * 45 = 90 lines are 3 blocks. The result goes over the input, which
// the epilogue reads too, at its own element. An average counts what is inside.
// CHECK: __global__ void window_average_mul_lines(
// CHECK: __shared__ float held[7][32];
// CHECK: held[j][threadIdx.x] = compute_{{.*}}(x[
// CHECK: __syncthreads();
// CHECK: const int at = j - 1 + w;
// CHECK-NEXT: if (at < 0 || at >= 7)
// CHECK-NEXT: continue;
// CHECK-NEXT: acc = SumOp::combine(acc, held[at][threadIdx.x]);
// CHECK-NEXT: ++count;
// CHECK: launchWithBarriers("lines", window_average_mul_lines, dim3(3), dim3(32, 8),
func.func @main(%y: memref<2x7x5x9xf32> {bufferize.result}) {
  memplan.reduce_window <average> ins(%y : memref<2x7x5x9xf32>) extras(%y : memref<2x7x5x9xf32>) outs(%y : memref<2x7x5x9xf32>)
      window = [1, 3, 1, 1] strides = [1, 1, 1, 1] dilations = [1, 1, 1, 1]
      pads_begin = [0, 1, 0, 0] pads_end = [0, 1, 0, 0] extra_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>]
    map {
    ^bb0(%e: f32):
      %0 = arith.mulf %e, %e : f32
      memplan.yield %0 : f32
    } epilogue {
    ^bb0(%acc: f32, %e: f32):
      %0 = arith.mulf %acc, %e : f32
      memplan.yield %0 : f32
    } loc("lines")
  return
}
