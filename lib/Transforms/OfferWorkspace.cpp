//===- OfferWorkspace.cpp - memplan-offer-workspace -----------------------===//

#include "memplan/Analysis/Liveness.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace memplan {
#define GEN_PASS_DEF_OFFERWORKSPACE
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// Less is not worth an argument: cuBLASLt splits nothing in it.
constexpr int64_t leastBytes = 4096;
/// What cuBLASLt demands; arenas are aligned to it in any case.
constexpr int64_t leastAlignment = 256;

/// Bytes of the arena that are taken for a time.
struct Occupied {
  int64_t offset, end; ///< In bytes.
  int64_t lower, upper;
};

/// A run of bytes.
struct Gap {
  int64_t offset = 0, bytes = 0;
};

class OfferWorkspacePass
    : public memplan::impl::OfferWorkspaceBase<OfferWorkspacePass> {
public:
  using OfferWorkspaceBase::OfferWorkspaceBase;

  void runOnOperation() override {
    if (perOp < 0) {
      emitError(getOperation().getLoc())
          << "memplan-offer-workspace: per-op=" << perOp.getValue()
          << " is not a number of bytes of at least 0";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      offerIn(function);
  }

private:
  void offerIn(func::FuncOp function) {
    auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr);
    if (!arenas)
      return;
    // What an op without a memory space of its own works in.
    for (auto arena : arenas.getAsRange<ArenaAttr>())
      if (!arena.getMemorySpace())
        offerIn(function, arena);
  }

  void offerIn(func::FuncOp function, ArenaAttr arena) {
    collectOccupied(function);
    ProgramPoints points(function);
    SmallVector<WorkspaceOpInterface> ops;
    function.walk([&](WorkspaceOpInterface op) {
      if (op.canUseWorkspace() && op.getWorkspaceMutable().empty() &&
          usesDefaultSpace(op))
        ops.push_back(op);
    });
    int64_t left = total;
    for (WorkspaceOpInterface op : ops) {
      int64_t most = perOp;
      if (total >= 0)
        most = std::min(most, left);
      Gap gap = findLargestGap(arena, points.begin(op), points.end(op));
      // Every size of buffer is a multiple of the alignment in effect.
      int64_t bytes = std::min(gap.bytes, most);
      bytes -= bytes % arena.getAlignment();
      if (bytes < leastBytes)
        continue;
      offer(op, {gap.offset, bytes}, points);
      left -= bytes;
      ++numOffered;
      offeredBytes += bytes;
    }
  }

  static bool usesDefaultSpace(Operation *op) {
    return llvm::all_of(op->getOperandTypes(), [](Type type) {
      auto memref = dyn_cast<MemRefType>(type);
      return !memref || !memref.getMemorySpace();
    });
  }

  void collectOccupied(func::FuncOp function) {
    occupied.clear();
    auto add = [&](SlotAttr slot, int64_t bytes) {
      occupied.push_back({slot.getOffset(), slot.getOffset() + bytes,
                          slot.getLower(), slot.getUpper()});
    };
    function.walk([&](Operation *op) {
      auto alloc = dyn_cast<memref::AllocOp>(op);
      auto slot = op->getAttrOfType<SlotAttr>(kSlotAttr);
      if (alloc && slot && !alloc.getType().getMemorySpace()) {
        if (!slot.getParts())
          add(slot, getDenseBytes(alloc.getType(), alloc).value_or(0));
        else
          for (auto part : slot.getParts().getAsRange<PartAttr>())
            occupied.push_back(
                {slot.getOffset() + part.getOffset(),
                 slot.getOffset() + part.getOffset() + part.getBytes(),
                 part.getLower(), part.getUpper()});
      }
      auto slots = op->getAttrOfType<ArrayAttr>(kCalleeSlotsAttr);
      auto call = dyn_cast<func::CallOp>(op);
      if (!slots || !call)
        return;
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      for (auto [place, arena] :
           llvm::zip_equal(slots.getAsRange<SlotAttr>(),
                           callee->getAttrOfType<ArrayAttr>(kArenasAttr)
                               .getAsRange<ArenaAttr>()))
        if (!arena.getMemorySpace())
          add(place, arena.getBytes());
    });
    llvm::stable_sort(occupied, [](const Occupied &a, const Occupied &b) {
      return a.offset < b.offset;
    });
  }

  /// The first of the largest runs in which nothing lives from `lower` to
  /// `upper`, from a multiple of the alignment on.
  Gap findLargestGap(ArenaAttr arena, int64_t lower, int64_t upper) const {
    int64_t alignment = std::max(arena.getAlignment(), leastAlignment);
    Gap largest;
    int64_t start = 0; // all below is taken or looked at
    auto endAt = [&](int64_t offset) {
      int64_t first = llvm::alignTo(start, alignment);
      if (offset - first > largest.bytes)
        largest = {first, offset - first};
    };
    for (const Occupied &taken : occupied) {
      if (taken.upper <= lower || upper <= taken.lower ||
          taken.offset == taken.end)
        continue;
      endAt(taken.offset);
      start = std::max(start, taken.end);
    }
    endAt(arena.getBytes());
    return largest;
  }

  void offer(WorkspaceOpInterface op, Gap gap, const ProgramPoints &points) {
    OpBuilder builder(op);
    auto type = MemRefType::get({gap.bytes}, builder.getI8Type());
    auto alloc = memref::AllocOp::create(builder, op->getLoc(), type);
    alloc->setAttr(kSlotAttr, SlotAttr::get(&getContext(), gap.offset,
                                            points.begin(op), points.end(op),
                                            /*parts=*/ArrayAttr()));
    alloc->setAttr(kWorkspaceAttr, builder.getUnitAttr());
    op.getWorkspaceMutable().assign(alloc.getResult());
  }

  /// By offset.
  std::vector<Occupied> occupied;
};

} // namespace
