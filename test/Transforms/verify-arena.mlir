// What bit other planners, as plans that must be refused. Each plan's numbers
// (height, sum, bound) follow from its slots, so that only the named fault is
// left. `verify-arena-invalid.mlir` has the faults in the numbers.
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -split-input-file -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(memplan-verify-arena)'

// Touching lifetimes taken as in place, but at a shifted offset: point 1 reads
// bytes [0, 16) while it writes [8, 24).
func.func @touching_shifted(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 24, lower_bound = 16, no_reuse = 32, optimal = false, alignment = 8>]} {
  // expected-error @+2 {{is in use at point 1, outside of its lifetime}}
  // expected-error @+1 {{buffer (bytes [0, 16), points [0, 1)) is touched while buffer (bytes [8, 24), points [1, 3)) shares bytes with it}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  // expected-note @+1 {{which is made here}}
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 8, lower = 1, upper = 3>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  // expected-note @+2 {{both are in use at this op}}
  // expected-note @+1 {{here}}
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  memref.copy %b, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// An alias lost through a transpose and a reshape: %a is read at point 2.
func.func @lost_alias(%x: memref<4x4xf32>, %y: memref<2x8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 64, lower_bound = 64, no_reuse = 128, optimal = true, alignment = 64>]} {
  // expected-error @+2 {{is in use at point 1, outside of its lifetime}}
  // expected-note @+1 {{which is made here}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4x4xf32>
  // expected-error @+1 {{is touched while buffer (bytes [0, 64), points [0, 1)) shares bytes with it and is in use}}
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>} : memref<4x4xf32>
  memref.copy %x, %a : memref<4x4xf32> to memref<4x4xf32>
  %t = memref.transpose %a (i, j) -> (j, i) : memref<4x4xf32> to memref<4x4xf32, strided<[1, 4]>>
  %u = memref.transpose %t (i, j) -> (j, i) : memref<4x4xf32, strided<[1, 4]>> to memref<4x4xf32, strided<[4, 1]>>
  %f = memref.collapse_shape %u [[0, 1]] : memref<4x4xf32, strided<[4, 1]>> into memref<16xf32, strided<[1]>>
  %e = memref.expand_shape %f [[0, 1]] output_shape [2, 8] : memref<16xf32, strided<[1]>> into memref<2x8xf32>
  // expected-note @+2 {{both are in use at this op}}
  // expected-note @+1 {{here}}
  memref.copy %x, %b : memref<4x4xf32> to memref<4x4xf32>
  memref.copy %e, %y : memref<2x8xf32> to memref<2x8xf32>
  return
}

// -----

// A life not extended across a loop: %a is read again in the next iteration,
// after %b has been written over it.
func.func @loop(%x: memref<4xf32>, %n: index) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 32, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+2 {{is in use at point 3, outside of its lifetime}}
  // expected-note @+1 {{which is made here}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{is touched while}}
    %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 3, upper = 5>} : memref<4xf32>
    memref.copy %a, %x : memref<4xf32> to memref<4xf32>
    // expected-note @+2 {{both are in use at this op}}
    // expected-note @+1 {{here}}
    memref.copy %x, %b : memref<4xf32> to memref<4xf32>
    memref.copy %b, %x : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// A copy of a buffer onto a shifted part of itself.
func.func @shifted_copy(%x: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 32, optimal = true, alignment = 32>]} {
  // expected-error @+1 {{is overwritten where it is yet to be read}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  %low = memref.subview %a[0] [6] [1] : memref<8xf32> to memref<6xf32, strided<[1]>>
  %high = memref.subview %a[2] [6] [1] : memref<8xf32> to memref<6xf32, strided<[1], offset: 2>>
  // expected-note @+1 {{by this}}
  memref.copy %low, %high : memref<6xf32, strided<[1]>> to memref<6xf32, strided<[1], offset: 2>>
  memref.copy %a, %x : memref<8xf32> to memref<8xf32>
  return
}

// -----

