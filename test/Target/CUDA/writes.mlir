// RUN: split-file %s %t
// RUN: not memplan-opt %t/input.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/input.mlir
// RUN: not memplan-opt %t/weight.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/weight.mlir
// RUN: not memplan-opt %t/transpose.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/transpose.mlir
// RUN: not memplan-opt %t/reshaped.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/reshaped.mlir
// RUN: not memplan-opt %t/product.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/product.mlir
// RUN: not memplan-opt %t/gather.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/gather.mlir
// RUN: not ls %t/bad.cu
// RUN: memplan-opt %t/elementwise.mlir --emit=cuda -q -o - | FileCheck %t/elementwise.mlir

// Memref IR whose writes no launch can do is refused, at the op and with no
// file written; what threads can do in place they do.

//--- input.mlir
// CHECK: input.mlir":3:3): error: writes to input 1, and inputs are only read; mark an output argument with {bufferize.result}
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

//--- weight.mlir
memref.global "private" @w : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
// CHECK: weight.mlir":5:3): error: writes to a memref.global, and weights are only read
func.func @main(%x: memref<4xf32>) {
  %w = memref.get_global @w : memref<4xf32>
  memref.copy %x, %w : memref<4xf32> to memref<4xf32>
  return
}

//--- transpose.mlir
// Element (0, 1) may be overwritten before the thread of (1, 0) reads it.
// CHECK: transpose.mlir":4:3): error: overwrites parts of a buffer that it has yet to read
func.func @main(%y: memref<4x4xf32> {bufferize.result}) {
  linalg.transpose ins(%y : memref<4x4xf32>) outs(%y : memref<4x4xf32>) permutation = [1, 0]
  return
}

//--- reshaped.mlir
// The same through a reshape, which hides it from all but the emitter.
// CHECK: reshaped.mlir":5:3): error: reads operand 0 in another order than it writes the same bytes as operand 1
func.func @main(%y: memref<4x4xf32> {bufferize.result}) {
  %f = memref.collapse_shape %y [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (4 * j + i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%f : memref<16xf32>) outs(%y : memref<4x4xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  }
  return
}

//--- product.mlir
// CHECK: product.mlir":3:3): error: overwrites parts of a buffer that it has yet to read
func.func @main(%x: memref<4x4xf32>, %y: memref<4x4xf32> {bufferize.result}) {
  memplan.matmul ins(%y, %x : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  return
}

//--- gather.mlir
// CHECK: gather.mlir":6:10): error: may read what other threads of the op around it write; write to another memref
func.func @main(%i: memref<4xindex>, %y: memref<4xf32> {bufferize.result}) {
  linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
      ins(%i : memref<4xindex>) outs(%y : memref<4xf32>) {
  ^bb0(%at: index, %old: f32):
    %e = memref.load %y[%at] : memref<4xf32>
    linalg.yield %e : f32
  }
  return
}

//--- elementwise.mlir
// CHECK: launch({{.*}}map_exp
func.func @main(%x: memref<4x4xf32>, %y: memref<4x4xf32> {bufferize.result}) {
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32>
  linalg.exp ins(%y : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
  return
}
