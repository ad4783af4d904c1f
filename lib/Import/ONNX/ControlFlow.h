//===- ControlFlow.h - What operators with subgraphs share ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_CONTROLFLOW_H
#define MEMPLAN_LIB_IMPORT_ONNX_CONTROLFLOW_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// Whether `tensor` is one bool: a condition, which messages call `what`.
mlir::LogicalResult checkCondition(NodeBuilder &n, const ImportedTensor &tensor,
                                   const llvm::Twine &what);

/// The only element of a tensor if it is known.
mlir::Attribute knownElement(const ImportedTensor &tensor);
std::optional<bool> knownBool(const ImportedTensor &tensor);

/// The only element of a tensor, as a scalar of the host program.
mlir::Value readScalar(NodeBuilder &n, ImportedTensor &tensor);

/// The slice of `tensor` at `index` of dim `axis`, without that dim; and
/// `tensor` with `row` there.
mlir::Value extractRow(NodeBuilder &n, mlir::Value tensor,
                       mlir::OpFoldResult index, int64_t axis = 0);
mlir::Value insertRow(NodeBuilder &n, mlir::Value row, mlir::Value tensor,
                      mlir::OpFoldResult index, int64_t axis = 0);

/// Adds the block `body` makes with the arguments of `types` to `region`. The
/// builder of `n` is in it meanwhile.
mlir::LogicalResult
buildBlock(NodeBuilder &n, mlir::Region &region,
           llvm::ArrayRef<mlir::Type> types,
           llvm::function_ref<mlir::LogicalResult(mlir::Block &)> body);

/// Moves the ops of `block`, which has neither arguments nor a terminator, to
/// the insertion point.
void spliceBlock(NodeBuilder &n, mlir::Block &block);

/// A tensor of this value, not known at import.
ImportedTensor *keepValue(NodeBuilder &n, mlir::Value value, DType dtype,
                          llvm::StringRef name);
ImportedTensor *keepConstant(NodeBuilder &n, mlir::DenseElementsAttr elements,
                             DType dtype, llvm::StringRef name);

/// That a subgraph has as many inputs and outputs as its operator gives it.
mlir::LogicalResult checkCounts(NodeBuilder &n, llvm::StringRef attribute,
                                const Graph &graph, size_t numInputs,
                                size_t numOutputs);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_CONTROLFLOW_H