// In place, but in another order: a thread stores what another has yet to read.
func.func @transposed_in_place(%x: memref<4x4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 64, lower_bound = 64, no_reuse = 64, optimal = true, alignment = 64>]} {
  // expected-error @+1 {{is overwritten where it is yet to be read}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<4x4xf32>
  memref.copy %x, %a : memref<4x4xf32> to memref<4x4xf32>
  // expected-note @+1 {{by this}}
  linalg.transpose ins(%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>) permutation = [1, 0]
  memref.copy %a, %x : memref<4x4xf32> to memref<4x4xf32>
  return
}

// -----

// In place and in step: legal.
func.func @in_place(%x: memref<4x4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 64, lower_bound = 64, no_reuse = 64, optimal = true, alignment = 64>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<4x4xf32>
  memref.copy %x, %a : memref<4x4xf32> to memref<4x4xf32>
  linalg.exp ins(%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  memref.copy %a, %x : memref<4x4xf32> to memref<4x4xf32>
  return
}

// -----

// Interleaved parts share no element: legal.
func.func @interleaved(%x: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 32, optimal = true, alignment = 32>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  %even = memref.subview %a[0] [4] [2] : memref<8xf32> to memref<4xf32, strided<[2]>>
  %odd = memref.subview %a[1] [4] [2] : memref<8xf32> to memref<4xf32, strided<[2], offset: 1>>
  memref.copy %even, %odd : memref<4xf32, strided<[2]>> to memref<4xf32, strided<[2], offset: 1>>
  memref.copy %a, %x : memref<8xf32> to memref<8xf32>
  return
}

// -----

// A gap before the first buffer: 16 wasted bytes, so not optimal.
// expected-error @+1 {{arena of 32 bytes is called optimal, but the bound is 16}}
func.func @gap_first(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// A yielded value that dies too early: %r is %a or %b until point 5.
func.func @yielded(%x: memref<4xf32>, %c: i1) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 48, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{buffer (bytes [0, 16), points [4, 5)) is touched while buffer (bytes [0, 16), points [1, 2)) shares bytes}}
  %d = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 4, upper = 5>} : memref<4xf32>
  // expected-note @+1 {{here}}
  %r = scf.if %c -> memref<4xf32> {
    // expected-error @+2 {{is in use at point 3, outside of its lifetime}}
    // expected-note @+1 {{which is made here}}
    %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>} : memref<4xf32>
    memref.copy %x, %a : memref<4xf32> to memref<4xf32>
    scf.yield %a : memref<4xf32>
  } else {
    %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 2, upper = 6>} : memref<4xf32>
    memref.copy %x, %b : memref<4xf32> to memref<4xf32>
    scf.yield %b : memref<4xf32>
  }
  // expected-note @+1 {{both are in use at this op}}
  memref.copy %x, %d : memref<4xf32> to memref<4xf32>
  memref.copy %r, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Liveness at the wrong scope: %a is touched in the branch alone, but the
// branch stands in a loop that %a is made outside of.
func.func @scope(%x: memref<4xf32>, %n: index, %c: i1) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 32, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+2 {{is in use at point 1, outside of its lifetime}}
  // expected-note @+1 {{which is made here}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 2, upper = 4>} : memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{is touched while}}
    %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 5, upper = 7>} : memref<4xf32>
    // expected-note @+1 {{here}}
    scf.if %c {
      memref.copy %a, %x : memref<4xf32> to memref<4xf32>
      memref.copy %x, %a : memref<4xf32> to memref<4xf32>
    }
    // expected-note @+1 {{both are in use at this op}}
    memref.copy %x, %b : memref<4xf32> to memref<4xf32>
    memref.copy %b, %x : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// An output without consumers inside, and a dead leaf: both are written, so
