// RUN: memplan-opt %s --memplan-forward-destinations="emit-remarks=true alignment=1" --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// Two parts of a concatenation: both producers write into it, the one made
// first and read again too.
// CHECK-LABEL: func.func @concat
//       CHECK:   %[[C:.*]] = memref.alloc() : memref<8x8xf32>
//   CHECK-NOT:   memref.alloc
//       CHECK:   %[[A:.*]] = memref.subview %[[C]][0, 0] [4, 8]
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%[[A]] :
//       CHECK:   %[[B:.*]] = memref.subview %[[C]][4, 0] [4, 8]
//       CHECK:   linalg.tanh ins(%[[A]] : {{.*}}) outs(%[[B]] :
//   CHECK-NOT:   memref.copy
//       CHECK:   linalg.exp ins(%[[C]]
func.func @concat(%x: memref<4x8xf32>, %y: memref<8x8xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %b = memref.alloc() : memref<4x8xf32>
  linalg.tanh ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  %c = memref.alloc() : memref<8x8xf32>
  %low = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1]>>
  memref.copy %a, %low : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1]>>
  %high = memref.subview %c[4, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  memref.copy %b, %high : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  linalg.exp ins(%c : memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}

// -----

// A concat of a concat, along the inner dim: %a is a strided part of a part.
// CHECK-LABEL: func.func @nested
//       CHECK:   %[[D:.*]] = memref.alloc() : memref<4x24xf32>
//   CHECK-NOT:   memref.alloc
//   CHECK-NOT:   memref.copy
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%{{.*}} : memref<4x8xf32, strided<[24, 1], offset: 8>>)
//       CHECK:   linalg.tanh ins(%{{.*}}) outs(%{{.*}} : memref<4x8xf32, strided<[24, 1], offset: 16>>)
//   CHECK-NOT:   memref.copy
//       CHECK:   linalg.exp ins(%[[D]]
func.func @nested(%x: memref<4x8xf32>, %y: memref<4x24xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %b = memref.alloc() : memref<4x8xf32>
  linalg.tanh ins(%x : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  %c = memref.alloc() : memref<4x16xf32>
  %c0 = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1]>>
  memref.copy %a, %c0 : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  %c1 = memref.subview %c[0, 8] [4, 8] [1, 1] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1], offset: 8>>
  memref.copy %b, %c1 : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1], offset: 8>>
  %d = memref.alloc() : memref<4x24xf32>
  %d0 = memref.subview %d[0, 0] [4, 8] [1, 1] : memref<4x24xf32> to memref<4x8xf32, strided<[24, 1]>>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%d0 : memref<4x8xf32, strided<[24, 1]>>)
  %d1 = memref.subview %d[0, 8] [4, 16] [1, 1] : memref<4x24xf32> to memref<4x16xf32, strided<[24, 1], offset: 8>>
  memref.copy %c, %d1 : memref<4x16xf32> to memref<4x16xf32, strided<[24, 1], offset: 8>>
  linalg.exp ins(%d : memref<4x24xf32>) outs(%y : memref<4x24xf32>)
  return
}

// -----

// An output that is also used inside is written in place, in its own shape.
// CHECK-LABEL: func.func @output
//  CHECK-SAME:   %[[Y:[a-z0-9]*]]: memref<8x4xf32> {bufferize.result}
//   CHECK-NOT:   memref.alloc
//       CHECK:   %[[F:.*]] = memref.collapse_shape %[[Y]]
//       CHECK:   %[[A:.*]] = memref.expand_shape %[[F]]
//       CHECK:   linalg.exp ins(%{{.*}}) outs(%[[A]] : memref<4x8xf32>)
//   CHECK-NOT:   memref.copy
//       CHECK:   linalg.tanh ins(%[[A]]
func.func @output(%x: memref<4x8xf32>, %y: memref<8x4xf32> {bufferize.result}, %z: memref<4x8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %f = memref.collapse_shape %a [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %g = memref.expand_shape %f [[0, 1]] output_shape [8, 4] : memref<32xf32> into memref<8x4xf32>
  memref.copy %g, %y : memref<8x4xf32> to memref<8x4xf32>
  linalg.tanh ins(%a : memref<4x8xf32>) outs(%z : memref<4x8xf32>)
  return
}

// -----

// Only a part of %a is ever seen: that part is all that is allocated.
// CHECK-LABEL: func.func @shrunk
//       CHECK:   memref.alloc() : memref<4x8xf32>
//   CHECK-NOT:   memref<4x24xf32>
func.func @shrunk(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %a = memref.alloc() : memref<4x24xf32>
  %p = memref.subview %a[0, 8] [4, 8] [1, 1] : memref<4x24xf32> to memref<4x8xf32, strided<[24, 1], offset: 8>>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%p : memref<4x8xf32, strided<[24, 1], offset: 8>>)
  linalg.exp ins(%p : memref<4x8xf32, strided<[24, 1], offset: 8>>) outs(%y : memref<4x8xf32>)
  return
}

