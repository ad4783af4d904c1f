// RUN: not memplan-opt %s --pass-pipeline='builtin.module(func.func(memplan-schedule{alignment=24}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ALIGNMENT
// RUN: not memplan-opt %s --pass-pipeline='builtin.module(func.func(memplan-schedule{effort=-1}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EFFORT

// ALIGNMENT: memplan-schedule: alignment is 24, which is no power of two
// EFFORT: memplan-schedule: effort is -1, which must not be negative
func.func @nothing() {
  return
}
