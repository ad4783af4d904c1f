//===- Indices.h - Indices into tensors -------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_INDICES_H
#define MEMPLAN_LIB_IMPORT_ONNX_INDICES_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// Reports one of the indices in input `i`, as far as they are known at import
/// and few, that is outside [-extent, extent).
mlir::LogicalResult checkKnownIndices(NodeBuilder &n, unsigned i,
                                      int64_t extent);

/// An index read from a tensor, made safe: negative ones count from the end,
/// and what is still outside is moved to the nearest element, since a kernel
/// cannot report it and must not read elsewhere.
mlir::Value safeIndex(mlir::OpBuilder &b, mlir::Location loc, mlir::Value index,
                      DType dtype, int64_t extent);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_INDICES_H
