// RUN: memplan-opt %s --memplan-separate-destinations | FileCheck %s

// CHECK-LABEL: @chain
// CHECK: %[[E0:.*]] = tensor.empty
// CHECK: %[[A:.*]] = linalg.exp {{.*}} outs(%[[E0]] :
// CHECK: %[[E1:.*]] = tensor.empty
// CHECK: %[[B:.*]] = linalg.exp ins(%[[A]] {{.*}} outs(%[[E1]] :
// CHECK: %[[E2:.*]] = tensor.empty
// CHECK: linalg.exp ins(%[[B]] {{.*}} outs(%[[E2]] :
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.exp ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.exp ins(%1 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A use in a region has its destination there.
// CHECK-LABEL: @nested
//   CHECK-NOT: tensor.empty
//       CHECK: scf.if
//       CHECK:   %[[E:.*]] = tensor.empty
//       CHECK:   linalg.exp {{.*}} outs(%[[E]] :
//       CHECK: else
//       CHECK:   %[[F:.*]] = tensor.empty
//       CHECK:   linalg.tanh {{.*}} outs(%[[F]] :
func.func @nested(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %c -> tensor<4xf32> {
    %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    %1 = linalg.tanh ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
