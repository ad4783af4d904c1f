//===- BatchedProduct.h - Products with batch dims anywhere -----*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_BATCHEDPRODUCT_H
#define MEMPLAN_LIB_IMPORT_ONNX_BATCHEDPRODUCT_H

#include "NodeBuilder.h"

namespace memplan::onnx {

struct ProductOptions {
  /// The last two dims are swapped.
  bool transA = false, transB = false;
  /// The batch dims are between the last two, and are moved in front first.
  bool transBatchA = false, transBatchB = false;
  double alpha = 1;
};

/// The product of inputs 0 and 1, as numpy.matmul multiplies and broadcasts.
mlir::LogicalResult buildProduct(NodeBuilder &n, const ProductOptions &options);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_BATCHEDPRODUCT_H
