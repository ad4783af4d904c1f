// What must not be touched stays as it is, each with a remark.
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -verify-diagnostics -allow-unregistered-dialect \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena{emit-remarks},memplan-materialize-arena)' | FileCheck %s

// CHECK-NOT: memplan.slot
// CHECK-NOT: memref.view

func.func private @external(memref<4xf32>) -> memref<4xf32>

func.func @returned() -> memref<4xf32> {
  // expected-remark @+1 {{left alone: is returned}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  return %a : memref<4xf32>
}

func.func @returned_view() -> memref<2x2xf32> {
  // expected-remark @+1 {{left alone: is returned}}
  %a = memref.alloc() : memref<4xf32>
  %b = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  // expected-note @+1 {{here}}
  return %b : memref<2x2xf32>
}

func.func @dynamic(%n: index) {
  // expected-remark @+1 {{left alone: has a dynamic size}}
  %a = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

func.func @layout() {
  // expected-remark @+1 {{left alone: has a layout that is not the identity}}
  %a = memref.alloc() : memref<4xf32, strided<[2]>>
  memref.dealloc %a : memref<4xf32, strided<[2]>>
  return
}

func.func @stack() {
  // expected-remark @+1 {{left alone: is on the stack}}
  %a = memref.alloca() : memref<4xf32>
  return
}

func.func @unknown_op() {
  // expected-remark @+1 {{left alone: is used by an op of unknown effects}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  "test.keep"(%a) : (memref<4xf32>) -> ()
  return
}

func.func @stored(%table: memref<2xmemref<4xf32>>, %i: index) {
  // expected-remark @+1 {{left alone: is an operand that the op neither reads nor writes: it may be kept}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  memref.store %a, %table[%i] : memref<2xmemref<4xf32>>
  return
}

func.func @address() -> index {
  // expected-remark @+1 {{left alone: is turned into a value that is not a memref}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  %p = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index
  return %p : index
}

func.func @from_call() {
  // expected-remark @+1 {{left alone: is passed to an external function that returns a memref}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  %b = call @external(%a) : (memref<4xf32>) -> memref<4xf32>
  return
}

func.func private @keeper(%x: memref<4xf32>) {
  "test.keep"(%x) : (memref<4xf32>) -> ()
  return
}
func.func @kept_by_callee() {
  // expected-remark @+1 {{left alone: is passed to a function that may keep it}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  call @keeper(%a) : (memref<4xf32>) -> ()
  return
}

func.func @carried(%x: memref<4xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (memref<4xf32>) {
    // expected-remark @+1 {{left alone: is carried into the next iteration of the loop that makes it}}
    %a = memref.alloc() : memref<4xf32>
    memref.copy %p, %a : memref<4xf32> to memref<4xf32>
    // expected-note @+1 {{here}}
    scf.yield %a : memref<4xf32>
  }
  %v = memref.load %r[%c0] : memref<4xf32>
  return %v : f32
}

func.func @carried_blocks(%x: memref<4xf32>, %c: i1) {
  cf.br ^head(%x : memref<4xf32>)
^head(%p: memref<4xf32>):
  // expected-remark @+1 {{left alone: is carried into the next round of the loop among blocks that makes it}}
  %a = memref.alloc() : memref<4xf32>
  memref.copy %p, %a : memref<4xf32> to memref<4xf32>
  // expected-note @+1 {{here}}
  cf.cond_br %c, ^head(%a : memref<4xf32>), ^exit
^exit:
  return
}

func.func @parallel(%x: memref<4xf32>) {
  // expected-note @+1 {{here}}
  scf.forall (%i) in (4) {
    // expected-remark @+1 {{left alone: is made in a region that may run more than once at a time}}
    %a = memref.alloc() : memref<4xf32>
    memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  }
  return
}

func.func @async(%x: memref<4xf32>) {
  // expected-remark @+1 {{left alone: is used by an op that may run on after its place}}
  %a = memref.alloc() : memref<4xf32>
  // expected-note @+1 {{here}}
  %t = async.execute {
    memref.copy %x, %a : memref<4xf32> to memref<4xf32>
    async.yield
  }
  return
}

// Freed together with the caller's buffer: the dealloc can neither stay nor go.
func.func @freed_together(%x: memref<4xf32>, %c: i1) {
  // expected-remark @+1 {{left alone: is freed together with a buffer that is left alone}}
  %a = memref.alloc() : memref<4xf32>
  %s = arith.select %c, %a, %x : memref<4xf32>
  // expected-note @+1 {{here}}
  memref.dealloc %s : memref<4xf32>
  return
}

func.func @unknown_region(%x: memref<4xf32>) {
  // expected-note @+1 {{here}}
  "test.region"() ({
    // expected-remark @+1 {{left alone: is made in a region that may run more than once at a time}}
    %a = memref.alloc() : memref<4xf32>
    memref.copy %x, %a : memref<4xf32> to memref<4xf32>
    "test.end"() : () -> ()
  }) : () -> ()
  return
}
