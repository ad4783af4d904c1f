//===- FuseScheduled.cpp - memplan-fuse-scheduled -------------------------===//

#include "ElementwiseFusion.h"
#include "ScheduleProblem.h"
#include "memplan/Support/CheckedMath.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

namespace memplan {
#define GEN_PASS_DEF_FUSESCHEDULED
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// What is alive at each node of a problem, in its own order, kept up to date
/// while nodes are fused. A node that went into another touches nothing.
class Timeline {
public:
  explicit Timeline(schedule::Problem &problem)
      : problem(problem), lives(problem.storages.size()) {
    int count = static_cast<int>(problem.nodes.size());
    for (auto [life, storage] : llvm::zip_equal(lives, problem.storages)) {
      life.first = storage.liveIn ? -1 : count;
      life.last = storage.liveOut ? count : -1;
    }
    for (auto [number, node] : llvm::enumerate(problem.nodes))
      for (int storage : node.touches) {
        lives[storage].first =
            std::min(lives[storage].first, static_cast<int>(number));
        lives[storage].last =
            std::max(lives[storage].last, static_cast<int>(number));
      }
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    peak = schedule::computePeak(problem, order);
    live.assign(count, 0);
    for (auto [number, life] : llvm::enumerate(lives))
      addBytes(std::max(life.first, 0), std::min(life.last + 1, count),
               problem.storages[number].bytes);
  }

  int64_t getPeak() const { return peak; }

  /// Makes `producer` part of `consumer`, which comes after it, unless more
  /// than the peak would be alive at one time. True if it did.
  bool fuse(int producer, int consumer);

private:
  struct Life {
    int first, last;
  };

  void addBytes(int first, int end, int64_t bytes) {
    for (int number = first; number < end; ++number)
      live[number] += bytes;
  }

  /// What a node saves by writing over an input.
  int64_t getSaved(int number) const {
    int64_t most = 0;
    for (const auto &[input, output] : problem.nodes[number].overwrites) {
      int64_t bytes = problem.storages[output].bytes;
      if (lives[input].last == number && problem.storages[input].bytes >= bytes)
        most = std::max(most, bytes);
    }
    return most;
  }

  bool isWithinPeak(int first, int end) const {
    for (int number = first; number < end; ++number)
      if (live[number] + problem.nodes[number].workspace - getSaved(number) >
          peak)
        return false;
    return true;
  }

  schedule::Problem &problem;
  SmallVector<Life> lives;
  std::vector<int64_t> live; ///< Bytes, nothing overwritten.
  int64_t peak;
};

/// The node that does the work of both: what the first would write over an
/// input of its own, the second does if that is where its own result goes.
schedule::Node merge(const schedule::Node &first, const schedule::Node &second,
                     int between) {
  schedule::Node merged = second;
  llvm::erase(merged.touches, between);
  for (int storage : first.touches)
    if (storage != between && !llvm::is_contained(merged.touches, storage))
      merged.touches.push_back(storage);
  llvm::erase_if(merged.overwrites, [&](const schedule::Overwrite &pair) {
    return pair.input == between;
  });
  for (const auto &[input, middle] : first.overwrites)
    for (const auto &[source, output] : second.overwrites)
      if (middle == between && source == between)
        merged.overwrites.push_back({input, output});
  return merged;
}

bool Timeline::fuse(int producer, int consumer) {
  // A sum whose last term comes much later keeps its own op; the bound keeps
  // time linear.
  constexpr int kFarthest = 4096;
  if (consumer - producer > kFarthest)
    return false;
  int between = -1;
  for (int storage : problem.nodes[producer].touches)
    if (lives[storage].first == producer && lives[storage].last == consumer)
      between = storage;
  if (between < 0 || problem.nodes[producer].workspace != 0)
    return false;

  schedule::Node before = problem.nodes[consumer];
  SmallVector<std::pair<int, Life>> prolonged;
  for (int storage : problem.nodes[producer].touches)
    if (storage != between && lives[storage].last < consumer)
      prolonged.push_back({storage, lives[storage]});
  auto apply = [&](int64_t sign) {
    for (auto [storage, life] : prolonged)
      addBytes(life.last + 1, consumer + 1,
               sign * problem.storages[storage].bytes);
    addBytes(producer, consumer + 1, -sign * problem.storages[between].bytes);
  };
  apply(1);
  for (auto [storage, life] : prolonged)
    lives[storage].last = consumer;
  problem.nodes[consumer] = merge(problem.nodes[producer], before, between);
  if (isWithinPeak(producer + 1, consumer + 1)) {
    problem.nodes[producer] = {};
    return true;
  }
  problem.nodes[consumer] = std::move(before);
  for (auto [storage, life] : prolonged)
    lives[storage] = life;
  apply(-1);
  return false;
}

struct FuseScheduled : public memplan::impl::FuseScheduledBase<FuseScheduled> {
  using FuseScheduledBase::FuseScheduledBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (alignment >= 1 && llvm::isPowerOf2_64(alignment))
      return success();
    return emitError(UnknownLoc::get(context))
           << "memplan-fuse-scheduled: alignment is " << alignment.getValue()
           << ", which is no power of two";
  }

