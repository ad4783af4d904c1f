//===- ControlFlowDestinations.cpp - memplan-control-flow-destinations ----===//

#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace memplan {
#define GEN_PASS_DEF_CONTROLFLOWDESTINATIONS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using bufferization::MaterializeInDestinationOp;

namespace {

/// The operand whose buffer the result has if the op is bufferized in place;
/// null if that isn't known.
Value findTied(OpResult result) {
  Operation *op = result.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getInitArgs()[result.getResultNumber()];
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return insert.getDest();
  if (auto insert = dyn_cast<tensor::InsertOp>(op))
    return insert.getDest();
  if (auto styled = dyn_cast<DestinationStyleOpInterface>(op))
    return styled.getTiedOpOperand(result)->get();
  return {};
}

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
    Operation *owner = def ? def : current.getParentRegion()->getParentOp();
    if (Value tied = def ? findTied(cast<OpResult>(current)) : Value();
        tied && owner->getNumRegions() == 0) {
      pending.insert(tied);
      continue;
    }
    // Which of its operands another op may hand on is not asked: all that are
    // tensors are taken, but for inputs of destination-passing ops.
    auto styled = dyn_cast<DestinationStyleOpInterface>(owner);
    for (OpOperand &operand : owner->getOpOperands())
      if (isa<TensorType>(operand.get().getType()) &&
          (!styled || styled.isDpsInit(&operand)))
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

/// Whether all uses of `value` in the block of `op`, but the one by `op`
/// itself, stand before `op`, which overwrites it; or, if it is a branch,
/// within it.
bool isLastUse(Value value, Operation *op) {
  return llvm::count(value.getUsers(), op) <= 1 &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
           return user == op || !ancestor || ancestor->isBeforeInBlock(op) ||
                  (ancestor == op && isa<scf::IfOp>(op));
         });
}

bool isUpdatedInPlace(Value value, Value origin, Block *block);

/// Whether both branches hand on as `result` what became of `origin`.
bool isUpdatedIn(scf::IfOp branch, OpResult result, Value origin) {
  unsigned number = result.getResultNumber();
  return isUpdatedInPlace(branch.thenYield()->getOperand(number), origin,
                          branch.thenBlock()) &&
         isUpdatedInPlace(branch.elseYield()->getOperand(number), origin,
                          branch.elseBlock());
}

/// Whether `value`, which `block` hands on, is what became of `origin` by ops
/// of the block that each overwrite what nobody reads any more.
bool isUpdatedInPlace(Value value, Value origin, Block *block) {
  while (value != origin) {
    auto result = dyn_cast<OpResult>(value);
    if (!result || result.getOwner()->getBlock() != block)
      return false;
    Value tied;
    if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
      auto origins =
          findOrigins(branch.thenYield()->getOperand(result.getResultNumber()),
                      branch.getThenRegion());
      if (origins.size() == 1 && isUpdatedIn(branch, result, origins.front()))
        tied = origins.front();
    } else {
      tied = findTied(result);
    }
    if (!tied || !isLastUse(tied, result.getOwner()))
      return false;
    value = tied;
  }
  return true;
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
          operand.get() != argument)
        pairs.push_back({&operand, argument});
    if (pairs.empty())
      return;
    OpBuilder builder(handed.front().getOwner());
    // What the argument has become is where it should be.
    llvm::erase_if(pairs, [&](const auto &pair) {
      return isUpdatedInPlace(pair.first->get(), pair.second, &region.front());
    });
    // What may lie in the buffer of an argument otherwise is taken out of it
    // before that is overwritten.
    for (auto [operand, argument] : pairs)
      if (llvm::any_of(findOrigins(operand->get(), region), [&](Value origin) {
            return llvm::is_contained(arguments, origin);
          }))
        materialize(
            builder, *operand,
            makeEmpty(builder, operand->getOwner()->getLoc(), operand->get()));
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
          !origins.front().getDefiningOp<tensor::EmptyOp>() &&
          isLastUse(origins.front(), branch) &&
          isUpdatedIn(branch, result, origins.front()))
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
