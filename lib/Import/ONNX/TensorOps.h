//===- TensorOps.h - Building ops on static tensors -------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_TENSOROPS_H
#define MEMPLAN_LIB_IMPORT_ONNX_TENSOROPS_H

#include "NodeBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace memplan::onnx {

/// The same elements in row-major order under another shape of equal size:
/// views only (collapse_shape, expand_shape), seen through earlier ones.
mlir::Value reshape(NodeBuilder &n, mlir::Value tensor,
                    llvm::ArrayRef<int64_t> shape);

/// A destination of that shape.
mlir::Value empty(NodeBuilder &n, llvm::ArrayRef<int64_t> shape,
                  mlir::Type element);

/// A linalg.generic with parallel loops alone, whose result is written in
/// order (identity map) and has the shape `shape`.
mlir::Value mapElements(NodeBuilder &n, mlir::ValueRange inputs,
                        llvm::ArrayRef<mlir::AffineMap> maps,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element,
                        RegionBuilder body);

/// The shape to which all of `shapes` broadcast (multidirectional broadcasting
/// of ONNX), or nullopt.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// How a tensor is read when it is broadcast to `shape`: its dims that are
/// stretched are dropped by a view, so that the map is a plain projection.
struct BroadcastRead {
  mlir::Value tensor;
  mlir::AffineMap map;
};
BroadcastRead broadcastTo(NodeBuilder &n, mlir::Value tensor,
                          llvm::ArrayRef<int64_t> shape);

/// The one value of all elements of a constant, or null.
mlir::TypedAttr splatOf(const ImportedTensor &tensor);

/// Collects the operands of an elementwise op. Constants that are the same
/// everywhere become part of the body instead of operands.
class ElementwiseOperands {
public:
  explicit ElementwiseOperands(NodeBuilder &n) : n(n) {}

  /// Reads `tensor` broadcast to `shape`, which it must fit.
  void addBroadcast(ImportedTensor &tensor, llvm::ArrayRef<int64_t> shape);
  /// Reads `tensor`, viewed with the shape `viewShape`, through `map`.
  void add(ImportedTensor &tensor, llvm::ArrayRef<int64_t> viewShape,
           mlir::AffineMap map);
  /// Reads a value that is not an input of the node.
  void add(mlir::Value value, mlir::AffineMap map);

  llvm::ArrayRef<mlir::Value> values() const { return operands; }
  llvm::ArrayRef<mlir::AffineMap> maps() const { return readMaps; }
  /// One scalar per added operand, in order, from the block arguments that
  /// stand for `values()`.
  llvm::SmallVector<mlir::Value> scalars(mlir::OpBuilder &b, mlir::Location loc,
                                         mlir::ValueRange arguments) const;
  /// The op itself.
  mlir::Value build(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                    RegionBuilder body);

private:
  NodeBuilder &n;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::AffineMap> readMaps;
  llvm::SmallVector<mlir::TypedAttr> splats; // null: an operand
};

/// An elementwise op with multidirectional broadcasting: one element of the
/// result from one of each input. Reports an error and gives null when the
/// shapes do not broadcast.
mlir::Value broadcastElementwise(NodeBuilder &n,
                                 llvm::ArrayRef<ImportedTensor *> inputs,
                                 mlir::Type element, RegionBuilder body);

/// A tensor whose element at each index is read from `source` at the index
/// that `index` computes from the loop indices (all of type index).
mlir::Value
gatherElements(NodeBuilder &n, mlir::Value source,
               llvm::ArrayRef<int64_t> shape,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(
                   mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>
                   index);

/// The dims of `tensor` in another order: dim i of the result is dim
/// `permutation[i]`.
mlir::Value transpose(NodeBuilder &n, mlir::Value tensor,
                      llvm::ArrayRef<int64_t> permutation);

/// A tensor of one value.
mlir::Value splat(NodeBuilder &n, llvm::ArrayRef<int64_t> shape,
                  mlir::TypedAttr value);

/// A small tensor that is known at import, such as a table of indices.
template <typename T>
mlir::Value constantTensor(NodeBuilder &n, llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<T> values, mlir::Type element) {
  auto type = mlir::RankedTensorType::get(shape, element);
  return mlir::arith::ConstantOp::create(
      n.b, n.loc, mlir::DenseElementsAttr::get(type, values));
}

/// A linalg.generic whose loops are the dims of `init`, then `numReductions`
/// reduction loops, whose extents the inputs' maps must give. `body` gets an
/// element of each input and what was accumulated, `init` at first, and gives
/// what is accumulated then.
mlir::Value accumulate(NodeBuilder &n, mlir::ValueRange inputs,
                       llvm::ArrayRef<mlir::AffineMap> maps, mlir::Value init,
                       unsigned numReductions, RegionBuilder body);

/// A destination of one value, for `accumulate`.
mlir::Value filled(NodeBuilder &n, llvm::ArrayRef<int64_t> shape,
                   mlir::TypedAttr value);

/// A rowwise op in reduction form over the dims `rowDims` of `input`; the
/// result has the other dims. `stages` and `finish` see the input's element
/// first (`finish` must not use it).
mlir::Value reduceRows(NodeBuilder &n, mlir::Value input,
                       llvm::ArrayRef<int64_t> rowDims, mlir::Type element,
                       llvm::ArrayRef<Combiner> combiners,
                       llvm::ArrayRef<RegionBuilder> stages,
                       RegionBuilder finish);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_TENSOROPS_H
