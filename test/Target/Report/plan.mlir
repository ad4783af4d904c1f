// RUN: memplan-opt %s --emit=plan -q | FileCheck %s
// RUN: memplan-opt %s --emit=csv -q | FileCheck %s --check-prefix=CSV

// Points: 0 exp, 1 and 2 transposes (never in place). %a (40 bytes) lives [0, 2), %b [1, 3):
// they meet at 1, so 64-aligned by default 256: 256 + 40 = 296 bytes at least.
// CHECK: "arena_bytes": 296,
// CHECK: "weights_bytes": 0,
// CHECK: "lower_bound_bytes": 296,
// CHECK: "lower_bound_proof": "live_bytes",
// CHECK: "optimal": true,
// CHECK: "alignment": 256,
// CHECK: "name": "b0",
// CHECK-NEXT: "cause": "activation",
// CHECK-NEXT: "bytes": 40,
// CHECK-NEXT: "lower": 0,
// CHECK-NEXT: "upper": 2,
// CHECK: "type": "f32",
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 2,
// CHECK-NEXT: 5
// CHECK: "node": "first"
// CSV: id,lower,upper,size,offset
// CSV-NEXT: b0,0,2,40,{{0|256}}
// CSV-NEXT: b1,1,3,40,{{0|256}}
func.func @main(%x: memref<2x5xf32>, %y: memref<2x5xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<2x5xf32> loc("first")
  %b = memref.alloc() : memref<5x2xf32> loc("second")
  linalg.exp ins(%x : memref<2x5xf32>) outs(%a : memref<2x5xf32>)
  linalg.transpose ins(%a : memref<2x5xf32>) outs(%b : memref<5x2xf32>) permutation = [1, 0]
  linalg.transpose ins(%b : memref<5x2xf32>) outs(%y : memref<2x5xf32>) permutation = [1, 0]
  return
}
