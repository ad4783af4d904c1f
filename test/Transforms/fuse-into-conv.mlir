// RUN: memplan-opt %s --memplan-fuse --split-input-file | FileCheck %s

#nchw = affine_map<(n, c, h, w) -> (n, c, h, w)>

// relu moves into the convolution, the pool after it too: 9x9 in windows of 2x2
// are 4x4. What follows the pool stays an op of its own.
// CHECK-LABEL: @pool
// CHECK: memplan.conv {{.*}} groups = 1 pool <max> window = [2, 2] extra_maps = [] {
// CHECK: arith.maximumf
// CHECK-NOT: memplan.reduce_window
// CHECK: linalg.generic
// CHECK: math.exp
func.func @pool(%x: tensor<1x3x9x9xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x9x9xf32>
  %p = tensor.empty() : tensor<1x4x4x4xf32>
  %a = memplan.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<4x3x1x1xf32>) outs(%e : tensor<1x4x9x9xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x9x9xf32>
  %relu = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%a : tensor<1x4x9x9xf32>) outs(%e : tensor<1x4x9x9xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = arith.maximumf %i, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x9x9xf32>
  %b = memplan.reduce_window <max> ins(%relu : tensor<1x4x9x9xf32>) outs(%p : tensor<1x4x4x4xf32>)
         window = [1, 1, 2, 2] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1]
         pads_begin = [0, 0, 0, 0] pads_end = [0, 0, 0, 0] extra_maps = []
       map {
       ^bb0(%i: f32):
         memplan.yield %i : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  %exp = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%b : tensor<1x4x4x4xf32>) outs(%p : tensor<1x4x4x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x4xf32>
  return %exp : tensor<1x4x4x4xf32>
}

// -----

// 6 channels as 2 groups of 3, transposed: as the groups of the convolution are,
// so it stores them there. As 3 groups of 2 they are not: the transpose stays.
// CHECK-LABEL: @shuffle
// CHECK: memplan.conv {{.*}} groups = 2 interleaved extra_maps
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @shuffle(%x: tensor<1x4x5x5xf32>, %w: tensor<6x2x1x1xf32>) -> tensor<1x6x5x5xf32> {
  %e = tensor.empty() : tensor<1x6x5x5xf32>
  %f = tensor.empty() : tensor<1x3x2x5x5xf32>
  %a = memplan.conv ins(%x, %w : tensor<1x4x5x5xf32>, tensor<6x2x1x1xf32>) outs(%e : tensor<1x6x5x5xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x6x5x5xf32>
  %g = tensor.expand_shape %a [[0], [1, 2], [3], [4]] output_shape [1, 2, 3, 5, 5] : tensor<1x6x5x5xf32> into tensor<1x2x3x5x5xf32>
  %t = linalg.transpose ins(%g : tensor<1x2x3x5x5xf32>) outs(%f : tensor<1x3x2x5x5xf32>) permutation = [0, 2, 1, 3, 4]
  %r = tensor.collapse_shape %t [[0], [1, 2], [3], [4]] : tensor<1x3x2x5x5xf32> into tensor<1x6x5x5xf32>
  return %r : tensor<1x6x5x5xf32>
}

// -----

// CHECK-LABEL: @other_shuffle
// CHECK: memplan.conv {{.*}} groups = 2 extra_maps
// CHECK: linalg.generic
func.func @other_shuffle(%x: tensor<1x4x5x5xf32>, %w: tensor<6x2x1x1xf32>) -> tensor<1x6x5x5xf32> {
  %e = tensor.empty() : tensor<1x6x5x5xf32>
  %f = tensor.empty() : tensor<1x2x3x5x5xf32>
  %a = memplan.conv ins(%x, %w : tensor<1x4x5x5xf32>, tensor<6x2x1x1xf32>) outs(%e : tensor<1x6x5x5xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x6x5x5xf32>
  %g = tensor.expand_shape %a [[0], [1, 2], [3], [4]] output_shape [1, 3, 2, 5, 5] : tensor<1x6x5x5xf32> into tensor<1x3x2x5x5xf32>
  %t = linalg.transpose ins(%g : tensor<1x3x2x5x5xf32>) outs(%f : tensor<1x2x3x5x5xf32>) permutation = [0, 2, 1, 3, 4]
  %r = tensor.collapse_shape %t [[0], [1, 2], [3], [4]] : tensor<1x2x3x5x5xf32> into tensor<1x6x5x5xf32>
  return %r : tensor<1x6x5x5xf32>
}

// -----

// Each element twice in h, four times in w.
// CHECK-LABEL: @upsample
// CHECK-NOT: linalg.generic
// CHECK: memplan.conv ins(%arg0, {{.*}} groups = 1 upsample = [2, 4] extra_maps
func.func @upsample(%x: tensor<1x3x4x5xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x20xf32> {
  %e = tensor.empty() : tensor<1x4x8x20xf32>
  %u = tensor.empty() : tensor<1x3x4x2x5x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c, h, i, w, j) -> (n, c, h, w)>, affine_map<(n, c, h, i, w, j) -> (n, c, h, i, w, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]}
    ins(%x : tensor<1x3x4x5xf32>) outs(%u : tensor<1x3x4x2x5x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<1x3x4x2x5x4xf32>
  %s = tensor.collapse_shape %r [[0], [1], [2, 3], [4, 5]] : tensor<1x3x4x2x5x4xf32> into tensor<1x3x8x20xf32>
  %a = memplan.conv ins(%s, %w : tensor<1x3x8x20xf32>, tensor<4x3x3x3xf32>) outs(%e : tensor<1x4x8x20xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [1, 1] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x20xf32>
  return %a : tensor<1x4x8x20xf32>
}
