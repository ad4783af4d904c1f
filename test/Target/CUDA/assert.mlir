// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// An assertion that doesn't hold ends the run with an error, before what follows is launched.

// CHECK: memplan_status launches0(
// CHECK: const bool [[GOOD:s[0-9]+]] =
// CHECK: MEMPLAN_TRY(checkThat([[GOOD]], "check", "x must be positive"));
// CHECK: launch({{.*}}map_exp
func.func @main(%n: memref<i64>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %zero = arith.constant 0 : i64
  %value = memref.load %n[] : memref<i64>
  %good = arith.cmpi sgt, %value, %zero : i64
  cf.assert %good, "x must be positive" loc("check")
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  return
}
