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

// Two concatenations that begin alike, and a third that goes on from there: each
// insertion into what is not yet whole is into a tensor of its own. What reads
// the whole one reads the same.
// CHECK-LABEL: @beginnings
//   CHECK-DAG: %[[E0:.*]] = tensor.empty() : tensor<8xf32>
//   CHECK-DAG: %[[E1:.*]] = tensor.empty() : tensor<8xf32>
//   CHECK-DAG: %[[A0:.*]] = tensor.insert_slice %arg0 into %[[E0]][0]
//   CHECK-DAG: %[[A1:.*]] = tensor.insert_slice %arg0 into %[[E1]][0]
//   CHECK-DAG: %[[B:.*]] = tensor.insert_slice %arg1 into %[[A0]][4]
//   CHECK-DAG: %[[C:.*]] = tensor.insert_slice %arg2 into %[[A1]][4]
//   CHECK-DAG: linalg.exp ins(%[[B]] :
//   CHECK-DAG: linalg.tanh ins(%[[B]] :
//       CHECK: return %{{.*}}, %{{.*}}, %[[C]]
func.func @beginnings(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %0 = tensor.insert_slice %a into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %1 = tensor.insert_slice %b into %0[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %2 = tensor.insert_slice %c into %0[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %g = tensor.empty() : tensor<8xf32>
  %3 = linalg.exp ins(%1 : tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  %4 = linalg.tanh ins(%1 : tensor<8xf32>) outs(%g : tensor<8xf32>) -> tensor<8xf32>
  return %3, %4, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
