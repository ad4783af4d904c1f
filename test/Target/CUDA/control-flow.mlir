// RUN: split-file %s %t
// RUN: memplan-opt %t/slices.mlir --emit=cuda -q -o - | FileCheck %t/slices.mlir
// RUN: memplan-opt %t/widths.mlir --emit=cuda -q -o - | FileCheck %t/widths.mlir
// RUN: memplan-opt %t/branch.mlir --emit=cuda -q -o - | FileCheck %t/branch.mlir
// RUN: memplan-opt %t/swap.mlir --emit=cuda -q -o - | FileCheck %t/swap.mlir
// RUN: memplan-opt %t/while.mlir --emit=cuda -q -o - | FileCheck %t/while.mlir
// RUN: memplan-opt %t/unused.mlir --emit=cuda -q -o - | FileCheck %t/unused.mlir
// RUN: memplan-opt %t/while.mlir --emit=cuda -q -o %t/out && FileCheck %t/while.mlir --check-prefix=HEADER < %t/out.h

//--- slices.mlir
// Rows of 8 floats are 32 bytes apart: one kernel of 4 elements a thread for
// all. Row t - 1 is known to be the one before row t.
// CHECK: line 13: scf.for, 2 times
// CHECK-NEXT: for (int64_t i0 = 1; i0 < 4; i0 += 2) {
// CHECK: const float *x0 = run.input<float>(0, i0 * 32);
// CHECK: const float *x1 = run.output<float>(0, i0 * 32 - 32);
// CHECK: float *y = run.output<float>(0, i0 * 32);
// CHECK: launch({{.*}}map_add, dim3(1), dim3(256), run.stream, 2, x0, x1, y)
func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32> {bufferize.result}) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c1 to %c4 step %c2 {
    %u = arith.subi %t, %c1 : index
    %xt = memref.subview %x[%t, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %yu = memref.subview %y[%u, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %yt = memref.subview %y[%t, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.add ins(%xt, %yu : memref<8xf32, strided<[1], offset: ?>>, memref<8xf32, strided<[1], offset: ?>>)
        outs(%yt : memref<8xf32, strided<[1], offset: ?>>)
  }
  return
}

//--- widths.mlir
// Rows of 6 floats are 24 bytes apart, of which 8 divide every one and 16 do
// not: 4 floats at once would be misaligned in every second row.
// CHECK: // One element a thread.
// CHECK-NEXT: __global__ void map_exp(
// CHECK: run.input<float>(0, i0 * 24)
func.func @main(%x: memref<4x6xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %c0 to %c4 step %c1 {
    %xt = memref.subview %x[%t, 0] [1, 4] [1, 1] : memref<4x6xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.exp ins(%xt : memref<4xf32, strided<[1], offset: ?>>) outs(%y : memref<4xf32>)
  }
  return
}

//--- branch.mlir
// %t dies in the branch, and where that is skipped as well.
// CHECK: bool s0{};
// CHECK: MEMPLAN_TRY(run.model.readback.read("line {{[0-9]+}}", x, s0, run.stream));
// CHECK: scf.if
// CHECK-NEXT: if (s0) {
// CHECK: map_tanh
// CHECK: MEMPLAN_TRY(run.end([[T:[0-9]+]], 16));
// CHECK-NEXT: } else {
// CHECK-NEXT: MEMPLAN_TRY(run.end([[T]], 16));
// CHECK-NEXT: }
func.func @main(%c: memref<i1>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %t = memref.alloc() : memref<4xf32>
  linalg.exp ins(%x : memref<4xf32>) outs(%t : memref<4xf32>)
  linalg.exp ins(%t : memref<4xf32>) outs(%y : memref<4xf32>)
  %p = memref.load %c[] : memref<i1>
  scf.if %p {
    linalg.tanh ins(%t : memref<4xf32>) outs(%y : memref<4xf32>)
  }
  linalg.exp ins(%y : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

//--- swap.mlir
// CHECK: char *p0 = run.arena<char>([[A:[0-9]+]]);
// CHECK-NEXT: char *p1 = run.arena<char>([[B:[0-9]+]]);
// CHECK: for (int64_t i0 = 0; i0 < 3; ++i0) {
// CHECK: const float *x0 = run.at<float>(p0);
// CHECK: float *y = run.at<float>(p1);
// CHECK: char *const p0_next = p1;
// CHECK-NEXT: char *const p1_next = p0;
// CHECK-NEXT: p0 = p0_next;
// CHECK-NEXT: p1 = p1_next;
// CHECK-NEXT: }
// CHECK: const float *x0 = run.at<float>(p0);
func.func @main(%x: memref<2x2xf32>, %y: memref<2x2xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = memref.alloc() : memref<2x2xf32>
  %b = memref.alloc() : memref<2x2xf32>
  linalg.exp ins(%x : memref<2x2xf32>) outs(%a : memref<2x2xf32>)
  %r:2 = scf.for %t = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %b) -> (memref<2x2xf32>, memref<2x2xf32>) {
    linalg.transpose ins(%p : memref<2x2xf32>) outs(%q : memref<2x2xf32>) permutation = [1, 0]
    scf.yield %q, %p : memref<2x2xf32>, memref<2x2xf32>
  }
  linalg.tanh ins(%r#0 : memref<2x2xf32>) outs(%y : memref<2x2xf32>)
  return
}

//--- while.mlir
// The number of rounds is carried; a buffer that each round carries on is no
// variable.
// CHECK: int64_t s[[N:[0-9]+]] = int64_t(0);
// CHECK: scf.while
// CHECK-NEXT: while (true) {
// CHECK: const bool s[[MORE:[0-9]+]] = s{{[0-9]+}} < 1e+02f;
// CHECK: if (!s[[MORE]])
// CHECK: break;
// CHECK: map_add
// CHECK-SAME: run.stream
// CHECK: const int64_t s[[M:[0-9]+]] = int64_t(uint64_t(s[[N]]) + uint64_t(int64_t(1)));
// CHECK-NEXT: s[[N]] = s[[M]];
// CHECK-NEXT: }
// CHECK: launch({{.*}}, s[[N]]));
// CHECK: size_t while_num_readbacks(void) { return 1; }
//
// HEADER: size_t out_num_readbacks(void);
// HEADER: waits for the stream. So it can't be captured into a CUDA graph
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}, %n: memref<i64> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 100.0 : f32
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  %r:2 = scf.while (%b = %y, %i = %zero) : (memref<4xf32>, i64) -> (memref<4xf32>, i64) {
    %v = memref.load %b[%c0] : memref<4xf32>
    %more = arith.cmpf olt, %v, %limit : f32
    scf.condition(%more) %b, %i : memref<4xf32>, i64
  } do {
  ^bb0(%b: memref<4xf32>, %i: i64):
    linalg.add ins(%b, %b : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
    %j = arith.addi %i, %one : i64
    scf.yield %b, %j : memref<4xf32>, i64
  }
  memref.store %r#1, %n[] : memref<i64>
  return
}

//--- unused.mlir
// A scalar that is carried but not looked at needs no variable, and what is read
// for nothing isn't read.
// CHECK-NOT: readback
// CHECK-NOT: {{ s[0-9]}}
// CHECK: for (int64_t i0 = 0; i0 < 3; ++i0) {
// CHECK-NOT: {{ s[0-9]}}
func.func @main(%c: memref<i64>, %x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.load %c[] : memref<i64>
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%i = %n) -> (i64) {
    linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    %j = arith.addi %i, %n : i64
    scf.yield %j : i64
  }
  return
}
