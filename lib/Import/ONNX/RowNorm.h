//===- RowNorm.h - Normalization of rows ------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_ROWNORM_H
#define MEMPLAN_LIB_IMPORT_ONNX_ROWNORM_H

#include "NodeBuilder.h"

namespace memplan::onnx {

struct RowNormOptions {
  double epsilon = 1e-5;
  /// Without: divides by the root of the mean square.
  bool subtractsMean = true;
  /// May be null; broadcast to the tensor.
  ImportedTensor *scale = nullptr, *bias = nullptr;
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias, a row being all dims
/// from `axis` on.
mlir::FailureOr<mlir::Value> normalizeRows(NodeBuilder &n, ImportedTensor &x,
                                           int64_t axis,
                                           const RowNormOptions &options);

/// LayerNormalization, or RMSNormalization. `firstStatistic` is the output of
/// the mean; that of the inverse of the deviation follows it.
mlir::LogicalResult buildLayerNorm(NodeBuilder &n, bool isRms,
                                   int firstStatistic);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_ROWNORM_H
