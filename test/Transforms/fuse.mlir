// RUN: memplan-opt %s --memplan-fuse --allow-unregistered-dialect --split-input-file | FileCheck %s

#nchw = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// Two convolutions, a scale per channel on the first, their sum, relu: the scale
// moves into the first, sum and relu into the second, whose operands come last,
// so that both keep their places.
// CHECK-LABEL: @residual
// CHECK: %[[A:.*]] = memplan.conv ins(%arg0, %arg1 {{.*}} extras(%arg3 : tensor<4xf32>)
// CHECK: arith.mulf
// CHECK: %[[B:.*]] = memplan.conv ins(%arg0, %arg2 {{.*}} extras(%[[A]] : tensor<1x4x8x8xf32>)
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[E:.*]]: f32):
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG: %[[SUM:.*]] = arith.addf %[[E]], %[[ACC]]
// CHECK: %[[R:.*]] = arith.maximumf %[[SUM]], %[[ZERO]]
// CHECK: memplan.yield %[[R]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[B]]
func.func @residual(%x: tensor<1x3x8x8xf32>, %w0: tensor<4x3x1x1xf32>, %w1: tensor<4x3x1x1xf32>, %s: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x8x8xf32>
  %a = memplan.conv ins(%x, %w0 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%e : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  %b = memplan.conv ins(%x, %w1 : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%e : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  %as = linalg.generic {indexing_maps = [#nchw, #channel, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%a, %s : tensor<1x4x8x8xf32>, tensor<4xf32>) outs(%e : tensor<1x4x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x8x8xf32>
  %sum = linalg.generic {indexing_maps = [#nchw, #nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%as, %b : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) outs(%e : tensor<1x4x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x8x8xf32>
  %relu = linalg.generic {indexing_maps = [#nchw, #nchw], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%sum : tensor<1x4x8x8xf32>) outs(%e : tensor<1x4x8x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.maximumf %p, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x8x8xf32>
  return %relu : tensor<1x4x8x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The product's result has a second user, so the addition stays.
// CHECK-LABEL: @two_users
// CHECK: memplan.matmul
// CHECK: linalg.generic
func.func @two_users(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = memplan.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<4x4xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %2 = arith.addf %p, %p : f32
    linalg.yield %2 : f32
  } -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Attention's products: transposes of heads are read and written in place. The
// bias of the second product is indexed by the new output's dims.
// CHECK-DAG: #[[BSHD:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[KEY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: @attention
// CHECK-NOT: linalg.
// CHECK: memplan.matmul ins(%arg0, %arg1 {{.*}} indexing_maps = [#[[BSHD]], #[[KEY]],
// CHECK: memplan.matmul {{.*}} indexing_maps = [#{{.*}}, #{{.*}}, #[[OUT]]]
// CHECK-NOT: linalg.
// CHECK: return
func.func @attention(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x4x8xf32>, %v: tensor<2x6x4x8xf32>) -> tensor<2x6x4x8xf32> {
  %e0 = tensor.empty() : tensor<2x4x6x8xf32>
  %e1 = tensor.empty() : tensor<2x4x8x6xf32>
  %e2 = tensor.empty() : tensor<2x4x6x6xf32>
  %e3 = tensor.empty() : tensor<2x6x4x8xf32>
  %qt = linalg.transpose ins(%q : tensor<2x6x4x8xf32>) outs(%e0 : tensor<2x4x6x8xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%k : tensor<2x6x4x8xf32>) outs(%e1 : tensor<2x4x8x6xf32>) permutation = [0, 2, 3, 1]
  %vt = linalg.transpose ins(%v : tensor<2x6x4x8xf32>) outs(%e0 : tensor<2x4x6x8xf32>) permutation = [0, 2, 1, 3]
  %s = memplan.matmul ins(%qt, %kt : tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) outs(%e2 : tensor<2x4x6x6xf32>)
    indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, h, k, n)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<2x4x6x6xf32>
  %o = memplan.matmul ins(%s, %vt : tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) outs(%e0 : tensor<2x4x6x8xf32>)
    indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, h, k, n)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<2x4x6x8xf32>
  %r = linalg.transpose ins(%o : tensor<2x4x6x8xf32>) outs(%e3 : tensor<2x6x4x8xf32>) permutation = [0, 2, 1, 3]
  return %r : tensor<2x6x4x8xf32>
}

// -----

#id = affine_map<(n, c) -> (n, c)>

// LRN's square is taken in registers; its division becomes the epilogue.
// CHECK-LABEL: @lrn
// CHECK: memplan.reduce_window <sum> ins(%arg0 : tensor<2x8xf32>) extras(%arg0 : tensor<2x8xf32>)
// CHECK: map {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: %[[SQ:.*]] = arith.mulf %[[E]], %[[E]]
// CHECK-NEXT: memplan.yield %[[SQ]]
// CHECK: } epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[X:.*]]: f32):
// CHECK-NEXT: %[[D:.*]] = arith.divf %[[X]], %[[ACC]]
// CHECK-NEXT: memplan.yield %[[D]]
// CHECK-NOT: linalg.generic
func.func @lrn(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %e = tensor.empty() : tensor<2x8xf32>
  %sq = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.mulf %p, %p : f32
    linalg.yield %0 : f32
  } -> tensor<2x8xf32>
  %w = memplan.reduce_window <sum> ins(%sq : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>)
         window = [1, 5] strides = [1, 1] dilations = [1, 1] pads_begin = [0, 2] pads_end = [0, 2] extra_maps = []
       map {
       ^bb0(%a: f32):
         memplan.yield %a : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<2x8xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %w : tensor<2x8xf32>, tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.divf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<2x8xf32>
  return %d : tensor<2x8xf32>
}

// -----

#id = affine_map<(n, c) -> (n, c)>

// What can move into the epilogue before it doesn't move into the window, where
// it would be computed once a window instead of once an element.
// CHECK-LABEL: @relu_then_pool
// CHECK: memplan.matmul
// CHECK: arith.maximumf
// CHECK: memplan.reduce_window
// CHECK: map {
// CHECK-NEXT: ^bb0(%[[E:.*]]: f32):
// CHECK-NEXT: memplan.yield %[[E]]
func.func @relu_then_pool(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %e4 = tensor.empty() : tensor<2x4xf32>
  %0 = memplan.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x8xf32>) outs(%e : tensor<2x8xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<2x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %2 = arith.maximumf %p, %zero : f32
    linalg.yield %2 : f32
  } -> tensor<2x8xf32>
  %3 = memplan.reduce_window <max> ins(%1 : tensor<2x8xf32>) outs(%e4 : tensor<2x4xf32>)
         window = [1, 2] strides = [1, 2] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] extra_maps = []
       map {
       ^bb0(%a: f32):
         memplan.yield %a : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// The materialised broadcast of a bias is read as the bias itself.
// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: @broadcast_bias
// CHECK-NOT: linalg.generic
// CHECK: memplan.matmul {{.*}} extras(%arg2 : tensor<8xf32>) {{.*}} extra_maps = [#[[BIAS]]]
func.func @broadcast_bias(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  %e = tensor.empty() : tensor<2x8xf32>
  %0 = memplan.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x8xf32>) outs(%e : tensor<2x8xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<2x8xf32>
  %bb = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<2x8xf32>) dimensions = [0]
  %a = linalg.add ins(%0, %bb : tensor<2x8xf32>, tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %a : tensor<2x8xf32>
}

// -----

#id = affine_map<(n, c) -> (n, c)>

// A cast is no epilogue.
// CHECK-LABEL: @cast
// CHECK: memplan.matmul
// CHECK: linalg.generic
// CHECK: arith.extf
func.func @cast(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x8xf64> {
  %e = tensor.empty() : tensor<2x8xf32>
  %e64 = tensor.empty() : tensor<2x8xf64>
  %0 = memplan.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x8xf32>) outs(%e : tensor<2x8xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<2x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<2x8xf32>) outs(%e64 : tensor<2x8xf64>) {
  ^bb0(%p: f32, %o: f64):
    %2 = arith.extf %p : f32 to f64
    linalg.yield %2 : f64
  } -> tensor<2x8xf64>
  return %1 : tensor<2x8xf64>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>

// Destinations that are the products' own results: each product keeps its own,
// as nothing of a destination's contents is read.
// CHECK-LABEL: @own_result_as_destination
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[T:.*]] = memplan.matmul {{.*}} outs(%[[E]] :
// CHECK: %[[A:.*]] = memplan.matmul {{.*}} outs(%[[E]] :
// CHECK: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return %[[T]], %[[A]]
func.func @own_result_as_destination(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = memplan.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<4x4xf32>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0 : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<4x4xf32>
  %1 = memplan.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  } -> tensor<4x4xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%1 : tensor<4x4xf32>) outs(%1 : tensor<4x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %2 = math.exp %p : f32
    linalg.yield %2 : f32
  } -> tensor<4x4xf32>
  return %t, %a : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Of (a + b) + c, a and b may die before c is made: two ops, and
// memplan-fuse-scheduled decides. (a + b) + x reads nothing else that has to be
// made, nor does (a + y) + c free more than its result takes.
// CHECK-LABEL: @sums
// CHECK: linalg.generic {{.*}} ins(%[[A:.*]], %[[B:.*]] : tensor<64xf32>, tensor<64xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[C:.*]] : tensor<64xf32>, tensor<64xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]], %arg0 :
// CHECK: linalg.generic {{.*}} ins(%[[A]], %arg1, %[[C]] :
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @sums(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %a = "test.make"() : () -> tensor<64xf32>
  %b = "test.make"() : () -> tensor<64xf32>
  %c = "test.make"() : () -> tensor<64xf32>
  %ab = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %abc = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ab, %c : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ab2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %abx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ab2, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ay = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ayc = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ay, %c : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %abc, %abx, %ayc : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
