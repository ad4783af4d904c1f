//===- Peak.h - Where a plan's bytes go -------------------------*- C++ -*-===//

#ifndef MEMPLAN_TARGET_REPORT_PEAK_H
#define MEMPLAN_TARGET_REPORT_PEAK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// A buffer, or a part of one, that lives at the peak of its arena.
struct PeakBuffer {
  /// Its number in the plan's list of buffers, see `PlanDocument`.
  int64_t index;
  /// The alloc, or the view that it became.
  mlir::Operation *op;
  mlir::MemRefType type;
  /// Size of its contents, or of the part, in bytes.
  int64_t bytes;
  /// Half-open, in program points, and the ops at the first and the last one.
  int64_t lower, upper;
  mlir::Operation *birth, *death;
  /// The most live bytes at one time if this buffer were not.
  int64_t peakWithout;
};

/// The time at which most bytes of an arena live, the first of several.
struct ArenaPeak {
  mlir::func::FuncOp function;
  /// Null for the default space.
  mlir::Attribute memorySpace;
  int64_t arenaBytes;
  int64_t point, numPoints;
  mlir::Operation *op;
  /// Sizes rounded up to the alignment, but for the last one's padding.
  int64_t liveBytes;
  /// Largest first.
  std::vector<PeakBuffer> buffers;

  /// That without which the peak is lowest; null if there are no buffers.
  const PeakBuffer *getFirstToChange() const;
};

/// Of each arena of each public function, in their order. Reads plans before
/// and after materialization.
std::vector<ArenaPeak> findPeaks(mlir::ModuleOp module);

/// Bytes of a function's inputs, or of its outputs: the caller's own memory. An
/// output whose size the run tells counts with its upper bound.
int64_t getArgumentBytes(mlir::func::FuncOp function, bool outputs);

/// For people: each peak, its buffers, and what to change first.
void printPeaks(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TARGET_REPORT_PEAK_H
