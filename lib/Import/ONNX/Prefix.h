//===- Prefix.h - Running sums, and searches in them ------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_PREFIX_H
#define MEMPLAN_LIB_IMPORT_ONNX_PREFIX_H

#include "NodeBuilder.h"
#include "Places.h"

namespace memplan::onnx {

/// Sums of the elements of `x` up to each, along `axis`.
mlir::Value prefixSums(NodeBuilder &n, mlir::Value x, DType dtype,
                       int64_t axis);

/// In a body: the first place of [0, extent) for which `isBefore` is false,
/// given that it is true up to there; or `extent`.
mlir::Value
firstPlace(const Places &p, int64_t extent,
           llvm::function_ref<mlir::Value(mlir::Value place)> isBefore);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_PREFIX_H
