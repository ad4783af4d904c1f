//===- Passes.h - The passes and pipelines of memplan -----------*- C++ -*-===//
//
// Declared in Passes.td, which is their manual.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TRANSFORMS_PASSES_H
#define MEMPLAN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir {
namespace arith {
class ArithDialect;
} // namespace arith
namespace func {
class FuncOp;
} // namespace func
namespace linalg {
class LinalgDialect;
} // namespace linalg
namespace math {
class MathDialect;
} // namespace math
namespace memref {
class MemRefDialect;
} // namespace memref
namespace tensor {
class TensorDialect;
} // namespace tensor
} // namespace mlir

namespace memplan {
class MemPlanDialect;

/// Where memplan-materialize-arena gets a function's arena from.
enum class ArenaStorage {
  /// A trailing argument: the caller owns the bytes.
  Argument,
  /// One alloc at function entry.
  Alloc,
};

#define GEN_PASS_DECL
#include "memplan/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "memplan/Transforms/Passes.h.inc"

/// Options of the pipelines; each is an option of a pass that they run.
struct PipelineOptions : public mlir::PassPipelineOptions<PipelineOptions> {
  Option<bool> noReuse{
      *this, "no-reuse",
      llvm::cl::desc("every buffer gets bytes of its own; nothing is forwarded "
                     "or overwritten"),
      llvm::cl::init(false)};
  Option<bool> noSchedule{*this, "no-schedule",
                          llvm::cl::desc("ops keep the order of the input"),
                          llvm::cl::init(false)};
  Option<bool> noForward{*this, "no-forward",
                         llvm::cl::desc("copies stay where bufferization has "
                                        "put them"),
                         llvm::cl::init(false)};
  Option<bool> noInPlace{*this, "no-in-place",
                         llvm::cl::desc("no op overwrites its input"),
                         llvm::cl::init(false)};
  Option<bool> noFusion{*this, "no-fusion",
                        llvm::cl::desc("ops stay apart as in the input"),
                        llvm::cl::init(false)};
  Option<int64_t> alignment{
      *this, "alignment",
      llvm::cl::desc("alignment of buffers in the arena, in bytes"),
      llvm::cl::init(256)};
  Option<int64_t> effort{
      *this, "effort",
      llvm::cl::desc("bound on the planner's search for each arena, in "
                     "steps"),
      llvm::cl::init(PlanArenaOptions().effort)};
  Option<int64_t> workspacePerOp{
      *this, "workspace-per-op",
      llvm::cl::desc("the most bytes under the peak that one op is offered as "
                     "scratch memory; 0: none"),
      llvm::cl::init(OfferWorkspaceOptions().perOp)};
  Option<int64_t> workspaceTotal{
      *this, "workspace-total",
      llvm::cl::desc("the same for all ops together; negative: no bound"),
      llvm::cl::init(OfferWorkspaceOptions().total)};
};

/// `memplan-bufferize-pipeline`: fused linalg on tensors to memrefs whose
/// outputs are arguments.
void buildBufferizePipeline(mlir::OpPassManager &pm,
                            const PipelineOptions &options);

/// Plan and materialize the arenas of memref IR. The registered
/// `memplan-arena-pipeline` verifies as well; a driver does that apart, to tell
/// a fault of the plan from others.
void buildArenaPipeline(mlir::OpPassManager &pm,
                        const PipelineOptions &options);

/// The independent check of what the others made.
void buildVerifyPipeline(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// From linalg on tensors to one planned block. The registered
/// `memplan-pipeline` verifies as well.
void buildMemPlanPipeline(mlir::OpPassManager &pm,
                          const PipelineOptions &options);

/// Makes the pipelines known by their names.
void registerMemPlanPipelines();

} // namespace memplan

#endif // MEMPLAN_TRANSFORMS_PASSES_H
