// Each of these but rotated.mlir is one error at the op, and no output.
//
// RUN: split-file %s %t
// RUN: not memplan-opt %t/rows.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/rows.mlir
// RUN: not memplan-opt %t/numbers.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/numbers.mlir
// RUN: not memplan-opt %t/either.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/either.mlir
// RUN: not memplan-opt %t/merged.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/merged.mlir
// RUN: memplan-opt %t/rotated.mlir --emit=cuda -q -o - | FileCheck %t/rotated.mlir
// RUN: not memplan-opt %t/input.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/input.mlir
// RUN: not memplan-opt %t/strides.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/strides.mlir
// RUN: not memplan-opt %t/type.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/type.mlir
// RUN: not memplan-opt %t/scalar.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/scalar.mlir
// RUN: not memplan-opt %t/unsigned.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/unsigned.mlir
// RUN: not memplan-opt %t/bounds.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/bounds.mlir
// RUN: not memplan-opt %t/far.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/far.mlir
// RUN: not memplan-opt %t/extent.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/extent.mlir
// RUN: not memplan-opt %t/call.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/call.mlir
// RUN: not memplan-opt %t/blocks.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/blocks.mlir
// RUN: not memplan-opt %t/inner-blocks.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/inner-blocks.mlir
// RUN: not memplan-opt %t/row-outside.mlir --emit=cuda -q -o %t/bad 2>&1 | FileCheck %t/row-outside.mlir
// RUN: not ls %t/bad.cu

//--- rows.mlir
// Rows 2 t and 2 t + 1 from rows t and t + 1: for t = 1 row 2 is read and written.
// CHECK: rows.mlir":12:5): error: may overwrite as operand 1 what it has yet to read as operand 0: the CUDA target can't tell that they are apart
func.func @main(%y: memref<9x4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %u = arith.muli %t, %c2 : index
    %from = memref.subview %y[%t, 0] [2, 4] [1, 1] : memref<9x4xf32> to memref<2x4xf32, strided<[4, 1], offset: ?>>
    %to = memref.subview %y[%u, 0] [2, 4] [1, 1] : memref<9x4xf32> to memref<2x4xf32, strided<[4, 1], offset: ?>>
    linalg.exp ins(%from : memref<2x4xf32, strided<[4, 1], offset: ?>>) outs(%to : memref<2x4xf32, strided<[4, 1], offset: ?>>)
  }
  return
}

//--- numbers.mlir
// The same row or another one; a transposition can't be done in place.
// CHECK: numbers.mlir":13:5): error: may overwrite as operand 1 what it has yet to read as operand 0
func.func @main(%n: memref<4xindex>, %y: memref<4x2x2xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %u = memref.load %n[%t] : memref<4xindex>
    %from = memref.subview %y[%t, 0, 0] [1, 2, 2] [1, 1, 1] : memref<4x2x2xf32> to memref<2x2xf32, strided<[2, 1], offset: ?>>
    %to = memref.subview %y[%u, 0, 0] [1, 2, 2] [1, 1, 1] : memref<4x2x2xf32> to memref<2x2xf32, strided<[2, 1], offset: ?>>
    // An elementwise op could: it reads what it writes.
    linalg.exp ins(%from : memref<2x2xf32, strided<[2, 1], offset: ?>>) outs(%to : memref<2x2xf32, strided<[2, 1], offset: ?>>)
    linalg.transpose ins(%from : memref<2x2xf32, strided<[2, 1], offset: ?>>) outs(%to : memref<2x2xf32, strided<[2, 1], offset: ?>>) permutation = [1, 0]
  }
  return
}

