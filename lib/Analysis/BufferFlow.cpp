//===- BufferFlow.cpp - Where a buffer goes and who touches it ------------===//

#include "memplan/Analysis/BufferFlow.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace memplan {

static bool isMemRef(Value value) {
  return isa<BaseMemRefType>(value.getType());
}

bool mayOutliveItsPlace(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    return !isa<BuiltinDialect>(type.getDialect()) || isa<OpaqueType>(type);
  });
}

bool hasSequentialRegions(Operation *op) {
  return isa<RegionBranchOpInterface>(op) &&
         !op->hasTrait<OpTrait::HasParallelRegion>() && !mayOutliveItsPlace(op);
}

bool mayRepeatRegions(Operation *op) {
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  if (!branch || !hasSequentialRegions(op))
    return true;
  // Each cycle among regions has an edge to itself or to an earlier region.
  for (Region &region : op->getRegions()) {
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(region, successors);
    for (const RegionSuccessor &successor : successors)
      if (!successor.isParent() &&
          successor.getSuccessor()->getRegionNumber() <=
              region.getRegionNumber())
        return true;
  }
  return false;
}

/// Whether control can pass from the end of `from` to the start of `to`, in one
/// region.
static bool canReach(Block *from, Block *to) {
  llvm::SmallPtrSet<Block *, 8> seen;
  SmallVector<Block *> worklist = {from};
  while (!worklist.empty()) {
    Block *block = worklist.pop_back_val();
    for (Block *successor : block->getSuccessors()) {
      if (successor == to)
        return true;
      if (seen.insert(successor).second)
        worklist.push_back(successor);
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Following uses
//===----------------------------------------------------------------------===//

class BufferFlowAnalysis::Tracer {
public:
  Tracer(BufferFlowAnalysis &analysis, Value root)
      : analysis(analysis), rootBlock(root.getParentBlock()) {
    flow.root = root;
    flow.aliases.insert(root);
  }

  BufferFlow run() {
    // Grows while it is walked. An escape does not end it: deallocs are wanted.
    for (size_t i = 0; i < flow.aliases.size(); ++i)
      for (OpOperand &use : flow.aliases[i].getUses())
        follow(use);
    return std::move(flow);
  }

private:
  void escape(Operation *op, std::string reason) {
    if (!flow.escape)
      flow.escape = {op, std::move(reason)};
  }

  void addAlias(Operation *op, Value alias) {
    if (!isMemRef(alias))
      return escape(op, "becomes a value that is not a memref");
    flow.aliases.insert(alias);
  }

  void addAccess(Operation *op, bool reads, bool writes) {
    for (Operation *at = op; at; at = at->getParentOp()) {
      if (at->isAncestor(rootBlock->getParentOp()))
        break;
      if (mayOutliveItsPlace(at))
        return escape(at, "is used by an op that may run on after its place");
    }
    flow.accesses.push_back({op, reads, writes});
  }

  void follow(OpOperand &use) {
    Operation *op = use.getOwner();
    if (op->hasTrait<OpTrait::IsTerminator>())
      return followTerminator(use);
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op))
      return followRegionEntry(branch, use);
    if (auto call = dyn_cast<CallOpInterface>(op))
      return followCall(call, use);
    if (isa<memref::DeallocOp>(op)) {
      flow.deallocs.push_back(op);
      return;
    }
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      if (view.getViewSource() == use.get())
        return addAlias(op, view.getViewDest());
    if (op->getNumRegions() == 0 && isMemoryEffectFree(op))
      return followPure(use);
    followEffects(use);
  }

  /// An op that only computes values: hands the buffer on or asks its shape.
  void followPure(OpOperand &use) {
    Operation *op = use.getOwner();
    if (isa<ShapedDimOpInterface, memref::RankOp>(op))
      return;
    if (!llvm::all_of(op->getResults(), isMemRef))
      return escape(op, "is turned into a value that is not a memref");
    for (Value result : op->getResults())
      addAlias(op, result);
  }

  void followEffects(OpOperand &use) {
    Operation *op = use.getOwner();
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects)
      return escape(op, "is used by an op of unknown effects");
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    bool reads = false, writes = false;
    for (const auto &instance : instances) {
      bool everywhere = !instance.getValue() && !instance.getSymbolRef();
      if (!everywhere && instance.getValue() != use.get())
        continue;
      if (isa<MemoryEffects::Free>(instance.getEffect()))
        return escape(op, "is freed by an op other than memref.dealloc");
      reads |= isa<MemoryEffects::Read>(instance.getEffect());
      writes |= isa<MemoryEffects::Write>(instance.getEffect());
    }
    if (!reads && !writes)
      return escape(op, "is an operand that the op neither reads nor writes: "
                        "it may be kept");
    if (isStoredValue(use))
      return escape(op, "is stored in memory");
    if (llvm::any_of(op->getResultTypes(),
                     llvm::IsaPred<BaseMemRefType, TensorType>))
      return escape(op, "is used by an op that makes another memref or tensor");
    if (isa<memref::DmaStartOp>(op))
      return escape(op, "is used by a transfer that runs on after its start");
    addAccess(op, reads, writes);
  }

  /// An operand that is data to an op whose other operand is a memory of
  /// memrefs.
  bool isStoredValue(OpOperand &use) {
    return llvm::any_of(use.getOwner()->getOperands(), [&](Value other) {
      auto type = dyn_cast<MemRefType>(other.getType());
      return type && type.getElementType() == use.get().getType();
    });
  }

  void followTerminator(OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto branch = dyn_cast<BranchOpInterface>(op)) {
      auto argument = branch.getSuccessorBlockArgument(use.getOperandNumber());
      if (!argument)
        return escape(op, "is used by a branch that does not hand it on");
      return followBlockEdge(op, *argument);
    }
    Operation *parent = op->getParentOp();
    if (isa<FunctionOpInterface>(parent)) {
      if (!op->hasTrait<OpTrait::ReturnLike>())
        return escape(op, "is used by an unknown terminator");
      flow.returnedAs.insert(use.getOperandNumber());
      if (!isa<BlockArgument>(flow.root))
        escape(op, "is returned");
      return;
    }
    auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(op);
    auto branch = dyn_cast<RegionBranchOpInterface>(parent);
    if (!terminator || !branch)
      return escape(op, "is yielded to an op of unknown control flow");
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(RegionBranchPoint(terminator), successors);
    bool followed = false;
    for (const RegionSuccessor &successor : successors) {
      OperandRange operands = terminator.getSuccessorOperands(successor);
      followed |= followRegionEdge(use, op->getParentRegion(), successor,
                                   operands, parent);
    }
    if (!followed)
      escape(op, "is used by a terminator that does not hand it on");
  }

  void followRegionEntry(RegionBranchOpInterface branch, OpOperand &use) {
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    bool followed = false;
    for (const RegionSuccessor &successor : successors)
      followed |=
          followRegionEdge(use, nullptr, successor,
                           branch.getEntrySuccessorOperands(successor), branch);
    if (!followed)
      escape(branch, "is an operand that does not enter the op's regions");
  }

  /// Follows an operand of a branch among regions to what it becomes at
  /// `successor`. `from` is null on entry. Returns whether it is handed on.
  bool followRegionEdge(OpOperand &use, Region *from,
                        const RegionSuccessor &successor, OperandRange operands,
                        Operation *parent) {
    unsigned number = use.getOperandNumber();
    unsigned first = operands.empty() ? 0 : operands.getBeginOperandIndex();
    if (operands.empty() || number < first || number >= first + operands.size())
      return false;
    ValueRange inputs = successor.getSuccessorInputs();
    if (inputs.size() != operands.size()) {
      escape(use.getOwner(), "is handed on in a way that is not understood");
      return true;
    }
    bool isBackEdge =
        from && !successor.isParent() &&
        successor.getSuccessor()->getRegionNumber() <= from->getRegionNumber();
    if (isBackEdge && parent->isAncestor(rootBlock->getParentOp()))
      // The next iteration makes another one while this one is still in use.
      escape(use.getOwner(),
             "is carried into the next iteration of the loop that makes it");
    addAlias(use.getOwner(), inputs[number - first]);
    return true;
  }

  void followBlockEdge(Operation *branch, BlockArgument argument) {
    Block *target = argument.getOwner();
    if (Block *home =
            target->getParent()->findAncestorBlockInRegion(*rootBlock))
      if (target == home || canReach(target, home))
        if (!isa<BlockArgument>(flow.root))
          escape(branch, "is carried into the next round of the loop among "
                         "blocks that makes it");
    addAlias(branch, argument);
  }

  void followCall(CallOpInterface call, OpOperand &use) {
    Operation *op = call;
    auto callee = dyn_cast_or_null<FunctionOpInterface>(
        call.resolveCallableInTable(&analysis.symbolTables));
    if (!callee)
      return escape(op, "is passed to a function that is not known");
    OperandRange arguments = call.getArgOperands();
    unsigned first = arguments.empty() ? 0 : arguments.getBeginOperandIndex();
    unsigned number = use.getOperandNumber() - first;
    if (arguments.empty() || use.getOperandNumber() < first ||
        number >= callee.getNumArguments())
      return escape(op, "is passed to a call other than as an argument");
    if (callee.isExternal()) {
      if (llvm::any_of(op->getResults(), isMemRef))
        return escape(op, "is passed to an external function that returns a "
                          "memref");
    } else {
      const ArgumentSummary &summary =
          analysis.summarize(callee.getArgument(number));
      if (summary.escapes)
        return escape(op, "is passed to a function that may keep it");
      for (unsigned result : summary.returnedAs)
        addAlias(op, op->getResult(result));
    }
    addAccess(op, /*reads=*/true, /*writes=*/true);
  }

  BufferFlowAnalysis &analysis;
  Block *rootBlock;
  BufferFlow flow;
};

