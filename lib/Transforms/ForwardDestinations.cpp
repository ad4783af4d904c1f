//===- ForwardDestinations.cpp - Producers write where copies lead --------===//

#include "ViewChains.h"
#include "memplan/Analysis/InPlace.h"
#include "memplan/Analysis/Liveness.h"
#include "memplan/Support/CheckedMath.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/MathExtras.h"

namespace memplan {
#define GEN_PASS_DEF_FORWARDDESTINATIONS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

using Box = SmallVector<std::pair<int64_t, int64_t>>;

bool areDisjoint(const Box &a, const Box &b) {
  return llvm::any_of(llvm::zip_equal(a, b), [](const auto &pair) {
    const auto &[first, second] = pair;
    return first.second <= second.first || second.second <= first.first;
  });
}

bool isOutput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : nullptr;
  return function && function.getArgAttr(argument.getArgNumber(),
                                         "bufferize.result") != nullptr;
}

/// Which op stands first in its block. MLIR's own numbers are lost whenever an
/// op is put in, and taking them anew is linear in the block.
class ProgramOrder {
public:
  explicit ProgramOrder(func::FuncOp function) {
    int64_t next = 0;
    function.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { numbers[op] = next += distance; });
  }

  bool isBefore(Operation *a, Operation *b) const {
    return numbers.lookup(a) < numbers.lookup(b);
  }
  /// Moves `op` before another one, which is about to go.
  void moveBefore(Operation *op, Operation *other) {
    op->moveBefore(other);
    numbers[op] = numbers.lookup(other) - 1;
  }
  void replace(Operation *old, Operation *op) {
    numbers[op] = numbers.lookup(old);
  }

private:
  static constexpr int64_t distance = int64_t{1} << 24;
  llvm::DenseMap<Operation *, int64_t> numbers;
};

/// Whether the memref's elements lie side by side.
bool isContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  int64_t span = 1;
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (ShapedType::isDynamic(stride) || stride < 0 || extent == 0)
      return false;
    span += (extent - 1) * stride;
  }
  return span == type.getNumElements();
}

/// How many bytes live when, kept up to date as buffers become one. Points are
/// those before the first change.
class LiveBytes {
public:
  /// `alignment`: of which each buffer takes a multiple, in bytes.
  LiveBytes(func::FuncOp function, BufferFlowAnalysis &flowAnalysis,
            int64_t alignment)
      : alignment(alignment) {
    BufferLiveness liveness(function, flowAnalysis);
    numPoints = liveness.getPoints().size() + 1;
    for (const LiveBuffer &buffer : liveness.getBuffers()) {
      memref::AllocOp alloc = buffer.alloc;
      int64_t bytes = roundUp(buffer.bytes);
      Life &life = lives[alloc];
      life = {bytes,
              {{bytes, buffer.lower, buffer.upper}},
              alloc.getType().getMemorySpace()};
      add(life, 1);
    }
  }

  /// Whether the most bytes at one time stay as few if `part` becomes part of
  /// `whole`. Where its bytes lie side by side the rest of `whole` lives as it
  /// did (see `LivePart`), else all of it as long as both. Buffers that are not
  /// planned count for nothing.
  bool canUnite(Operation *part, Operation *whole, bool contiguous) {
    auto from = lives.find(part), to = lives.find(whole);
    if (to == lives.end() || (from != lives.end() && contiguous))
      return true;
    if (from == lives.end())
      return false;
    const std::vector<int64_t> &bytesAt = bytesIn[to->second.space];
    int64_t most = *std::max_element(bytesAt.begin(), bytesAt.end());
    auto [lower, upper] = findHull(from->second, to->second);
    for (int64_t point = lower; point < upper; ++point)
      if (bytesAt[point] - from->second.at(point) - to->second.at(point) +
              to->second.bytes >
          most)
        return false;
    return true;
  }

