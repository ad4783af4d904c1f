//===- ViewChains.cpp - Views from a buffer to a value --------------------===//

#include "ViewChains.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace memplan {

static bool isStatic(memref::SubViewOp subview) {
  return llvm::none_of(subview.getStaticOffsets(), ShapedType::isDynamic) &&
         llvm::none_of(subview.getStaticSizes(), ShapedType::isDynamic) &&
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

static bool isStaticView(Operation *op) {
  if (auto subview = dyn_cast<memref::SubViewOp>(op))
    return isStatic(subview);
  return isa<memref::ExpandShapeOp, memref::CollapseShapeOp>(op) &&
         cast<MemRefType>(op->getResult(0).getType()).hasStaticShape();
}

ViewChain followViews(Value value) {
  ViewChain chain;
  while (Operation *def = value.getDefiningOp()) {
    if (!isStaticView(def))
      break;
    chain.views.push_back(def);
    value = def->getOperand(0);
  }
  chain.root = value;
  return chain;
}

bool isWhole(memref::SubViewOp subview) {
  return isStatic(subview) &&
         subview.getType().getShape() == subview.getSourceType().getShape();
}

SmallVector<std::pair<int64_t, int64_t>> findBox(const ViewChain &chain) {
  SmallVector<std::pair<int64_t, int64_t>> box;
  for (int64_t extent : cast<MemRefType>(chain.root.getType()).getShape())
    box.push_back({0, extent});
  for (Operation *view : llvm::reverse(chain.views)) {
    auto subview = dyn_cast<memref::SubViewOp>(view);
    // What is reshaped from here on lies in the box all the same.
    if (!subview)
      break;
    if (subview.getType().getRank() != static_cast<int64_t>(box.size()) ||
        llvm::any_of(subview.getStaticStrides(),
                     [](int64_t stride) { return stride != 1; }))
      break;
    for (auto [range, offset, size] : llvm::zip_equal(
             box, subview.getStaticOffsets(), subview.getStaticSizes()))
      range = {range.first + offset, range.first + offset + size};
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

Value rebuildViews(OpBuilder &builder, const ViewChain &chain, Value root) {
  for (Operation *view : llvm::reverse(chain.views))
    root = rebuildView(builder, view, root);
  return root;
}

Operation *findLayoutConflict(Value value, MemRefType type) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isStaticView(op)) {
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
    if (!isStaticView(op)) {
      use.set(other);
      continue;
    }
    OpBuilder builder(op);
    replaceWithLayout(op->getResult(0), rebuildView(builder, op, other));
    op->erase();
  }
}

} // namespace memplan
