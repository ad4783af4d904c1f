// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// Bias along the filters and a residual, walked as the output is: its image
// stride is 4 * 8 * 8 = 256, its channel stride 64.
// CHECK: struct epilogue_add {
// CHECK-NEXT: const float *e0;
// CHECK-NEXT: const float *e1;
// CHECK-NEXT: int e1_n;
// CHECK-NEXT: int e1_f;
// CHECK-NEXT: __device__ float operator()(float acc, int n, int f, int p) const {
// CHECK-NEXT: return compute_add(acc, e0[f], e1[n * e1_n + f * e1_f + p]);

// Two spatial dims are lifted to three.
// CHECK: conv("c", ConvShape{2, 3, 4, 1, /*in=*/{1, 8, 8}, /*kernel=*/{1, 3, 3},
// CHECK-NEXT: /*out=*/{1, 8, 8}, /*stride=*/{1, 1, 1}, /*dilation=*/{1, 1, 1}, /*pad=*/{0, 1, 1},
// CHECK-NEXT: /*strides of x and y=*/192, 64, 256, 64}, x, w, y, epilogue_add{e0, e1, 256, 64},
// CHECK-NEXT: run.stream));
func.func @main(%x: memref<2x3x8x8xf32>, %w: memref<4x3x3x3xf32>, %b: memref<4xf32>, %r: memref<2x4x8x8xf32>,
                %y: memref<2x4x8x8xf32> {bufferize.result}) {
  memplan.conv ins(%x, %w : memref<2x3x8x8xf32>, memref<4x3x3x3xf32>)
      extras(%b, %r : memref<4xf32>, memref<2x4x8x8xf32>) outs(%y : memref<2x4x8x8xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [1, 1] groups = 1
      extra_maps = [affine_map<(n, f, h, w) -> (f)>, affine_map<(n, f, h, w) -> (n, f, h, w)>] {
  ^bb0(%acc: f32, %e0: f32, %e1: f32):
    %0 = arith.addf %acc, %e0 : f32
    %1 = arith.addf %0, %e1 : f32
    memplan.yield %1 : f32
  } loc("c")
  return
}