  void unite(Operation *part, Operation *whole, bool contiguous) {
    auto from = lives.find(part);
    if (from == lives.end())
      return;
    Life old = from->second;
    lives.erase(from);
    add(old, -1);
    auto to = lives.find(whole);
    if (to == lives.end())
      return;
    Life &life = to->second;
    add(life, -1);
    auto [lower, upper] = findHull(old, life);
    if (contiguous) {
      // While the whole lives, the part has its bytes there.
      Segment main = life.segments.front();
      auto keep = [&](int64_t bytes, int64_t from, int64_t to) {
        if (from < to)
          life.segments.push_back({bytes, from, to});
      };
      for (const Segment &segment : old.segments) {
        keep(segment.bytes, segment.lower, std::min(segment.upper, main.lower));
        keep(segment.bytes, std::max(segment.lower, main.upper), segment.upper);
      }
    } else {
      life.segments = {{life.bytes, lower, upper}};
    }
    add(life, 1);
  }

  /// `alloc` takes the place of another one.
  void replace(Operation *old, memref::AllocOp alloc) {
    auto found = lives.find(old);
    if (found == lives.end())
      return;
    Life life = found->second;
    lives.erase(found);
    add(life, -1);
    life.bytes = roundUp(getDenseBytes(alloc.getType(), alloc).value_or(0));
    life.segments.front().bytes = life.bytes;
    add(life, 1);
    lives[alloc] = life;
  }

private:
  struct Segment {
    int64_t bytes, lower, upper;
  };
  struct Life {
    int64_t bytes;
    /// That of the buffer as a whole, then those of parts that live when the
    /// whole doesn't.
    SmallVector<Segment, 1> segments;
    Attribute space;

    int64_t at(int64_t point) const {
      int64_t sum = 0;
      for (const Segment &segment : segments)
        if (segment.lower <= point && point < segment.upper)
          sum += segment.bytes;
      return sum;
    }
  };

  static std::pair<int64_t, int64_t> findHull(const Life &a, const Life &b) {
    int64_t lower = a.segments.front().lower, upper = a.segments.front().upper;
    for (const Life *life : {&a, &b})
      for (const Segment &segment : life->segments)
        if (segment.lower < segment.upper) {
          lower = std::min(lower, segment.lower);
          upper = std::max(upper, segment.upper);
        }
    return {lower, upper};
  }

  int64_t roundUp(int64_t bytes) const {
    return checkedAlignTo(bytes, alignment).value_or(bytes);
  }

  void add(const Life &life, int64_t sign) {
    std::vector<int64_t> &bytesAt = bytesIn[life.space];
    bytesAt.resize(numPoints);
    for (const Segment &segment : life.segments)
      for (int64_t point = segment.lower; point < segment.upper; ++point)
        bytesAt[point] += sign * segment.bytes;
  }

  int64_t alignment;
  int64_t numPoints = 0;
  /// Of each memory space.
  llvm::DenseMap<Attribute, std::vector<int64_t>> bytesIn;
  llvm::DenseMap<Operation *, Life> lives;
};

/// The flows of buffers, kept up to date as buffers become one: tracing one of
/// which many others have become parts each time takes time with their square.
class FlowCache {
public:
  explicit FlowCache(BufferFlowAnalysis &analysis) : analysis(analysis) {}

  BufferFlow &get(Value root) {
    auto [entry, isNew] = flows.try_emplace(root);
    if (isNew)
      entry->second = std::make_unique<BufferFlow>(analysis.trace(root));
    return *entry->second;
  }
  /// `part` of `root` is what `alloc` was, and `copy` goes.
  void unite(Value alloc, Value root, Value part, Operation *copy) {
    flows.erase(alloc);
    BufferFlow &flow = get(root);
    llvm::erase_if(flow.accesses, [&](const BufferAccess &access) {
      return access.op == copy;
    });
    BufferFlow added = analysis.trace(part);
    flow.aliases.insert_range(added.aliases);
    flow.accesses.append(added.accesses);
  }

private:
  BufferFlowAnalysis &analysis;
  llvm::DenseMap<Value, std::unique_ptr<BufferFlow>> flows;
};

