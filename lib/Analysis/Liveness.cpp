//===- Liveness.cpp - Lifetimes of the buffers of a function --------------===//

#include "memplan/Analysis/Liveness.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

#include <tuple>

using namespace mlir;

namespace memplan {

std::optional<int64_t> getDenseBytes(MemRefType type, Operation *scope) {
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return std::nullopt;
  Type element = type.getElementType();
  Type scalar = element;
  if (auto vector = dyn_cast<VectorType>(scalar)) {
    if (vector.isScalable())
      return std::nullopt;
    scalar = vector.getElementType();
  }
  if (auto complex = dyn_cast<ComplexType>(scalar))
    scalar = complex.getElementType();
  if (!scalar.isIntOrIndexOrFloat())
    return std::nullopt;
  llvm::TypeSize size = DataLayout::closest(scope).getTypeSize(element);
  if (size.isScalable())
    return std::nullopt;
  auto count = checkedProduct(type.getShape());
  return count ? checkedMul(*count, static_cast<int64_t>(size.getFixedValue()))
               : std::nullopt;
}

std::string getBufferName(Location location) {
  std::string name;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name.empty() ? "buffer" : name;
}

BufferLiveness::BufferLiveness(FunctionOpInterface function,
                               BufferFlowAnalysis &flowAnalysis)
    : points(function) {
  function.getFunctionBody().walk([&](Block *block) {
    int64_t end = points.span(block).second;
    for (Block *successor : block->getSuccessors()) {
      int64_t begin = points.span(successor).first;
      // A branch forward, or a loop without any point.
      if (begin < end)
        blockLoops[block->getParent()].push_back({begin, end});
    }
  });
  std::vector<BufferFlow> others;
  for (Value root : BufferFlowAnalysis::collectRoots(function)) {
    BufferFlow flow = flowAnalysis.trace(root);
    auto alloc = root.getDefiningOp<memref::AllocOp>();
    if (alloc)
      addAlloc(alloc, flow);
    else if (Operation *op = root.getDefiningOp();
             isa_and_nonnull<memref::AllocaOp>(op))
      leave(op, "is on the stack");
    if (!alloc || buffers.empty() || buffers.back().alloc != alloc)
      others.push_back(std::move(flow));
  }
  leaveFreedTogether(others);
}

void BufferLiveness::addAlloc(memref::AllocOp alloc, BufferFlow flow) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape())
    return leave(alloc, "has a dynamic size");
  if (!type.getLayout().isIdentity())
    return leave(alloc, "has a layout that is not the identity");
  auto bytes = getDenseBytes(type, alloc);
  if (!bytes)
    return leave(alloc, "has a size in bytes that is not known or does not fit "
                        "63 bits");
  for (Operation *parent = alloc->getParentOp();
       !isa<FunctionOpInterface>(parent); parent = parent->getParentOp())
    if (!hasSequentialRegions(parent))
      return leave(alloc,
                   "is made in a region that may run more than once at a time",
                   parent);
  if (flow.escape)
    return leave(alloc, flow.escape->reason, flow.escape->op);
  LiveBuffer buffer = {
      alloc, *bytes, static_cast<int64_t>(alloc.getAlignment().value_or(1)),
      0,     0,      std::move(flow),
      {}};
  std::tie(buffer.lower, buffer.upper) =
      computeLifetime(buffer, buffer.flow.accesses);
  computeParts(buffer);
  buffers.push_back(std::move(buffer));
}

std::pair<int64_t, int64_t>
BufferLiveness::computeLifetime(const LiveBuffer &buffer,
                                ArrayRef<BufferAccess> accesses) const {
  Operation *alloc = buffer.alloc;
  // The hull of all accesses; one in a loop that the alloc is outside of counts
  // as the whole loop, since the next iteration may want what this one left.
  int64_t lower = points.begin(alloc), upper = lower + 1;
  bool isFirst = true;
  auto include = [&](int64_t begin, int64_t end) {
    lower = isFirst ? begin : std::min(lower, begin);
    upper = isFirst ? end : std::max(upper, end);
    isFirst = false;
  };
  llvm::SmallSetVector<Region *, 4> regions;
  for (const BufferAccess &access : accesses) {
    include(points.begin(access.op), points.end(access.op));
    Operation *op = access.op;
    while (true) {
      regions.insert(op->getParentRegion());
      op = op->getParentOp();
      if (op->isAncestor(alloc))
        break;
      if (mayRepeatRegions(op))
        include(points.begin(op), points.end(op));
    }
  }
  // Regions between an access and the common ancestor are in; the alloc's own
  // regions up to the function matter too if the buffer leaves its block.
  for (Operation *op = alloc; !isa<FunctionOpInterface>(op);
       op = op->getParentOp())
    regions.insert(op->getParentRegion());

  // Loops among blocks: if control can jump from inside the life to before it,
  // or from after it back inside, what was jumped over belongs to the life.
  // A buffer that one block makes and uses alone has a new life each time.
  auto isLocalToBlock = [&](Region *region) {
    Block *home = region->findAncestorBlockInRegion(*alloc->getBlock());
    return home &&
           llvm::all_of(buffer.flow.aliases,
                        [&](Value alias) {
                          return region->findAncestorBlockInRegion(
                                     *alias.getParentBlock()) == home;
                        }) &&
           llvm::all_of(buffer.flow.accesses, [&](const auto &access) {
             return region->findAncestorBlockInRegion(*access.op->getBlock()) ==
                    home;
           });
  };
  SmallVector<std::pair<int64_t, int64_t>> loops;
  for (Region *region : regions)
    if (auto found = blockLoops.find(region);
        found != blockLoops.end() && !isLocalToBlock(region))
      llvm::append_range(loops, found->second);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [begin, end] : loops)
      if (begin < upper && lower < end && (begin < lower || upper < end)) {
        lower = std::min(lower, begin);
        upper = std::max(upper, end);
        changed = true;
      }
  }
  return {lower, upper};
}

