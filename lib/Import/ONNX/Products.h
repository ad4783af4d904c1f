//===- Products.h - Builders of products and convolutions -------*- C++ -*-===//
//
// Those that operators of other domains share.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H
#define MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H

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

/// `limitsBroadcast`: attribute 'broadcast' must say that C does.
mlir::LogicalResult buildGemm(NodeBuilder &n, bool limitsBroadcast);
mlir::LogicalResult buildConv(NodeBuilder &n);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H
