//===- ViewChains.cpp - Views from a buffer to a value --------------------===//

#include "ViewChains.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace memplan {

/// Whether only its offsets may be numbers of the run.
static bool hasStaticSizes(memref::SubViewOp subview) {
  return llvm::none_of(subview.getStaticSizes(), ShapedType::isDynamic) &&
         llvm::none_of(subview.getStaticStrides(), ShapedType::isDynamic);
}

/// Of a view of `source`'s type, seen as another one; null if it can't be.
static MemRefType inferViewType(Operation *view, MemRefType source) {
  if (!source.isStrided())
    return {};
  if (auto subview = dyn_cast<memref::SubViewOp>(view))
    return memref::SubViewOp::inferRankReducedResultType(
        subview.getType().getShape(), source, subview.getStaticOffsets(),
        subview.getStaticSizes(), subview.getStaticStrides());
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(view)) {
    auto type = memref::ExpandShapeOp::computeExpandedType(
        source, expand.getResultType().getShape(),
        expand.getReassociationIndices());
    return succeeded(type) ? *type : MemRefType();
  }
  auto collapse = cast<memref::CollapseShapeOp>(view);
  auto indices = collapse.getReassociationIndices();
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(source, indices))
    return {};
  return memref::CollapseShapeOp::computeCollapsedType(source, indices);
}

static bool isFollowedView(Operation *op) {
  if (auto subview = dyn_cast<memref::SubViewOp>(op))
    return hasStaticSizes(subview);
  return isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op) &&
         cast<MemRefType>(op->getResult(0).getType()).hasStaticShape();
}

ViewChain followViews(Value value) {
  ViewChain chain;
  while (Operation *def = value.getDefiningOp()) {
    if (!isFollowedView(def))
      break;
    chain.views.push_back(def);
    value = def->getOperand(0);
  }
  chain.root = value;
  return chain;
}

bool isSamePlace(Value a, Value b) {
  while (a != b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    if (!first || !second || !isFollowedView(first) ||
        first->getName() != second->getName() || a.getType() != b.getType() ||
        first->getAttrDictionary() != second->getAttrDictionary() ||
        first->getPropertiesAsAttribute() !=
            second->getPropertiesAsAttribute() ||
        !llvm::equal(first->getOperands().drop_front(),
                     second->getOperands().drop_front()))
      return false;
    a = first->getOperand(0);
    b = second->getOperand(0);
  }
  return true;
}

bool isWhole(memref::SubViewOp subview) {
  return hasStaticSizes(subview) &&
         subview.getType().getShape() == subview.getSourceType().getShape();
}

SmallVector<std::pair<int64_t, int64_t>> findBox(const ViewChain &chain) {
  SmallVector<std::pair<int64_t, int64_t>> box;
  for (int64_t extent : cast<MemRefType>(chain.root.getType()).getShape())
    box.push_back({0, extent});
  // Dims in which nobody knows where the view lies.
  SmallVector<bool> isAnywhere(box.size(), false);
  for (Operation *view : llvm::reverse(chain.views)) {
    auto subview = dyn_cast<memref::SubViewOp>(view);
    // What is reshaped from here on lies in the box all the same.
    if (!subview || subview.getStaticSizes().size() != box.size() ||
        llvm::any_of(subview.getStaticStrides(),
                     [](int64_t stride) { return stride != 1; }))
      break;
    for (auto [range, anywhere, offset, size] :
         llvm::zip_equal(box, isAnywhere, subview.getStaticOffsets(),
                         subview.getStaticSizes())) {
      anywhere |= ShapedType::isDynamic(offset);
      if (!anywhere)
        range = {range.first + offset, range.first + offset + size};
    }
    if (subview.getType().getRank() != static_cast<int64_t>(box.size()))
      break; // dims were dropped
  }
  return box;
}

/// The same view of `source`.
static Value rebuildView(OpBuilder &builder, Operation *view, Value source) {
  MemRefType type = inferViewType(view, cast<MemRefType>(source.getType()));
  Operation *clone = builder.clone(*view);
  clone->setOperand(0, source);
  clone->getResult(0).setType(type);
  return clone->getResult(0);
}

/// Moves what makes `operand` before `place`, of whose block or an outer one it
/// is; false if that has effects.
static bool makeAvailable(Value operand, Operation *place, bool isTrial) {
  Operation *def = operand.getDefiningOp();
  if (!def || def->getBlock() != place->getBlock() ||
      def->isBeforeInBlock(place))
    return true;
  if (!isPure(def) || def->getNumRegions() != 0)
    return false;
  for (Value needed : def->getOperands())
    if (!makeAvailable(needed, place, isTrial))
      return false;
  if (!isTrial)
    def->moveBefore(place);
  return true;
}

bool makeViewsAvailable(const ViewChain &chain, Operation *place,
                        bool isTrial) {
  return llvm::all_of(chain.views, [&](Operation *view) {
    return llvm::all_of(view->getOperands().drop_front(), [&](Value operand) {
      return makeAvailable(operand, place, isTrial);
    });
  });
}

Value rebuildViews(OpBuilder &builder, const ViewChain &chain, Value root) {
  for (Operation *view : llvm::reverse(chain.views))
    root = rebuildView(builder, view, root);
  return root;
}

Operation *findLayoutConflict(Value value, MemRefType type) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isFollowedView(op)) {
      MemRefType result = inferViewType(op, type);
      if (!result)
        return op;
      if (Operation *conflict = findLayoutConflict(op->getResult(0), result))
        return conflict;
      continue;
    }
    if (auto strided = dyn_cast<StridedOpInterface>(op)) {
      if (!strided.canAccess(use, type))
        return op;
      continue;
    }
    if (!isa<linalg::LinalgOp, memref::CopyOp, memref::LoadOp, memref::StoreOp,
             memref::DeallocOp>(op))
      return op;
  }
  return nullptr;
}

void replaceWithLayout(Value value, Value other) {
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *op = use.getOwner();
    if (!isFollowedView(op)) {
      use.set(other);
      continue;
    }
    OpBuilder builder(op);
    replaceWithLayout(op->getResult(0), rebuildView(builder, op, other));
    op->erase();
  }
}

} // namespace memplan
