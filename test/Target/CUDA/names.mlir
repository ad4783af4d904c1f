// RUN: memplan-opt %s --emit=cuda -q -o %t/m
// RUN: FileCheck %s < %t/m.cu
// RUN: FileCheck %s --check-prefix=HEADER < %t/m.h
// RUN: g++ -std=c++17 -Wall -Wextra -Werror -x c++ -I %runtime-include -fsyntax-only %t/m.cu

// Names of the model end no comment, no string and no line.
// CHECK: // [0] a*_ /_ __/ end_
// CHECK: launch("a*/ /* \077\077/ end\134\012",
// CHECK: {"in\042\011", MEMPLAN_F32, 1, inputDims0, 16},
// HEADER: * [0] in__: f32[4]
func.func @main(%x: memref<4xf32> {memplan.name = "in\22\09"}, %y: memref<4xf32> {bufferize.result}) {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) loc("a*/ /* ??/ end\\\n")
  return
}
