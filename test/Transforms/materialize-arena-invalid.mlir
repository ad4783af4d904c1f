// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -split-input-file -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(memplan-materialize-arena)'

// expected-error @+1 {{memplan.arenas holds 3 : i64, expected #memplan.arena attributes}}
func.func @not_an_arena() attributes {memplan.arenas = [3]} {
  return
}

// -----

func.func @no_arena_in_space() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 256, optimal = true, alignment = 256>]} {
  // expected-error @+1 {{has a slot, but the function has no arena in its memory space}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32, 3>
  return
}

// -----

func.func @not_a_slot() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 256, optimal = true, alignment = 256>]} {
  // expected-error @+1 {{expected a #memplan.slot, found 7 : i64}}
  %a = memref.alloc() {memplan.slot = 7 : i64} : memref<4xf32>
  return
}

// -----

// One of two calls has no slot for the arena.
// expected-error @+1 {{of 2 uses of @callee only 1 have a slot for its arena; run memplan-plan-arena on the whole module}}
func.func private @callee() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 256, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  return
}
func.func @caller() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 256, optimal = true, alignment = 256>]} {
  call @callee() {memplan.callee_slots = [#memplan.slot<offset = 0, lower = 0, upper = 1>]} : () -> ()
  call @callee() : () -> ()
  return
}

// -----

func.func private @callee() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 256, optimal = true, alignment = 256>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  return
}
func.func @caller() attributes {memplan.arenas = []} {
  // expected-error @+1 {{memplan.callee_slots does not match the arenas of @callee}}
  call @callee() {memplan.callee_slots = []} : () -> ()
  return
}