  void runOnOperation() override {
    workspaces.clear();
    fused.clear();
    for (Block &block : getOperation().getBody())
      fuseInBlock(block);
    // Terms that several of the fused ops read become one operand.
    RewritePatternSet patterns(&getContext());
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    if (failed(applyOpPatternsGreedily(fused.getArrayRef(), std::move(patterns),
                                       config)))
      signalPassFailure();
  }

private:
  /// Fuses in a block and in what is nested in it; returns its peak.
  int64_t fuseInBlock(Block &block) {
    for (Operation &op : block)
      if (isa<RegionBranchOpInterface>(op))
        workspaces[&op] = fuseInRegions(op);
    if (!block.mightHaveTerminator())
      return 0;
    BlockProblem part = buildBlockProblem(block, alignment, workspaces);
    if (!part.obstacle.empty() || !schedule::checkProblem(part.problem).empty())
      return 0;
    Timeline timeline(part.problem);
    DenseMap<Operation *, int> numbers;
    for (auto [number, op] : llvm::enumerate(part.ops))
      numbers[op] = static_cast<int>(number);
    IRRewriter rewriter(&getContext());
    for (Operation *&op : part.ops)
      while (OpOperand *operand = findFusable(op, numbers, timeline)) {
        numbers.erase(operand->get().getDefiningOp());
        int number = numbers.lookup(op);
        numbers.erase(op);
        op = inlineProducer(rewriter, operand);
        numbers[op] = number;
        ++numFused;
      }
    return timeline.getPeak();
  }

  int64_t fuseInRegions(Operation &op) {
    int64_t most = 0;
    for (Region &region : op.getRegions()) {
      int64_t sum = 0;
      for (Block &block : region)
        sum = checkedAdd(sum, fuseInBlock(block)).value_or(INT64_MAX);
      most = std::max(most, sum);
    }
    return most;
  }

  /// One op may read a value more than once.
  static bool canInlineAllUses(Value value) {
    return llvm::all_of(value.getUses(), [](OpOperand &use) {
      auto consumer = dyn_cast<linalg::GenericOp>(use.getOwner());
      return consumer && consumer.isDpsInput(&use) &&
             linalg::areElementwiseOpsFusable(&use) && mayInlineProducer(&use);
    });
  }

  /// An operand of `op` whose producer the timeline has just made part of it.
  static OpOperand *findFusable(Operation *op,
                                const DenseMap<Operation *, int> &numbers,
                                Timeline &timeline) {
    auto consumer = dyn_cast<linalg::GenericOp>(op);
    if (!consumer)
      return nullptr;
    for (OpOperand *operand : consumer.getDpsInputOperands()) {
      auto producer = numbers.find(operand->get().getDefiningOp());
      if (producer != numbers.end() && canInlineAllUses(operand->get()) &&
          timeline.fuse(producer->second, numbers.lookup(op)))
        return operand;
    }
    return nullptr;
  }

  Operation *inlineProducer(IRRewriter &rewriter, OpOperand *operand) {
    Operation *consumer = operand->getOwner();
    Value value = operand->get();
    Operation *producer = value.getDefiningOp();
    while (!value.use_empty()) {
      rewriter.setInsertionPoint(consumer);
      auto result =
          linalg::fuseElementwiseOps(rewriter, &*value.getUses().begin());
      // Cannot fail: it was asked whether it can be done.
      if (failed(result))
        return consumer;
      for (auto [from, to] : result->replacements)
        rewriter.replaceUsesWithIf(from, to, [&](OpOperand &use) {
          return use.getOwner() != producer;
        });
      fused.remove(consumer);
      rewriter.eraseOp(consumer);
      consumer = result->fusedOp;
      fused.insert(consumer);
    }
    fused.remove(producer);
    rewriter.eraseOp(producer);
    return consumer;
  }

  DenseMap<Operation *, int64_t> workspaces;
  SetVector<Operation *> fused;
};

} // namespace
