//===- MaterializeArena.cpp - Planned buffers become views of an arena ----===//

#include "memplan/Analysis/BufferFlow.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"

namespace memplan {
#define GEN_PASS_DEF_MATERIALIZEARENA
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

MemRefType getArenaType(ArenaAttr arena) {
  return MemRefType::get({arena.getBytes()},
                         IntegerType::get(arena.getContext(), 8),
                         MemRefLayoutAttrInterface(), arena.getMemorySpace());
}

/// The arena values of one function, by memory space.
using Arenas = llvm::SmallDenseMap<Attribute, Value, 2>;

class MaterializeArenaPass
    : public memplan::impl::MaterializeArenaBase<MaterializeArenaPass> {
public:
  using MaterializeArenaBase::MaterializeArenaBase;

  void runOnOperation() override {
    // Whether an arena becomes an argument hangs on all callers, so that is
    // settled before any function changes.
    llvm::MapVector<Operation *, bool> takesArguments;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(kArenasAttr) || function.isExternal())
        continue;
      FailureOr<bool> takes = takesArgument(function);
      if (failed(takes))
        return signalPassFailure();
      takesArguments[function] = *takes;
    }
    for (auto [op, asArgument] : takesArguments)
      if (failed(materialize(cast<func::FuncOp>(op), asArgument)))
        return signalPassFailure();
  }

private:
  FailureOr<bool> takesArgument(func::FuncOp function) {
    auto uses = SymbolTable::getSymbolUses(function, getOperation());
    bool isUsed = !uses || !uses->empty();
    unsigned numSlots = 0, numUses = 0;
    if (uses)
      for (const SymbolTable::SymbolUse &use : *uses) {
        ++numUses;
        numSlots += use.getUser()->hasAttr(kCalleeSlotsAttr);
      }
    if (!isUsed)
      return storage == ArenaStorage::Argument;
    if (numSlots == 0)
      return false;
    if (numSlots == numUses)
      return true;
    return emitError(function.getLoc())
           << "of " << numUses << " uses of @" << function.getName() << " only "
           << numSlots << " have a slot for its arena; run memplan-plan-arena "
           << "on the whole module";
  }

  LogicalResult materialize(func::FuncOp function, bool asArgument) {
    Arenas arenas;
    for (auto attribute : function->getAttrOfType<ArrayAttr>(kArenasAttr)) {
      auto arena = dyn_cast<ArenaAttr>(attribute);
      if (!arena)
        return emitError(function.getLoc())
               << kArenasAttr << " holds " << attribute
               << ", expected #memplan.arena attributes";
      arenas[arena.getMemorySpace()] =
          asArgument ? addArgument(function, arena) : addAlloc(function, arena);
    }
    SmallVector<memref::AllocOp> allocs;
    SmallVector<func::CallOp> calls;
    function.walk([&](Operation *op) {
      if (auto alloc = dyn_cast<memref::AllocOp>(op))
        if (alloc->hasAttr(kSlotAttr))
          allocs.push_back(alloc);
      if (auto call = dyn_cast<func::CallOp>(op))
        if (call->hasAttr(kCalleeSlotsAttr))
          calls.push_back(call);
    });
    // A dealloc may be of several planned buffers, hence the set.
    llvm::SetVector<Operation *> deallocs;
    BufferFlowAnalysis flowAnalysis;
    for (memref::AllocOp alloc : allocs)
      deallocs.insert_range(flowAnalysis.trace(alloc).deallocs);
    for (Operation *dealloc : deallocs)
      dealloc->erase();
    for (memref::AllocOp alloc : allocs)
      if (failed(replaceAlloc(alloc, arenas)))
        return failure();
    for (func::CallOp call : calls)
      if (failed(passArenas(call, arenas)))
        return failure();
    return success();
  }

  Value addArgument(func::FuncOp function, ArenaAttr arena) {
    unsigned index = function.getNumArguments();
    NamedAttribute attribute(StringAttr::get(&getContext(), kArenaArgAttr),
                             arena);
    // Fails only on functions that cannot change their type; func.func can.
    (void)function.insertArgument(index, getArenaType(arena),
                                  DictionaryAttr::get(&getContext(), attribute),
                                  function.getLoc());
    return function.getArgument(index);
  }

  /// One alloc at entry, freed at each return.
  Value addAlloc(func::FuncOp function, ArenaAttr arena) {
    OpBuilder builder(function.getBody());
    auto alloc = memref::AllocOp::create(
        builder, function.getLoc(), getArenaType(arena),
        builder.getI64IntegerAttr(arena.getAlignment()));
    alloc->setAttr(kArenaArgAttr, arena);
    for (Block &block : function.getBody())
      if (auto exit = dyn_cast<func::ReturnOp>(block.getTerminator())) {
        builder.setInsertionPoint(exit);
        memref::DeallocOp::create(builder, exit.getLoc(), alloc);
      }
    return alloc;
  }

  FailureOr<Value> makeView(OpBuilder &builder, Operation *op, MemRefType type,
                            Attribute slotAttribute, const Arenas &arenas) {
    auto slot = dyn_cast_or_null<SlotAttr>(slotAttribute);
    if (!slot)
      return op->emitError()
             << "expected a #memplan.slot, found " << slotAttribute;
    Value arena = arenas.lookup(type.getMemorySpace());
    if (!arena)
      return op->emitError()
             << "has a slot, but the function has no arena in its memory space";
    auto offset =
        arith::ConstantIndexOp::create(builder, op->getLoc(), slot.getOffset());
    auto view = memref::ViewOp::create(builder, op->getLoc(), type, arena,
                                       offset, ValueRange());
    view->setAttr(kSlotAttr, slot);
    ++numViews;
    return view.getResult();
  }

  LogicalResult replaceAlloc(memref::AllocOp alloc, const Arenas &arenas) {
    OpBuilder builder(alloc);
    FailureOr<Value> view = makeView(builder, alloc, alloc.getType(),
                                     alloc->getAttr(kSlotAttr), arenas);
    if (failed(view))
      return failure();
    view->getDefiningOp()->setDiscardableAttrs(
        alloc->getDiscardableAttrDictionary());
    alloc.replaceAllUsesWith(*view);
    alloc.erase();
    return success();
  }

  LogicalResult passArenas(func::CallOp call, const Arenas &arenas) {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
    auto calleeArenas =
        callee ? callee->getAttrOfType<ArrayAttr>(kArenasAttr) : nullptr;
    auto slots = dyn_cast<ArrayAttr>(call->getAttr(kCalleeSlotsAttr));
    if (!calleeArenas || !slots || slots.size() != calleeArenas.size())
      return call.emitError()
             << kCalleeSlotsAttr << " does not match the arenas of @"
             << call.getCallee();
    OpBuilder builder(call);
    for (auto [slot, arena] : llvm::zip_equal(slots, calleeArenas)) {
      FailureOr<Value> view = makeView(
          builder, call, getArenaType(cast<ArenaAttr>(arena)), slot, arenas);
      if (failed(view))
        return failure();
      call.getOperandsMutable().append(*view);
    }
    call->removeAttr(kCalleeSlotsAttr);
    return success();
  }
};

} // namespace
