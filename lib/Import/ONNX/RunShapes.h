//===- RunShapes.h - Shapes computed from extents of the run ----*- C++ -*-===//
//
// Models take shapes apart and put them together again. Where an extent is the
// run's, so are such shapes; but which of their elements is which extent is
// known, and that is what makes two tensors share one.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RUNSHAPES_H
#define MEMPLAN_LIB_IMPORT_ONNX_RUNSHAPES_H

#include "OpTable.h"

namespace memplan::onnx {

/// What is known of the elements of input `i`, if it is something of all.
std::optional<llvm::SmallVector<RunEntry>> readEntries(NodeBuilder &n,
                                                       unsigned i);

/// Whether input `i` is a shape of which some elements are extents of the run.
bool isRunShape(NodeBuilder &n, unsigned i);

/// Records what is known of the elements of the node's result.
void trackEntries(NodeBuilder &n, llvm::StringRef op);

/// Whether the node is a ConstantOfShape, Expand or Range of such a shape or
/// limit, and builds it.
bool takesRunShape(NodeBuilder &n, const OpEntry &entry);
mlir::LogicalResult buildOfRunShape(NodeBuilder &n, const OpEntry &entry);

/// Of a Reshape: puts 0 and -1 in the shape for the input's extents.
mlir::LogicalResult closeRunShape(NodeBuilder &n);

/// Of a Slice: an end that is the dim's own extent becomes the largest number.
void closeRunEnds(NodeBuilder &n);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RUNSHAPES_H
