// RUN: memplan-opt %s --memplan-control-flow-destinations --split-input-file | FileCheck %s
// One-shot bufferization takes all of it.
// RUN: memplan-opt %s --memplan-control-flow-destinations --one-shot-bufferize="bufferize-function-boundaries" --split-input-file

// What a loop carries lies in its argument's buffer.
// CHECK-LABEL: func.func @carried
//       CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %
//       CHECK:     %[[S:.*]] = linalg.exp
//       CHECK:     %[[M:.*]] = bufferization.materialize_in_destination %[[S]] in %[[A]]
//       CHECK:     scf.yield %[[M]]
func.func @carried(%a0: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Values that change places are first taken out of each other's buffers: both,
// before either is overwritten.
// CHECK-LABEL: func.func @swapped
//       CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %
//       CHECK:     %[[E:.*]] = tensor.empty
//       CHECK:     %[[X:.*]] = bufferization.materialize_in_destination %[[B]] in %[[E]]
//       CHECK:     %[[F:.*]] = tensor.empty
//       CHECK:     %[[Y:.*]] = bufferization.materialize_in_destination %[[A]] in %[[F]]
//       CHECK:     %[[P:.*]] = bufferization.materialize_in_destination %[[X]] in %[[A]]
//       CHECK:     %[[Q:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[B]]
//       CHECK:     scf.yield %[[P]], %[[Q]]
func.func @swapped(%a0: tensor<8xf32>, %b0: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0, %b = %b0) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// An exchange that runs through a branch and a slice is one all the same.
// CHECK-LABEL: func.func @swapped_deep
//       CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %
//       CHECK:     %[[R:.*]] = scf.if
//       CHECK:     %[[E:.*]] = tensor.empty() : tensor<8xf32>
//       CHECK:     %[[X:.*]] = bufferization.materialize_in_destination %[[R]] in %[[E]]
//       CHECK:     bufferization.materialize_in_destination %[[X]] in %[[A]]
func.func @swapped_deep(%a0: tensor<8xf32>, %b0: tensor<8xf32>, %n: index, %c: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0, %b = %b0) -> (tensor<8xf32>, tensor<8xf32>) {
    %part = tensor.extract_slice %a[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %x = scf.if %c -> tensor<8xf32> {
      %mixed = tensor.insert_slice %part into %b[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
      scf.yield %mixed : tensor<8xf32>
    } else {
      scf.yield %b : tensor<8xf32>
    }
    scf.yield %x, %a : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Branches meet in one destination, made before them.
// CHECK-LABEL: func.func @branches
//       CHECK:   %[[D:.*]] = tensor.empty
//  CHECK-NEXT:   scf.if
//       CHECK:     %[[X:.*]] = linalg.exp
//       CHECK:     %[[M:.*]] = bufferization.materialize_in_destination %[[X]] in %[[D]]
//       CHECK:     scf.yield %[[M]]
//       CHECK:   else
//       CHECK:     %[[N:.*]] = bufferization.materialize_in_destination %arg0 in %[[D]]
//       CHECK:     scf.yield %[[N]]
func.func @branches(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %r = scf.if %c -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// A tensor that one branch updates and the other leaves is its own destination.
// CHECK-LABEL: func.func @updated
//   CHECK-NOT:   materialize_in_destination
func.func @updated(%x: tensor<8xf32>, %p: tensor<2xf32>, %c: i1) -> tensor<8xf32> {
  %r = scf.if %c -> tensor<8xf32> {
    %s = tensor.insert_slice %p into %x[2] [2] [1] : tensor<2xf32> into tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Both halves of a while loop hand on.
// CHECK-LABEL: func.func @while
//       CHECK:   scf.while (%[[A:.*]] = %
//       CHECK:     %[[X:.*]] = linalg.exp
//       CHECK:     %[[M:.*]] = bufferization.materialize_in_destination %[[X]] in %[[A]]
//       CHECK:     scf.condition({{.*}}) %[[M]]
//       CHECK:   ^bb0(%[[B:.*]]: tensor<8xf32>):
//       CHECK:     %[[Y:.*]] = linalg.tanh
//       CHECK:     %[[N:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[B]]
//       CHECK:     scf.yield %[[N]]
func.func @while(%a0: tensor<8xf32>, %limit: f32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %r = scf.while (%a = %a0) : (tensor<8xf32>) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %v = tensor.extract %s[%c0] : tensor<8xf32>
    %c = arith.cmpf olt, %v, %limit : f32
    scf.condition(%c) %s : tensor<8xf32>
  } do {
  ^bb0(%b: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.tanh ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Scalars and tensors of unknown size are left as they are.
// CHECK-LABEL: func.func @others
//   CHECK-NOT:   materialize_in_destination
func.func @others(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %k = %c0) -> (tensor<?xf32>, index) {
    %s = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
    %l = arith.addi %k, %i : index
    scf.yield %s, %l : tensor<?xf32>, index
  }
  return %r#0, %r#1 : tensor<?xf32>, index
}

// -----

// What an inner loop and a branch made of the argument in place lies there.
// CHECK-LABEL: func.func @nested
//       CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %
//       CHECK:     scf.for {{.*}} iter_args(%[[B:.*]] = %[[A]])
//       CHECK:       bufferization.materialize_in_destination %{{.*}} in %[[B]]
//   CHECK-NOT:   materialize_in_destination
func.func @nested(%a0: tensor<8xf32>, %p: tensor<2xf32>, %n: index, %c: i1) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0) -> tensor<8xf32> {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %x = linalg.exp ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      scf.yield %x : tensor<8xf32>
    }
    %t = scf.if %c -> tensor<8xf32> {
      %u = tensor.insert_slice %p into %s[2] [2] [1] : tensor<2xf32> into tensor<8xf32>
      scf.yield %u : tensor<8xf32>
    } else {
      scf.yield %s : tensor<8xf32>
    }
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Unless the argument is read after it: then in a buffer of its own first.
// CHECK-LABEL: func.func @read_after
//       CHECK:   scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %
//       CHECK:     %[[S:.*]] = linalg.exp
//       CHECK:     %[[X:.*]] = bufferization.materialize_in_destination %[[S]] in %
//       CHECK:     bufferization.materialize_in_destination %[[X]] in %[[A]]
func.func @read_after(%a0: tensor<8xf32>, %y0: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %a0, %y = %y0) -> (tensor<8xf32>, tensor<8xf32>) {
    %s = linalg.exp ins(%y : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
    %t = linalg.add ins(%a, %s : tensor<8xf32>, tensor<8xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s, %t : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
