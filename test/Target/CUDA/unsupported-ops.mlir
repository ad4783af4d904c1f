// RUN: not memplan-opt %s --emit=cuda -q -o - 2>&1 | FileCheck %s

// All of them are reported, each at its place.
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f = arith.constant 1.0 : f32
  // CHECK: unsupported-ops.mlir":[[# @LINE + 1]]:{{[0-9]+}}): error: 'memref.store' is unsupported by the CUDA target
  memref.store %f, %y[%c0] : memref<4xf32>
  // CHECK: unsupported-ops.mlir":[[# @LINE + 1]]:{{[0-9]+}}): error: 'scf.for' is unsupported by the CUDA target
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %f, %y[%i] : memref<4xf32>
  }
  // CHECK: error: math.ctpop on 'i32' is unsupported by the CUDA target
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%e: f32, %old: f32):
    %0 = arith.fptosi %e : f32 to i32
    %1 = math.ctpop %0 : i32
    %2 = arith.sitofp %1 : i32 to f32
    linalg.yield %2 : f32
  }
  // CHECK: error: indexing map affine_map<(d0) -> (d0 mod 2)> is unsupported by the CUDA target, which needs linear ones
  linalg.generic {indexing_maps = [affine_map<(i) -> (i mod 2)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%e: f32, %old: f32):
    linalg.yield %e : f32
  }
  return
}
