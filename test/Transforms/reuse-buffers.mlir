// RUN: memplan-opt %s --memplan-reuse-buffers --split-input-file | FileCheck %s

// A chain in place: one alloc of the three stays.
// CHECK-LABEL: func.func @chain
//       CHECK:   %[[A:.*]] = memref.alloc() : memref<64xf32>
//   CHECK-NOT:   memref.alloc
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%[[A]] :
//       CHECK:   linalg.tanh ins(%[[A]] : {{.*}}) outs(%[[A]] :
//       CHECK:   linalg.exp ins(%[[A]] : {{.*}}) outs(%[[A]] :
//       CHECK:   memref.copy %[[A]]
func.func @chain(%x: memref<64xf32>, %y: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  %b = memref.alloc() : memref<64xf32>
  linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  %c = memref.alloc() : memref<64xf32>
  linalg.exp ins(%b : memref<64xf32>) outs(%c : memref<64xf32>)
  memref.copy %c, %y : memref<64xf32> to memref<64xf32>
  return
}

// -----

// The input is read again later: it doesn't die.
// CHECK-LABEL: func.func @read_later
// CHECK-COUNT-2: memref.alloc
func.func @read_later(%x: memref<64xf32>, %y: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  %b = memref.alloc() : memref<64xf32>
  linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  linalg.add ins(%a, %b : memref<64xf32>, memref<64xf32>) outs(%y : memref<64xf32>)
  return
}

// -----

// The destination is written before: it would lose what it holds.
// CHECK-LABEL: func.func @written_before
// CHECK-COUNT-2: memref.alloc
func.func @written_before(%x: memref<64xf32>, %y: memref<64xf32>) {
  %b = memref.alloc() : memref<64xf32>
  memref.copy %x, %b : memref<64xf32> to memref<64xf32>
  %a = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  memref.copy %b, %y : memref<64xf32> to memref<64xf32>
  return
}

// -----

// Transposed, broadcast, reduced, narrowed: never in place. An operand that is
// read twice, once out of step, isn't either.
// CHECK-LABEL: func.func @out_of_step
//       CHECK:   %[[A:.*]] = memref.alloc() : memref<8x8xf32>
//       CHECK:   %[[B:.*]] = memref.alloc() : memref<8x8xf32>
//       CHECK:   linalg.transpose ins(%[[A]] : {{.*}}) outs(%[[B]] :
//       CHECK:   %[[C:.*]] = memref.alloc() : memref<8x8xf32>
//       CHECK:   ins(%[[B]], %[[B]] : {{.*}}) outs(%[[C]] :
//       CHECK:   %[[D:.*]] = memref.alloc() : memref<8x8xf16>
//       CHECK:   ins(%[[C]] : {{.*}}) outs(%[[D]] :
//       CHECK:   %[[E:.*]] = memref.alloc() : memref<8xf16>
//       CHECK:   linalg.reduce {{.*}} ins(%[[D]] : {{.*}}) outs(%[[E]] :
#id = affine_map<(i, j) -> (i, j)>
#tr = affine_map<(i, j) -> (j, i)>
func.func @out_of_step(%x: memref<8x8xf32>, %y: memref<8xf16>) {
  %a = memref.alloc() : memref<8x8xf32>
  linalg.exp ins(%x : memref<8x8xf32>) outs(%a : memref<8x8xf32>)
  %b = memref.alloc() : memref<8x8xf32>
  linalg.transpose ins(%a : memref<8x8xf32>) outs(%b : memref<8x8xf32>) permutation = [1, 0]
  %c = memref.alloc() : memref<8x8xf32>
  linalg.generic {indexing_maps = [#id, #tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  %d = memref.alloc() : memref<8x8xf16>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c : memref<8x8xf32>) outs(%d : memref<8x8xf16>) {
  ^bb0(%p: f32, %o: f16):
    %s = arith.truncf %p : f32 to f16
    linalg.yield %s : f16
  }
  %e = memref.alloc() : memref<8xf16>
  linalg.reduce {arith.addf} ins(%d : memref<8x8xf16>) outs(%e : memref<8xf16>) dimensions = [1]
  memref.copy %e, %y : memref<8xf16> to memref<8xf16>
  return
}

// -----

// A table that the body itself reads is read out of step.
// CHECK-LABEL: func.func @gathered
// CHECK-COUNT-2: memref.alloc
#id = affine_map<(i) -> (i)>
func.func @gathered(%x: memref<64xindex>, %y: memref<64xindex>) {
  %a = memref.alloc() : memref<64xindex>
  memref.copy %x, %a : memref<64xindex> to memref<64xindex>
  %b = memref.alloc() : memref<64xindex>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<64xindex>) outs(%b : memref<64xindex>) {
  ^bb0(%p: index, %o: index):
    %s = memref.load %a[%p] : memref<64xindex>
    linalg.yield %s : index
  }
  memref.copy %b, %y : memref<64xindex> to memref<64xindex>
  return
}

// -----

