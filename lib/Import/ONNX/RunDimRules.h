//===- RunDimRules.h - The rules of RunDims.cpp -----------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RUNDIMRULES_H
#define MEMPLAN_LIB_IMPORT_ONNX_RUNDIMRULES_H

#include "OpTable.h"
#include "Scalars.h"

namespace memplan::onnx {

/// That only the inputs `which` have dims of the run.
mlir::LogicalResult onlyRunDimsOf(NodeBuilder &n,
                                  llvm::ArrayRef<unsigned> which);

/// That dim `dim` of input `i` is not one of the run's; `why` it must not.
mlir::LogicalResult isFixedDim(NodeBuilder &n, unsigned i, int64_t dim,
                               llvm::StringRef why);

/// An extent that is known, as one of the run.
mlir::Value scalarExtent(NodeBuilder &n, int64_t extent);

/// A new extent from others: `body` sees them as scalars.
mlir::Value computeExtent(
    NodeBuilder &n, mlir::ValueRange extents,
    llvm::function_ref<mlir::Value(const Scalars &, mlir::ValueRange)> body);

/// Rules build the node and set its results' dims of the run. Those of
/// operators that look at the extents' values:
mlir::LogicalResult concatRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult reduceRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult reduceOthersRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult argRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult nonZeroRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult compressRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult suppressionRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult scatterRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult topKRule(NodeBuilder &n, BuildFn build);
/// The dims [first, last) that a Shape node asks for (its `start` and `end`,
/// opset 15).
std::pair<int64_t, int64_t> shapeRange(NodeBuilder &n);
mlir::LogicalResult shapeRule(NodeBuilder &n, BuildFn build);
mlir::LogicalResult sizeRule(NodeBuilder &n, BuildFn build);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RUNDIMRULES_H