/// An access to (part of) a buffer, seen from the block of the copy.
struct Access {
  /// The op of the block that does it or holds what does it.
  Operation *op;
  bool reads, writes;
};

/// One copy that may not be needed.
class Forwarding {
public:
  Forwarding(memref::CopyOp copy, FlowCache &flows, LiveBytes &live,
             ProgramOrder &order)
      : copy(copy), flows(flows), live(live), order(order) {}

  /// Null if the copy is gone, else why it stays.
  const char *run();
  /// The op that is in the way, if it's one.
  Operation *getConflict() const { return conflict; }

private:
  const char *findBuffers();
  const char *checkTimes();
  const char *checkLayout();
  bool isUpdate(Operation *op);
  std::optional<SmallVector<Access>> collectAccesses(const BufferFlow &flow,
                                                     const Box &part);
  void forward();
  bool isTargetContiguous() {
    return isContiguous(cast<MemRefType>(copy.getTarget().getType()));
  }
  MemRefType undoType(MemRefType type) const;
  Value undo(OpBuilder &builder, Value value) const;

  memref::CopyOp copy;
  FlowCache &flows;
  LiveBytes &live;
  ProgramOrder &order;
  ViewChain source, target;
  memref::AllocOp alloc;
  Operation *conflict = nullptr;
};

const char *Forwarding::findBuffers() {
  if (!isa<MemRefType>(copy.getSource().getType()) ||
      !isa<MemRefType>(copy.getTarget().getType()))
    return "it is not of ranked memrefs";
  source = followViews(copy.getSource());
  target = followViews(copy.getTarget());
  alloc = source.root.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return "its source is no buffer of this function";
  if (source.root == target.root)
    return "its source and its destination are in one buffer";
  if (!alloc.getType().hasStaticShape() ||
      !alloc.getType().getLayout().isIdentity())
    return "its source has a dynamic size or a layout";
  for (Operation *view : source.views)
    if (auto subview = dyn_cast<memref::SubViewOp>(view);
        subview && !isWhole(subview))
      return "its source is used elsewhere as well, beyond what is copied";
  auto from = cast<MemRefType>(source.root.getType());
  auto to = cast<MemRefType>(target.root.getType());
  if (!to.hasStaticShape() || !to.isStrided() ||
      !cast<MemRefType>(copy.getTarget().getType()).hasStaticShape() ||
      !cast<MemRefType>(copy.getSource().getType()).hasStaticShape())
    return "its destination has a dynamic size or a layout without strides";
  if (from.getElementType() != to.getElementType() ||
      from.getMemorySpace() != to.getMemorySpace())
    return "source and destination differ in element type or memory space";
  if (alloc->getBlock() != copy->getBlock())
    return "its source is made in another block";
  auto targetAlloc = target.root.getDefiningOp<memref::AllocOp>();
  if (targetAlloc ? targetAlloc->getNumOperands() != 0 : !isOutput(target.root))
    return "its destination is no buffer of this function, and no output";
  for (Operation *parent = copy->getParentOp();
       !parent->isAncestor(target.root.getParentRegion()->getParentOp());
       parent = parent->getParentOp())
    if (!hasSequentialRegions(parent))
      return "it stands in a region that may run more than once at a time";
  if (!makeViewsAvailable(target, alloc, /*isTrial=*/true))
    return "the place of its destination isn't known when its source is made";
  return nullptr;
}

