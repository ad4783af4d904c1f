// RUN: memplan-opt %s --memplan-forward-destinations="emit-remarks=true alignment=1" --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// A copy in a loop into a buffer that is made outside: into the iteration's
// slice of it, whose place is known before its producer only after a move.
// CHECK-LABEL: func.func @slice_of_step
//       CHECK:   scf.for %[[I:.*]] =
//   CHECK-NOT:     alloc
//       CHECK:     %[[J:.*]] = arith.subi %{{.*}}, %[[I]]
//       CHECK:     %[[P:.*]] = memref.subview %arg1[%[[J]], 0] [1, 8] [1, 1]
//       CHECK:     linalg.exp ins(%arg0 : {{.*}}) outs(%[[P]]
//   CHECK-NOT:     memref.copy
func.func @slice_of_step(%x: memref<8xf32>, %y: memref<4x8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8xf32>
    linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
    %j = arith.subi %c3, %i : index
    %p = memref.subview %y[%j, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    memref.copy %a, %p : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// An offset that is read from memory can't be known before its reading.
// CHECK-LABEL: func.func @place_read_late
//       CHECK:   memref.copy
func.func @place_read_late(%x: memref<8xf32>, %where: memref<4xindex>, %y: memref<4x8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8xf32>
    linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
    %j = memref.load %where[%i] : memref<4xindex>
    %p = memref.subview %y[%j, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    // expected-remark @+1 {{this copy stays: the place of its destination isn't known when its source is made}}
    memref.copy %a, %p : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Both branches write where they meet.
// CHECK-LABEL: func.func @branches
//       CHECK:   scf.if
//       CHECK:     linalg.exp ins(%arg0 : {{.*}}) outs(%arg1
//       CHECK:   else
//       CHECK:     linalg.tanh ins(%arg0 : {{.*}}) outs(%arg1
//   CHECK-NOT:   memref.copy
func.func @branches(%x: memref<8xf32>, %y: memref<8xf32> {bufferize.result}, %c: i1) {
  %d = memref.alloc() : memref<8xf32>
  scf.if %c {
    %a = memref.alloc() : memref<8xf32>
    linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
    memref.copy %a, %d : memref<8xf32> to memref<8xf32>
  } else {
    %a = memref.alloc() : memref<8xf32>
    linalg.tanh ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
    memref.copy %a, %d : memref<8xf32> to memref<8xf32>
  }
  memref.copy %d, %y : memref<8xf32> to memref<8xf32>
  return
}

// -----

// Instances of a parallel loop have buffers of their own.
// CHECK-LABEL: func.func @parallel
//       CHECK:   memref.copy
func.func @parallel(%x: memref<8xf32>, %y: memref<8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    %a = memref.alloc() : memref<8xf32>
    linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
    // expected-remark @+1 {{this copy stays: it stands in a region that may run more than once at a time}}
    memref.copy %a, %y : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

// State that a loop carries is updated in place, if each element of it is made
// of itself.
// CHECK-LABEL: func.func @state
//       CHECK:   scf.for
//  CHECK-NEXT:     linalg.add ins(%arg1, %arg0 : {{.*}}) outs(%arg1
//  CHECK-NEXT:   }
func.func @state(%x: memref<8xf32>, %s: memref<8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8xf32>
    linalg.add ins(%s, %x : memref<8xf32>, memref<8xf32>) outs(%a : memref<8xf32>)
    memref.copy %a, %s : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

// Part of it, at a place of the iteration's.
// CHECK-LABEL: func.func @part_of_state
//       CHECK:   scf.for %[[I:.*]] =
//       CHECK:     %[[P:.*]] = memref.subview %arg1[%[[I]], 0]
//       CHECK:     %[[Q:.*]] = memref.subview %arg1[%[[I]], 0]
//       CHECK:     linalg.add ins(%[[P]], %arg0 : {{.*}}) outs(%[[Q]]
//   CHECK-NOT:     memref.copy
func.func @part_of_state(%x: memref<8xf32>, %s: memref<4x8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %p = memref.subview %s[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<8xf32>
    linalg.add ins(%p, %x : memref<8xf32, strided<[1], offset: ?>>, memref<8xf32>) outs(%a : memref<8xf32>)
    memref.copy %a, %p : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Not another part than is read,
// CHECK-LABEL: func.func @other_part
//       CHECK:   memref.copy
func.func @other_part(%x: memref<8xf32>, %s: memref<5x8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %j = arith.addi %i, %c1 : index
    %p = memref.subview %s[%i, 0] [1, 8] [1, 1] : memref<5x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %q = memref.subview %s[%j, 0] [1, 8] [1, 1] : memref<5x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<8xf32>
    // expected-note @+1 {{here}}
    linalg.add ins(%p, %x : memref<8xf32, strided<[1], offset: ?>>, memref<8xf32>) outs(%a : memref<8xf32>)
    // expected-remark @+1 {{this copy stays: its destination is in use while its source is}}
    memref.copy %a, %q : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// nor in another order,
// CHECK-LABEL: func.func @turned
//       CHECK:   memref.copy
func.func @turned(%x: memref<8xf32>, %s: memref<8x8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8x8xf32>
    // expected-note @+1 {{here}}
    linalg.transpose ins(%s : memref<8x8xf32>) outs(%a : memref<8x8xf32>) permutation = [1, 0]
    // expected-remark @+1 {{this copy stays: its destination is in use while its source is}}
    memref.copy %a, %s : memref<8x8xf32> to memref<8x8xf32>
  }
  return
}

// -----

// nor where the body also looks elsewhere,
// CHECK-LABEL: func.func @looked_up
//       CHECK:   memref.copy
func.func @looked_up(%s: memref<8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8xf32>
    // expected-note @+1 {{here}}
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%s : memref<8xf32>) outs(%a : memref<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %first = memref.load %s[%c0] : memref<8xf32>
      %sum = arith.addf %in, %first : f32
      linalg.yield %sum : f32
    }
    // expected-remark @+1 {{this copy stays: its destination is in use while its source is}}
    memref.copy %a, %s : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

// nor what is still read.
// CHECK-LABEL: func.func @read_after
//       CHECK:   memref.copy
func.func @read_after(%x: memref<8xf32>, %s: memref<8xf32> {bufferize.result}, %y: memref<8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<8xf32>
    linalg.add ins(%s, %x : memref<8xf32>, memref<8xf32>) outs(%a : memref<8xf32>)
    // expected-note @+1 {{here}}
    linalg.exp ins(%s : memref<8xf32>) outs(%y : memref<8xf32>)
    // expected-remark @+1 {{this copy stays: its destination is in use while its source is}}
    memref.copy %a, %s : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

// A source that is seen without its dim of one: the destination has not the
// alloc's shape, and what is in between can't be undone.
// CHECK-LABEL: func.func @dropped_dim
//       CHECK:   memref.copy
func.func @dropped_dim(%x: memref<1x8xf32>, %y: memref<8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<1x8xf32>
  linalg.exp ins(%x : memref<1x8xf32>) outs(%a : memref<1x8xf32>)
  %p = memref.subview %a[0, 0] [1, 8] [1, 1] : memref<1x8xf32> to memref<8xf32>
  // expected-remark @+1 {{this copy stays: its source is used elsewhere as well, beyond what is copied}}
  memref.copy %p, %y : memref<8xf32> to memref<8xf32>
  return
}
