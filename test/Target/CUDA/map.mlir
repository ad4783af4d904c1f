// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#swap = affine_map<(i, j) -> (j, i)>

// Bias and relu: rows of 8 are 2 vectors of 4; 4 x 8 elements are 8 threads.
// CHECK: __device__ __forceinline__ float compute_add_max(float x0, float x1) {
// CHECK-NEXT: const float v0 = x0 + x1;
// CHECK-NEXT: return maximumOf(v0, 0.0f);
// CHECK: // 4 elements a thread.
// CHECK-NEXT: __global__ void map_add_max(unsigned count, FastDiv extent_d1, const float *x0,
// CHECK: const Vec<float, 4> x1_in = loadVec<4>(&x1[4 * d1]);
// CHECK: y_out[lane] = compute_add_max(x0_in[lane], x1_in[lane]);
// CHECK: storeVec(&y[d0 * y_d0 + 4 * d1], y_out);

// A transpose writes neighbouring elements from neighbouring threads.
// CHECK: // One element a thread.
// CHECK-NEXT: __global__ void map_copy(
// CHECK: y[d0 * y_d0 + d1] = x0[d0 + d1 * x0_d1];

// CHECK: // [0] bias
// CHECK-NEXT: // linalg.generic f32[4, 8], f32[8] -> f32[4, 8]; reads 160 B, writes 128 B
// CHECK: launch("bias", map_add_max, dim3(1), dim3(256), run.stream, 8, FastDiv(2), x0, x1,
// CHECK-NEXT: y, 8, 8));
// CHECK: // [1] transpose
// CHECK: launch("transpose", map_copy, dim3(1), dim3(256), run.stream, 32, FastDiv(4), x0,
// CHECK-NEXT: y, 8, 4));
func.func @main(%x: memref<4x8xf32>, %b: memref<8xf32>, %y: memref<4x8xf32> {bufferize.result},
                %t: memref<8x4xf32> {bufferize.result}) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : memref<4x8xf32>, memref<8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%e: f32, %f: f32, %old: f32):
    %0 = arith.addf %e, %f : f32
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  } loc("bias")
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x8xf32>) outs(%t : memref<8x4xf32>) {
  ^bb0(%e: f32, %old: f32):
    linalg.yield %e : f32
  } loc("transpose")
  return
}
