//===- Indices.h - Indices into tensors -------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_INDICES_H
#define MEMPLAN_LIB_IMPORT_ONNX_INDICES_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// Reports one of the indices in input `i`, as far as they are known at import
/// and few, that is outside [-extent, extent).
mlir::LogicalResult checkKnownIndices(NodeBuilder &n, unsigned i,
                                      int64_t extent);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_INDICES_H