// Through reshapes: the second buffer is the first one in another shape. Its
// dealloc frees the one that stays.
// CHECK-LABEL: func.func @reshaped
//       CHECK:   %[[A:.*]] = memref.alloc() {alignment = 128 : i64} : memref<4x16xf32>
//       CHECK:   %[[B:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [8, 8], strides: [8, 1]
//       CHECK:   %[[F:.*]] = memref.collapse_shape %[[A]]
//       CHECK:   %[[G:.*]] = memref.collapse_shape %[[B]]
//       CHECK:   linalg.tanh ins(%[[F]] : {{.*}}) outs(%[[G]] :
//   CHECK-NOT:   memref.dealloc
//       CHECK:   memref.copy %[[B]]
//       CHECK:   memref.dealloc %[[A]]
//   CHECK-NOT:   memref.dealloc
func.func @reshaped(%x: memref<4x16xf32>, %y: memref<8x8xf32>) {
  %b = memref.alloc() {alignment = 128 : i64} : memref<8x8xf32>
  %a = memref.alloc() {alignment = 64 : i64} : memref<4x16xf32>
  linalg.exp ins(%x : memref<4x16xf32>) outs(%a : memref<4x16xf32>)
  %f = memref.collapse_shape %a [[0, 1]] : memref<4x16xf32> into memref<64xf32>
  %g = memref.collapse_shape %b [[0, 1]] : memref<8x8xf32> into memref<64xf32>
  linalg.tanh ins(%f : memref<64xf32>) outs(%g : memref<64xf32>)
  memref.dealloc %a : memref<4x16xf32>
  memref.copy %b, %y : memref<8x8xf32> to memref<8x8xf32>
  memref.dealloc %b : memref<8x8xf32>
  return
}

// -----

// In a loop: %a dies in each iteration, %c, which is carried past it, doesn't.
// CHECK-LABEL: func.func @loop
//       CHECK:   %[[C:.*]] = memref.alloc() : memref<64xf32>
//       CHECK:   scf.for
//       CHECK:     %[[A:.*]] = memref.alloc() : memref<64xf32>
//       CHECK:     linalg.exp ins(%[[C]] : {{.*}}) outs(%[[A]] :
//       CHECK:     linalg.tanh ins(%[[A]] : {{.*}}) outs(%[[A]] :
func.func @loop(%x: memref<64xf32>, %y: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = memref.alloc() : memref<64xf32>
  memref.copy %x, %c : memref<64xf32> to memref<64xf32>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() : memref<64xf32>
    linalg.exp ins(%c : memref<64xf32>) outs(%a : memref<64xf32>)
    %b = memref.alloc() : memref<64xf32>
    linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
    memref.copy %b, %y : memref<64xf32> to memref<64xf32>
  }
  return
}

// -----

// A convolution's residual is read where the result is stored; its input isn't.
// CHECK-LABEL: func.func @residual
//       CHECK:   %[[X:.*]] = memref.alloc() : memref<1x4x4x4xf32>
//       CHECK:   %[[R:.*]] = memref.alloc() : memref<1x4x4x4xf32>
//       CHECK:   memplan.conv ins(%[[X]], {{.*}}) extras(%[[R]] : {{.*}}) outs(%[[R]] :
func.func @residual(%x: memref<1x4x4x4xf32>, %w: memref<4x4x1x1xf32>, %y: memref<1x4x4x4xf32>) {
  %a = memref.alloc() : memref<1x4x4x4xf32>
  linalg.exp ins(%x : memref<1x4x4x4xf32>) outs(%a : memref<1x4x4x4xf32>)
  %r = memref.alloc() : memref<1x4x4x4xf32>
  linalg.tanh ins(%x : memref<1x4x4x4xf32>) outs(%r : memref<1x4x4x4xf32>)
  %b = memref.alloc() : memref<1x4x4x4xf32>
  memplan.conv ins(%a, %w : memref<1x4x4x4xf32>, memref<4x4x1x1xf32>)
      extras(%r : memref<1x4x4x4xf32>) outs(%b : memref<1x4x4x4xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0]
      groups = 1 extra_maps = [affine_map<(n, f, h, w) -> (n, f, h, w)>] {
  ^bb0(%acc: f32, %e: f32):
    %s = arith.addf %acc, %e : f32
    memplan.yield %s : f32
  }
  memref.copy %b, %y : memref<1x4x4x4xf32> to memref<1x4x4x4xf32>
  return
}

// -----

// All of a chain lives in its output; nothing is allocated.
// CHECK-LABEL: func.func @output
//  CHECK-SAME:   %[[Y:[a-z0-9]*]]: memref<8x8xf32> {bufferize.result}
//   CHECK-NOT:   memref.alloc
//       CHECK:   %[[A:.*]] = memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [64], strides: [1]
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%[[A]] :
//       CHECK:   linalg.tanh ins(%[[A]] : {{.*}}) outs(%[[A]] :
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%[[Y]] :
func.func @output(%x: memref<64xf32>, %y: memref<8x8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<64xf32>
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  %b = memref.alloc() : memref<64xf32>
  linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  %c = memref.expand_shape %b [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>
  linalg.exp ins(%c : memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}

// -----

// The output holds something that is read before: it is no scratch.
// CHECK-LABEL: func.func @output_in_use
//       CHECK:   memref.alloc
func.func @output_in_use(%x: memref<64xf32>, %y: memref<64xf32> {bufferize.result}, %z: memref<64xf32> {bufferize.result}) {
  linalg.exp ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  %a = memref.alloc() : memref<64xf32>
  linalg.add ins(%x, %y : memref<64xf32>, memref<64xf32>) outs(%a : memref<64xf32>)
  linalg.exp ins(%y : memref<64xf32>) outs(%z : memref<64xf32>)
  linalg.tanh ins(%a : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