/// Accesses to what may be in `part` of the buffer; none if some can't be seen
/// from the block. While the block runs, nothing outside of it does, so that
/// other accesses to a buffer that is made further out don't matter.
std::optional<SmallVector<Access>>
Forwarding::collectAccesses(const BufferFlow &flow, const Box &part) {
  Block *block = copy->getBlock();
  SmallVector<Access> accesses;
  for (const BufferAccess &access : flow.accesses) {
    Operation *op = block->findAncestorOpInBlock(*access.op);
    if (!op) {
      if (Value(flow.root).getParentBlock() == block)
        return std::nullopt;
      continue;
    }
    // A callee may look beyond the part that it is given.
    bool isElsewhere =
        !isa<CallOpInterface>(access.op) &&
        llvm::all_of(access.op->getOperands(), [&](Value operand) {
          if (!flow.aliases.contains(operand))
            return true;
          ViewChain chain = followViews(operand);
          return chain.root == flow.root && areDisjoint(findBox(chain), part);
        });
    if (!isElsewhere && op != copy)
      accesses.push_back({op, access.reads, access.writes});
  }
  return accesses;
}

/// From the first access to the source on both will be one, so nobody else may
/// touch the destination up to the copy. From the copy on they hold the same
/// until one of them is written.
const char *Forwarding::checkTimes() {
  const BufferFlow &from = flows.get(alloc), &to = flows.get(target.root);
  if (from.escape || to.escape)
    return "the life of its source or its destination isn't known";
  if (llvm::any_of(from.deallocs, [&](Operation *dealloc) {
        return dealloc->getOperand(0) != alloc.getResult();
      }))
    return "its source is freed as one of several";
  Box everywhere;
  for (int64_t extent : alloc.getType().getShape())
    everywhere.push_back({0, extent});
  auto ours = collectAccesses(from, everywhere);
  auto theirs = collectAccesses(to, findBox(target));
  if (!ours || !theirs)
    return "its source or its destination is used outside of the block";
  Operation *first = copy;
  bool isReadAfter = false;
  for (const Access &access : *ours) {
    if (order.isBefore(access.op, first))
      first = access.op;
    if (!order.isBefore(copy, access.op))
      continue;
    conflict = access.op;
    if (access.writes)
      return "its source is written again after it";
    if (llvm::any_of(to.deallocs, [&](Operation *dealloc) {
          Operation *freeing =
              copy->getBlock()->findAncestorOpInBlock(*dealloc);
          return freeing
                     ? freeing != dealloc || order.isBefore(dealloc, access.op)
                     : target.root.getParentBlock() == copy->getBlock();
        }))
      return "its destination is freed while its source is still read";
    isReadAfter = true;
  }
  for (const Access &access : *theirs) {
    if (order.isBefore(access.op, first))
      continue;
    if (access.op == first && isUpdate(first))
      continue;
    conflict = access.op;
    if (order.isBefore(access.op, copy))
      return "its destination is in use while its source is";
    if (access.writes && isReadAfter)
      return "its destination is written while its source is still read";
  }
  conflict = nullptr;
  auto whole = target.root.getDefiningOp<memref::AllocOp>();
  return !whole || live.canUnite(alloc, whole, isTargetContiguous())
             ? nullptr
             : "its destination would live so long that more bytes would be "
               "live at one time";
}

/// Whether `op` makes what is copied from what the destination held before, and
/// may do so in place: state that a loop carries, for one.
bool Forwarding::isUpdate(Operation *op) {
  auto styled = dyn_cast<DestinationStyleOpInterface>(op);
  if (!styled || !styled.hasPureBufferSemantics() ||
      op->getBlock() != copy->getBlock())
    return false;
  OpOperand *init = nullptr;
  for (OpOperand &operand : styled.getDpsInitsMutable())
    if (followViews(operand.get()).root == source.root) {
      if (init || operand.get() != copy.getSource())
        return false;
      init = &operand;
    }
  if (!init)
    return false;
  // Once they are one, `init` is what the copy's destination is.
  const BufferFlow &to = flows.get(target.root);
  for (const BufferAccess &access : to.accesses)
    if (access.op != op && op->isProperAncestor(access.op))
      return false;
  Box part = findBox(target);
  for (OpOperand &operand : op->getOpOperands()) {
    if (&operand == init || !to.aliases.contains(operand.get()))
      continue;
    ViewChain chain = followViews(operand.get());
    if (chain.root == target.root && areDisjoint(findBox(chain), part))
      continue;
    if (!styled.isDpsInput(&operand) ||
        !isSamePlace(operand.get(), copy.getTarget()) ||
        !canOverwrite(operand, *init))
      return false;
  }
  return true;
}

