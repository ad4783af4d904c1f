// RUN: memplan-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(func.func(memplan-schedule{alignment=4 emit-remarks}))' | FileCheck %s

// Sizes in floats. In the order given, %big0, %big1 and %small0 are alive at
// once: 100 + 100 + 1 floats, 804 bytes. Branch after branch: %small0, %big1,
// %small1, 102 floats, 408 bytes. The result belongs to the caller.
// CHECK-LABEL: @branches
// CHECK: %[[BIG0:.*]] = linalg.exp
// CHECK: %[[SMALL0:.*]] = linalg.reduce {{.*}} ins(%[[BIG0]]
// CHECK: %[[BIG1:.*]] = linalg.abs
// CHECK: %[[SMALL1:.*]] = linalg.reduce {{.*}} ins(%[[BIG1]]
// CHECK: linalg.add ins(%[[SMALL0]], %[[SMALL1]]
// expected-remark @below {{peak 804 bytes before, 408 after, lower bound 408 (proved smallest)}}
func.func @branches(%x: tensor<1x100xf32>) -> tensor<1xf32> {
  %e100 = tensor.empty() : tensor<1x100xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %big0 = linalg.exp ins(%x : tensor<1x100xf32>) outs(%e100 : tensor<1x100xf32>) -> tensor<1x100xf32>
  %big1 = linalg.abs ins(%x : tensor<1x100xf32>) outs(%e100 : tensor<1x100xf32>) -> tensor<1x100xf32>
  %small0 = linalg.reduce {arith.maximumf} ins(%big0 : tensor<1x100xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
  %small1 = linalg.reduce {arith.maximumf} ins(%big1 : tensor<1x100xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
  %sum = linalg.add ins(%small0, %small1 : tensor<1xf32>, tensor<1xf32>) outs(%e1 : tensor<1xf32>) -> tensor<1xf32>
  return %sum : tensor<1xf32>
}

// -----

// Nothing to gain: nothing moves, unused constants included. Each op can
// overwrite its input, so one tensor of 8 floats is enough; the last one is the
// caller's.
// CHECK-LABEL: @chain
// CHECK-NEXT: arith.constant 1
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.exp
// CHECK-NEXT: linalg.abs
// CHECK-NEXT: linalg.tanh
// expected-remark @below {{peak 32 bytes before, 32 after, lower bound 32 (proved smallest)}}
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.abs ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.tanh ins(%1 : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// %b can overwrite %a (40 bytes) only if %a's other reader has run: before, %a,
// %b and %r are alive at once, 40 + 40 + 4; after, %a and %r, then %b and %r. A
// reshape is no copy.
// CHECK-LABEL: @overwrite
// CHECK: %[[A:.*]] = linalg.exp
// CHECK: %[[R:.*]] = linalg.reduce {{.*}} ins(%[[A]]
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[A]]
// CHECK: linalg.abs ins(%[[V]]
// expected-remark @below {{peak 84 bytes before, 44 after, lower bound 44 (proved smallest)}}
func.func @overwrite(%x: tensor<1x10xf32>) -> tensor<10xf32> {
  %e = tensor.empty() : tensor<1x10xf32>
  %e10 = tensor.empty() : tensor<10xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %a = linalg.exp ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) -> tensor<1x10xf32>
  %v = tensor.collapse_shape %a [[0, 1]] : tensor<1x10xf32> into tensor<10xf32>
  %b = linalg.abs ins(%v : tensor<10xf32>) outs(%e10 : tensor<10xf32>) -> tensor<10xf32>
  %r = linalg.reduce {arith.maximumf} ins(%a : tensor<1x10xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>],
                       iterator_types = ["parallel"]}
      ins(%b, %r : tensor<10xf32>, tensor<1xf32>) outs(%e10 : tensor<10xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %k = arith.addf %i, %j : f32
    linalg.yield %k : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

// What is inserted into one empty tensor is made there: 16 floats, 64 bytes,
// from the first part on, and no parts beside it. %y belongs to the caller.
// CHECK-LABEL: @concat
// expected-remark @below {{peak 64 bytes before, 64 after, lower bound 64 (proved smallest)}}
func.func @concat(%x: tensor<8xf32>) -> tensor<16xf32> {
  %e8 = tensor.empty() : tensor<8xf32>
  %e16 = tensor.empty() : tensor<16xf32>
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.abs ins(%x : tensor<8xf32>) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %i = tensor.insert_slice %0 into %e16[0] [8] [1] : tensor<8xf32> into tensor<16xf32>
  %c = tensor.insert_slice %1 into %i[8] [8] [1] : tensor<8xf32> into tensor<16xf32>
  %y = linalg.tanh ins(%c : tensor<16xf32>) outs(%e16 : tensor<16xf32>) -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// -----

func.func private @log(tensor<1xf32>)

// Calls keep their order: the one of %r1 comes first, so what leads to it does.
// Then %b and %r1 (44 bytes) are alive, or %a and %r0. Before, %a, %b and %r0.
// CHECK-LABEL: @effects
// CHECK: linalg.abs
// CHECK: %[[R1:.*]] = linalg.reduce
// CHECK: call @log(%[[R1]])
// CHECK: linalg.exp
// CHECK: %[[R0:.*]] = linalg.reduce
// CHECK: call @log(%[[R0]])
// expected-remark @below {{peak 84 bytes before, 44 after, lower bound 44 (proved smallest)}}
func.func @effects(%x: tensor<1x10xf32>) {
  %e = tensor.empty() : tensor<1x10xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %a = linalg.exp ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) -> tensor<1x10xf32>
  %b = linalg.abs ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) -> tensor<1x10xf32>
  %r0 = linalg.reduce {arith.maximumf} ins(%a : tensor<1x10xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
  %r1 = linalg.reduce {arith.maximumf} ins(%b : tensor<1x10xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
  call @log(%r1) : (tensor<1xf32>) -> ()
  call @log(%r0) : (tensor<1xf32>) -> ()
  return
}

// -----

// The branch that needs more counts as the if's workspace, 40 bytes, beside %p
// (40) and the if's result (4). %p is also read by the if's other branch, so it
// can't die before it: 84 bytes.
// expected-remark @below {{peak 84 bytes before, 84 after, lower bound 84 (proved smallest)}}
func.func @regions(%x: tensor<1x10xf32>, %if: i1) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1x10xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %p = linalg.exp ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) -> tensor<1x10xf32>
  // expected-remark @below {{peak 40 bytes before, 40 after, lower bound 40 (proved smallest)}}
  %q = scf.if %if -> tensor<1xf32> {
    %a = linalg.abs ins(%x : tensor<1x10xf32>) outs(%e : tensor<1x10xf32>) -> tensor<1x10xf32>
    %r = linalg.reduce {arith.maximumf} ins(%a : tensor<1x10xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
    scf.yield %r : tensor<1xf32>
  } else {
    %r = linalg.reduce {arith.maximumf} ins(%p : tensor<1x10xf32>) outs(%e1 : tensor<1xf32>) dimensions = [1]
    scf.yield %r : tensor<1xf32>
  }
  %y = linalg.tanh ins(%q : tensor<1xf32>) outs(%e1 : tensor<1xf32>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}

// -----

// An input that is returned is copied, and not ours; %a is returned twice, so
// that the second time it is copied from the first.
// CHECK-LABEL: @outputs
func.func @outputs(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %x, %a, %a : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: @dynamic
func.func @dynamic(%x: tensor<?xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // expected-remark @below {{keeps its block from being scheduled: the size of its result is not known}}
  %a = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %a : tensor<?xf32>
}
