// RUN: memplan-opt %s | memplan-opt | FileCheck %s
// RUN: memplan-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --buffer-results-to-out-params="hoist-static-allocs modify-public-functions" | FileCheck %s --check-prefix=BUF

// The examples of MemPlanOps.td: they round-trip, and bufferize without a copy.

// CHECK-LABEL: @conv
// CHECK: memplan.conv ins(%{{.*}}, %{{.*}} : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) extras(
// CHECK-SAME: strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [1, 1] groups = 1
// BUF-LABEL: @conv
// BUF-NOT: memref.alloc
// BUF-NOT: memref.copy
// BUF: memplan.conv {{.*}} outs(%arg3 : memref<1x4x8x8xf32>)
func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x8x8xf32> {
  %init = tensor.empty() : tensor<1x4x8x8xf32>
  %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>)
         extras(%b : tensor<4xf32>) outs(%init : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [1, 1]
         groups = 1 extra_maps = [affine_map<(n, f, h, w) -> (f)>] {
       ^bb0(%acc: f32, %bias: f32):
         %0 = arith.addf %acc, %bias : f32
         memplan.yield %0 : f32
       } -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// 8x8 upsampled to 16x16, then pooled to 8x8.
// CHECK-LABEL: @conv_with_all
// CHECK: groups = 2 interleaved upsample = [2, 2] pool <max> window = [2, 2] extra_maps = []
// BUF-LABEL: @conv_with_all
// BUF: memplan.conv {{.*}} outs(%arg2 : memref<1x4x8x8xf32>) {{.*}} groups = 2 interleaved upsample = [2, 2] pool <max> window = [2, 2]
func.func @conv_with_all(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>) -> tensor<1x4x8x8xf32> {
  %init = tensor.empty() : tensor<1x4x8x8xf32>
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%init : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2
         interleaved upsample = [2, 2] pool <max> window = [2, 2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return %r : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: @matmul
// CHECK: memplan.matmul
// BUF-LABEL: @matmul
// BUF: memplan.matmul {{.*}} outs(%arg3 : memref<4x16xf32>)
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<16x8xf32>, %bias: tensor<16xf32>) -> tensor<4x16xf32> {
  %init = tensor.empty() : tensor<4x16xf32>
  %r = memplan.matmul ins(%a, %b : tensor<4x8xf32>, tensor<16x8xf32>)
         extras(%bias : tensor<16xf32>) outs(%init : tensor<4x16xf32>)
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                          affine_map<(m, n, k) -> (n, k)>,
                          affine_map<(m, n, k) -> (m, n)>]
         extra_maps = [affine_map<(m, n) -> (n)>] {
       ^bb0(%acc: f32, %e: f32):
         %0 = arith.addf %acc, %e : f32
         memplan.yield %0 : f32
       } -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// CHECK-LABEL: @reduce_window
// CHECK: memplan.reduce_window <max> ins(
// BUF-LABEL: @reduce_window
// BUF: memplan.reduce_window <max> {{.*}} outs(%arg1 : memref<1x4x4x4xf32>)
func.func @reduce_window(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32> {
  %init = tensor.empty() : tensor<1x4x4x4xf32>
  %r = memplan.reduce_window <max> ins(%x : tensor<1x4x8x8xf32>)
         outs(%init : tensor<1x4x4x4xf32>)
         window = [1, 1, 3, 3] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1]
         pads_begin = [0, 0, 1, 1] pads_end = [0, 0, 1, 1] extra_maps = []
       map {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  return %r : tensor<1x4x4x4xf32>
}

// CHECK-LABEL: @softmax
// CHECK: memplan.rowwise
// CHECK-SAME: combiners = [#memplan.combiner<max>, #memplan.combiner<sum>]
// BUF-LABEL: @softmax
// BUF: memplan.rowwise {{.*}} outs(%arg1 : memref<4x8xf32>)
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %init = tensor.empty() : tensor<4x8xf32>
  %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%init : tensor<4x8xf32>)
         row_dims = [1] combiners = [#memplan.combiner<max>, #memplan.combiner<sum>]
         indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
       finish {
       ^bb0(%e: f32, %max: f32, %sum: f32):
         %0 = arith.subf %e, %max : f32
         %1 = math.exp %0 : f32
         %2 = arith.divf %1, %sum : f32
         memplan.yield %2 : f32
       } stages {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       }, {
       ^bb0(%e: f32, %max: f32):
         %0 = arith.subf %e, %max : f32
         %1 = math.exp %0 : f32
         memplan.yield %1 : f32
       } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: @plan
// CHECK-SAME: memplan.arenas = [#memplan.arena<bytes = 256, lower_bound = 256, no_reuse = 256, optimal = true, alignment = 256>]
func.func @plan() attributes {memplan.arenas = [#memplan.arena<bytes = 256, lower_bound = 256, no_reuse = 256, optimal = true, alignment = 256>]} {
  // CHECK: memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>}
  %0 = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>} : memref<4xf32>
  return
}

// The default proof is not printed.
// CHECK-LABEL: @proofs
// CHECK-SAME: #memplan.arena<bytes = 96, lower_bound = 64, no_reuse = 128, optimal = false, alignment = 64>,
// CHECK-SAME: #memplan.arena<bytes = 96, lower_bound = 96, lower_bound_proof = search, no_reuse = 128, optimal = true, alignment = 64, memory_space = 1 : i64>
func.func private @proofs() attributes {memplan.arenas = [
  #memplan.arena<bytes = 96, lower_bound = 64, lower_bound_proof = live_bytes, no_reuse = 128, optimal = false, alignment = 64>,
  #memplan.arena<bytes = 96, lower_bound = 96, lower_bound_proof = search, no_reuse = 128, optimal = true, alignment = 64, memory_space = 1>]}

// CHECK: memref.global "private" constant @w : memref<4xf32> {memplan.weight = #memplan.weight<file = "m.onnx", offset = 12, bytes = 16>}
memref.global "private" constant @w : memref<4xf32> {memplan.weight = #memplan.weight<file = "m.onnx", offset = 12, bytes = 16>}

// CHECK-LABEL: @scatter
// CHECK: memplan.scatter ins(%{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<3x4xf32>) indices(%{{.*}} : tensor<3x4xi64>)
// CHECK-SAME: axes = [0] loops = [1]
// BUF-LABEL: @scatter
// BUF-NOT: memref.alloc
// BUF: memplan.scatter {{.*}} outs(%arg3 : memref<8x4xf32>)
func.func @scatter(%x: tensor<8x4xf32>, %u: tensor<3x4xf32>, %i: tensor<3x4xi64>) -> tensor<8x4xf32> {
  %init = tensor.empty() : tensor<8x4xf32>
  %r = memplan.scatter ins(%x, %u : tensor<8x4xf32>, tensor<3x4xf32>)
         indices(%i : tensor<3x4xi64>) outs(%init : tensor<8x4xf32>)
         axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i, j)>] {
       ^bb0(%old: f32, %update: f32):
         %0 = arith.addf %old, %update : f32
         memplan.yield %0 : f32
       } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
