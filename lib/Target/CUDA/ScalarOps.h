//===- ScalarOps.h - arith and math ops as C++ expressions ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H
#define MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H

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

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_SCALAROPS_H
