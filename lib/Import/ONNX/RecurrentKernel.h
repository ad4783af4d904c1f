//===- RecurrentKernel.h - The kernel of a recurrent step -------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RECURRENTKERNEL_H
#define MEMPLAN_LIB_IMPORT_ONNX_RECURRENTKERNEL_H

#include "NodeBuilder.h"
#include "Scalars.h"

namespace memplan::onnx {

/// The kernel of a step: every operand has an element for each (batch, hidden),
/// or is stretched along one of them.
class StepKernel {
public:
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      const Scalars &, mlir::ValueRange ins, mlir::ValueRange old)>;

  explicit StepKernel(NodeBuilder &n) : n(n) {}
  /// The number of the operand among the body's `ins`.
  unsigned read(mlir::Value tensor) { return add(tensor, {0, 1}); }
  unsigned readPerHidden(mlir::Value tensor) { return add(tensor, {1}); }
  unsigned readPerBatch(mlir::Value tensor) { return add(tensor, {0}); }
  /// The body sees what the tensor held, as `old`, and yields what it gets.
  void write(mlir::Value tensor) { outs.push_back(tensor); }
  mlir::ResultRange build(DType dtype, Body body);

private:
  unsigned add(mlir::Value tensor, llvm::ArrayRef<unsigned> dims);

  NodeBuilder &n;
  llvm::SmallVector<mlir::Value> ins, outs;
  llvm::SmallVector<mlir::AffineMap> maps;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RECURRENTKERNEL_H
