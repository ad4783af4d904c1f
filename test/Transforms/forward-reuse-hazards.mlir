// What must stay as it is, though it looks as if it could go.
// RUN: memplan-opt %s --pass-pipeline='builtin.module(memplan-forward-destinations,memplan-reuse-buffers)' --split-input-file | FileCheck %s

// A loop among blocks has no points of its own: %b is written in each iteration
// from what %a held before it.
// CHECK-LABEL: func.func @block_loop
// CHECK-COUNT-2: memref.alloc
func.func @block_loop(%x: memref<4xf32>, %out: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
  cf.br ^bb1(%c0 : index)
^bb1(%i: index):
  linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  %j = arith.addi %i, %c1 : index
  %more = arith.cmpi slt, %j, %c3 : index
  cf.cond_br %more, ^bb1(%j : index), ^bb2
^bb2:
  memref.copy %b, %out : memref<4xf32> to memref<4xf32>
  return
}

// -----

// What a recursive callee does with the output isn't known; here it is what the
// copy overwrites.
// CHECK-LABEL: func.func @callee_keeps_output
//       CHECK:   call @keep
//       CHECK:   memref.copy
func.func private @keep(%m: memref<8xf32>, %again: i1) {
  %z = arith.constant 0.0 : f32
  %f = arith.constant false
  scf.if %again {
    func.call @keep(%m, %f) : (memref<8xf32>, i1) -> ()
  } else {
    linalg.fill ins(%z : f32) outs(%m : memref<8xf32>)
  }
  return
}
func.func @callee_keeps_output(%x: memref<8xf32>, %out: memref<8xf32> {bufferize.result}) {
  %t = arith.constant true
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  call @keep(%out, %t) : (memref<8xf32>, i1) -> ()
  memref.copy %a, %out : memref<8xf32> to memref<8xf32>
  return
}

// -----

// So here.
// CHECK-LABEL: func.func @callee_keeps_scratch
//       CHECK:   memref.alloc
//       CHECK:   call @keep
func.func private @keep(%m: memref<8xf32>, %again: i1) {
  %z = arith.constant 0.0 : f32
  %f = arith.constant false
  scf.if %again {
    func.call @keep(%m, %f) : (memref<8xf32>, i1) -> ()
  } else {
    linalg.fill ins(%z : f32) outs(%m : memref<8xf32>)
  }
  return
}
func.func @callee_keeps_scratch(%x: memref<8xf32>, %out: memref<8xf32> {bufferize.result}) {
  %t = arith.constant true
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  call @keep(%out, %t) : (memref<8xf32>, i1) -> ()
  linalg.exp ins(%a : memref<8xf32>) outs(%out : memref<8xf32>)
  return
}

// -----

// The destination has a dynamic size: no part of it is known to be apart from
// another.
// CHECK-LABEL: func.func @dynamic_destination
//       CHECK:   memref.copy
func.func @dynamic_destination(%x: memref<8xf32>, %out: memref<?xf32> {bufferize.result}) {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  linalg.fill ins(%z : f32) outs(%out : memref<?xf32>)
  %p = memref.subview %out[0] [8] [1] : memref<?xf32> to memref<8xf32, strided<[1]>>
  memref.copy %a, %p : memref<8xf32> to memref<8xf32, strided<[1]>>
  return
}

// -----

