// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena,memplan-materialize-arena,memplan-verify-arena)' | FileCheck %s
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena,memplan-materialize-arena{storage=alloc},memplan-verify-arena)' | FileCheck %s --check-prefix=ALLOC

// 64 + 64 bytes live at point 1: the second at 256, hence 256 + 64 = 320.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: memref<16xf32>, %[[ARENA:[^:]*]]: memref<320xi8> {memplan.arena = #memplan.arena<bytes = 320,
// CHECK: %[[O0:.*]] = arith.constant 0 : index
// CHECK: %[[A:.*]] = memref.view %[[ARENA]][%[[O0]]][] {memplan.name = "first", memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<320xi8> to memref<16xf32>
// CHECK: %[[O1:.*]] = arith.constant 256 : index
// CHECK: %[[B:.*]] = memref.view %[[ARENA]][%[[O1]]][] {memplan.slot = #memplan.slot<offset = 256, lower = 1, upper = 3>} : memref<320xi8> to memref<4x4xf32>
// CHECK: memref.copy %[[X]], %[[A]]
// Deallocs of planned buffers and of views of them go.
// CHECK-NOT: memref.dealloc
// CHECK: return
// ALLOC-LABEL: func.func @main
// ALLOC-SAME: (%{{[^:]*}}: memref<16xf32>)
// ALLOC: %[[ARENA:.*]] = memref.alloc() {alignment = 256 : i64, memplan.arena = #memplan.arena<bytes = 320
// ALLOC: memref.view %[[ARENA]]
// ALLOC: memref.dealloc %[[ARENA]]
// ALLOC-NEXT: return
func.func @main(%x: memref<16xf32>) {
  %a = memref.alloc() {memplan.name = "first"} : memref<16xf32>
  %b = memref.alloc() : memref<4x4xf32>
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  %flat = memref.collapse_shape %b [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  memref.copy %a, %flat : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  memref.copy %flat, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %b : memref<4x4xf32>
  return
}

// A private callee gets its arena from the caller, as a buffer of the call: it
// shares bytes with %t, which is dead by then.
// CHECK-LABEL: func.func private @callee
// CHECK-SAME: memref<256xi8> {memplan.arena
func.func private @callee(%x: memref<64xf32>) {
  %t = memref.alloc() : memref<64xf32>
  memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  memref.copy %t, %x : memref<64xf32> to memref<64xf32>
  return
}
// CHECK-LABEL: func.func @caller
// CHECK-SAME: memref<256xi8> {memplan.arena
// CHECK: memref.view {{.*}} {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<256xi8> to memref<64xf32>
// CHECK: %[[V:.*]] = memref.view {{.*}} {memplan.slot = #memplan.slot<offset = 0, lower = 2, upper = 3>} : memref<256xi8> to memref<256xi8>
// CHECK: call @callee(%{{.*}}, %[[V]])
// With storage=alloc only the function without callers allocates.
// ALLOC-LABEL: func.func private @callee
// ALLOC-SAME: memref<256xi8> {memplan.arena
// ALLOC-NOT: memref.alloc
// ALLOC-LABEL: func.func @caller
// ALLOC: memref.alloc
func.func @caller(%x: memref<64xf32>) {
  %t = memref.alloc() : memref<64xf32>
  memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  memref.copy %t, %x : memref<64xf32> to memref<64xf32>
  call @callee(%x) : (memref<64xf32>) -> ()
  return
}

// Recursive, and public but called: no caller can give them an arena.
// CHECK-LABEL: func.func private @recursive
// CHECK-SAME: (%{{[^:]*}}: memref<64xf32>, %{{[^:]*}}: i1)
// CHECK: memref.alloc() {alignment = 256 : i64, memplan.arena
func.func private @recursive(%x: memref<64xf32>, %c: i1) {
  %t = memref.alloc() : memref<64xf32>
  memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  scf.if %c {
    func.call @recursive(%x, %c) : (memref<64xf32>, i1) -> ()
  }
  memref.copy %t, %x : memref<64xf32> to memref<64xf32>
  return
}
// CHECK-LABEL: func.func @called
// CHECK-SAME: (%{{[^:]*}}: memref<64xf32>)
// CHECK: memref.alloc() {alignment = 256 : i64, memplan.arena
// CHECK: memref.dealloc
// CHECK-NEXT: return
func.func @called(%x: memref<64xf32>) {
  %t = memref.alloc() : memref<64xf32>
  memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  memref.copy %t, %x : memref<64xf32> to memref<64xf32>
  return
}
// In a parallel loop several calls may run at once.
// CHECK-LABEL: func.func private @in_parallel
// CHECK: memref.alloc() {alignment = 256 : i64, memplan.arena
func.func private @in_parallel(%x: memref<64xf32>) {
  %t = memref.alloc() : memref<64xf32>
  memref.copy %x, %t : memref<64xf32> to memref<64xf32>
  memref.copy %t, %x : memref<64xf32> to memref<64xf32>
  return
}
func.func @uses(%x: memref<64xf32>, %c: i1) {
  call @called(%x) : (memref<64xf32>) -> ()
  call @recursive(%x, %c) : (memref<64xf32>, i1) -> ()
  scf.forall (%i) in (4) {
    func.call @in_parallel(%x) : (memref<64xf32>) -> ()
  }
  return
}

// A buffer without elements is a view of no bytes; an alloc that nobody touches
// still gets its own.
// CHECK-LABEL: func.func @zero
// CHECK-SAME: memref<16xi8> {memplan.arena
// CHECK: memref.view {{.*}} to memref<0x4xf32>
// CHECK: memref.view {{.*}} to memref<4xf32>
func.func @zero(%x: memref<0x4xf32>) {
  %a = memref.alloc() : memref<0x4xf32>
  %dead = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<0x4xf32> to memref<0x4xf32>
  return
}
