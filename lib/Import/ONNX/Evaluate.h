//===- Evaluate.h - Run ops on constants ------------------------*- C++ -*-===//
//
// Integer computations on shapes must not reach the device. Instead of a second
// implementation of every operator, the ops that an operator's builder made
// are run here when all they read is constant.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_EVALUATE_H
#define MEMPLAN_LIB_IMPORT_ONNX_EVALUATE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace memplan::onnx {

/// The elements of `results`, defined in `block`, a straight line of ops that
/// use nothing from outside. nullopt when an op is not one of those that are
/// understood, when it does not fold (a division by zero) or when it would take
/// more than `budget` scalar ops.
std::optional<llvm::SmallVector<mlir::DenseElementsAttr>>
evaluate(mlir::Block &block, llvm::ArrayRef<mlir::Value> results,
         int64_t budget);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_EVALUATE_H