/// What `type`, of what the copy writes, is in the shape of the alloc; null if
/// its layout doesn't allow that.
MemRefType Forwarding::undoType(MemRefType type) const {
  for (Operation *view : source.views) {
    if (!type)
      return type;
    auto before = cast<MemRefType>(view->getOperand(0).getType());
    if (auto expand = dyn_cast<memref::ExpandShapeOp>(view)) {
      auto indices = expand.getReassociationIndices();
      type = memref::CollapseShapeOp::isGuaranteedCollapsible(type, indices)
                 ? memref::CollapseShapeOp::computeCollapsedType(type, indices)
                 : MemRefType();
    } else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(view)) {
      auto expanded = memref::ExpandShapeOp::computeExpandedType(
          type, before.getShape(), collapse.getReassociationIndices());
      type = succeeded(expanded) ? *expanded : MemRefType();
    }
  }
  return type;
}

Value Forwarding::undo(OpBuilder &builder, Value value) const {
  for (Operation *view : source.views) {
    auto before = cast<MemRefType>(view->getOperand(0).getType());
    if (auto expand = dyn_cast<memref::ExpandShapeOp>(view))
      value = memref::CollapseShapeOp::create(builder, view->getLoc(), value,
                                              expand.getReassociationIndices());
    else if (auto collapse = dyn_cast<memref::CollapseShapeOp>(view))
      value = memref::ExpandShapeOp::create(builder, view->getLoc(),
                                            before.getShape(), value,
                                            collapse.getReassociationIndices());
  }
  return value;
}

const char *Forwarding::checkLayout() {
  MemRefType type = undoType(cast<MemRefType>(copy.getTarget().getType()));
  if (!type)
    return "its destination's strides don't allow the source's shape";
  conflict = findLayoutConflict(alloc, type);
  return conflict ? "its source is used by an op that needs another layout"
                  : nullptr;
}

void Forwarding::forward() {
  if (auto targetAlloc = target.root.getDefiningOp<memref::AllocOp>();
      targetAlloc && order.isBefore(alloc, targetAlloc))
    order.moveBefore(targetAlloc, alloc);
  makeViewsAvailable(target, alloc, /*isTrial=*/false);
  live.unite(alloc, target.root.getDefiningOp(), isTargetContiguous());
  for (Operation *dealloc : flows.get(alloc).deallocs)
    dealloc->erase();
  OpBuilder builder(alloc);
  Value part = undo(builder, rebuildViews(builder, target, target.root));
  copy->erase();
  replaceWithLayout(alloc, part);
  flows.unite(alloc, target.root, part, copy);
  alloc->erase();
}

const char *Forwarding::run() {
  for (auto check : {&Forwarding::findBuffers, &Forwarding::checkTimes,
                     &Forwarding::checkLayout})
    if (const char *reason = (this->*check)())
      return reason;
  forward();
  return nullptr;
}

