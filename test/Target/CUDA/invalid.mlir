// Each of these is one error that names what was found, and no output.
//
// RUN: split-file %s %t
// RUN: not memplan-opt %t/type.mlir --emit=cuda --no-forward -q -o - 2>&1 | FileCheck %t/type.mlir
// RUN: not memplan-opt %t/place.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/place.mlir
// RUN: not memplan-opt %t/named.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/named.mlir
// RUN: not memplan-opt %t/two.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/two.mlir
// RUN: not memplan-opt %t/none.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/none.mlir
// RUN: not memplan-opt %t/dynamic.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/dynamic.mlir
// RUN: not memplan-opt %t/conv-strides.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/conv-strides.mlir
// RUN: not memplan-opt %t/conv-wide.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/conv-wide.mlir
// RUN: not memplan-opt %t/workspace.mlir --emit=cuda --alignment=16 -q -o - 2>&1 | FileCheck %t/workspace.mlir
// RUN: not memplan-opt %t/rowwise-type.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/rowwise-type.mlir
// RUN: not memplan-opt %t/scalar-type.mlir --emit=cuda -q -o - 2>&1 | FileCheck %t/scalar-type.mlir

//--- type.mlir
// CHECK: type.mlir":5:{{[0-9]+}}): error: element type 'f80' is unsupported by the CUDA target, which has floats of 64 bits and less, i1, i8, i16, i32, i64 and index
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %t = memref.alloc() : memref<4xf80>
  %u = memref.alloc() : memref<4xf80>
  memref.copy %t, %u : memref<4xf80> to memref<4xf80>
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

//--- place.mlir
// CHECK: error: uses a memref of type 'memref<4xf32>' whose place the CUDA target can't tell: it comes from 'memref.alloca'
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %t = memref.alloca() : memref<4xf32>
  memref.copy %x, %t : memref<4xf32> to memref<4xf32>
  memref.copy %t, %y : memref<4xf32> to memref<4xf32>
  return
}

//--- named.mlir
// CHECK: named.mlir":5:{{[0-9]+}}): error: scalar of type 'f80' is unsupported by the CUDA target
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %t = memref.alloc() : memref<4xf80>
  %f = arith.constant 1.0 : f80
  linalg.fill ins(%f : f80) outs(%t : memref<4xf80>)
  return
}

//--- two.mlir
// CHECK: error: a second public function; the CUDA target emits one, make the others private
func.func @main(%x: memref<4xf32>) {
  return
}
func.func @other(%x: memref<4xf32>) {
  return
}

//--- none.mlir
// CHECK: error: has no public function to emit CUDA for
module {
}

//--- dynamic.mlir
// CHECK: error: argument 0 of type 'memref<?xf32>' is unsupported by the CUDA target
func.func @main(%x: memref<?xf32>) {
  return
}

//--- conv-strides.mlir
// CHECK: error: {{.*}}strides within a filter or an output's channel are unsupported by the CUDA target; copy them
func.func @main(%x: memref<1x1x4xf32>, %w: memref<1x1x8xf32>, %y: memref<1x1x1xf32> {bufferize.result}) {
  %s = memref.subview %w[0, 0, 0] [1, 1, 4] [1, 1, 2] : memref<1x1x8xf32> to memref<1x1x4xf32, strided<[8, 8, 2]>>
  memplan.conv ins(%x, %s : memref<1x1x4xf32>, memref<1x1x4xf32, strided<[8, 8, 2]>>) outs(%y : memref<1x1x1xf32>)
      strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  return
}

//--- conv-wide.mlir
// CHECK: error: {{.*}}a convolution of 64-bit types that pools is unsupported by the CUDA target; pool with memplan.reduce_window
func.func @main(%x: memref<1x1x4xf64>, %w: memref<1x1x1xf64>, %y: memref<1x1x2xf64> {bufferize.result}) {
  memplan.conv ins(%x, %w : memref<1x1x4xf64>, memref<1x1x1xf64>) outs(%y : memref<1x1x2xf64>)
      strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 pool <max> window = [2] extra_maps = [] {
  ^bb0(%acc: f64):
    memplan.yield %acc : f64
  }
  return
}

//--- workspace.mlir
// The larger buffer, of 257 * 16 bytes, comes first.
// CHECK: error: workspace is not aligned to 256 bytes, as cuBLASLt demands; give its alloc alignment = 256
func.func @main(%x: memref<64x64xf32>, %v: memref<1028xf32>, %y: memref<64x64xf32> {bufferize.result}, %z: memref<1028xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<1028xf32>
  linalg.exp ins(%v : memref<1028xf32>) outs(%a : memref<1028xf32>)
  %w = memref.alloc() : memref<4096xi8>
  memplan.matmul ins(%x, %x : memref<64x64xf32>, memref<64x64xf32>) outs(%y : memref<64x64xf32>) workspace(%w : memref<4096xi8>)
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  linalg.add ins(%a, %v : memref<1028xf32>, memref<1028xf32>) outs(%z : memref<1028xf32>)
  linalg.exp ins(%a : memref<1028xf32>) outs(%z : memref<1028xf32>)
  return
}

//--- rowwise-type.mlir
// CHECK: error: {{.*}}a row reduction in 'i8' is unsupported by the CUDA target, which has f16, bf16, f32, f64, i32 and i64
func.func @main(%x: memref<2x4xi8>, %y: memref<2xi8> {bufferize.result}) {
  memplan.rowwise ins(%x : memref<2x4xi8>) outs(%y : memref<2xi8>) row_dims = [1]
      combiners = [#memplan.combiner<max>]
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
    finish {
    ^bb0(%e: i8, %max: i8):
      memplan.yield %max : i8
    } stages {
    ^bb0(%e: i8):
      memplan.yield %e : i8
    }
  return
}

//--- scalar-type.mlir
// CHECK: error: scalar of type 'i5' is unsupported by the CUDA target
func.func @main(%x: memref<4xi32>, %y: memref<4xi32> {bufferize.result}) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xi32>) outs(%y : memref<4xi32>) {
  ^bb0(%e: i32, %old: i32):
    %0 = arith.trunci %e : i32 to i5
    %1 = arith.extui %0 : i5 to i32
    linalg.yield %1 : i32
  }
  return
}
