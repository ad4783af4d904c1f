//===- SeparateDestinations.cpp - memplan-separate-destinations -----------===//

#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace memplan {
#define GEN_PASS_DEF_SEPARATEDESTINATIONS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;

namespace {
struct SeparateDestinations
    : public memplan::impl::SeparateDestinationsBase<SeparateDestinations> {
  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> empties;
    getOperation().walk([&](tensor::EmptyOp op) { empties.push_back(op); });
    for (tensor::EmptyOp empty : empties) {
      // The first use in its block keeps it. A use in a nested region gets one
      // where it stands: there its buffer need not outlive the region.
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : empty->getUses())
        uses.push_back(&use);
      bool isTaken = false;
      for (OpOperand *use : llvm::reverse(uses)) {
        if (!isTaken && use->getOwner()->getBlock() == empty->getBlock()) {
          isTaken = true;
          continue;
        }
        OpBuilder builder(use->getOwner());
        use->set(builder.clone(*empty)->getResult(0));
        ++numSeparated;
      }
      if (!isTaken)
        empty->erase();
    }
  }
};
} // namespace