//--- either.mlir
// %r may be %a.
// CHECK: either.mlir":11:3): error: may overwrite as operand 1 what it has yet to read as operand 0
func.func @main(%c: memref<i1>, %x: memref<2x2xf32>, %y: memref<2x2xf32> {bufferize.result}) {
  %p = memref.load %c[] : memref<i1>
  %a = memref.alloc() : memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%a : memref<2x2xf32>)
  linalg.tanh ins(%x : memref<2x2xf32>) outs(%b : memref<2x2xf32>)
  %r = arith.select %p, %a, %b : memref<2x2xf32>
  linalg.exp ins(%r : memref<2x2xf32>) outs(%a : memref<2x2xf32>)
  linalg.transpose ins(%r : memref<2x2xf32>) outs(%a : memref<2x2xf32>) permutation = [1, 0]
  linalg.add ins(%a, %b : memref<2x2xf32>, memref<2x2xf32>) outs(%y : memref<2x2xf32>)
  return
}

//--- merged.mlir
// From the second iteration on p may be q.
// CHECK: merged.mlir":15:5): error: may overwrite as operand 1 what it has yet to read as operand 0
func.func @main(%x: memref<2x2xf32>, %y: memref<2x2xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  %c = memref.alloc() : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%a : memref<2x2xf32>)
  linalg.tanh ins(%x : memref<2x2xf32>) outs(%b : memref<2x2xf32>)
  linalg.tanh ins(%x : memref<2x2xf32>) outs(%c : memref<2x2xf32>)
  %r:3 = scf.for %t = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %b, %s = %c)
      -> (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>) {
    linalg.transpose ins(%p : memref<2x2xf32>) outs(%q : memref<2x2xf32>) permutation = [1, 0]
    scf.yield %s, %s, %p : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  }
  memref.copy %r#0, %y : memref<2x2xf32> to memref<2x2xf32>
  return
}

//--- rotated.mlir
// Three that change places are always three.
// CHECK: p0 = p0_next;
func.func @main(%x: memref<2x2xf32>, %y: memref<2x2xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  %c = memref.alloc() : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%a : memref<2x2xf32>)
  linalg.tanh ins(%x : memref<2x2xf32>) outs(%b : memref<2x2xf32>)
  linalg.tanh ins(%x : memref<2x2xf32>) outs(%c : memref<2x2xf32>)
  %r:3 = scf.for %t = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %b, %s = %c)
      -> (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>) {
    linalg.transpose ins(%p : memref<2x2xf32>) outs(%q : memref<2x2xf32>) permutation = [1, 0]
    scf.yield %q, %s, %p : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>
  }
  memref.copy %r#0, %y : memref<2x2xf32> to memref<2x2xf32>
  return
}

//--- input.mlir
// CHECK: input.mlir":7:3): error: writes to a memref that may be an input or a memref.global, which are only read
func.func @main(%c: memref<i1>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %p = memref.load %c[] : memref<i1>
  %a = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
  %r = arith.select %p, %a, %x : memref<4xf32>
  linalg.exp ins(%a : memref<4xf32>) outs(%r : memref<4xf32>)
  memref.copy %a, %y : memref<4xf32> to memref<4xf32>
  return
}

//--- strides.mlir
// CHECK: strides.mlir":5:8): error: carries buffers of different strides, which is unsupported by the CUDA target; copy one to a memref of the other's layout
func.func @main(%c: memref<i1>, %x: memref<4x4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %p = memref.load %c[] : memref<i1>
  %c0 = arith.constant 0 : index
  %r = scf.if %p -> memref<4xf32, strided<[?], offset: ?>> {
    %row = memref.subview %x[1, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
    %cast = memref.cast %row : memref<4xf32, strided<[1], offset: 4>> to memref<4xf32, strided<[?], offset: ?>>
    scf.yield %cast : memref<4xf32, strided<[?], offset: ?>>
  } else {
    %column = memref.subview %x[0, 1] [4, 1] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[4], offset: 1>>
    %cast = memref.cast %column : memref<4xf32, strided<[4], offset: 1>> to memref<4xf32, strided<[?], offset: ?>>
    scf.yield %cast : memref<4xf32, strided<[?], offset: ?>>
  }
  memref.copy %r, %y : memref<4xf32, strided<[?], offset: ?>> to memref<4xf32>
  return
}

//--- type.mlir
// CHECK: type.mlir":7:8): error: carries a value of type 'f80', which is unsupported by the CUDA target
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %h = arith.constant 1.0 : f80
  %r = scf.for %t = %c0 to %c4 step %c1 iter_args(%s = %h) -> (f80) {
    linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    %n = arith.addf %s, %s : f80
    scf.yield %n : f80
  }
  %f = arith.truncf %r : f80 to f32
  memref.store %f, %y[%c0] : memref<4xf32>
  return
}

