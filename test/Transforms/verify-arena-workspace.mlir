// RUN: not memplan-opt %s --memplan-verify-arena --split-input-file 2>&1 | FileCheck %s

// A workspace must not lie on what lives at its time: %a's bytes.
// CHECK: buffer (bytes [0, 4096), points [1, 2)) overlaps buffer (bytes [0, 16384), points [0, 3))
func.func @overlap(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 16384, lower_bound = 16384, no_reuse = 16384, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 3>} : memref<64x64xf32>
  %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>, memplan.workspace} : memref<4096xi8>
  linalg.exp ins(%x : memref<64x64xf32>) outs(%a : memref<64x64xf32>)
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%y : memref<64x64xf32>) workspace(%w : memref<4096xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  linalg.exp ins(%a : memref<64x64xf32>) outs(%y : memref<64x64xf32>)
  return
}

// -----

// A buffer that bounds don't count must be nothing else: %w is written.
// CHECK: is marked memplan.workspace, but is used as something else or has parts
func.func @disguised(%x: memref<4096xi8>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 4096, lower_bound = 0, no_reuse = 0, optimal = false, alignment = 256>]} {
  %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>, memplan.workspace} : memref<4096xi8>
  memref.copy %x, %w : memref<4096xi8> to memref<4096xi8>
  return
}

// -----

// What claims to live only while another op runs lives when it is used.
// CHECK: buffer (bytes [0, 4096), points [2, 3)) is in use at point 1, outside of its lifetime
func.func @other_time(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 16384, lower_bound = 16384, no_reuse = 16384, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<64x64xf32>
  %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 2, upper = 3>, memplan.workspace} : memref<4096xi8>
  linalg.exp ins(%x : memref<64x64xf32>) outs(%a : memref<64x64xf32>)
  memplan.matmul ins(%a, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%y : memref<64x64xf32>) workspace(%w : memref<4096xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  linalg.exp ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>)
  return
}

// -----

// 2^63 - 256 and 4096 more are no end that 64 bits hold.
// CHECK: buffer (bytes [9223372036854775552, 9223372036854775552 + 4096), points [0, 1)) does not lie inside the arena of 4096 bytes
func.func @no_end(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 4096, lower_bound = 0, no_reuse = 0, optimal = false, alignment = 256>]} {
  %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 9223372036854775552, lower = 0, upper = 1>, memplan.workspace} : memref<4096xi8>
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%y : memref<64x64xf32>) workspace(%w : memref<4096xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  return
}
