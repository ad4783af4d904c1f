// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// Padded by 1 in h, not in w, where no window leaves the input and nothing is
// tested: (3 - 1) * 2 + 2 - 1 = 5 < 6.
// CHECK: __global__ void window_average(
// CHECK: const int origin2 = int(d1) * 2 - 1;
// CHECK-NEXT: const int origin3 = int(d2) * 2;
// CHECK-NEXT: int count = 0;
// CHECK-NEXT: float acc = SumOp::identity<float>();
// CHECK: for (int w2 = 0; w2 < 3; ++w2) {
// CHECK-NEXT: const int at2 = origin2 + w2;
// CHECK-NEXT: if (at2 < 0 || at2 >= size2)
// CHECK-NEXT: continue;
// CHECK-NEXT: for (int w3 = 0; w3 < 2; ++w3) {
// CHECK-NEXT: const int at3 = origin3 + w3;
// CHECK-NEXT: acc = SumOp::combine(acc, x[
// CHECK-NEXT: ++count;
// CHECK: if (count > 0)
// CHECK-NEXT: acc /= float(count);
// Images and channels are one dim: 2 * 4 * 3 * 3 = 72 results.
// CHECK: launch("pool", window_average, dim3(1), dim3(256), run.stream, 72, FastDiv(3),
func.func @main(%x: memref<2x4x6x6xf32>, %y: memref<2x4x3x3xf32> {bufferize.result}) {
  memplan.reduce_window <average> ins(%x : memref<2x4x6x6xf32>) outs(%y : memref<2x4x3x3xf32>)
      window = [1, 1, 3, 2] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1]
      pads_begin = [0, 0, 1, 0] pads_end = [0, 0, 0, 0] extra_maps = []
    map {
    ^bb0(%e: f32):
      memplan.yield %e : f32
    } epilogue {
    ^bb0(%acc: f32):
      memplan.yield %acc : f32
    } loc("pool")
  return
}
