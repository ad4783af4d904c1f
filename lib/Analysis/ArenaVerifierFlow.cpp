//===- ArenaVerifierFlow.cpp - Uses, edges and points-to sets -------------===//

#include "ArenaVerifierImpl.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace memplan::verifier {

bool unite(TenantSet &target, const TenantSet &source) {
  size_t before = target.size();
  TenantSet merged;
  std::set_union(target.begin(), target.end(), source.begin(), source.end(),
                 std::back_inserter(merged));
  target = std::move(merged);
  return target.size() != before;
}

/// Numbers and vectors of numbers: cannot refer to a buffer, unless made from
/// its address.
static bool isPlainData(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    type = vector.getElementType();
  if (auto complex = dyn_cast<ComplexType>(type))
    type = complex.getElementType();
  return type.isIntOrIndexOrFloat();
}

static bool isBuffer(Type type) { return isa<BaseMemRefType>(type); }

/// A type of a dialect other than the builtin one, such as a token.
static bool isForeign(Type type) {
  return !isPlainData(type) && !isa<ShapedType>(type);
}

bool runsRegionsInTurn(Operation *op) {
  return isa<RegionBranchOpInterface>(op) &&
         !op->hasTrait<OpTrait::HasParallelRegion>() &&
         llvm::none_of(op->getResultTypes(), isForeign);
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

static Use kept(const char *why) { return {Use::Kept, false, false, why}; }

static Use classifyCall(CallOpInterface call, OpOperand &operand,
                        const Summaries &summaries,
                        SymbolTableCollection &symbols) {
  auto callee =
      dyn_cast_or_null<func::FuncOp>(call.resolveCallableInTable(&symbols));
  if (!callee)
    return kept("is passed to an unknown function");
  if (callee.isExternal()) {
    if (llvm::any_of(call->getResultTypes(), isBuffer))
      return kept("is passed to an external function that returns a memref");
  } else {
    auto found = summaries.find(callee);
    unsigned number = operand.getOperandNumber();
    if (found == summaries.end() || number >= found->second.keeps.size() ||
        found->second.keeps.test(number))
      return kept("is passed to a function that may keep it");
  }
  return {Use::Access, true, true, ""};
}

static Use classifyTerminator(OpOperand &operand) {
  Operation *op = operand.getOwner();
  bool handedOn = false;
  forEachEdge(op, [&](const Edge &edge) {
    handedOn |= llvm::is_contained(edge.operands, operand.get());
  });
  if (handedOn)
    return {Use::HandedOn, false, false, ""};
  if (isa<func::ReturnOp>(op))
    return kept("is returned");
  return kept("leaves through a terminator that is not understood");
}

static Use classifyByEffects(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return kept("is used by an op of unknown effects");
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  Use use;
  for (const auto &effect : effects) {
    Value value = effect.getValue();
    if (value ? value != operand.get() : bool(effect.getSymbolRef()))
      continue;
    if (isa<MemoryEffects::Read>(effect.getEffect()))
      use.reads = true;
    else if (isa<MemoryEffects::Write>(effect.getEffect()))
      use.writes = true;
    else if (isa<MemoryEffects::Free>(effect.getEffect()))
      return kept("is freed, which would leave its arena with a hole");
  }
  if (!use.reads && !use.writes)
    return kept("is held by an op that neither reads nor writes it");
  use.kind = Use::Access;
  // As data: the other operand is a memory of such memrefs.
  for (Value other : op->getOperands())
    if (auto type = dyn_cast<ShapedType>(other.getType()))
      if (type.getElementType() == operand.get().getType())
        return kept("is stored in memory");
  if (!llvm::all_of(op->getResultTypes(), isPlainData))
    return kept("is used by an op whose result may refer to it or outlive it");
  if (isa<memref::DmaStartOp>(op))
    return kept("is used by a transfer that runs on");
  return use;
}

Use classifyUse(OpOperand &operand, const Summaries &summaries,
                SymbolTableCollection &symbols) {
  Operation *op = operand.getOwner();
  if (op->hasTrait<OpTrait::IsTerminator>())
    return classifyTerminator(operand);
  if (auto call = dyn_cast<CallOpInterface>(op))
    return classifyCall(call, operand, summaries, symbols);
  // Before materialization deallocs still stand; they touch no byte.
  if (isa<memref::DeallocOp>(op))
    return {};
  if (isa<RegionBranchOpInterface>(op)) {
    bool handedOn = false;
    forEachEdge(op, [&](const Edge &edge) {
      handedOn |= llvm::is_contained(edge.operands, operand.get());
    });
    return handedOn ? Use{Use::HandedOn, false, false, ""}
                    : kept("enters an op that does not hand it on");
  }
  bool isView = isa<ViewLikeOpInterface>(op);
  if (op->getNumRegions() == 0 && isMemoryEffectFree(op)) {
    if (isa<ShapedDimOpInterface, memref::RankOp>(op))
      return {};
    bool hasBuffer = llvm::any_of(op->getResultTypes(), isBuffer);
    bool onlyBuffers = llvm::all_of(op->getResultTypes(), isBuffer);
    if (onlyBuffers || (isView && hasBuffer))
      return {Use::HandedOn, false, false, ""};
    return kept("becomes something other than a memref");
  }
  return classifyByEffects(operand);
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

static void visitRegionSuccessors(
    Operation *from, Operation *parent, ArrayRef<RegionSuccessor> successors,
    llvm::function_ref<OperandRange(const RegionSuccessor &)> operandsOf,
    llvm::function_ref<void(const Edge &)> visit) {
  for (const RegionSuccessor &successor : successors) {
    Edge edge = {from, nullptr, parent, {}, {}};
    if (!successor.isParent()) {
      if (successor.getSuccessor()->empty())
        continue;
      edge.block = &successor.getSuccessor()->front();
    }
    OperandRange operands = operandsOf(successor);
    ValueRange inputs = successor.getSuccessorInputs();
    if (operands.size() == inputs.size()) {
      llvm::append_range(edge.operands, operands);
      llvm::append_range(edge.inputs, inputs);
    }
    visit(edge);
  }
}

/// All that an op of unknown control flow may do: any region after any other,
/// any number of times, its operands becoming any region argument or result.
static void visitUnknown(Operation *from, Operation *parent,
                         llvm::function_ref<void(const Edge &)> visit) {
  for (Region &region : parent->getRegions())
    if (!region.empty())
      visit({from, &region.front(), parent, {}, {}});
  visit({from, nullptr, parent, {}, {}});
}

void forEachEdge(Operation *op, llvm::function_ref<void(const Edge &)> visit) {
  if (op->hasTrait<OpTrait::IsTerminator>()) {
    if (auto branch = dyn_cast<BranchOpInterface>(op)) {
      for (auto [index, block] : llvm::enumerate(op->getSuccessors())) {
        Edge edge = {op, block, nullptr, {}, {}};
        SuccessorOperands operands = branch.getSuccessorOperands(index);
        for (unsigned i = operands.getProducedOperandCount();
             i < operands.size(); ++i) {
          edge.operands.push_back(operands[i]);
          edge.inputs.push_back(block->getArgument(i));
        }
        visit(edge);
      }
      return;
    }
    if (op->getNumSuccessors() > 0) {
      for (Block *block : op->getSuccessors())
        visit({op, block, nullptr, {}, {}});
      return;
    }
    Operation *parent = op->getParentOp();
    if (isa<FunctionOpInterface>(parent))
      return;
    auto branch = dyn_cast<RegionBranchOpInterface>(parent);
    auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(op);
    if (!branch || !terminator || !runsRegionsInTurn(parent))
      return visitUnknown(op, parent, visit);
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(RegionBranchPoint(terminator), successors);
    return visitRegionSuccessors(
        op, parent, successors,
        [&](const RegionSuccessor &successor) {
          return terminator.getSuccessorOperands(successor);
        },
        visit);
  }
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  if (!branch || !runsRegionsInTurn(op))
    return visitUnknown(op, op, visit);
  SmallVector<RegionSuccessor> successors;
  branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
  visitRegionSuccessors(
      op, op, successors,
      [&](const RegionSuccessor &successor) {
        return branch.getEntrySuccessorOperands(successor);
      },
      visit);
}

//===----------------------------------------------------------------------===//
// Points-to sets
//===----------------------------------------------------------------------===//

PointsTo::PointsTo(func::FuncOp function, ArrayRef<Tenant> tenants,
                   const Summaries &summaries, SymbolTableCollection &symbols)
    : summaries(summaries), symbols(symbols) {
  llvm::DenseSet<Value> roots;
  for (auto [index, tenant] : llvm::enumerate(tenants))
    if (tenant.value) {
      unite(sets[tenant.value], {static_cast<unsigned>(index)});
      roots.insert(tenant.value);
    }
  for (bool changed = true; changed;) {
    changed = false;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      // A tenant points to itself alone, not to what it was cut from.
      if (op->getNumResults() == 1 && roots.contains(op->getResult(0)))
        return;
      changed |= transfer(op);
    });
  }
}

