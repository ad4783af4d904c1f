//===- Pipelines.cpp - The order of the passes ----------------------------===//

#include "memplan/Transforms/Passes.h"

#include "BetterOrder.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace memplan {

/// Upstream's pattern that makes an offset of tensor.extract_slice constant is
/// left out: where a unit dim stands before the dim that is dropped, it takes
/// another part of the source (the first row for the first column, say).
/// memref.subview's pattern makes these offsets constant after bufferization.
static std::unique_ptr<Pass> createSafeCanonicalizer() {
  return createCanonicalizerPass(
      GreedyRewriteConfig(),
      /*disabledPatterns=*/
      {"mlir::OpWithOffsetSizesAndStridesConstantArgumentFolder<"
       "mlir::tensor::ExtractSliceOp, SliceReturnTypeCanonicalizer, "
       "SliceCanonicalizer>"});
}

static void addCleanup(OpPassManager &pm) {
  pm.addPass(createSafeCanonicalizer());
  pm.addPass(createCSEPass());
}

void buildBufferizePipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createSeparateDestinations());
  pm.addNestedPass<func::FuncOp>(createControlFlowDestinations());
  pm.addNestedPass<func::FuncOp>(createProtectInputs());

  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createResultsToArguments());
  addCleanup(pm);
  // Folds the copies of a buffer onto itself that CSE has made visible.
  pm.addPass(createSafeCanonicalizer());
  // Not upstream's eliminate-empty-tensors: it takes time with the square of
  // the ops, and bytes where a destination lives longer for it.
  if (!options.noForward && !options.noReuse) {
    ForwardDestinationsOptions forward;
    forward.alignment = options.alignment;
    pm.addPass(createForwardDestinations(forward));
  }
  if (!options.noInPlace && !options.noReuse)
    pm.addPass(createReuseBuffers());
}

void buildArenaPipeline(OpPassManager &pm, const PipelineOptions &options) {
  PlanArenaOptions plan;
  plan.alignment = options.alignment;
  plan.effort = options.effort;
  plan.noReuse = options.noReuse;
  pm.addPass(createPlanArena(plan));
  if (!options.noReuse) {
    OfferWorkspaceOptions workspace;
    workspace.perOp = options.workspacePerOp;
    workspace.total = options.workspaceTotal;
    pm.addPass(createOfferWorkspace(workspace));
  }
  pm.addPass(createMaterializeArena());
}

void buildVerifyPipeline(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createVerifyArena());
}

void buildMemPlanPipeline(OpPassManager &pm, const PipelineOptions &options) {
  addCleanup(pm);
  pm.addNestedPass<func::FuncOp>(createRaiseLinalg());
  if (!options.noFusion)
    pm.addNestedPass<func::FuncOp>(createFuseStructured());
  addCleanup(pm);
  OpPassManager rest(ModuleOp::getOperationName());
  if (!options.noFusion) {
    FuseScheduledOptions fuse;
    fuse.alignment = options.alignment;
    rest.addNestedPass<func::FuncOp>(createFuseScheduled(fuse));
  }
  buildBufferizePipeline(rest, options);
  buildArenaPipeline(rest, options);
  OpPassManager schedule(ModuleOp::getOperationName());
  if (!options.noSchedule && !options.noReuse) {
    ScheduleOptions scheduleOptions;
    scheduleOptions.alignment = options.alignment;
    schedule.addNestedPass<func::FuncOp>(createSchedule(scheduleOptions));
  }
  pm.addPass(createBetterOrder(std::move(schedule), std::move(rest)));
}

void registerMemPlanPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "memplan-bufferize-pipeline",
      "linalg on tensors to memrefs with outputs as arguments",
      buildBufferizePipeline);
  PassPipelineRegistration<PipelineOptions>("memplan-arena-pipeline",
                                            "plan and materialize arenas",
                                            buildArenaPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "memplan-pipeline", "linalg on tensors to one planned, verified block",
      [](OpPassManager &pm, const PipelineOptions &options) {
        buildMemPlanPipeline(pm, options);
        buildVerifyPipeline(pm, options);
      });
}

} // namespace memplan
