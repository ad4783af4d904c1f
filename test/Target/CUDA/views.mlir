// RUN: memplan-opt %s --emit=cuda -q -o - | FileCheck %s

// Views cost nothing: offsets are in the pointers. Row 1 of x begins after 6
// floats; column 2 of it 2 floats later: (6 + 2) * 4 = 32 bytes. Its 2 columns
// are 4 apart in y's rows of 4, from column 2: 2 * 4 = 8 bytes.
// CHECK: const float *x0 = run.input<float>(0, 32);
// CHECK-NEXT: float *y = run.output<float>(0, 8);
func.func @main(%x: memref<2x6xf32>, %y: memref<1x4xf32> {bufferize.result}) {
  %0 = memref.subview %x[1, 2] [1, 2] [1, 1] : memref<2x6xf32> to memref<1x2xf32, strided<[6, 1], offset: 8>>
  %1 = memref.subview %y[0, 2] [1, 2] [1, 1] : memref<1x4xf32> to memref<1x2xf32, strided<[4, 1], offset: 2>>
  memref.copy %0, %1 : memref<1x2xf32, strided<[6, 1], offset: 8>> to memref<1x2xf32, strided<[4, 1], offset: 2>>
  return
}