const TenantSet &PointsTo::lookup(Value value) const {
  static const TenantSet empty;
  auto found = sets.find(value);
  return found == sets.end() ? empty : found->second;
}

bool PointsTo::flow(Value from, Value to) {
  auto found = sets.find(from);
  if (found == sets.end() || isPlainData(to.getType()))
    return false;
  // A copy: the lookup of `to` may move the table.
  TenantSet source = found->second;
  return unite(sets[to], source);
}

bool PointsTo::transfer(Operation *op) {
  bool changed = false;
  bool isTerminator = op->hasTrait<OpTrait::IsTerminator>();
  if (isTerminator || op->getNumRegions() > 0)
    forEachEdge(op, [&](const Edge &edge) {
      for (auto [from, to] : llvm::zip_equal(edge.operands, edge.inputs))
        changed |= flow(from, to);
      if (!edge.operands.empty() || !edge.into || runsRegionsInTurn(edge.into))
        return;
      // Unknown control flow: everything may become anything.
      for (Value from : op->getOperands()) {
        if (edge.block)
          for (Value to : edge.block->getArguments())
            changed |= flow(from, to);
        else
          for (Value to : edge.into->getResults())
            changed |= flow(from, to);
      }
    });
  if (isTerminator || isa<RegionBranchOpInterface>(op))
    return changed;
  if (auto call = dyn_cast<func::CallOp>(op))
    if (auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
            call, call.getCalleeAttr()))
      return changed | transferCall(op, callee);
  for (Value from : op->getOperands())
    for (Value to : op->getResults())
      changed |= flow(from, to);
  return changed;
}

bool PointsTo::transferCall(Operation *op, func::FuncOp callee) {
  bool changed = false;
  auto found = summaries.find(callee);
  if (found == summaries.end())
    return false;
  for (auto [result, arguments] :
       llvm::zip(op->getResults(), found->second.returns))
    for (unsigned argument : arguments)
      changed |= flow(op->getOperand(argument), result);
  return changed;
}

} // namespace memplan::verifier
