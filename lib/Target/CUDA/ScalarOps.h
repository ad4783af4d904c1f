//===- ScalarOps.h - arith and math ops as C++ expressions ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H
#define MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace memplan {

struct ScalarExpression {
  std::string text;
  std::string word; ///< For names of functions: "add"; empty for casts.
};

/// The op on these operands, which are names or literals (evaluated more than
/// once); nullopt if the target does not have the op.
std::optional<ScalarExpression>
getScalarExpression(mlir::Operation *op, llvm::ArrayRef<std::string> operands);

/// An affine expression in 64 bits; `getOperand` gives its dims and, after
/// those, its symbols, and fails after it has reported why.
mlir::FailureOr<std::string> getAffineExpression(
    mlir::AffineExpr expr, unsigned numDims,
    llvm::function_ref<mlir::FailureOr<std::string>(unsigned)> getOperand);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H
