//===- ElementwiseFusion.h - Which elementwise ops to fuse ------*- C++ -*-===//
//
// Private to the fusing passes: memplan-fuse, before there is an order, and
// memplan-fuse-scheduled, which has one.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TRANSFORMS_ELEMENTWISEFUSION_H
#define MEMPLAN_LIB_TRANSFORMS_ELEMENTWISEFUSION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace memplan {

/// Whether every use of `value` is an operand of `user`.
bool isOnlyUsedBy(mlir::Value value, mlir::Operation *user);

/// Whether the regions of both ops together are of a size that a kernel has.
/// Each step of fusion copies them, so without a bound a chain would take time
/// with the square of its length.
bool isFusedBodySmall(mlir::Operation *a, mlir::Operation *b);

/// Whether upstream's fusion may inline `operand`'s producer into its user:
/// only where that computes nothing twice.
bool mayInlineProducer(mlir::OpOperand *operand);

/// The same, and it can't raise the peak whatever the order: the user needs
/// nothing else that is yet to be made, or the producer has no two inputs to
/// free. In a sum of many terms, those made early die as they are added up;
/// in one op all would live until the last is there. A term that other ops
/// read may die here too: only the order tells.
bool shouldInlineProducer(mlir::OpOperand *operand);

/// If `op` is a transpose, an elementwise op that yields its only input, read
/// and written through permutations: the map from the result's indices to the
/// source's.
std::optional<mlir::AffineMap> matchTranspose(mlir::linalg::GenericOp op);

} // namespace memplan

#endif // MEMPLAN_LIB_TRANSFORMS_ELEMENTWISEFUSION_H
