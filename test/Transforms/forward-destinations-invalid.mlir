// RUN: not memplan-opt %s --pass-pipeline='builtin.module(memplan-forward-destinations{alignment=24})' 2>&1 | FileCheck %s

// CHECK: memplan-forward-destinations: alignment=24 is not a power of two
func.func @nothing() {
  return
}
