//===- ReuseBuffers.cpp - Ops that overwrite an input that dies -----------===//

#include "memplan/Analysis/InPlace.h"
#include "memplan/Analysis/Liveness.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace memplan {
#define GEN_PASS_DEF_REUSEBUFFERS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// A buffer, or several that have been made one.
struct Storage {
  memref::AllocOp alloc;
  int64_t bytes;
  int64_t lower, upper;
  SmallVector<BufferAccess> accesses;
  SmallVector<Operation *> deallocs;
  /// Whether some value claims the buffer to be aligned.
  bool assumesAlignment;
};

/// Whether `op` runs once for each time that `block`, which holds it or an
/// ancestor of it, does, or starts anew each time: not in a loop among blocks,
/// whose points don't tell one iteration from the next.
bool isOutsideOfBlockLoops(Operation *op, Block *block) {
  while (op->getBlock() != block) {
    if (!op->getParentRegion()->hasOneBlock())
      return false;
    op = op->getParentOp();
    if (!op || isa<FunctionOpInterface>(op))
      return false;
  }
  return true;
}

/// Whether each dealloc surely frees this buffer, where it is made.
bool areDeallocsPlain(memref::AllocOp alloc, ArrayRef<Operation *> deallocs) {
  return llvm::all_of(deallocs, [&](Operation *dealloc) {
    return dealloc->getBlock() == alloc->getBlock() &&
           dealloc->getOperand(0) == alloc.getResult();
  });
}

/// The alloc that all of `value` is, element for element; null if there is
/// none.
memref::AllocOp findWholeAlloc(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (auto alloc = dyn_cast<memref::AllocOp>(def))
      return alloc;
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
            def) ||
        !type || !type.hasStaticShape() || !type.getLayout().isIdentity())
      return nullptr;
    value = def->getOperand(0);
  }
  return nullptr;
}

/// The output argument that all of `value` is; null if it is none.
BlockArgument findOutput(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(def))
      return nullptr;
    value = def->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto type = dyn_cast<MemRefType>(argument.getType());
  bool isOutput = function && function.getArgAttr(argument.getArgNumber(),
                                                  "bufferize.result");
  return isOutput && type && type.hasStaticShape() &&
                 type.getLayout().isIdentity()
             ? argument
             : nullptr;
}

/// Whether nothing touches the buffer before `op`, which stands in the block
/// that has it as an argument.
bool isFirstAccess(Operation *op, const BufferFlow &flow) {
  Block *block = Value(flow.root).getParentBlock();
  return op->getBlock() == block && !flow.escape &&
         llvm::all_of(flow.accesses, [&](const BufferAccess &access) {
           Operation *other = block->findAncestorOpInBlock(*access.op);
           return other && !other->isBeforeInBlock(op);
         });
}

