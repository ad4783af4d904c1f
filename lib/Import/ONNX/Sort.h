//===- Sort.h - The order of elements ---------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SORT_H
#define MEMPLAN_LIB_IMPORT_ONNX_SORT_H

#include "NodeBuilder.h"

namespace memplan::onnx {

inline constexpr int64_t kLongestSorted = 1 << 24;

/// Where the elements of the vector `x` are in ascending order (int64). Equal
/// ones keep their order, a NaN is the largest.
mlir::Value sortedPlaces(NodeBuilder &n, mlir::Value x, DType dtype);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SORT_H
