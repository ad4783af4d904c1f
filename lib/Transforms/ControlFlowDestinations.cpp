//===- ControlFlowDestinations.cpp - memplan-control-flow-destinations ----===//

#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace memplan {
#define GEN_PASS_DEF_CONTROLFLOWDESTINATIONS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using bufferization::MaterializeInDestinationOp;

namespace {

/// The values whose buffer `value` may have once it is bufferized in place, as
/// far as they are not made within `region`: the region's arguments and what
/// stands outside of it.
SmallVector<Value> findOrigins(Value value, Region &region) {
  SmallVector<Value> origins;
  llvm::SetVector<Value> pending;
  pending.insert(value);
  for (size_t i = 0; i < pending.size(); ++i) {
    Value current = pending[i];
    Operation *def = current.getDefiningOp();
    if (!region.isAncestor(current.getParentRegion()) ||
        (!def && current.getParentRegion() == &region)) {
      origins.push_back(current);
      continue;
    }
    // Which of its operands an op in the region may hand on is not asked: all
    // that are tensors are taken, but for destination-passing ops.
    Operation *owner = def ? def : current.getParentRegion()->getParentOp();
    if (auto styled = dyn_cast<DestinationStyleOpInterface>(owner)) {
      pending.insert(styled.getTiedOpOperand(cast<OpResult>(current))->get());
      continue;
    }
    for (OpOperand &operand : owner->getOpOperands())
      if (isa<TensorType>(operand.get().getType()))
        pending.insert(operand.get());
    for (Region &nested : owner->getRegions())
      for (Block &block : nested)
        if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
          for (Value handed : block.back().getOperands())
            if (isa<TensorType>(handed.getType()))
              pending.insert(handed);
  }
  return origins;
}

Value makeEmpty(OpBuilder &builder, Location loc, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType(), type.getEncoding());
}

bool isStaticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

/// Whether a loop that starts from `argument` makes `value`, which then lies in
/// its buffer if nobody else reads that. One-shot bufferization takes no copy
/// of such a value into that buffer, be it one that turns out to do nothing.
bool isMadeByLoopOf(Value value, Value argument) {
  auto loop = value.getDefiningOp<LoopLikeOpInterface>();
  return loop && llvm::is_contained(loop.getInits(), argument);
}

class ControlFlowDestinations
    : public memplan::impl::ControlFlowDestinationsBase<
          ControlFlowDestinations> {
public:
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        carry(loop.getRegion(), loop.getRegionIterArgs(),
              loop.getBody()->getTerminator()->getOpOperands());
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        carry(loop.getBefore(), loop.getBeforeArguments(),
              loop.getConditionOp()->getOpOperands().drop_front());
        carry(loop.getAfter(), loop.getAfterArguments(),
              loop.getYieldOp()->getOpOperands());
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        join(branch);
      }
    });
  }

private:
  void materialize(OpBuilder &builder, OpOperand &handed, Value destination) {
    auto op = MaterializeInDestinationOp::create(
        builder, handed.getOwner()->getLoc(), destination.getType(),
        handed.get(), destination);
    handed.set(op.getResult());
    ++numDestinations;
  }

  /// What the region hands on in `handed` comes to lie in the buffers of its
  /// `arguments`, of which each takes the one of its position.
  void carry(Region &region, ValueRange arguments,
             MutableArrayRef<OpOperand> handed) {
    // A condition may hand on fewer values than the loop takes (not itself).
    SmallVector<std::pair<OpOperand *, Value>> pairs;
    for (auto [argument, operand] : llvm::zip(arguments, handed))
      if (isStaticTensor(argument.getType()) &&
          argument.getType() == operand.get().getType() &&
          operand.get() != argument &&
          !(isMadeByLoopOf(operand.get(), argument) && argument.hasOneUse()))
        pairs.push_back({&operand, argument});
    if (pairs.empty())
      return;
    OpBuilder builder(handed.front().getOwner());
    // What may lie in the buffer of another argument is taken out of it before
    // that is overwritten.
    for (auto [operand, argument] : pairs) {
      bool isElsewhere =
          isMadeByLoopOf(operand->get(), argument) ||
          llvm::any_of(findOrigins(operand->get(), region), [&](Value origin) {
            return origin != argument && llvm::is_contained(arguments, origin);
          });
      if (isElsewhere)
        materialize(
            builder, *operand,
            makeEmpty(builder, operand->getOwner()->getLoc(), operand->get()));
    }
    for (auto [operand, argument] : pairs)
      materialize(builder, *operand, argument);
  }

  /// Both branches leave a result in one destination; unless both hand on the
  /// same tensor from outside, changed or not, which then is the destination.
  void join(scf::IfOp branch) {
    if (branch.getNumResults() == 0)
      return;
    OpBuilder before(branch);
    for (OpResult result : branch.getResults()) {
      if (!isStaticTensor(result.getType()))
        continue;
      unsigned number = result.getResultNumber();
      OpOperand &first = branch.thenYield()->getOpOperand(number);
      OpOperand &second = branch.elseYield()->getOpOperand(number);
      auto origins = findOrigins(first.get(), branch.getThenRegion());
      if (origins.size() == 1 &&
          origins == findOrigins(second.get(), branch.getElseRegion()) &&
          !origins.front().getDefiningOp<tensor::EmptyOp>())
        continue;
      Value destination = makeEmpty(before, branch.getLoc(), result);
      for (OpOperand *operand : {&first, &second}) {
        OpBuilder builder(operand->getOwner());
        materialize(builder, *operand, destination);
      }
    }
  }
};

} // namespace