class ReuseBuffersPass
    : public memplan::impl::ReuseBuffersBase<ReuseBuffersPass> {
public:
  using ReuseBuffersBase::ReuseBuffersBase;

  void runOnOperation() override {
    BufferFlowAnalysis flowAnalysis;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        reuseIn(function, flowAnalysis);
  }

private:
  void reuseIn(func::FuncOp function, BufferFlowAnalysis &flowAnalysis) {
    BufferLiveness liveness(function, flowAnalysis);
    points = &liveness.getPoints();
    storages.clear();
    storageOf.clear();
    outputFlows.clear();
    for (const LiveBuffer &buffer : liveness.getBuffers()) {
      storageOf[buffer.alloc] = storages.size();
      storages.push_back(
          {buffer.alloc, buffer.bytes, buffer.lower, buffer.upper,
           buffer.flow.accesses, buffer.flow.deallocs,
           llvm::any_of(buffer.flow.aliases, [](Value alias) {
             return alias.getDefiningOp<memref::AssumeAlignmentOp>() != nullptr;
           })});
    }
    // In program order, so that an op sees which of its inputs are one.
    SmallVector<DestinationStyleOpInterface> ops;
    function.walk<WalkOrder::PreOrder>([&](DestinationStyleOpInterface op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (DestinationStyleOpInterface op : ops)
      for (OpOperand &init : op.getDpsInitsMutable()) {
        BlockArgument output = findOutput(init.get());
        if (!output) {
          reuseFor(op, init);
          continue;
        }
        auto [flow, isNew] = outputFlows.try_emplace(Value(output));
        if (isNew)
          flow->second = flowAnalysis.trace(output);
        if (isFirstAccess(op, flow->second) && useOutputFor(op, init, output))
          outputFlows.erase(Value(output));
      }
  }

  /// What dies where an output is first written may live in the output.
  bool useOutputFor(DestinationStyleOpInterface op, OpOperand &init,
                    BlockArgument output) {
    auto type = cast<MemRefType>(output.getType());
    for (OpOperand *input : op.getDpsInputOperands()) {
      Storage *source = lookup(input->get());
      if (!source || source->upper != points->end(op) ||
          source->alloc->getBlock() != op->getBlock() ||
          source->assumesAlignment ||
          !areDeallocsPlain(source->alloc, source->deallocs) ||
          source->alloc.getType().getElementType() != type.getElementType() ||
          source->alloc.getType().getMemorySpace() != type.getMemorySpace() ||
          source->alloc.getType().getNumElements() != type.getNumElements() ||
          input->get().getType() != init.get().getType() ||
          !isReadInPlace(*source, op, init))
        continue;
      for (Operation *dealloc : source->deallocs)
        dealloc->erase();
      OpBuilder builder(source->alloc);
      source->alloc.replaceAllUsesWith(
          seeAs(builder, output, source->alloc.getType(), op->getLoc()));
      storageOf.erase(source->alloc);
      source->alloc.erase();
      ++numReused;
      savedBytes += source->bytes;
      return true;
    }
    return false;
  }

  Storage *lookup(Value value) {
    memref::AllocOp alloc = findWholeAlloc(value);
    auto found = alloc ? storageOf.find(alloc) : storageOf.end();
    return found == storageOf.end() ? nullptr : &storages[found->second];
  }

  void reuseFor(DestinationStyleOpInterface op, OpOperand &init) {
    Storage *target = lookup(init.get());
    if (!target || target->lower != points->begin(op) ||
        !isOutsideOfBlockLoops(op, target->alloc->getBlock()))
      return;
    for (OpOperand *input : op.getDpsInputOperands()) {
      Storage *source = lookup(input->get());
      if (!source || !canMerge(*source, *target) ||
          source->upper != points->end(op) ||
          input->get().getType() != init.get().getType() ||
          !isReadInPlace(*source, op, init))
        continue;
      merge(*source, *target);
      ++numReused;
      savedBytes += target->bytes;
      return;
    }
  }

  /// As far as the two buffers go by themselves.
  static bool canMerge(Storage &source, Storage &target) {
    MemRefType from = source.alloc.getType(), to = target.alloc.getType();
    return &source != &target && source.bytes == target.bytes &&
           from.getElementType() == to.getElementType() &&
           from.getMemorySpace() == to.getMemorySpace() &&
           source.alloc->getBlock() == target.alloc->getBlock() &&
           areDeallocsPlain(source.alloc, source.deallocs) &&
           areDeallocsPlain(target.alloc, target.deallocs);
  }

  /// Whether `op` reads the buffer only through inputs that `init` may
  /// overwrite.
  bool isReadInPlace(const Storage &source, DestinationStyleOpInterface op,
                     OpOperand &init) {
    for (const BufferAccess &access : source.accesses)
      if (access.op != op && op->isProperAncestor(access.op))
        return false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (&operand == &init || !isa<MemRefType>(operand.get().getType()))
        continue;
      bool isWhole = lookup(operand.get()) == &source;
      if (!isWhole && !mayBe(operand.get(), source))
        continue;
      if (!isWhole || !op.isDpsInput(&operand) ||
          operand.get().getType() != init.get().getType() ||
          !canOverwrite(operand, init))
        return false;
    }
    return true;
  }

  /// Whether `value` may be (part of) the buffer.
  static bool mayBe(Value value, const Storage &source) {
    // By way of views alone; what else hands a memref on is not looked through.
    while (Operation *def = value.getDefiningOp()) {
      if (def == source.alloc)
        return true;
      if (isa<memref::AllocOp, memref::GetGlobalOp>(def))
        return false;
      auto view = dyn_cast<ViewLikeOpInterface>(def);
      if (!view)
        return true;
      value = view.getViewSource();
    }
    return !isa<func::FuncOp>(
        cast<BlockArgument>(value).getOwner()->getParentOp());
  }

  /// Lets everybody who means `target` mean `source`.
  void merge(Storage &source, Storage &target) {
    memref::AllocOp alloc = source.alloc;
    if (target.alloc->isBeforeInBlock(alloc))
      alloc->moveBefore(target.alloc);
    int64_t alignment =
        std::max(static_cast<int64_t>(alloc.getAlignment().value_or(0)),
                 static_cast<int64_t>(target.alloc.getAlignment().value_or(0)));
    if (alignment != 0)
      alloc.setAlignment(alignment);
    alloc->setLoc(
        FusedLoc::get(&getContext(), {alloc.getLoc(), target.alloc.getLoc()}));
    for (Operation *dealloc : source.deallocs)
      dealloc->erase();
    OpBuilder builder(target.alloc);
    for (Operation *dealloc : target.deallocs)
      dealloc->setOperand(0, alloc);
    target.alloc.replaceAllUsesWith(
        seeAs(builder, alloc, target.alloc.getType(), target.alloc.getLoc()));
    storageOf.erase(target.alloc);
    target.alloc.erase();
    source.upper = std::max(source.upper, target.upper);
    source.accesses.append(target.accesses);
    source.deallocs = target.deallocs;
  }

  /// A whole buffer as one of another shape with as many elements.
  static Value seeAs(OpBuilder &builder, Value buffer, MemRefType type,
                     Location loc) {
    if (buffer.getType() == type)
      return buffer;
    SmallVector<int64_t> strides;
    int64_t offset;
    (void)type.getStridesAndOffset(strides, offset);
    return memref::ReinterpretCastOp::create(builder, loc, type, buffer, offset,
                                             type.getShape(), strides);
  }

  const ProgramPoints *points = nullptr;
  std::vector<Storage> storages;
  llvm::DenseMap<Operation *, size_t> storageOf;
  /// Of outputs, as they are now.
  llvm::DenseMap<Value, BufferFlow> outputFlows;
};

} // namespace
