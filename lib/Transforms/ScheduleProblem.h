//===- ScheduleProblem.h - A block as a scheduling problem ------*- C++ -*-===//
//
// Private to memplan-schedule; docs/Schedule.md says what counts how.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TRANSFORMS_SCHEDULEPROBLEM_H
#define MEMPLAN_LIB_TRANSFORMS_SCHEDULEPROBLEM_H

#include "memplan/Schedule/Schedule.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace memplan {

/// The ops of a block that can be ordered, and their problem.
struct BlockProblem {
  /// By node number, in the block's order.
  llvm::SmallVector<mlir::Operation *> ops;
  schedule::Problem problem;
  /// Why the block has to stay as it is, if it does, and where.
  std::string obstacle;
  mlir::Location obstacleLoc;
};

/// Reads a block. Sizes are rounded up to `alignment`; `workspaces` gives the
/// bytes that ops need inside of their regions.
BlockProblem
buildBlockProblem(mlir::Block &block, int64_t alignment,
                  const llvm::DenseMap<mlir::Operation *, int64_t> &workspaces);

/// Reorders the block's ops as the numbers say. Ops that are no nodes
/// (constants, empty tensors, views) go where they are first needed.
void applyOrder(mlir::Block &block, const BlockProblem &blockProblem,
                llvm::ArrayRef<int> order);

} // namespace memplan

#endif // MEMPLAN_LIB_TRANSFORMS_SCHEDULEPROBLEM_H
