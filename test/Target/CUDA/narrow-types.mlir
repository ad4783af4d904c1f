// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A body of f16 is one of Half, which rounds after each op; literals are exact (0.1 is 0x2E66).
// CHECK: __device__ __forceinline__ Half compute_mul_add(Half x0) {
// CHECK-NEXT: const Half v0 = x0 * x0;
// CHECK-NEXT: return v0 + Half(0.099975586f);
// CHECK: __device__ __forceinline__ F8E4M3FN compute_{{[a-z]+}}(Half x0) {
// CHECK-NEXT: return F8E4M3FN(x0);
// A sum of a row of f16 is one of floats, rounded in the end.
// CHECK: float r0_wide = SumOp::identity<float>();
// CHECK: r0_wide = SumOp::combine(r0_wide, float(
// CHECK: const Half r0(r0_wide);
// Zero points, unsigned elements, a result of another type.
// CHECK: convQuantized("line {{[0-9]+}}", ConvShape{{.*}}
// CHECK: LessZeroPoint<uint8_t>{x_zero,
// CHECK: LessZeroPoint<int8_t>{w_zero, 1}, y,
// CHECK: {"a", MEMPLAN_F16, 2, inputDims0, 64},
// 15 elements of 4 bits are 7.5 bytes.
// CHECK: {"q", MEMPLAN_U4, 2, inputDims1, 8},
func.func @main(%a: memref<4x8xf16> {memplan.name = "a"},
                %q: memref<8xi8> {memplan.name = "q", memplan.packed = tensor<3x5xi4>, memplan.unsigned},
                %x: memref<1x2x5xi8>, %w: memref<4x2x3xi8>, %xz: memref<i8>, %wz: memref<4xi8>,
                %b: memref<4x8xf16> {bufferize.result}, %e: memref<4x8xf8E4M3FN> {bufferize.result},
                %s: memref<4xf16> {bufferize.result}, %y: memref<1x4x3xf32> {bufferize.result},
                %p: memref<8xi8> {bufferize.result}) {
  %c = arith.constant 0.1 : f16
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf16>) outs(%b : memref<4x8xf16>) {
  ^bb0(%v: f16, %old: f16):
    %0 = arith.mulf %v, %v : f16
    %1 = arith.addf %0, %c : f16
    linalg.yield %1 : f16
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<4x8xf16>) outs(%e : memref<4x8xf8E4M3FN>) {
  ^bb0(%v: f16, %old: f8E4M3FN):
    %0 = arith.truncf %v : f16 to f8E4M3FN
    linalg.yield %0 : f8E4M3FN
  }
  memplan.rowwise ins(%a : memref<4x8xf16>) outs(%s : memref<4xf16>)
      row_dims = [1] combiners = [#memplan.combiner<sum>] indexing_maps = [#id, #row]
    finish {
    ^bb0(%v: f16, %sum: f16):
      memplan.yield %sum : f16
    } stages {
    ^bb0(%v: f16):
      memplan.yield %v : f16
    }
  memplan.conv ins(%x, %w : memref<1x2x5xi8>, memref<4x2x3xi8>) outs(%y : memref<1x4x3xf32>)
      unsigned_input input_zero(%xz : memref<i8>) filter_zero(%wz : memref<4xi8>)
      strides = [1] dilations = [1] pads_begin = [0] pads_end = [0] groups = 1 extra_maps = [] {
  ^bb0(%acc: i32):
    %0 = arith.sitofp %acc : i32 to f32
    memplan.yield %0 : f32
  }
  memref.copy %q, %p : memref<8xi8> to memref<8xi8>
  return
}