BufferFlow BufferFlowAnalysis::trace(Value root) {
  return Tracer(*this, root).run();
}

const BufferFlowAnalysis::ArgumentSummary &
BufferFlowAnalysis::summarize(BlockArgument argument) {
  auto [entry, isNew] = summaries.try_emplace(argument);
  if (!isNew)
    return entry->second ? *entry->second : unknownArgument;
  BufferFlow flow = trace(argument);
  ArgumentSummary summary;
  summary.escapes = flow.escape.has_value();
  summary.returnedAs.assign(flow.returnedAs.begin(), flow.returnedAs.end());
  return summaries[argument].emplace(std::move(summary));
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

SmallVector<Value>
BufferFlowAnalysis::collectRoots(FunctionOpInterface function) {
  SmallVector<Value> roots;
  auto addArguments = [&](Block &block) {
    llvm::copy_if(block.getArguments(), std::back_inserter(roots), isMemRef);
  };
  if (!function.isExternal())
    addArguments(function.getFunctionBody().front());
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool handsOn = isa<RegionBranchOpInterface>(op) ||
                   isa<ViewLikeOpInterface>(op) ||
                   (op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                    llvm::any_of(op->getOperands(), isMemRef));
    if (!handsOn)
      llvm::copy_if(op->getResults(), std::back_inserter(roots), isMemRef);
    if (!isa<RegionBranchOpInterface>(op))
      for (Region &region : op->getRegions())
        if (!region.empty())
          addArguments(region.front());
  });
  return roots;
}

} // namespace memplan
