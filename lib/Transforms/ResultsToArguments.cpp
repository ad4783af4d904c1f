//===- ResultsToArguments.cpp - memplan-results-to-arguments --------------===//

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

namespace memplan {
#define GEN_PASS_DEF_RESULTSTOARGUMENTS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

bool isIdentityStatic(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && memref.hasStaticShape() && memref.getLayout().isIdentity();
}

/// The alloc that `value` is, possibly reshaped, with the reshapes from the
/// value back to the alloc; null when there is none.
memref::AllocOp findAlloc(Value value, SmallVectorImpl<Operation *> &reshapes) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isIdentityStatic(value.getType()))
      return nullptr;
    if (auto alloc = dyn_cast<memref::AllocOp>(def))
      return alloc;
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def))
      return nullptr;
    reshapes.push_back(def);
    value = def->getOperand(0);
  }
  return nullptr;
}

/// `argument`, of the type of the last of the reshapes, seen as the alloc that
/// they start from.
Value undoReshapes(OpBuilder &builder, Value argument,
                   ArrayRef<Operation *> reshapes) {
  Value value = argument;
  for (Operation *op : reshapes) {
    auto type = cast<MemRefType>(op->getOperand(0).getType());
    if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
      value = memref::CollapseShapeOp::create(
          builder, op->getLoc(), type, value, expand.getReassociationIndices());
    else
      value = memref::ExpandShapeOp::create(
          builder, op->getLoc(), type, value,
          cast<memref::CollapseShapeOp>(op).getReassociationIndices());
  }
  return value;
}

struct ResultsToArguments
    : public memplan::impl::ResultsToArgumentsBase<ResultsToArguments> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    SymbolUserMap users(symbols, getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isPublic() && !function.isDeclaration() &&
          users.useEmpty(function) && failed(convert(function)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(func::FuncOp function) {
    if (llvm::none_of(function.getResultTypes(), llvm::IsaPred<MemRefType>))
      return success();
    if (!function.getBody().hasOneBlock())
      return function.emitError(
          "memplan-results-to-arguments needs a function of one block");
    auto returnOp =
        cast<func::ReturnOp>(function.getBody().front().getTerminator());
    BitVector converted(returnOp.getNumOperands());
    for (auto [index, value] : llvm::enumerate(returnOp.getOperands())) {
      if (!isa<MemRefType>(value.getType()))
        continue;
      if (!isIdentityStatic(value.getType()))
        return returnOp.emitError()
               << "result " << index << " has type " << value.getType()
               << "; an output needs static extents and the identity layout";
      SmallVector<NamedAttribute> attributes;
      if (DictionaryAttr old = function.getResultAttrDict(index))
        attributes.append(old.begin(), old.end());
      attributes.emplace_back("bufferize.result", UnitAttr::get(&getContext()));
      unsigned position = function.getNumArguments();
      if (failed(function.insertArgument(
              position, value.getType(),
              DictionaryAttr::get(&getContext(), attributes), value.getLoc())))
        return failure();
      writeInto(function.getArgument(position), value, returnOp);
      converted.set(index);
    }
    returnOp->eraseOperands(converted);
    return function.eraseResults(converted);
  }

  /// Lets `value`'s producer write into `argument`, or copies where the value
  /// is no buffer of this function's own: an input, a constant, a part of a
  /// buffer, or one that another output already took.
  void writeInto(BlockArgument argument, Value value, func::ReturnOp returnOp) {
    SmallVector<Operation *> reshapes;
    memref::AllocOp alloc = findAlloc(value, reshapes);
    if (alloc && alloc->getBlock() == returnOp->getBlock()) {
      OpBuilder builder(alloc);
      alloc.replaceAllUsesWith(undoReshapes(builder, argument, reshapes));
      alloc.erase();
      ++numInPlace;
      return;
    }
    OpBuilder builder(returnOp);
    memref::CopyOp::create(builder, returnOp.getLoc(), value, argument);
    ++numCopies;
  }
};

} // namespace
