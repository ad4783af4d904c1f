// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena,memplan-verify-arena)' | FileCheck %s
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena{no-reuse},memplan-verify-arena)' | FileCheck %s --check-prefix=NOREUSE
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena{alignment=16},memplan-verify-arena)' | FileCheck %s --check-prefix=ALIGN

// A chain of three: at points 1 and 2 two buffers of 25 * 4 = 100 bytes live.
// Bound and height: 256 (100 aligned to 256) + 100 = 356; sum 3 * 256 = 768.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: memplan.arenas = [#memplan.arena<bytes = 356, lower_bound = 356, no_reuse = 768, optimal = true, alignment = 256>]
// CHECK: memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>
// CHECK: memplan.slot = #memplan.slot<offset = 256, lower = 1, upper = 3>
// CHECK: memplan.slot = #memplan.slot<offset = 0, lower = 2, upper = 4>
// Without reuse the last ends at 2 * 256 + 100 = 612.
// NOREUSE-LABEL: func.func @chain
// NOREUSE-SAME: bytes = 612, lower_bound = 356, no_reuse = 768, optimal = false
// NOREUSE: slot<offset = 0, lower
// NOREUSE: slot<offset = 256, lower
// NOREUSE: slot<offset = 512, lower
// 100 aligned to 16 is 112: 112 + 100 = 212; sum 336.
// ALIGN-LABEL: func.func @chain
// ALIGN-SAME: bytes = 212, lower_bound = 212, no_reuse = 336, optimal = true, alignment = 16
func.func @chain(%x: memref<25xf32>, %y: memref<25xf32>) {
  %a = memref.alloc() : memref<25xf32>
  %b = memref.alloc() : memref<25xf32>
  %c = memref.alloc() : memref<25xf32>
  memref.copy %x, %a : memref<25xf32> to memref<25xf32>
  memref.copy %a, %b : memref<25xf32> to memref<25xf32>
  memref.copy %b, %c : memref<25xf32> to memref<25xf32>
  memref.copy %c, %y : memref<25xf32> to memref<25xf32>
  return
}

// One arena a memory space, each with its own bytes.
// CHECK-LABEL: func.func @spaces
// CHECK-SAME: #memplan.arena<bytes = 64, lower_bound = 64, no_reuse = 256, optimal = true, alignment = 256>
// CHECK-SAME: #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 256, optimal = true, alignment = 256, memory_space = 3 : i64>
func.func @spaces(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  %s = memref.alloc() : memref<8xf32, 3>
  %f = arith.constant 0.0 : f32
  linalg.fill ins(%f : f32) outs(%s : memref<8xf32, 3>)
  memref.copy %x, %a : memref<16xf32> to memref<16xf32>
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  return
}

// An alloc that asks for more raises the whole arena's alignment:
// 4 aligned to 1024, and 4 more.
// CHECK-LABEL: func.func @alignment
// CHECK-SAME: bytes = 1028, lower_bound = 1028, no_reuse = 2048, optimal = true, alignment = 1024
func.func @alignment(%x: memref<1xf32>) {
  %a = memref.alloc() {alignment = 1024} : memref<1xf32>
  %b = memref.alloc() : memref<1xf32>
  memref.copy %x, %a : memref<1xf32> to memref<1xf32>
  memref.copy %a, %b : memref<1xf32> to memref<1xf32>
  memref.copy %b, %x : memref<1xf32> to memref<1xf32>
  return
}

// A function without buffers gets no arena.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: memplan.arenas
// CHECK: return
func.func @nothing(%x: memref<1xf32>) {
  return
}

// What an earlier plan had in bytes that were free is a buffer of this plan.
// CHECK-LABEL: func.func @planned_again
// CHECK-SAME: bytes = 4096, lower_bound = 4096, no_reuse = 4096, optimal = true
// CHECK: memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4096xi8>
func.func @planned_again(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 512, lower = 0, upper = 1>, memplan.workspace} : memref<4096xi8>
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%y : memref<64x64xf32>) workspace(%w : memref<4096xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  return
}
