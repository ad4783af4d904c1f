// RUN: memplan-opt %s --memplan-results-to-arguments --split-input-file | FileCheck %s

// A result that is a reshaped buffer of the function: written in place.
// CHECK-LABEL: @reshaped
// CHECK-SAME: %[[X:.*]]: memref<4xf32>, %[[OUT:.*]]: memref<2x2xf32> {bufferize.result, memplan.name = "y"})
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[OUT]] {{\[}}[0, 1]] : memref<2x2xf32> into memref<4xf32>
// CHECK: memref.copy %[[X]], %[[FLAT]]
// CHECK-NOT: memref.copy
// CHECK: return{{$}}
func.func @reshaped(%x: memref<4xf32>) -> (memref<2x2xf32> {memplan.name = "y"}) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %r = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  return %r : memref<2x2xf32>
}

// -----

// The same buffer returned twice, and an input returned as it came in: the first
// is written in place, the others are copies.
// CHECK-LABEL: @twice
// CHECK-SAME: %[[X:.*]]: memref<4xf32>, %[[A:.*]]: memref<4xf32> {bufferize.result}, %[[B:.*]]: memref<4xf32> {bufferize.result}, %[[C:.*]]: memref<4xf32> {bufferize.result})
// CHECK-NOT: memref.alloc
// CHECK: memref.copy %[[X]], %[[A]]
// CHECK: memref.copy %[[A]], %[[B]]
// CHECK: memref.copy %[[X]], %[[C]]
// CHECK: return{{$}}
func.func @twice(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  return %a, %a, %x : memref<4xf32>, memref<4xf32>, memref<4xf32>
}

// -----

// A constant: copied, for the caller owns the output.
memref.global "private" constant @c : memref<2xf32> = dense<1.0>
// CHECK-LABEL: @constant
// CHECK: %[[G:.*]] = memref.get_global @c
// CHECK: memref.copy %[[G]], %arg0
func.func @constant() -> memref<2xf32> {
  %g = memref.get_global @c : memref<2xf32>
  return %g : memref<2xf32>
}

// -----

// A function that is called inside of the module keeps its result, and so does
// a private one.
// CHECK-LABEL: @called() -> memref<4xf32>
func.func @called() -> memref<4xf32> {
  %a = memref.alloc() : memref<4xf32>
  return %a : memref<4xf32>
}
// CHECK-LABEL: @caller(%arg0: memref<4xf32> {bufferize.result})
// CHECK: %[[R:.*]] = call @called()
// CHECK: memref.copy %[[R]], %arg0
func.func @caller() -> memref<4xf32> {
  %a = call @called() : () -> memref<4xf32>
  return %a : memref<4xf32>
}
