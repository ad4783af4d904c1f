//===- ArenaVerifier.h - Independent check of an arena plan -----*- C++ -*-===//
//
// Re-derives from the IR alone which buffers hold data that is still wanted at
// each op, and compares with what the plan claims. It shares no code with
// BufferFlow, Liveness or the solver and works another way: points-to sets over
// all values and two dataflow problems on a graph of the function's ops,
// instead of followed uses and hulls of intervals.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_ANALYSIS_ARENAVERIFIER_H
#define MEMPLAN_ANALYSIS_ARENAVERIFIER_H

#include "mlir/IR/BuiltinOps.h"

namespace memplan {

/// Checks the plans of all functions of `module`, before materialization (slots
/// on allocs) or after it (views of an arena). Emits an error, which names the
/// buffers with their locations, for each fault:
///
/// - two buffers that hold wanted data, or are touched, at one op share bytes;
///   so do two whose claimed lifetimes intersect;
/// - a claimed lifetime does not cover the real one;
/// - an offset is misaligned or the buffer does not fit inside the arena;
/// - the arena's size, bound, sum or proof does not follow from the slots;
/// - a buffer is returned, kept, or has two instances at one time;
/// - an op writes a shifted part of the very buffer that it reads;
/// - a slot stands where no planned buffer is, or is missing.
mlir::LogicalResult verifyArenas(mlir::ModuleOp module);

/// Checks that no op reads and writes parts of one buffer that overlap but
/// differ, which no plan can make right. For IR of others, before it is
/// planned; emits an error for each such op.
mlir::LogicalResult verifyAccesses(mlir::ModuleOp module);

} // namespace memplan

#endif // MEMPLAN_ANALYSIS_ARENAVERIFIER_H