// -----

// The destination is filled after %a is made: padding. The copy stays.
// CHECK-LABEL: func.func @filled
//       CHECK:   memref.copy
func.func @filled(%x: memref<4x8xf32>, %y: memref<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %c = memref.alloc() : memref<6x8xf32>
  // expected-note @+1 {{here}}
  linalg.fill ins(%zero : f32) outs(%c : memref<6x8xf32>)
  %p = memref.subview %c[1, 0] [4, 8] [1, 1] : memref<6x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 8>>
  // expected-remark @+1 {{this copy stays: its destination is in use while its source is}}
  memref.copy %a, %p : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 8>>
  linalg.exp ins(%c : memref<6x8xf32>) outs(%y : memref<6x8xf32>)
  return
}

// -----

// The source is written again, and both are read: they differ.
// CHECK-LABEL: func.func @written_again
//       CHECK:   memref.copy
func.func @written_again(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  %c = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  // expected-remark @+1 {{this copy stays: its source is written again after it}}
  memref.copy %a, %c : memref<4x8xf32> to memref<4x8xf32>
  // expected-note @+1 {{here}}
  linalg.tanh ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  linalg.add ins(%a, %c : memref<4x8xf32>, memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// -----

// The destination is written again while the source is still read.
// CHECK-LABEL: func.func @destination_written
//       CHECK:   memref.copy
func.func @destination_written(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  %c = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  // expected-remark @+1 {{this copy stays: its destination is written while its source is still read}}
  memref.copy %a, %c : memref<4x8xf32> to memref<4x8xf32>
  // expected-note @+1 {{here}}
  linalg.tanh ins(%c : memref<4x8xf32>) outs(%c : memref<4x8xf32>)
  linalg.add ins(%a, %c : memref<4x8xf32>, memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// -----

// An input may be anything, and any other argument may be an input.
// CHECK-LABEL: func.func @arguments
// CHECK-COUNT-2: memref.copy
func.func @arguments(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %z: memref<4x8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  // expected-remark @+1 {{this copy stays: its destination is no buffer of this function, and no output}}
  memref.copy %a, %y : memref<4x8xf32> to memref<4x8xf32>
  // expected-remark @+1 {{this copy stays: its source is no buffer of this function}}
  memref.copy %x, %z : memref<4x8xf32> to memref<4x8xf32>
  return
}

// -----

// A convolution reads its input with dense channels only.
// CHECK-LABEL: func.func @layout
//       CHECK:   memref.copy
func.func @layout(%x: memref<1x4x4x4xf32>, %w: memref<4x4x1x1xf32>, %y: memref<1x4x4x4xf32>, %z: memref<1x4x4x8xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<1x4x4x4xf32>
  linalg.exp ins(%x : memref<1x4x4x4xf32>) outs(%a : memref<1x4x4x4xf32>)
  // expected-note @+1 {{here}}
  memplan.conv ins(%a, %w : memref<1x4x4x4xf32>, memref<4x4x1x1xf32>) outs(%y : memref<1x4x4x4xf32>)
      strides = [1, 1] dilations = [1, 1] pads_begin = [0, 0] pads_end = [0, 0] groups = 1 extra_maps = [] {
  ^bb0(%acc: f32):
    memplan.yield %acc : f32
  }
  %p = memref.subview %z[0, 0, 0, 4] [1, 4, 4, 4] [1, 1, 1, 1] : memref<1x4x4x8xf32> to memref<1x4x4x4xf32, strided<[128, 32, 8, 1], offset: 4>>
  // expected-remark @+1 {{this copy stays: its source is used by an op that needs another layout}}
  memref.copy %a, %p : memref<1x4x4x4xf32> to memref<1x4x4x4xf32, strided<[128, 32, 8, 1], offset: 4>>
  return
}

// -----

// The halves of %c interleave, so all of it would live from %a on, beside %t, which is 16 times as large: the peak, now
// %a and %t with 128 + 2048 bytes, would be %c and %t with 256 + 2048.
// CHECK-LABEL: func.func @peak
//       CHECK:   memref.copy
func.func @peak(%x: memref<4x8xf32>, %u: memref<64x8xf32>, %y: memref<4x16xf32>, %v: memref<64x8xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %t = memref.alloc() : memref<64x8xf32>
  linalg.exp ins(%u : memref<64x8xf32>) outs(%t : memref<64x8xf32>)
  linalg.exp ins(%t : memref<64x8xf32>) outs(%v : memref<64x8xf32>)
  %c = memref.alloc() : memref<4x16xf32>
  %low = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1]>>
  // expected-remark @+1 {{this copy stays: its destination would live so long that more bytes would be live at one time}}
  memref.copy %a, %low : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  %high = memref.subview %c[0, 8] [4, 8] [1, 1] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 1], offset: 8>>
  linalg.tanh ins(%x : memref<4x8xf32>) outs(%high : memref<4x8xf32, strided<[16, 1], offset: 8>>)
  linalg.exp ins(%c : memref<4x16xf32>) outs(%y : memref<4x16xf32>)
  return
}

// -----

// The lower half of %c lives from %a on, beside %t; the other half has its own
// life, so that the peak stays what it is.
// CHECK-LABEL: func.func @half
//   CHECK-NOT:   memref.copy
//       CHECK:   return
func.func @half(%x: memref<4x8xf32>, %u: memref<64x8xf32>, %y: memref<8x8xf32>, %v: memref<64x8xf32>) {
  %a = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
  %t = memref.alloc() : memref<64x8xf32>
  linalg.exp ins(%u : memref<64x8xf32>) outs(%t : memref<64x8xf32>)
  linalg.exp ins(%t : memref<64x8xf32>) outs(%v : memref<64x8xf32>)
  %c = memref.alloc() : memref<8x8xf32>
  %low = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1]>>
  memref.copy %a, %low : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1]>>
  %high = memref.subview %c[4, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  linalg.tanh ins(%x : memref<4x8xf32>) outs(%high : memref<4x8xf32, strided<[8, 1], offset: 32>>)
  linalg.exp ins(%c : memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}

// -----

// The same in another memory space, whose peak a larger one elsewhere must not
// hide.
// CHECK-LABEL: func.func @spaces
//       CHECK:   memref.copy
func.func @spaces(%x: memref<4x8xf32>, %u: memref<64x8xf32>, %y: memref<4x16xf32>, %v: memref<64x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<4x8xf32, 1>
  linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32, 1>)
  %t = memref.alloc() : memref<64x8xf32, 1>
  linalg.exp ins(%u : memref<64x8xf32>) outs(%t : memref<64x8xf32, 1>)
  linalg.exp ins(%t : memref<64x8xf32, 1>) outs(%v : memref<64x8xf32>)
  %c = memref.alloc() : memref<4x16xf32, 1>
  %low = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<4x16xf32, 1> to memref<4x8xf32, strided<[16, 1]>, 1>
  // expected-remark @+1 {{this copy stays: its destination would live so long that more bytes would be live at one time}}
  memref.copy %a, %low : memref<4x8xf32, 1> to memref<4x8xf32, strided<[16, 1]>, 1>
  %high = memref.subview %c[0, 8] [4, 8] [1, 1] : memref<4x16xf32, 1> to memref<4x8xf32, strided<[16, 1], offset: 8>, 1>
  linalg.tanh ins(%x : memref<4x8xf32>) outs(%high : memref<4x8xf32, strided<[16, 1], offset: 8>, 1>)
  linalg.exp ins(%c : memref<4x16xf32, 1>) outs(%y : memref<4x16xf32>)
  %big = memref.alloc() : memref<4096xf32>
  linalg.fill ins(%zero : f32) outs(%big : memref<4096xf32>)
  return
}
