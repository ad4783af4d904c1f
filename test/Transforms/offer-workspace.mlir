// RUN: memplan-opt %s --memplan-offer-workspace --split-input-file | FileCheck %s
// RUN: memplan-opt %s --memplan-offer-workspace="per-op=8192" --split-input-file | FileCheck %s --check-prefix=CAP
// RUN: memplan-opt %s --memplan-offer-workspace="total=20000" --split-input-file | FileCheck %s --check-prefix=TOTAL
// RUN: memplan-opt %s --memplan-offer-workspace="per-op=0" --split-input-file | FileCheck %s --check-prefix=NONE
// RUN: memplan-opt %s --memplan-offer-workspace --memplan-materialize-arena --memplan-verify-arena --split-input-file
// RUN: not memplan-opt %s --memplan-offer-workspace="per-op=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NEGATIVE: memplan-offer-workspace: per-op=-1 is not a number of bytes of at least 0
// NONE-NOT: memplan.workspace

// Of 65,536 bytes %a has [0, 16384) and %b [24576, 40960) while the products
// run: the largest gap is the 24,576 from 40,960 on, not the 8,192 between them.
// The first product reads %x, so that only %a lives: all from 16,384 on.
// CHECK-LABEL: func.func @gaps
//       CHECK:   %[[W:.*]] = memref.alloc() {memplan.slot = #memplan.slot<offset = 16384, lower = 0, upper = 1>, memplan.workspace} : memref<49152xi8>
//       CHECK:   memplan.matmul {{.*}} outs(%{{.*}}) workspace(%[[W]] : memref<49152xi8>)
//       CHECK:   %[[V:.*]] = memref.alloc() {memplan.slot = #memplan.slot<offset = 40960, lower = 1, upper = 2>, memplan.workspace} : memref<24576xi8>
//       CHECK:   memplan.matmul {{.*}} workspace(%[[V]] : memref<24576xi8>)
//   CAP-LABEL: func.func @gaps
//         CAP:   #memplan.slot<offset = 16384, lower = 0, upper = 1>, memplan.workspace} : memref<8192xi8>
//         CAP:   #memplan.slot<offset = 40960, lower = 1, upper = 2>, memplan.workspace} : memref<8192xi8>
// 20,000 bytes in multiples of 256: 19,968, after which 32 are left.
// TOTAL-LABEL: func.func @gaps
//       TOTAL:   #memplan.slot<offset = 16384, lower = 0, upper = 1>, memplan.workspace} : memref<19968xi8>
//   TOTAL-NOT:   memplan.workspace
// TOTAL-LABEL: func.func @parts
func.func @gaps(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %y: memref<16384xf32>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 65536, lower_bound = 65536, no_reuse = 98304, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<64x64xf32>
  memplan.matmul ins(%x, %w : memref<64x64xf32>, memref<64x64xf32>) outs(%a : memref<64x64xf32>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 24576, lower = 1, upper = 3>} : memref<64x64xf32>
  memplan.matmul ins(%a, %w : memref<64x64xf32>, memref<64x64xf32>) outs(%b : memref<64x64xf32>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  linalg.exp ins(%b : memref<64x64xf32>) outs(%x : memref<64x64xf32>)
  %big = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 3, upper = 5>} : memref<16384xf32>
  linalg.exp ins(%y : memref<16384xf32>) outs(%big : memref<16384xf32>)
  linalg.exp ins(%big : memref<16384xf32>) outs(%y : memref<16384xf32>)
  return
}

// -----

// What lives for a time only in parts leaves the rest free: of 65,536 bytes
// those from 16,384 on, although the buffer is as large as the arena.
// CHECK-LABEL: func.func @parts
//       CHECK:   #memplan.slot<offset = 16384, lower = 1, upper = 2>, memplan.workspace} : memref<49152xi8>
func.func @parts(%x: memref<64x64xf32>, %y: memref<4x64x64xf32>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 65536, lower_bound = 65536, no_reuse = 65536, optimal = true, alignment = 256>]} {
  %c = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 4, parts = [#memplan.part<offset = 0, bytes = 16384, lower = 0, upper = 4>, #memplan.part<offset = 16384, bytes = 49152, lower = 2, upper = 4>]>} : memref<4x64x64xf32>
  %p = memref.subview %c[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<4x64x64xf32> to memref<64x64xf32>
  %q = memref.subview %c[1, 0, 0] [3, 64, 64] [1, 1, 1] : memref<4x64x64xf32> to memref<3x64x64xf32, strided<[4096, 64, 1], offset: 4096>>
  %z = memref.subview %y[1, 0, 0] [3, 64, 64] [1, 1, 1] : memref<4x64x64xf32> to memref<3x64x64xf32, strided<[4096, 64, 1], offset: 4096>>
  linalg.exp ins(%x : memref<64x64xf32>) outs(%p : memref<64x64xf32>)
  memplan.matmul ins(%p, %p : memref<64x64xf32>, memref<64x64xf32>) outs(%x : memref<64x64xf32>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  linalg.exp ins(%z : memref<3x64x64xf32, strided<[4096, 64, 1], offset: 4096>>) outs(%q : memref<3x64x64xf32, strided<[4096, 64, 1], offset: 4096>>)
  linalg.exp ins(%c : memref<4x64x64xf32>) outs(%y : memref<4x64x64xf32>)
  return
}

// -----

// Nothing under 4 KiB, nothing for a product that no library computes, and
// nothing where a workspace is already.
// CHECK-LABEL: func.func @none
// CHECK-COUNT-1: memplan.workspace
//   CHECK-NOT: memplan.workspace
func.func @none(%x: memref<64x64xf32>, %y: memref<64x64xf64>, %given: memref<64xi8>) attributes {
    memplan.arenas = [#memplan.arena<bytes = 20224, lower_bound = 20224, no_reuse = 36608, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<64x64xf32>
  linalg.exp ins(%x : memref<64x64xf32>) outs(%a : memref<64x64xf32>)
  memplan.matmul ins(%a, %a : memref<64x64xf32>, memref<64x64xf32>) outs(%x : memref<64x64xf32>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 2, upper = 4>} : memref<5056xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%b : memref<5056xf32>)
  linalg.exp ins(%b : memref<5056xf32>) outs(%b : memref<5056xf32>)
  memplan.matmul ins(%y, %y : memref<64x64xf64>, memref<64x64xf64>) outs(%y : memref<64x64xf64>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f64):
    memplan.yield %acc : f64
  }
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%x : memref<64x64xf32>) workspace(%given : memref<64xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%x : memref<64x64xf32>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  return
}
