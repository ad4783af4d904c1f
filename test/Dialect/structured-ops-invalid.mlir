// RUN: memplan-opt %s --split-input-file --verify-diagnostics

func.func @conv_extent(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %i: tensor<1x4x8x8xf32>) {
  // (8 + 1 + 0 - 3) / 1 + 1 = 7
  // expected-error @below {{output has extent 8 in spatial dim 0, expected 7}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [0, 1] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @conv_groups(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %i: tensor<1x4x8x8xf32>) {
  // expected-error @below {{with 2 groups: input has 3 channels}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @conv_strides(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %i: tensor<1x4x8x8xf32>) {
  // expected-error @below {{strides has entry 0, the least is 1}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 0] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @conv_pads(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %i: tensor<1x4x8x8xf32>) {
  // expected-error @below {{pads_begin has 1 entries, expected 2}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x1x1xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0] pads_end = [0, 0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @mixed(%x: memref<1x3x8xf32>, %w: tensor<4x3x1xf32>, %i: tensor<1x4x8xf32>) {
  // expected-error @below {{mixes tensors and memrefs among its operands}}
  %r = memplan.conv ins(%x, %w : memref<1x3x8xf32>, tensor<4x3x1xf32>) outs(%i : tensor<1x4x8xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8xf32>
  return
}

// -----

func.func @no_result(%x: tensor<1x3x8xf32>, %w: tensor<4x3x1xf32>, %i: tensor<1x4x8xf32>) {
  // expected-error @below {{on tensors has one result}}
  memplan.conv ins(%x, %w : tensor<1x3x8xf32>, tensor<4x3x1xf32>) outs(%i : tensor<1x4x8xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       }
  return
}

// -----

func.func @extra_map(%x: tensor<1x3x8xf32>, %w: tensor<4x3x1xf32>, %b: tensor<3xf32>, %i: tensor<1x4x8xf32>) {
  // expected-error @below {{extra 0 has extent 3 in dim 0, expected 4}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8xf32>, tensor<4x3x1xf32>) extras(%b : tensor<3xf32>) outs(%i : tensor<1x4x8xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1
         extra_maps = [affine_map<(n, f, w) -> (f)>] {
       ^bb0(%acc: f32, %e: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8xf32>
  return
}

// -----

func.func @extra_map_twice(%x: tensor<1x4x4xf32>, %w: tensor<4x4x1xf32>, %b: tensor<4x4xf32>, %i: tensor<1x4x4xf32>) {
  // expected-error @below {{extra map 0 must map the 3 output dims to the extra's 2 indices, each a dim used once or 0}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x4xf32>, tensor<4x4x1xf32>) extras(%b : tensor<4x4xf32>) outs(%i : tensor<1x4x4xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1
         extra_maps = [affine_map<(n, f, w) -> (f, f)>] {
       ^bb0(%acc: f32, %e: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4xf32>
  return
}

// -----

func.func @epilogue(%x: tensor<1x3x8xf32>, %w: tensor<4x3x1xf32>, %i: tensor<1x4x8xf32>) {
  // expected-error @below {{epilogue takes 2 arguments, expected 1}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8xf32>, tensor<4x3x1xf32>) outs(%i : tensor<1x4x8xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32, %e: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8xf32>
  return
}

// -----

func.func @epilogue_type(%x: tensor<1x3x8xf32>, %w: tensor<4x3x1xf32>, %i: tensor<1x4x8xf32>) {
  // expected-error @below {{epilogue yields 'i32', expected 'f32'}}
  %r = memplan.conv ins(%x, %w : tensor<1x3x8xf32>, tensor<4x3x1xf32>) outs(%i : tensor<1x4x8xf32>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
       ^bb0(%acc: f32):
         %0 = arith.fptosi %acc : f32 to i32
         memplan.yield %0 : i32
       } -> tensor<1x4x8xf32>
  return
}

// -----

func.func @matmul_map(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %i: tensor<4x4xf32>) {
  // expected-error @below {{lhs map affine_map<(d0, d1, d2) -> (d0, d1)> does not fit}}
  %r = memplan.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>)
         indexing_maps = [affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
         extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_extent(%a: tensor<4x8xf32>, %b: tensor<9x4xf32>, %i: tensor<4x4xf32>) {
  // expected-error @below {{loop 2 has extents 8 and 9}}
  %r = memplan.matmul ins(%a, %b : tensor<4x8xf32>, tensor<9x4xf32>) outs(%i : tensor<4x4xf32>)
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
         extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<4x4xf32>
  return
}

// -----

func.func @window_extent(%x: tensor<8xf32>, %i: tensor<5xf32>) {
  // ceil((8 - 2) / 2) + 1 = 4
  // expected-error @below {{output has extent 5 in dim 0, at most 4 windows fit}}
  %r = memplan.reduce_window <max> ins(%x : tensor<8xf32>) outs(%i : tensor<5xf32>)
         window = [2] strides = [2] dilations = [1] pads_begin = [0] pads_end = [0] extra_maps = []
       map {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<5xf32>
  return
}

// -----

func.func @rowwise_dims(%x: tensor<4x8xf32>, %i: tensor<4x8xf32>) {
  // expected-error @below {{row_dims has 2, expected distinct loops below 2}}
  %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%i : tensor<4x8xf32>)
         row_dims = [2] combiners = []
         indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
       finish {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } stages -> tensor<4x8xf32>
  return
}

// -----

func.func @rowwise_output(%x: tensor<4x8xf32>, %i: tensor<8xf32>) {
  // expected-error @below {{must be the identity or drop exactly row_dims}}
  %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%i : tensor<8xf32>)
         row_dims = [1] combiners = [#memplan.combiner<sum>]
         indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>]
       finish {
       ^bb0(%e: f32, %s: f32):
         memplan.yield %s : f32
       } stages {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } -> tensor<8xf32>
  return
}

// -----

func.func @rowwise_finish(%x: tensor<4x8xf32>, %i: tensor<4xf32>) {
  // expected-error @below {{finish of a reduction uses input 0, which depends on row dim 1}}
  %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>)
         row_dims = [1] combiners = [#memplan.combiner<sum>]
         indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
       finish {
       ^bb0(%e: f32, %s: f32):
         %0 = arith.addf %e, %s : f32
         memplan.yield %0 : f32
       } stages {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } -> tensor<4xf32>
  return
}

// -----

func.func @rowwise_stages(%x: tensor<4x8xf32>, %i: tensor<4x8xf32>) {
  // expected-error @below {{has 0 stages but 1 combiners}}
  %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%i : tensor<4x8xf32>)
         row_dims = [1] combiners = [#memplan.combiner<sum>]
         indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
       finish {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } stages -> tensor<4x8xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xi64>, %init: tensor<4x4xf32>) {
  // expected-error @below {{data and output differ}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x4xf32>) axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x4xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{has 1 indices, 0 axes and 1 index_maps}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x3xf32>) axes = [] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{axes has 2, expected distinct dims below 2}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x3xf32>) axes = [2] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{loops has 0 entries, expected one for each of the 1 dims that are not in axes}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x3xf32>) axes = [0] loops = [] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{loops has 2, expected distinct dims of the updates}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x3xf32>) axes = [0] loops = [2] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x5xf32>, %i: tensor<2xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{dim 1 of the updates has extent 5, more than dim 1 of the output}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x5xf32>) indices(%i : tensor<2xi64>)
         outs(%init : tensor<4x3xf32>) axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<2xf32>, %init: tensor<4x3xf32>) {
  // expected-error @below {{does not map 2 dims of the updates to integers}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<2xf32>)
         outs(%init : tensor<4x3xf32>) axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

func.func @scatter(%x: tensor<4x3xf32>, %u: tensor<2x3xf32>, %i: tensor<3xi64>, %init: tensor<4x3xf32>) {
  // expected-error @below {{do not have the extents of the updates}}
  %r = memplan.scatter ins(%x, %u : tensor<4x3xf32>, tensor<2x3xf32>) indices(%i : tensor<3xi64>)
         outs(%init : tensor<4x3xf32>) axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i)>] {
       ^bb0(%old: f32, %update: f32):
         memplan.yield %update : f32
       } -> tensor<4x3xf32>
  return
}

// -----

// expected-error @below {{weight range of -1 bytes at 0 is not a range of a file}}
memref.global "private" constant @w : memref<4xf32> {memplan.weight = #memplan.weight<file = "m.onnx", offset = 0, bytes = -1>}

// -----

func.func @slot() {
  // expected-error @below {{slot has lifetime [3, 2), expected 0 <= lower <= upper}}
  %0 = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 3, upper = 2>} : memref<4xf32>
  return
}

// -----

// expected-error @below {{expected one of [live_bytes, search] for what proves a lower bound, got: hope}}
// expected-error @below {{failed to parse}}
func.func private @proof() attributes {memplan.arenas = [#memplan.arena<bytes = 0, lower_bound = 0, lower_bound_proof = hope, no_reuse = 0, optimal = true, alignment = 8>]}

// -----

// expected-error @below {{arena alignment 3 is not a power of two}}
func.func @arena() attributes {memplan.arenas = [#memplan.arena<bytes = 0, lower_bound = 0, no_reuse = 0, optimal = true, alignment = 3>]} {
  return
}

// -----

func.func @conv_pool_kind(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x4x4xf32>) {
  // expected-error @below {{pool is <sum>, expected <max> or <average>}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x4x4xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 pool <sum> window = [2, 2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @conv_pool_rank(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x4x4xf32>) {
  // expected-error @below {{pool window has 1 entries, expected 2}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x4x4xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 pool <max> window = [2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @conv_pool_extent(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x4x4xf32>) {
  // expected-error @below {{pool window has extents [3, 2], expected powers of two of which the product is from 2 to 32}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x4x4xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 pool <max> window = [3, 2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @conv_pool_area(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x4x4xf32>) {
  // expected-error @below {{pool window has extents [8, 8], expected powers of two of which the product is from 2 to 32}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x4x4xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 pool <max> window = [8, 8] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @conv_pool_output(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x8x8xf32>) {
  // expected-error @below {{output has extent 8 in spatial dim 0, expected 4}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 pool <max> window = [2, 2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @conv_upsample(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x16x24xf32>) {
  // expected-error @below {{upsample has factor 3, expected powers of two up to 1024}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x16x24xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 upsample = [2, 3] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x16x24xf32>
  return
}

// -----

func.func @conv_upsample_output(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x8x8xf32>) {
  // expected-error @below {{output has extent 8 in spatial dim 0, expected 16}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x8x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 upsample = [2, 2] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x8x8xf32>
  return
}

// -----

func.func @conv_pads_wrap(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x6x8xf32>) {
  // 8 + 2 * (2^63 - 1) is 6 modulo 2^64.
  // expected-error @below {{in dim 2: extent 8, pads 9223372036854775807 and 9223372036854775807 and stride 1 add up to more than 64 bits hold}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x6x8xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [9223372036854775807, 0] pads_end = [9223372036854775807, 0] groups = 2 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x6x8xf32>
  return
}

// -----

func.func @conv_reach_wraps(%x: tensor<1x4x8x8xf32>, %w: tensor<4x2x3x1xf32>, %i: tensor<1x4x10x8xf32>) {
  // 2 * (2^63 - 1) + 1 is -1 modulo 2^64, and 8 - (-1) + 1 = 10.
  // expected-error @below {{in dim 2: window 3 times dilation 9223372036854775807 is more than 64 bits hold}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x2x3x1xf32>) outs(%i : tensor<1x4x10x8xf32>)
         strides = [1, 1] dilations = [9223372036854775807, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x10x8xf32>
  return
}

// -----

func.func @conv_upsample_wraps(%x: tensor<1x4x4611686018427387904x1xf32>, %w: tensor<4x2x1x1xf32>, %i: tensor<1x4x0x1xf32>) {
  // 2^62 * 4 = 2^64 is 0 modulo 2^64.
  // expected-error @below {{in dim 2: extent 4611686018427387904 times 4 is more than 64 bits hold}}
  %r = memplan.conv ins(%x, %w : tensor<1x4x4611686018427387904x1xf32>, tensor<4x2x1x1xf32>) outs(%i : tensor<1x4x0x1xf32>)
         strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 2 upsample = [4, 1] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1x4x0x1xf32>
  return
}

// -----

func.func @window_stride_wraps(%x: tensor<8xf32>, %i: tensor<1xf32>) {
  // expected-error @below {{in dim 0: extent 8, pads 0 and 0 and stride 9223372036854775807 add up to more than 64 bits hold}}
  %r = memplan.reduce_window <max> ins(%x : tensor<8xf32>) outs(%i : tensor<1xf32>)
         window = [2] strides = [9223372036854775807] dilations = [1] pads_begin = [0] pads_end = [0] extra_maps = []
       map {
       ^bb0(%e: f32):
         memplan.yield %e : f32
       } epilogue {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<1xf32>
  return
}

// -----

func.func @conv_filter_zero(%x: tensor<1x1x4xi8>, %w: tensor<4x1x1xi8>, %z: tensor<3xi8>, %i: tensor<1x4x4xi32>) {
  // expected-error @below {{filter_zero must have one element, or one a feature of the filter}}
  %r = memplan.conv ins(%x, %w : tensor<1x1x4xi8>, tensor<4x1x1xi8>) outs(%i : tensor<1x4x4xi32>)
         filter_zero(%z : tensor<3xi8>)
         strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
       ^bb0(%acc: i32):
         memplan.yield %acc : i32
       } -> tensor<1x4x4xi32>
  return
}

// -----

func.func @matmul_unsigned_floats(%a: tensor<3x5xf32>, %b: tensor<5x6xf32>, %i: tensor<3x6xf32>) {
  // expected-error @below {{has a mark that it is unsigned, which integers of up to 16 bits have}}
  %r = memplan.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x6xf32>) outs(%i : tensor<3x6xf32>) unsigned_lhs
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<3x6xf32>
  return
}

// -----

func.func @matmul_zero_along_k(%a: tensor<3x5xi8>, %b: tensor<5x6xi8>, %z: tensor<5xi8>, %i: tensor<3x6xi32>) {
  // expected-error @below {{rhs_zero map}}
  %r = memplan.matmul ins(%a, %b : tensor<3x5xi8>, tensor<5x6xi8>) outs(%i : tensor<3x6xi32>)
         rhs_zero(%z : tensor<5xi8>)
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (k)>] extra_maps = [] {
       ^bb0(%acc: i32):
         memplan.yield %acc : i32
       } -> tensor<3x6xi32>
  return
}

// -----

func.func @matmul_types(%a: tensor<3x5xf32>, %b: tensor<5x6xf64>, %i: tensor<3x6xf32>) {
  // expected-error @below {{multiplies elements of types 'f32' and 'f64'}}
  %r = memplan.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x6xf64>) outs(%i : tensor<3x6xf32>)
         indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
       ^bb0(%acc: f32):
         memplan.yield %acc : f32
       } -> tensor<3x6xf32>
  return
}
