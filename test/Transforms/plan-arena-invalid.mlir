// RUN: %mlir-opt %s --load-pass-plugin=%plugin --load-dialect-plugin=%plugin -split-input-file -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena)'
// RUN: not %mlir-opt %S/plan-arena.mlir --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena{alignment=24})' 2>&1 | FileCheck %s --check-prefix=ALIGN
// RUN: not %mlir-opt %S/plan-arena.mlir --load-pass-plugin=%plugin --load-dialect-plugin=%plugin \
// RUN:   --pass-pipeline='builtin.module(memplan-plan-arena{effort=-1})' 2>&1 | FileCheck %s --check-prefix=EFFORT

// EFFORT: memplan-plan-arena: effort=-1 is not a number of steps of at least 0
// ALIGN: memplan-plan-arena: alignment=24 is not a power of two

// Two buffers of 2^62 bytes do not fit 63 bits together.
// expected-error @+1 {{cannot plan @overflow: the sizes up to buffer 1 do not fit 63 bits}}
func.func @overflow(%x: memref<1xi8>) {
  %a = memref.alloc() : memref<4611686018427387904xi8>
  %b = memref.alloc() : memref<4611686018427387904xi8>
  return
}

// -----

// expected-error @+1 {{@twice has an arena already; plan before memplan-materialize-arena}}
func.func @twice(%arena: memref<64xi8> {memplan.arena}) {
  return
}