/// The bytes of `root` between which `value`, a view of it, lies; none if that
/// isn't known.
static std::optional<std::pair<int64_t, int64_t>>
findByteRange(Value value, Value root, int64_t elementBytes) {
  for (Value source = value; source != root;) {
    // A `memref.view` counts offsets from where it begins.
    Operation *view = source.getDefiningOp();
    if (!isa_and_nonnull<memref::SubViewOp, memref::ExpandShapeOp,
                         memref::CollapseShapeOp, memref::CastOp>(view))
      return std::nullopt;
    source = view->getOperand(0);
  }
  auto type = cast<MemRefType>(value.getType());
  SmallVector<int64_t> strides;
  int64_t first;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, first)) ||
      ShapedType::isDynamic(first))
    return std::nullopt;
  int64_t last = first;
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (ShapedType::isDynamic(stride) || stride < 0)
      return std::nullopt;
    if (extent == 0)
      return std::pair<int64_t, int64_t>(0, 0);
    last += (extent - 1) * stride;
  }
  return std::pair(first * elementBytes, (last + 1) * elementBytes);
}

void BufferLiveness::computeParts(LiveBuffer &buffer) const {
  constexpr size_t maxParts = 256;
  auto count = buffer.alloc.getType().getNumElements();
  if (buffer.flow.accesses.empty() || count == 0)
    return;
  struct Range {
    int64_t first, last;
    BufferAccess access;
  };
  std::vector<Range> ranges;
  llvm::SmallSetVector<int64_t, 8> cuts;
  auto addRange = [&](int64_t first, int64_t last, const BufferAccess &access) {
    if (first >= last)
      return;
    ranges.push_back({first, last, access});
    cuts.insert(first);
    cuts.insert(last);
  };
  for (const BufferAccess &access : buffer.flow.accesses) {
    bool isKnown = false;
    for (Value operand : access.op->getOperands()) {
      if (!buffer.flow.aliases.contains(operand))
        continue;
      isKnown = true;
      // A callee may look beyond the part that it is given.
      auto range =
          isa<CallOpInterface>(access.op)
              ? std::nullopt
              : findByteRange(operand, buffer.flow.root, buffer.bytes / count);
      addRange(range ? range->first : 0, range ? range->second : buffer.bytes,
               access);
    }
    if (!isKnown)
      addRange(0, buffer.bytes, access);
  }
  SmallVector<int64_t> sorted = cuts.takeVector();
  llvm::sort(sorted);
  if (sorted.size() > maxParts)
    return;
  std::vector<LivePart> parts;
  for (size_t i = 0; i + 1 < sorted.size(); ++i) {
    SmallVector<BufferAccess> accesses;
    for (const Range &range : ranges)
      if (range.first <= sorted[i] && sorted[i + 1] <= range.last)
        accesses.push_back(range.access);
    if (accesses.empty())
      continue;
    auto [lower, upper] = computeLifetime(buffer, accesses);
    if (!parts.empty() && parts.back().lower == lower &&
        parts.back().upper == upper &&
        parts.back().offset + parts.back().bytes == sorted[i])
      parts.back().bytes += sorted[i + 1] - sorted[i];
    else
      parts.push_back({sorted[i], sorted[i + 1] - sorted[i], lower, upper});
  }
  bool isWhole = parts.size() == 1 && parts.front().bytes == buffer.bytes;
  if (!isWhole && !parts.empty())
    buffer.parts = std::move(parts);
}

/// A dealloc that may free a planned buffer or something else can neither stay
/// nor go: its buffers are left alone.
void BufferLiveness::leaveFreedTogether(ArrayRef<BufferFlow> others) {
  llvm::DenseSet<Operation *> stay;
  auto keepDeallocs = [&](const BufferFlow &flow) {
    stay.insert(flow.deallocs.begin(), flow.deallocs.end());
  };
  llvm::for_each(others, keepDeallocs);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = buffers.begin(); it != buffers.end();) {
      auto found = llvm::find_if(it->flow.deallocs, [&](Operation *dealloc) {
        return stay.contains(dealloc);
      });
      if (found == it->flow.deallocs.end()) {
        ++it;
        continue;
      }
      leave(it->alloc, "is freed together with a buffer that is left alone",
            *found);
      keepDeallocs(it->flow);
      it = buffers.erase(it);
      changed = true;
    }
  }
}

} // namespace memplan
