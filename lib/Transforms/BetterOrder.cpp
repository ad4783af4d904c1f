//===- BetterOrder.cpp - The order that needs less in the end -------------===//

#include "BetterOrder.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace memplan {

namespace {

/// Of all functions; more than any if it doesn't fit.
int64_t sumArenas(ModuleOp module) {
  int64_t sum = 0;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr))
      for (auto arena : arenas.getAsRange<ArenaAttr>())
        sum = checkedAdd(sum, arena.getBytes()).value_or(INT64_MAX);
  return sum;
}

bool isLarge(ModuleOp module) {
  constexpr int64_t kMostOps = 4000;
  int64_t count = 0;
  return module
      .walk([&](Operation *) {
        return ++count > kMostOps ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

class BetterOrder : public PassWrapper<BetterOrder, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BetterOrder)

  BetterOrder(OpPassManager schedule, OpPassManager rest)
      : schedule(std::move(schedule)), rest(std::move(rest)) {}

  StringRef getName() const override { return "BetterOrder"; }
  StringRef getArgument() const override { return "memplan-better-order"; }
  StringRef getDescription() const override {
    return "Schedule and plan, or only plan if that needs less";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    schedule.getDependentDialects(registry);
    rest.getDependentDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> original(module.clone());
    if (failed(runPipeline(schedule, module)))
      return signalPassFailure();
    if (isLarge(module) || OperationEquivalence::isEquivalentTo(
                               *original, module, OperationEquivalence::None)) {
      if (failed(runPipeline(rest, module)))
        signalPassFailure();
      return;
    }
    // A pipeline runs on what is nested here.
    ModuleOp scheduled = module.clone();
    module.getBody()->clear();
    module.push_back(scheduled);
    ModuleOp unscheduled = original.release();
    module.push_back(unscheduled);
    if (failed(runPipeline(rest, scheduled)) ||
        failed(runPipeline(rest, unscheduled)))
      return signalPassFailure();
    bool isBetter = sumArenas(unscheduled) < sumArenas(scheduled);
    ModuleOp chosen = isBetter ? unscheduled : scheduled;
    (isBetter ? scheduled : unscheduled).erase();
    Block *body = module.getBody();
    body->getOperations().splice(body->end(),
                                 chosen.getBody()->getOperations());
    module->setAttrs(chosen->getAttrDictionary());
    chosen.erase();
  }

private:
  OpPassManager schedule, rest;
};

} // namespace

std::unique_ptr<Pass> createBetterOrder(OpPassManager schedule,
                                        OpPassManager rest) {
  return std::make_unique<BetterOrder>(std::move(schedule), std::move(rest));
}

} // namespace memplan
