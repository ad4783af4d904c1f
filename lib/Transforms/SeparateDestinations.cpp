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

/// How many elements of an insertion's result have been written since it was a
/// tensor.empty; none if it never was, or if that isn't known.
std::optional<int64_t> countWritten(tensor::InsertSliceOp insert) {
  int64_t written = 0;
  Value value = insert.getResult();
  while (auto step = value.getDefiningOp<tensor::InsertSliceOp>()) {
    auto type = step.getSourceType();
    if (!type.hasStaticShape())
      return std::nullopt;
    written += type.getNumElements();
    value = step.getDest();
  }
  if (!value.getDefiningOp<tensor::EmptyOp>())
    return std::nullopt;
  return written;
}

struct SeparateDestinations
    : public memplan::impl::SeparateDestinationsBase<SeparateDestinations> {
  void runOnOperation() override {
    separateBeginnings();
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

private:
  /// Concatenations that begin alike are one up to where they differ. What goes
  /// on from there would have to copy what nobody has written yet, so each gets
  /// a beginning of its own. Last ones first: they are made of earlier ones.
  void separateBeginnings() {
    SmallVector<tensor::InsertSliceOp> inserts;
    getOperation().walk(
        [&](tensor::InsertSliceOp op) { inserts.push_back(op); });
    for (tensor::InsertSliceOp insert : llvm::reverse(inserts)) {
      auto begun = insert.getDest().getDefiningOp<tensor::InsertSliceOp>();
      if (!begun || begun->hasOneUse() || !begun.getType().hasStaticShape())
        continue;
      std::optional<int64_t> written = countWritten(begun);
      if (!written || *written >= begun.getType().getNumElements())
        continue;
      OpBuilder builder(insert);
      insert.getDestMutable().assign(builder.clone(*begun)->getResult(0));
      ++numSeparated;
    }
  }
};
} // namespace
