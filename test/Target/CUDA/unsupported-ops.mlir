// RUN: not memplan-opt %s --emit=cuda -q -o - 2>&1 | FileCheck %s

// All of them are reported, each at its place.
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // CHECK: unsupported-ops.mlir":[[# @LINE + 1]]:{{[0-9]+}}): error: 'memref.prefetch' is unsupported by the CUDA target
  memref.prefetch %x[%c0], read, locality<3>, data : memref<4xf32>
  // CHECK: unsupported-ops.mlir":[[# @LINE + 1]]:{{[0-9]+}}): error: 'scf.forall' is unsupported by the CUDA target
  scf.forall (%i) in (%c4) {
    memref.copy %x, %y : memref<4xf32> to memref<4xf32>
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
