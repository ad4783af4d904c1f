// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// What a convolution does besides is in its shape and in the function's name.
// The epilogue's residual has the extents before pooling, 8x8, and is read in
// the plain order of features: 4 * 64 = 256 between images, 64 between features.
// CHECK: conv<MaxPool<4>>("pooled", ConvShape{1, 4, 4, 2, /*in=*/{1, 8, 8},
// CHECK-NEXT: /*kernel=*/{1, 1, 1}, /*out=*/{1, 8, 8},
// CHECK-NEXT: /*strides of x and y=*/256, 64, 64, 16, /*pool=*/{1, 2, 2},
// CHECK-NEXT: /*interleaved=*/true, /*upsample=*/{1, 1, 1}}, x, w, y, epilogue_add{e0, 64}, run.stream)
// 4x2 elements for one of 2x4 are 8x8.
// CHECK: convUpsampled("upsampled", ConvShape{1, 4, 4, 2, /*in=*/{1, 2, 4},
// CHECK-NEXT: /*kernel=*/{1, 1, 1}, /*out=*/{1, 8, 8},
// CHECK-NEXT: /*pool=*/{1, 1, 1},
// CHECK-NEXT: /*interleaved=*/false, /*upsample=*/{1, 4, 2}}
func.func @main(%x: memref<1x4x8x8xf32>, %v: memref<1x4x2x4xf32>, %w: memref<4x2x1x1xf32>,
                %y: memref<1x4x4x4xf32> {bufferize.result}, %z: memref<1x4x8x8xf32> {bufferize.result}) {
  memplan.conv ins(%x, %w : memref<1x4x8x8xf32>, memref<4x2x1x1xf32>) extras(%x : memref<1x4x8x8xf32>)
      outs(%y : memref<1x4x4x4xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2
      interleaved pool <max> window = [2, 2]
      extra_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>] {
  ^bb0(%acc: f32, %e: f32):
    %0 = arith.addf %acc, %e : f32
    memplan.yield %0 : f32
  } loc("pooled")
  memplan.conv ins(%v, %w : memref<1x4x2x4xf32>, memref<4x2x1x1xf32>) outs(%z : memref<1x4x8x8xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2
      upsample = [4, 2] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } loc("upsampled")
  return
}
