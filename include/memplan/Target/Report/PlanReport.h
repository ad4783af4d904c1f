//===- PlanReport.h - A plan as JSON and CSV --------------------*- C++ -*-===//

#ifndef MEMPLAN_TARGET_REPORT_PLANREPORT_H
#define MEMPLAN_TARGET_REPORT_PLANREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// Bytes of the weights part of the block: the globals that are read, each
/// aligned, see WeightsLayout. 0 if a weight has no static size.
int64_t getWeightsBytes(mlir::ModuleOp module);

/// One object: `model`, `arena_bytes`, `weights_bytes`, `no_reuse_bytes`,
/// `lower_bound_bytes`, `lower_bound_proof` ("live_bytes" or "search"),
/// `optimal`, `alignment` and `buffers`, each with `name`, `bytes`, `offset`,
/// `lower`, `upper` (half-open, in program points), `type`, `shape` and `node`.
/// A buffer whose bytes don't all live at one time has `parts` in ascending
/// order, each with `offset` (from the buffer's), `bytes`, `lower` and `upper`.
/// Then `peaks`, one for each arena: `function`, the first `point` at which
/// most bytes live (`live_bytes`) and its `node`; `buffers` that live there,
/// largest first, each with its `name`, the nodes `first_written_by` and
/// `last_used_by`, and `live_bytes_without`, the most live bytes if it were
/// not; `change_first`, that with the least of these. Sizes in bytes. Reads
/// plans before and after materialization; figures of several arenas are added
/// up, and proved by search if one of them is.
llvm::Error emitPlanJSON(mlir::ModuleOp module, llvm::raw_ostream &os);

/// The columns `id,lower,upper,size,offset`: one line a buffer, lifetimes
/// half-open, sizes in bytes as in the JSON. MiniMalloc's format
/// (github.com/google/minimalloc) with the offset as a last column. A buffer
/// with parts is one line a part, `b7.0` and so on. A plan of several memory
/// spaces is several problems and refused.
llvm::Error emitPlanCSV(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TARGET_REPORT_PLANREPORT_H