//--- scalar.mlir
// CHECK: scalar.mlir":4:8): error: 'math.ctpop' is unsupported by the CUDA target
func.func @main(%c: memref<i32>, %y: memref<i32> {bufferize.result}) {
  %n = memref.load %c[] : memref<i32>
  %b = math.ctpop %n : i32
  memref.store %b, %y[] : memref<i32>
  return
}

//--- unsigned.mlir
// CHECK: unsigned.mlir":6:3): error: {{.*}}unsigned bounds are unsupported by the CUDA target
func.func @main(%c: memref<i64>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %n = memref.load %c[] : memref<i64>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for unsigned %t = %c0 to %n step %c1 : i64 {
    linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  }
  return
}

//--- bounds.mlir
// CHECK: bounds.mlir":6:3): error: bounds of type 'i4' are unsupported by the CUDA target
func.func @main(%c: memref<i64>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %a = arith.constant 0 : i4
  %b = arith.constant 5 : i4
  %s = arith.constant 2 : i4
  scf.for %t = %a to %b step %s : i4 {
    linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  }
  return
}

//--- far.mlir
// Element 2^61 of 4 bytes each lies at byte 2^63.
// CHECK: far.mlir":6:3): error: indexes beyond 2^63 bytes
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %far = arith.constant 2305843009213693952 : index
  %f = arith.constant 1.0 : f32
  memref.store %f, %y[%far] : memref<4xf32>
  return
}

//--- extent.mlir
// CHECK: error: operand of type 'memref<?xf32, strided<[1]>>' is unsupported by the CUDA target, which needs static shapes
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %a = memref.subview %x[0] [%t] [1] : memref<4xf32> to memref<?xf32, strided<[1]>>
    %b = memref.subview %y[0] [%t] [1] : memref<4xf32> to memref<?xf32, strided<[1]>>
    memref.copy %a, %b : memref<?xf32, strided<[1]>> to memref<?xf32, strided<[1]>>
  }
  return
}

//--- call.mlir
// CHECK: call.mlir":8:5): error: 'func.call' is unsupported by the CUDA target
func.func private @other(memref<4xf32>)
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    func.call @other(%y) : (memref<4xf32>) -> ()
  }
  return
}

//--- blocks.mlir
// CHECK: error: {{.*}}is unsupported by the CUDA target, which takes one block
func.func @main(%c: memref<i1>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %p = memref.load %c[] : memref<i1>
  cf.cond_br %p, ^bb1, ^bb2
^bb1:
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  cf.br ^bb2
^bb2:
  return
}

//--- inner-blocks.mlir
// CHECK: inner-blocks.mlir":7:5): error: {{.*}}branches among blocks are unsupported by the CUDA target
func.func @main(%c: memref<i1>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    scf.execute_region {
      %p = memref.load %c[] : memref<i1>
      cf.cond_br %p, ^bb1, ^bb2
    ^bb1:
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      cf.br ^bb2
    ^bb2:
      scf.yield
    }
  }
  return
}

//--- row-outside.mlir
// CHECK: row-outside.mlir":5:8): error: offset 0 is out-of-bounds: 9 >= 4
func.func @main(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<4xf32>
  %s = tensor.extract_slice %x[%c9, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<4xf32>
  %y = linalg.exp ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
