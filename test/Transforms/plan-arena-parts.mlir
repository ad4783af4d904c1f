// RUN: memplan-opt %s --pass-pipeline='builtin.module(memplan-plan-arena{alignment=16},memplan-verify-arena)' --split-input-file | FileCheck %s
// RUN: memplan-opt %s --pass-pipeline='builtin.module(memplan-plan-arena{alignment=16},memplan-materialize-arena,memplan-verify-arena)' --split-input-file | FileCheck %s --check-prefix=VIEW

// Points: 0 low half of %c written, 1 and 2 %t, 3 high half written, 4 all read.
// 16 bytes live at 0, 32 from 1 on if %t lies where the high half will be; with
// one life for all of %c it would be 48.
// CHECK-LABEL: func.func @half_filled
//  CHECK-SAME: #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 48, optimal = true, alignment = 16>
//       CHECK: memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 5, parts = [#memplan.part<offset = 0, bytes = 16, lower = 0, upper = 5>, #memplan.part<offset = 16, bytes = 16, lower = 3, upper = 5>]>} : memref<8xf32>
//       CHECK: memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 1, upper = 3>} : memref<4xf32>
//        VIEW: memref.view %{{.*}} {memplan.slot = #memplan.slot<offset = 0, {{.*}}parts = {{.*}} : memref<32xi8> to memref<8xf32>
func.func @half_filled(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<8xf32>) {
  %c = memref.alloc() : memref<8xf32>
  %t = memref.alloc() : memref<4xf32>
  %low = memref.subview %c[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %t : memref<4xf32> to memref<4xf32>
  memref.copy %t, %y : memref<4xf32> to memref<4xf32>
  %high = memref.subview %c[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %x, %high : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %c, %z : memref<8xf32> to memref<8xf32>
  return
}

// -----

// Parts that interleave are one range of bytes: row by row, the halves of %c.
// CHECK-LABEL: func.func @interleaved
//  CHECK-SAME: #memplan.arena<bytes = 48, lower_bound = 48, no_reuse = 48, optimal = true, alignment = 16>
//   CHECK-NOT: parts
func.func @interleaved(%x: memref<2x2xf32>, %y: memref<2x2xf32>, %z: memref<2x4xf32>) {
  %c = memref.alloc() : memref<2x4xf32>
  %t = memref.alloc() : memref<2x2xf32>
  %left = memref.subview %c[0, 0] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1]>>
  memref.copy %x, %left : memref<2x2xf32> to memref<2x2xf32, strided<[4, 1]>>
  memref.copy %x, %t : memref<2x2xf32> to memref<2x2xf32>
  memref.copy %t, %y : memref<2x2xf32> to memref<2x2xf32>
  %right = memref.subview %c[0, 2] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 2>>
  memref.copy %x, %right : memref<2x2xf32> to memref<2x2xf32, strided<[4, 1], offset: 2>>
  memref.copy %c, %z : memref<2x4xf32> to memref<2x4xf32>
  return
}

// -----

// In a loop that %c is outside of, each part lives as long as the loop; the bytes
// that nobody touches are %t's.
// CHECK-LABEL: func.func @loop
//  CHECK-SAME: #memplan.arena<bytes = 48, lower_bound = 48, no_reuse = 64, optimal = true, alignment = 16>
//       CHECK: parts = [#memplan.part<offset = 0, bytes = 16, lower = 0, upper = 6>, #memplan.part<offset = 32, bytes = 16, lower = 0, upper = 6>]
//       CHECK: memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 6>
func.func @loop(%x: memref<4xf32>, %y: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = memref.alloc() : memref<12xf32>
  %low = memref.subview %c[0] [4] [1] : memref<12xf32> to memref<4xf32, strided<[1]>>
  %high = memref.subview %c[8] [4] [1] : memref<12xf32> to memref<4xf32, strided<[1], offset: 8>>
  %t = memref.alloc() : memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
    memref.copy %low, %high : memref<4xf32, strided<[1]>> to memref<4xf32, strided<[1], offset: 8>>
    memref.copy %x, %t : memref<4xf32> to memref<4xf32>
    memref.copy %t, %y : memref<4xf32> to memref<4xf32>
  }
  return
}
