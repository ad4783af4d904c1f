//===- Schedule.cpp - memplan-schedule ------------------------------------===//

#include "ScheduleProblem.h"
#include "memplan/Support/CheckedMath.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace memplan {
#define GEN_PASS_DEF_SCHEDULE
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// 1234567 as 1,234,567.
std::string withCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

class SchedulePass : public memplan::impl::ScheduleBase<SchedulePass> {
public:
  using ScheduleBase::ScheduleBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment))
      return emitError(UnknownLoc::get(context))
             << "memplan-schedule: alignment is " << alignment.getValue()
             << ", which is no power of two";
    if (effort < 0)
      return emitError(UnknownLoc::get(context))
             << "memplan-schedule: effort is " << effort.getValue()
             << ", which must not be negative";
    return success();
  }

  void runOnOperation() override {
    workspaces.clear();
    for (Block &block : getOperation().getBody())
      scheduleBlock(block);
  }

private:
  /// Schedules a block and what is nested in it; returns its peak.
  int64_t scheduleBlock(Block &block) {
    for (Operation &op : block)
      if (isa<RegionBranchOpInterface>(op))
        workspaces[&op] = scheduleRegions(op);
    if (!block.mightHaveTerminator())
      return 0;
    BlockProblem part = buildBlockProblem(block, alignment, workspaces);
    Location loc = block.getParentOp()->getLoc();
    if (part.obstacle.empty()) {
      part.obstacle = schedule::checkProblem(part.problem);
      part.obstacleLoc = loc;
    }
    if (!part.obstacle.empty()) {
      ++numLeftAlone;
      if (emitRemarks)
        emitRemark(part.obstacleLoc)
            << "keeps its block from being scheduled: " << part.obstacle;
      return 0;
    }
    if (part.problem.storages.empty())
      return 0;
    schedule::Options options;
    options.effort = effort;
    schedule::Result result = schedule::solve(part.problem, options);
    int64_t moved = 0;
    for (auto [position, number] : llvm::enumerate(result.order))
      moved += number != static_cast<int>(position);
    if (moved > 0)
      applyOrder(block, part, result.order);
    numMoved += moved;
    numSteps += result.steps;
    (result.isProved() ? numProved : numOpen) += 1;
    if (isa<func::FuncOp>(block.getParentOp())) {
      peakBefore += result.peakBefore;
      peakAfter += result.peakAfter;
      lowerBound += result.lowerBound;
    }
    if (emitRemarks)
      emitRemark(loc) << "peak " << withCommas(result.peakBefore)
                      << " bytes before, " << withCommas(result.peakAfter)
                      << " after, lower bound " << withCommas(result.lowerBound)
                      << (result.isProved() ? " (proved smallest)"
                                            : " (not proved)");
    return result.peakAfter;
  }

  /// The most bytes that the op's regions need at one time. Blocks of one
  /// region may live at one time; regions take turns.
  int64_t scheduleRegions(Operation &op) {
    int64_t most = 0;
    for (Region &region : op.getRegions()) {
      int64_t sum = 0;
      for (Block &block : region)
        sum = checkedAdd(sum, scheduleBlock(block)).value_or(INT64_MAX);
      most = std::max(most, sum);
    }
    return most;
  }

  DenseMap<Operation *, int64_t> workspaces;
};

} // namespace
