// Lifetimes on control flow. Points are counted by hand in the margin.
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-print-liveness)' -o /dev/null | FileCheck %s
// What the planner makes of it stands up to the verifier, in all three forms.
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena,memplan-verify-arena,memplan-materialize-arena,memplan-verify-arena)'
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena,memplan-materialize-arena{storage=alloc},memplan-verify-arena)'

// CHECK-LABEL: @loop: 7 points
// `outside` is only touched in the loop, but lives for all of it: points 1 to 5.
// CHECK-NEXT: outside: 16 bytes, [1, 6)
// Swapped each iteration, so that either may be the result.
// CHECK-NEXT: swap_a: 16 bytes, [0, 7), 4 aliases
// CHECK-NEXT: swap_b: 16 bytes, [1, 7), 4 aliases
// Made anew in each iteration: lives within it.
// CHECK-NEXT: inside: 16 bytes, [2, 4)
func.func @loop(%x: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %outside = memref.alloc() : memref<4xf32> loc("outside")
  %a = memref.alloc() : memref<4xf32> loc("swap_a")
  %b = memref.alloc() : memref<4xf32> loc("swap_b")
  memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 0
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<4xf32>, memref<4xf32>) { // 1
    %inside = memref.alloc() : memref<4xf32> loc("inside")
    memref.copy %p, %inside : memref<4xf32> to memref<4xf32> // 2
    memref.copy %inside, %q : memref<4xf32> to memref<4xf32> // 3
    memref.copy %q, %outside : memref<4xf32> to memref<4xf32> // 4
    scf.yield %q, %p : memref<4xf32>, memref<4xf32>
  } // 5
  memref.copy %r#0, %x : memref<4xf32> to memref<4xf32> // 6
  return
}

// CHECK-LABEL: @branches: 7 points
// CHECK-NEXT: late: 16 bytes, [5, 7)
// Each branch's buffer lives until the last use of the result.
// CHECK-NEXT: then: 16 bytes, [1, 6), 1 aliases
// CHECK-NEXT: else: 16 bytes, [2, 6), 1 aliases
func.func @branches(%x: memref<4xf32>, %c: i1) {
  %z = memref.alloc() : memref<4xf32> loc("late")
  %r = scf.if %c -> memref<4xf32> { // 0
    %a = memref.alloc() : memref<4xf32> loc("then")
    memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 1
    scf.yield %a : memref<4xf32>
  } else {
    %a = memref.alloc() : memref<4xf32> loc("else")
    memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 2
    scf.yield %a : memref<4xf32>
  } // 3
  memref.copy %x, %x : memref<4xf32> to memref<4xf32> // 4
  memref.copy %r, %z : memref<4xf32> to memref<4xf32> // 5
  memref.copy %z, %x : memref<4xf32> to memref<4xf32> // 6
  return
}

// CHECK-LABEL: @while: 6 points
// CHECK-NEXT: state: 16 bytes, [0, 5), 1 aliases
// Made in the condition's region, handed to the body and to the result.
// CHECK-NEXT: before: 16 bytes, [2, 6), 2 aliases
func.func @while(%x: memref<4xf32>, %c: i1) {
  %a = memref.alloc() : memref<4xf32> loc("state")
  memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 0
  %r = scf.while (%p = %a) : (memref<4xf32>) -> memref<4xf32> { // 1
    %t = memref.alloc() : memref<4xf32> loc("before")
    memref.copy %p, %t : memref<4xf32> to memref<4xf32> // 2
    scf.condition(%c) %t : memref<4xf32>
  } do {
  ^bb0(%q: memref<4xf32>):
    memref.copy %q, %a : memref<4xf32> to memref<4xf32> // 3
    scf.yield %a : memref<4xf32>
  } // 4
  memref.copy %r, %x : memref<4xf32> to memref<4xf32> // 5
  return
}

