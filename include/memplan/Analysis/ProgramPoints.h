//===- ProgramPoints.h - Numbering of memory accesses in time ---*- C++ -*-===//

#ifndef MEMPLAN_ANALYSIS_PROGRAMPOINTS_H
#define MEMPLAN_ANALYSIS_PROGRAMPOINTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan {

/// Numbers the ops of a function that may touch memory, from 0, in program
/// order (nested regions where they stand). An op takes
///
/// - two points, before and after its regions, if it holds ops with points;
/// - one point if it may read or write memory;
/// - none otherwise: constants, views, allocs, deallocs, returns.
///
/// So the numbers survive materialization, canonicalization of scalar code and
/// the removal of deallocs, and a plan's lifetimes can be read beside the IR.
class ProgramPoints {
public:
  explicit ProgramPoints(mlir::Operation *function);

  /// The op's first point; for an op without one, that of the next op.
  int64_t begin(mlir::Operation *op) const { return spans.lookup(op).first; }
  /// One past the op's last point; equal to `begin` for an op without one.
  int64_t end(mlir::Operation *op) const { return spans.lookup(op).second; }
  /// The points of a block's ops, half-open.
  std::pair<int64_t, int64_t> span(mlir::Block *block) const {
    return blockSpans.lookup(block);
  }
  /// The number of points.
  int64_t size() const { return next; }

private:
  void number(mlir::Operation *op);
  void numberRegions(mlir::Operation *op);

  int64_t next = 0;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> spans;
  llvm::DenseMap<mlir::Block *, std::pair<int64_t, int64_t>> blockSpans;
};

} // namespace memplan

#endif // MEMPLAN_ANALYSIS_PROGRAMPOINTS_H
