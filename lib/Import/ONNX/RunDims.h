//===- RunDims.h - Dims whose extent the run tells --------------*- C++ -*-===//
//
// What operators do with tensors whose type has only an upper bound of a dim.
// An operator without a rule refuses them, so that none computes with elements
// that mean nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RUNDIMS_H
#define MEMPLAN_LIB_IMPORT_ONNX_RUNDIMS_H

#include "OpTable.h"

namespace memplan::onnx {

/// Builds the node by `entry`, and tells which dims of its results are the
/// run's.
mlir::LogicalResult buildWithRunDims(NodeBuilder &n, const OpEntry &entry);

/// `elements` without what lies beyond the extents of the dims `runDims`, which
/// have become known.
mlir::DenseElementsAttr
cutToExtents(mlir::DenseElementsAttr elements,
             llvm::ArrayRef<std::pair<int64_t, int64_t>> extents);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RUNDIMS_H