// CHECK-LABEL: @blocks: 5 points
// A jump back from point 4 to point 1 repeats what lies between.
// CHECK-NEXT: a: 16 bytes, [0, 5)
// CHECK-NEXT: b: 16 bytes, [1, 5)
// One block makes and uses it alone.
// CHECK-NEXT: local: 16 bytes, [2, 4)
func.func @blocks(%x: memref<4xf32>, %c: i1) {
  %a = memref.alloc() : memref<4xf32> loc("a")
  %b = memref.alloc() : memref<4xf32> loc("b")
  memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 0
  cf.br ^head(%a : memref<4xf32>)
^head(%p: memref<4xf32>):
  memref.copy %p, %b : memref<4xf32> to memref<4xf32> // 1
  %local = memref.alloc() : memref<4xf32> loc("local")
  memref.copy %p, %local : memref<4xf32> to memref<4xf32> // 2
  memref.copy %local, %x : memref<4xf32> to memref<4xf32> // 3
  cf.cond_br %c, ^body, ^exit
^body:
  memref.copy %b, %x : memref<4xf32> to memref<4xf32> // 4
  cf.br ^head(%b : memref<4xf32>)
^exit:
  return
}

// CHECK-LABEL: @views: 3 points
// Views of views of views, and a select between two buffers.
// CHECK-NEXT: v: 64 bytes, [0, 3), 6 aliases
// CHECK-NEXT: w: 64 bytes, [1, 3), 3 aliases
func.func @views(%x: memref<2x4xf32>, %c: i1) {
  %v = memref.alloc() : memref<4x4xf32> loc("v")
  %w = memref.alloc() : memref<4x4xf32> loc("w")
  %0 = memref.subview %v[1, 0] [2, 4] [1, 1] : memref<4x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 4>>
  memref.copy %x, %0 : memref<2x4xf32> to memref<2x4xf32, strided<[4, 1], offset: 4>> // 0
  %f = arith.constant 0.0 : f32
  linalg.fill ins(%f : f32) outs(%w : memref<4x4xf32>) // 1
  %1 = arith.select %c, %v, %w : memref<4x4xf32>
  %2 = memref.transpose %1 (i, j) -> (j, i) : memref<4x4xf32> to memref<4x4xf32, strided<[1, 4]>>
  %3 = memref.collapse_shape %v [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  %4 = memref.subview %3[0] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1]>>
  %5 = memref.subview %2[0, 0] [2, 4] [1, 1] : memref<4x4xf32, strided<[1, 4]>> to memref<2x4xf32, strided<[1, 4]>>
  memref.copy %5, %x : memref<2x4xf32, strided<[1, 4]>> to memref<2x4xf32> // 2
  return
}

// CHECK-LABEL: @parallel: 4 points
// The iterations run in any order: whatever they touch lives for all of them.
// CHECK-NEXT: shared: 16 bytes, [0, 4)
// CHECK-NEXT: written: 16 bytes, [1, 4)
func.func @parallel(%x: memref<4xf32>) {
  %s = memref.alloc() : memref<4xf32> loc("shared")
  %w = memref.alloc() : memref<4xf32> loc("written")
  memref.copy %x, %s : memref<4xf32> to memref<4xf32> // 0
  scf.forall (%i) in (4) { // 1
    memref.copy %s, %w : memref<4xf32> to memref<4xf32> // 2
  } // 3
  return
}

// CHECK-LABEL: @switch: 6 points
// The default region is the op's first one.
// CHECK-NEXT: other: 16 bytes, [1, 6)
// CHECK-NEXT: zero: 16 bytes, [2, 6)
func.func @switch(%x: memref<4xf32>, %i: index) {
  %r = scf.index_switch %i -> memref<4xf32> // 0
  case 0 {
    %a = memref.alloc() : memref<4xf32> loc("zero")
    memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 2
    scf.yield %a : memref<4xf32>
  }
  default {
    %a = memref.alloc() : memref<4xf32> loc("other")
    memref.copy %x, %a : memref<4xf32> to memref<4xf32> // 1
    scf.yield %a : memref<4xf32>
  } // 3
  %e = scf.execute_region -> memref<4xf32> {
    scf.yield %r : memref<4xf32>
  }
  memref.copy %x, %x : memref<4xf32> to memref<4xf32> // 4
  memref.copy %e, %x : memref<4xf32> to memref<4xf32> // 5
  return
}
