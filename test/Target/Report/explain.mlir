// RUN: memplan-opt %s --explain --no-in-place --no-forward | FileCheck %s
// RUN: memplan-opt %s --emit=plan --no-in-place --no-forward -q | FileCheck %s --check-prefix=JSON
// RUN: memplan-opt %s --emit=csv --explain --no-in-place --no-forward -q -o %t.csv 2>&1 | FileCheck %s
// RUN: memplan-opt %s --explain --no-reuse | FileCheck %s --check-prefix=OWN

// Points: 0 exp, 1 tanh, 2 add, 3 exp. %a lives [0, 3), %b [1, 3), %c [2, 4):
// all three meet at 2, of 1024 bytes each: 3072. Without any of them it is 2048;
// the first of equals is named.
// CHECK: peak of @main: 3072 bytes live at point 2 of 4, at 'sum' (linalg.add); arena 3072 bytes
// CHECK: 1024   33.3%        2048  [0, 3)          256xf32  'a'; 'first', 'sum'
// CHECK: 1024   33.3%        2048  [1, 3)          256xf32  'b'; 'second', 'sum'
// CHECK: 1024   33.3%        2048  [2, 4)          256xf32  'c'; 'sum', 'last'
// CHECK: change first: 'a', 1024 bytes; without it 2048 bytes would be live at most
// CHECK: all in all: 0 bytes of weights, 3072 of activations, up to 0 of workspace inside of them; the caller's own: 1024 of inputs, 1024 of outputs
// CHECK: what each technique saves (the arena without it):
// CHECK: scheduling                0 bytes  (3072)
// CHECK: forwarding    is switched off
// CHECK: overwriting   is switched off
// CHECK: any reuse                 0 bytes  (3072)

// JSON: "peaks": [
// JSON: "function": "main",
// JSON: "point": 2,
// JSON: "node": "sum",
// JSON: "live_bytes": 3072,
// JSON: "name": "b0",
// JSON-NEXT: "first_written_by": "first",
// JSON-NEXT: "last_used_by": "sum",
// JSON-NEXT: "live_bytes_without": 2048
// JSON: "change_first": "b0"

// Each with bytes of its own, which the lifetimes don't ask for.
// OWN: 3072 bytes live at point 2 of 4, at 'sum' (linalg.add); arena 3072 bytes
// OWN-NOT: what each technique saves
func.func @main(%x: memref<256xf32>, %y: memref<256xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<256xf32> loc("a")
  linalg.exp ins(%x : memref<256xf32>) outs(%a : memref<256xf32>) loc("first")
  %b = memref.alloc() : memref<256xf32> loc("b")
  linalg.tanh ins(%a : memref<256xf32>) outs(%b : memref<256xf32>) loc("second")
  %c = memref.alloc() : memref<256xf32> loc("c")
  linalg.add ins(%a, %b : memref<256xf32>, memref<256xf32>) outs(%c : memref<256xf32>) loc("sum")
  linalg.exp ins(%c : memref<256xf32>) outs(%y : memref<256xf32>) loc("last")
  return
}
