// RUN: memplan-opt %s --emit=trace --no-in-place --no-forward -q | FileCheck %s
// RUN: memplan-opt %s --emit=torch-snapshot --no-in-place --no-forward -q -o %t.pickle
// RUN: %python -c "import pickle, sys; d = pickle.load(open(sys.argv[1], 'rb')); [print(e['action'], e['addr'] - d['segments'][0]['address'], e['size'], e['time_us'], e['frames'][0]['name']) for e in d['device_traces'][0]]" %t.pickle | FileCheck %s --check-prefix=TORCH

// Points: 0 exp, 1 and 2 transposes. %a lives [0, 2), %b [1, 3); 40 bytes each, 256 apart. The most that lives is 256 + 40
// at 1: the last one's padding is nobody's.
// CHECK: "displayTimeUnit": "ns"
// CHECK: "name": "process_name",
// CHECK: "ph": "X",
// CHECK: "name": "exp",
// CHECK-NEXT: "cat": "linalg.exp",
// CHECK-NEXT: "ts": 0,
// CHECK-NEXT: "dur": 1,
// CHECK: "writes": [
// CHECK: "buffer": "b0",
// CHECK: "lives": "[0, 2)"
// CHECK: "reads": []
// CHECK: "ts": 1,
// CHECK: "buffer": "b1",
// CHECK: "reads": [
// CHECK: "buffer": "b0",
// CHECK: "ph": "C",
// CHECK: "name": "live bytes",
// CHECK: "ts": 1,
// CHECK-NEXT: "args": {
// CHECK-NEXT: "bytes": 296
// CHECK: "name": "lower bound",
// CHECK: "bytes": 296
// CHECK: "name": "arena",
// CHECK: "bytes": 296

// TORCH: segment_alloc 0 296 0 arena of @main
// TORCH-NEXT: alloc {{0|256}} 40 0 b0 first
// TORCH-NEXT: alloc {{0|256}} 40 1 b1 second
// TORCH-NEXT: free_requested {{0|256}} 40 2 b0 first
// TORCH-NEXT: free_completed {{0|256}} 40 2 b0 first
// TORCH-NEXT: free_requested {{0|256}} 40 3 b1 second
// TORCH-NEXT: free_completed {{0|256}} 40 3 b1 second
func.func @main(%x: memref<2x5xf32>, %y: memref<2x5xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<2x5xf32> loc("first")
  %b = memref.alloc() : memref<5x2xf32> loc("second")
  linalg.exp ins(%x : memref<2x5xf32>) outs(%a : memref<2x5xf32>) loc("exp")
  linalg.transpose ins(%a : memref<2x5xf32>) outs(%b : memref<5x2xf32>) permutation = [1, 0]
  linalg.transpose ins(%b : memref<5x2xf32>) outs(%y : memref<2x5xf32>) permutation = [1, 0]
  return
}
