// RUN: memplan-opt %s --allow-unregistered-dialect --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(memplan-fuse-scheduled))' | FileCheck %s
// RUN: not memplan-opt %s --allow-unregistered-dialect --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(memplan-fuse-scheduled{alignment=24}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ALIGNMENT

// ALIGNMENT: memplan-fuse-scheduled: alignment is 24, which is no power of two

// Small tensors take 256 bytes, the big one 1024. The peak is where %c is made:
//   %ab + %big + %c = 256 + 1024 + 256 = 1536.
// %a and %b in place of %ab would make that 1792, so %ab stays. After it,
//   %ab + %c + %d, and the result over one of them, = 768,
// so that the two other sums are one op.
// CHECK-LABEL: @peak_between
// CHECK: %[[A:.*]] = "test.make"
// CHECK: %[[B:.*]] = "test.make"
// CHECK: %[[AB:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// CHECK: %[[C:.*]] = "test.shrink"
// CHECK: %[[D:.*]] = "test.make"
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[AB]], %[[C]], %[[D]] :
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: "test.use"(%[[ALL]])
#id = affine_map<(i) -> (i)>
func.func @peak_between() {
  %e = tensor.empty() : tensor<64xf32>
  %a = "test.make"() : () -> tensor<64xf32>
  %b = "test.make"() : () -> tensor<64xf32>
  %ab = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %big = "test.make"() : () -> tensor<256xf32>
  %c = "test.shrink"(%big) : (tensor<256xf32>) -> tensor<64xf32>
  %abc = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ab, %c : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %d = "test.make"() : () -> tensor<64xf32>
  %abcd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%abc, %d : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  "test.use"(%abcd) : (tensor<64xf32>) -> ()
  return
}

// -----

// The peak, 1024, is elsewhere: four terms, and the result over one of them, =
// 1024 may live at one time.
// CHECK-LABEL: @peak_elsewhere
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
#id = affine_map<(i) -> (i)>
func.func @peak_elsewhere() {
  %e = tensor.empty() : tensor<64xf32>
  %big = "test.make"() : () -> tensor<256xf32>
  "test.use"(%big) : (tensor<256xf32>) -> ()
  %a = "test.make"() : () -> tensor<64xf32>
  %b = "test.make"() : () -> tensor<64xf32>
  %ab = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %c = "test.make"() : () -> tensor<64xf32>
  %abc = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ab, %c : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %d = "test.make"() : () -> tensor<64xf32>
  %abcd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%abc, %d : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  "test.use"(%abcd) : (tensor<64xf32>) -> ()
  return
}

// -----

// %ab has a second user, so nothing is computed twice however much may live.
// CHECK-LABEL: @two_users
// CHECK-COUNT-2: linalg.generic
// CHECK: return
#id = affine_map<(i) -> (i)>
func.func @two_users() {
  %e = tensor.empty() : tensor<64xf32>
  %big = "test.make"() : () -> tensor<256xf32>
  "test.use"(%big) : (tensor<256xf32>) -> ()
  %a = "test.make"() : () -> tensor<64xf32>
  %b = "test.make"() : () -> tensor<64xf32>
  %ab = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %c = "test.make"() : () -> tensor<64xf32>
  %abc = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%ab, %c : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  "test.use"(%abc) : (tensor<64xf32>) -> ()
  "test.use"(%ab) : (tensor<64xf32>) -> ()
  return
}

// -----

// A sum that one op reads twice, in two orders, goes into it whole; %big leaves
// room for both terms beside the result.
// CHECK-LABEL: @read_twice
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
func.func @read_twice() {
  %e = tensor.empty() : tensor<8x8xf32>
  %big = "test.make"() : () -> tensor<256xf32>
  "test.use"(%big) : (tensor<256xf32>) -> ()
  %a = "test.make"() : () -> tensor<8x8xf32>
  %b = "test.make"() : () -> tensor<8x8xf32>
  %ab = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  %square = linalg.generic {indexing_maps = [#ij, #ji, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%ab, %ab : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  "test.use"(%square) : (tensor<8x8xf32>) -> ()
  return
}