/// Makes an alloc of which only a part is ever seen as small as that part.
bool shrink(memref::AllocOp alloc, LiveBytes &live, ProgramOrder &order) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      alloc->use_empty())
    return false;
  Box used;
  for (Operation *user : alloc->getUsers()) {
    if (isa<memref::DeallocOp>(user))
      continue;
    auto subview = dyn_cast<memref::SubViewOp>(user);
    if (!subview || subview.getType().getRank() != type.getRank() ||
        !subview.getOffsets().empty() || !subview.getSizes().empty() ||
        !subview.getStrides().empty() ||
        llvm::any_of(subview.getStaticStrides(),
                     [](int64_t stride) { return stride != 1; }))
      return false;
    Box box = findBox(followViews(subview));
    if (llvm::any_of(box,
                     [](auto range) { return range.first == range.second; }))
      return false;
    if (used.empty())
      used = box;
    for (auto [range, other] : llvm::zip_equal(used, box))
      range = {std::min(range.first, other.first),
               std::max(range.second, other.second)};
  }
  SmallVector<int64_t> shape;
  for (auto [first, last] : used)
    shape.push_back(last - first);
  if (used.empty() || shape == SmallVector<int64_t>(type.getShape()))
    return false;
  auto smallerType =
      MemRefType::get(shape, type.getElementType(), MemRefLayoutAttrInterface(),
                      type.getMemorySpace());
  for (Operation *user : alloc->getUsers())
    if (auto subview = dyn_cast<memref::SubViewOp>(user);
        subview &&
        findLayoutConflict(subview, memref::SubViewOp::inferResultType(
                                        smallerType, subview.getStaticOffsets(),
                                        subview.getStaticSizes(),
                                        subview.getStaticStrides())))
      return false;
  OpBuilder builder(alloc);
  auto smaller = memref::AllocOp::create(builder, alloc.getLoc(), smallerType,
                                         alloc.getAlignmentAttr());
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers())) {
    if (auto dealloc = dyn_cast<memref::DeallocOp>(user)) {
      dealloc->setOperand(0, smaller);
      continue;
    }
    auto subview = cast<memref::SubViewOp>(user);
    builder.setInsertionPoint(subview);
    SmallVector<int64_t> offsets(subview.getStaticOffsets());
    for (auto [offset, range] : llvm::zip_equal(offsets, used))
      offset -= range.first;
    Value part = memref::SubViewOp::create(builder, subview.getLoc(), smaller,
                                           offsets, subview.getStaticSizes(),
                                           subview.getStaticStrides());
    replaceWithLayout(subview, part);
    subview->erase();
  }
  live.replace(alloc, smaller);
  order.replace(alloc, smaller);
  alloc->erase();
  return true;
}

class ForwardDestinationsPass
    : public memplan::impl::ForwardDestinationsBase<ForwardDestinationsPass> {
public:
  using ForwardDestinationsBase::ForwardDestinationsBase;

  void runOnOperation() override {
    if (alignment <= 0 || !llvm::isPowerOf2_64(alignment)) {
      emitError(getOperation().getLoc())
          << "memplan-forward-destinations: alignment=" << alignment.getValue()
          << " is not a power of two";
      return signalPassFailure();
    }
    BufferFlowAnalysis flowAnalysis;
    for (auto function : getOperation().getOps<func::FuncOp>())
      forwardIn(function, flowAnalysis);
  }

private:
  void forwardIn(func::FuncOp function, BufferFlowAnalysis &flowAnalysis) {
    if (function.isExternal())
      return;
    LiveBytes live(function, flowAnalysis, alignment);
    ProgramOrder order(function);
    SmallVector<memref::AllocOp> allocs;
    function.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    for (memref::AllocOp alloc : allocs)
      numShrunk += shrink(alloc, live, order);
    // A copy that stays may go once another is gone, so until nothing changes.
    // The one that it waits for may be before or after it.
    FlowCache flows(flowAnalysis);
    bool backwards = false;
    for (bool changed = true; changed; backwards = !backwards) {
      changed = false;
      SmallVector<memref::CopyOp> copies;
      function.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
      if (backwards)
        std::reverse(copies.begin(), copies.end());
      for (memref::CopyOp copy : copies) {
        if (Forwarding(copy, flows, live, order).run())
          continue;
        ++numForwarded;
        changed = true;
      }
    }
    if (emitRemarks)
      function.walk([&](memref::CopyOp copy) {
        Forwarding forwarding(copy, flows, live, order);
        InFlightDiagnostic remark = copy->emitRemark()
                                    << "this copy stays: " << forwarding.run();
        if (forwarding.getConflict())
          remark.attachNote(forwarding.getConflict()->getLoc()) << "here";
      });
  }
};

} // namespace
