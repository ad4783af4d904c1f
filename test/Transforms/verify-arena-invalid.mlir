// Wrong plans, written by hand; each must be refused, naming the buffers.
// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -split-input-file -verify-diagnostics -allow-unregistered-dialect \
// RUN:   --pass-pipeline='builtin.module(memplan-verify-arena)'

// The claimed lifetimes touch but the real ones do not: %a is read at point 1,
// where %b is written.
func.func @life_too_short(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 32, optimal = true, alignment = 16>]} {
  // expected-error @+2 {{buffer (bytes [0, 16), points [0, 1)) is in use at point 1, outside of its lifetime}}
  // expected-error @+1 {{is touched while buffer (bytes [0, 16), points [1, 3)) shares bytes with it and is in use}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  // expected-note @+1 {{which is made here}}
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 3>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  // expected-note @+2 {{both are in use at this op}}
  // expected-note @+1 {{here}}
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  memref.copy %b, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena has 24 bytes, but the lifetimes need 32}}
func.func @claimed_overlap(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 24, lower_bound = 24, no_reuse = 32, optimal = false, alignment = 8>]} {
  // expected-note @+1 {{which is made here}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  // expected-error @+1 {{buffer (bytes [8, 24), points [1, 3)) overlaps buffer (bytes [0, 16), points [0, 2))}}
  %b = memref.alloc() {memplan.slot = #memplan.slot<offset = 8, lower = 1, upper = 3>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  memref.copy %b, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @misaligned(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 24, lower_bound = 16, no_reuse = 16, optimal = false, alignment = 16>]} {
  // expected-error @+1 {{buffer (bytes [8, 24), points [0, 2)) is not aligned to 16 bytes}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 8, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @alloc_wants_more(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{is not aligned to 64 bytes}}
  %a = memref.alloc() {alignment = 64, memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @outside(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 12, lower_bound = 12, no_reuse = 16, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{buffer (bytes [0, 16), points [0, 2)) does not lie inside the arena of 12 bytes}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Nothing ends at 32.
// expected-error @+1 {{arena has 32 bytes, but its buffers end at 16}}
func.func @wrong_height(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 16, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// A gap below the only buffer: 16 bytes would do.
// expected-error @+1 {{arena of 32 bytes is called optimal, but the bound is 16}}
func.func @not_optimal(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena says lower_bound = 32, but the lifetimes prove 16}}
func.func @unproved_bound(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena says lower_bound = 15, but the lifetimes prove 16}}
func.func @bound_less_than_derived(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 15, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// A search proves no less than what lives at one time.
// expected-error @+1 {{arena says lower_bound = 15 by search, but the lifetimes alone prove 16}}
func.func @searched_bound_below_live_bytes(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 15, lower_bound_proof = search, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// The plan itself is a placement of 32 bytes.
// expected-error @+1 {{arena says lower_bound = 33, but its plan takes only 32 bytes}}
func.func @bound_above_plan(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 33, lower_bound_proof = search, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena of 32 bytes is called optimal, but the bound is 24}}
func.func @not_optimal_by_search(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 24, lower_bound_proof = search, no_reuse = 16, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena of 32 bytes is called not optimal, but is as small as its bound}}
func.func @optimal_by_search(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 32, lower_bound_proof = search, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Between the two, a search is believed: the slots say nothing against it.
func.func @believed_bound(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 24, lower_bound_proof = search, no_reuse = 16, optimal = false, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 2>} : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena says no_reuse = 32, but its buffers sum up to 16: one is missing or has another size}}
func.func @missing_buffer(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 32, optimal = true, alignment = 16>]} {
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @slot_elsewhere(%x: memref<4xf32>) attributes {memplan.arenas = []} {
  // expected-error @+1 {{has a slot, which only an alloc or a view of an arena may have}}
  memref.copy %x, %x {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @returned() -> memref<4xf32> attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{is returned}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  %v = memref.cast %a : memref<4xf32> to memref<4xf32>
  // expected-note @+1 {{here, so its life is not known}}
  return %v : memref<4xf32>
}

// -----

func.func @kept() attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  // expected-error @+1 {{is used by an op of unknown effects}}
  %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<4xf32>
  // expected-note @+1 {{here, so its life is not known}}
  "test.keep"(%a) : (memref<4xf32>) -> ()
  return
}

// -----

func.func @parallel(%x: memref<4xf32>) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  // expected-note @+1 {{inside of this}}
  scf.forall (%i) in (4) {
    // expected-error @+1 {{is made where several may be in use at once}}
    %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 2>} : memref<4xf32>
    memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  }
  return
}

// -----

// The next iteration's %a would overwrite this one's while it is read as %p.
func.func @carried(%x: memref<4xf32>, %n: index) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{carried round a loop as this value}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (memref<4xf32>) {
    // expected-error @+1 {{is still in use when it is made again}}
    %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 4>} : memref<4xf32>
    memref.copy %p, %a : memref<4xf32> to memref<4xf32>
    scf.yield %a : memref<4xf32>
  }
  memref.copy %r, %x : memref<4xf32> to memref<4xf32>
  return
}

// -----

// Materialized: an argument of the caller used as scratch.
func.func @argument_as_scratch(%in: memref<16xi8>, %arena: memref<16xi8> {memplan.arena =
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>}) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has a slot but is a view of an argument that is not the arena: it is the caller's and no scratch}}
  %a = memref.view %in[%c0][] {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<16xi8> to memref<4xf32>
  return
}

// -----

func.func @view_without_slot(%x: memref<4xf32>, %arena: memref<16xi8> {memplan.arena =
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>}) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is a view of the arena without a slot}}
  %a = memref.view %arena[%c0][] : memref<16xi8> to memref<4xf32>
  %b = memref.view %arena[%c0][] {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<16xi8> to memref<4xf32>
  memref.copy %x, %b : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @shift_is_not_offset(%x: memref<4xf32>, %arena: memref<32xi8> {memplan.arena =
    #memplan.arena<bytes = 32, lower_bound = 16, no_reuse = 16, optimal = false, alignment = 16>}) attributes {memplan.arenas = [
    #memplan.arena<bytes = 32, lower_bound = 16, no_reuse = 16, optimal = false, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is a view at a byte shift other than its slot's offset 16}}
  %b = memref.view %arena[%c0][] {memplan.slot = #memplan.slot<offset = 16, lower = 0, upper = 1>} : memref<32xi8> to memref<4xf32>
  memref.copy %x, %b : memref<4xf32> to memref<4xf32>
  return
}

// -----

// expected-error @+1 {{arena has 8 bytes, its plan 16}}
func.func @arena_too_small(%x: memref<4xf32>, %arena: memref<8xi8> {memplan.arena =
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>}) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  return
}

// -----

func.func private @callee(%arena: memref<16xi8> {memplan.arena =
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>}) attributes {memplan.arenas = [
    #memplan.arena<bytes = 16, lower_bound = 16, no_reuse = 16, optimal = true, alignment = 16>]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %b = memref.view %arena[%c0][] {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 1>} : memref<16xi8> to memref<4xf32>
  linalg.fill ins(%f : f32) outs(%b : memref<4xf32>)
  return
}
func.func @passes_its_argument(%x: memref<16xi8>) {
  // expected-error @+1 {{passes as the arena of @callee something other than a planned buffer of its own}}
  call @callee(%x) : (memref<16xi8>) -> ()
  return
}