// both need bytes at that time.
func.func @dead_leaf(%x: memref<4xf32>, %y: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 32, optimal = true, alignment = 16>]} {
  // expected-note @+1 {{which is made here}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<4xf32>
  // expected-error @+2 {{is in use at point 1, outside of its lifetime}}
  // expected-error @+1 {{is touched while}}
  %leaf = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 1>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  // expected-note @+2 {{both are in use at this op}}
  // expected-note @+1 {{here}}
  memref.copy %x, %leaf : memref<4xf32> to memref<4xf32>
  memref.copy %a, %y : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Zero-sized buffers share bytes with nobody: legal.
func.func @zero(%x: memref<4xf32>, %z: memref<0xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<4xf32>
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>} : memref<0xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %z, %b : memref<0xf32> to memref<0xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// The same result twice, and an argument returned as it came in: legal, the
// bytes are the caller's.
func.func @same_twice(%x: memref<4xf32>, %y: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %y : memref<4xf32> to memref<4xf32>
  return %y, %y, %x : memref<4xf32>, memref<4xf32>, memref<4xf32>
}

// -----

// Points: 0 low half written, 1 and 2 %t, 3 high half written, 4 low half read,
// 5 all read. %t lives where the high half will be.
func.func @parts(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 48, optimal = true, alignment = 16>]} {
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 6, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 6>, #memplan.part<offset = 16, bytes = 16, lower = 3, upper = 6>]>} : memref<8xf32>
  %t = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 1, upper = 3>} : memref<4xf32>
  %low = memref.subview %c[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %t : memref<4xf32> to memref<4xf32>
  memref.copy %t, %y : memref<4xf32> to memref<4xf32>
  %high = memref.subview %c[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %x, %high : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %low, %y : memref<4xf32, strided<[1]>> to memref<4xf32>
  memref.copy %c, %z : memref<8xf32> to memref<8xf32>
  return
}

// -----

// The same, but %t is still read at 3, where the high half is written.
func.func @part_too_early(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 48, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{buffer (bytes [16, 32), points [3, 6)) is touched while buffer (bytes [16, 32), points [1, 3)) shares bytes with it and is in use}}
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 6, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 6>, #memplan.part<offset = 16, bytes = 16, lower = 3, upper = 6>]>} : memref<8xf32>
  // expected-note @+2 {{which is made here}}
  // expected-error @+1 {{buffer (bytes [16, 32), points [1, 3)) is in use at point 3, outside of its lifetime}}
  %t = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 1, upper = 3>} : memref<4xf32>
  %low = memref.subview %c[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %t : memref<4xf32> to memref<4xf32>
  memref.copy %t, %y : memref<4xf32> to memref<4xf32>
  %high = memref.subview %c[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  // expected-note @+2 {{both are in use at this op}}
  // expected-note @+1 {{here}}
  memref.copy %t, %high : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %low, %y : memref<4xf32, strided<[1]>> to memref<4xf32>
  memref.copy %c, %z : memref<8xf32> to memref<8xf32>
  return
}

// -----

// No part has the bytes [16, 32), which the last op reads.
func.func @no_part(%x: memref<4xf32>, %z: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 32, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{is touched at its byte 16, which no part of its slot has}}
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 2>]>} : memref<8xf32>
  %low = memref.subview %c[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  // expected-note @+1 {{here}}
  memref.copy %c, %z : memref<8xf32> to memref<8xf32>
  return
}

// -----

// A part's life is too short: the low half is read by the last op.
func.func @part_ends_early(%x: memref<4xf32>, %z: memref<8xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 32, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{buffer (bytes [0, 16), points [0, 2)) is in use at point 2, outside of its lifetime}}
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 2>, #memplan.part<offset = 16, bytes = 16, lower = 1, upper = 3>]>} : memref<8xf32>
  %low = memref.subview %c[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  %high = memref.subview %c[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %x, %high : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  // expected-note @+1 {{here}}
  memref.copy %c, %z : memref<8xf32> to memref<8xf32>
  return
}

// -----

// expected-error @+2 {{slot has parts that overlap or are not in ascending order}}
func.func @parts_overlap(%x: memref<8xf32>) {
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 2>, #memplan.part<offset = 8, bytes = 16, lower = 1, upper = 2>]>} : memref<8xf32>
  return
}

// -----

// expected-error @+2 {{slot has lifetime [0, 3), its parts [0, 2)}}
func.func @parts_are_shorter(%x: memref<8xf32>) {
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3, parts = [
    #memplan.part<offset = 0, bytes = 16, lower = 0, upper = 2>]>} : memref<8xf32>
  return
}
