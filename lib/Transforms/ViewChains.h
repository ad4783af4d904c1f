//===- ViewChains.h - Views from a buffer to a value ------------*- C++ -*-===//
//
// Views of known sizes between a buffer and a value: following them, rebuilding
// them on another buffer, and giving what is seen through them another layout.
// Private to lib/Transforms.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TRANSFORMS_VIEWCHAINS_H
#define MEMPLAN_LIB_TRANSFORMS_VIEWCHAINS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace memplan {

/// Where `value` comes from by subviews and reshapes whose sizes and strides
/// are constants. Offsets may be values, such as a loop's induction variable.
struct ViewChain {
  mlir::Value root;
  /// From the value up to the root.
  llvm::SmallVector<mlir::Operation *> views;
};
ViewChain followViews(mlir::Value value);

/// Whether the subview shows all of its source, in its shape.
bool isWhole(mlir::memref::SubViewOp subview);

/// A part of the root that holds all that `chain` leads to: a half-open
/// interval per dim of the root.
llvm::SmallVector<std::pair<int64_t, int64_t>> findBox(const ViewChain &chain);

/// Whether both are the same elements of a buffer in the same order, seen
/// through views that `followViews` knows.
bool isSamePlace(mlir::Value a, mlir::Value b);

/// Moves the offsets of the chain's views before `place` as far as they stand
/// after it in its block; false if they can't be moved. A trial moves nothing.
bool makeViewsAvailable(const ViewChain &chain, mlir::Operation *place,
                        bool isTrial);

/// What `chain` makes of its root, made of `root` instead, where the builder
/// stands.
mlir::Value rebuildViews(mlir::OpBuilder &builder, const ViewChain &chain,
                         mlir::Value root);

/// The op because of which `value` can't have `type`, another layout of its
/// shape: one that has no such view, or can't access it; null if all can.
mlir::Operation *findLayoutConflict(mlir::Value value, mlir::MemRefType type);

/// Replaces `value` by `other`, which differs in its layout, and the types of
/// all views of it. There must be no conflict.
void replaceWithLayout(mlir::Value value, mlir::Value other);

} // namespace memplan

#endif // MEMPLAN_LIB_TRANSFORMS_VIEWCHAINS_H