// Deallocs that free one of several buffers belong to none.
// CHECK-LABEL: func.func @maybe_freed
// CHECK-COUNT-3: memref.alloc
// CHECK-COUNT-2: memref.dealloc
func.func @maybe_freed(%x: memref<4xf32>, %k: i1, %o: memref<4xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %c = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
  linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  linalg.exp ins(%x : memref<4xf32>) outs(%c : memref<4xf32>)
  linalg.add ins(%b, %c : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  linalg.add ins(%b, %c : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  memref.dealloc %a : memref<4xf32>
  %s = arith.select %k, %b, %c : memref<4xf32>
  %t = arith.select %k, %c, %b : memref<4xf32>
  memref.dealloc %s : memref<4xf32>
  memref.dealloc %t : memref<4xf32>
  return
}

// -----

// A buffer that is freed in one branch is written again in the other.
// CHECK-LABEL: func.func @freed_in_a_branch
// CHECK-COUNT-2: memref.alloc
func.func @freed_in_a_branch(%x: memref<4xf32>, %k: i1, %o: memref<4xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  scf.if %k {
    memref.dealloc %b : memref<4xf32>
    linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
    linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  } else {
    linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
    linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
    linalg.add ins(%b, %b : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
    memref.dealloc %b : memref<4xf32>
  }
  memref.dealloc %a : memref<4xf32>
  return
}

// -----

// One dealloc of two sources.
// CHECK-LABEL: func.func @freed_together
//     CHECK: memref.dealloc
// CHECK-NOT: memref.dealloc
func.func @freed_together(%x: memref<4xf32>, %k: i1, %o: memref<4xf32> {bufferize.result}) {
  %a1 = memref.alloc() : memref<4xf32>
  %b1 = memref.alloc() : memref<4xf32>
  %a2 = memref.alloc() : memref<4xf32>
  %b2 = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%a1 : memref<4xf32>)
  linalg.exp ins(%a1 : memref<4xf32>) outs(%b1 : memref<4xf32>)
  linalg.exp ins(%x : memref<4xf32>) outs(%a2 : memref<4xf32>)
  linalg.exp ins(%a2 : memref<4xf32>) outs(%b2 : memref<4xf32>)
  linalg.sub ins(%b1, %b2 : memref<4xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  %s = arith.select %k, %a1, %a2 : memref<4xf32>
  memref.dealloc %s : memref<4xf32>
  return
}

// -----

// The caller's output need not be aligned as the alloc is.
// CHECK-LABEL: func.func @aligned
// CHECK: memref.alloc
func.func @aligned(%x: memref<8xf32>, %out: memref<8xf32> {bufferize.result}) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
  %aa = memref.assume_alignment %a, 64 : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%aa : memref<8xf32>)
  linalg.exp ins(%a : memref<8xf32>) outs(%out : memref<8xf32>)
  return
}

// -----

// The destination's layout hangs on a value that is not there yet.
// CHECK-LABEL: func.func @dynamic_layout
// CHECK: memref.copy
func.func @dynamic_layout(%x: memref<8xf32>, %n: memref<1xindex>, %out: memref<8xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  %s = memref.load %n[%c0] : memref<1xindex>
  %c = memref.alloc()[%s] : memref<8xf32, strided<[?]>>
  memref.copy %a, %c : memref<8xf32> to memref<8xf32, strided<[?]>>
  linalg.exp ins(%c : memref<8xf32, strided<[?]>>) outs(%out : memref<8xf32>)
  return
}

// -----

// A layout without strides.
// CHECK-LABEL: func.func @no_strides
// CHECK: memref.copy
func.func @no_strides(%x: memref<8xf32>, %out: memref<4xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  %c = memref.alloc() : memref<8xf32, affine_map<(d0) -> (d0 floordiv 2, d0 mod 2)>>
  memref.copy %a, %c : memref<8xf32> to memref<8xf32, affine_map<(d0) -> (d0 floordiv 2, d0 mod 2)>>
  %s = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  linalg.exp ins(%s : memref<4xf32, strided<[1]>>) outs(%out : memref<4xf32>)
  return
}

// -----

// An empty part at the end.
// CHECK-LABEL: func.func @empty_part
// CHECK: memref.subview
func.func @empty_part(%x: memref<4xf32>, %out: memref<4xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<8xf32>
  %p = memref.subview %a[0][4][1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %e = memref.subview %a[4][0][1] : memref<8xf32> to memref<0xf32, strided<[1], offset: 4>>
  linalg.exp ins(%x : memref<4xf32>) outs(%p : memref<4xf32, strided<[1]>>)
  linalg.exp ins(%p : memref<4xf32, strided<[1]>>) outs(%out : memref<4xf32>)
  return
}

// -----

// A callee may look beyond the part that it is given.
// CHECK-LABEL: func.func @callee_looks_beyond
//       CHECK:   memref.copy
func.func private @f(%p: memref<4xf32, strided<[1], offset: 4>>) {
  %z = arith.constant 0.0 : f32
  %w = memref.reinterpret_cast %p to offset: [0], sizes: [8], strides: [1] : memref<4xf32, strided<[1], offset: 4>> to memref<8xf32>
  linalg.fill ins(%z : f32) outs(%w : memref<8xf32>)
  return
}
func.func @callee_looks_beyond(%x: memref<4xf32>, %out: memref<8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
  %p = memref.subview %out[0][4][1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %q = memref.subview %out[4][4][1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  call @f(%q) : (memref<4xf32, strided<[1], offset: 4>>) -> ()
  memref.copy %a, %p : memref<4xf32> to memref<4xf32, strided<[1]>>
  return
}
