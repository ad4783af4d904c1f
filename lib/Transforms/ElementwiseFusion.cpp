//===- ElementwiseFusion.cpp - Which elementwise ops to fuse --------------===//

#include "ElementwiseFusion.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace memplan {

bool isOnlyUsedBy(Value value, Operation *user) {
  return llvm::all_of(value.getUsers(),
                      [&](Operation *other) { return other == user; });
}

bool isFusedBodySmall(Operation *a, Operation *b) {
  constexpr int64_t maxOps = 256;
  int64_t count = 0;
  for (Operation *op : {a, b})
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (auto it = block.begin(); it != block.end(); ++it)
          if (++count > maxOps)
            return false;
  return true;
}

bool mayInlineProducer(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  Operation *producer = operand->get().getDefiningOp();
  if (!consumer || !producer)
    return false;
  return isOnlyUsedBy(operand->get(), consumer) &&
         consumer.getMatchingIndexingMap(operand).isPermutation() &&
         isFusedBodySmall(producer, consumer);
}

/// Bytes that a tensor takes of an arena from its producer to its last user;
/// none if it is an input, a weight or a constant.
static int64_t getArenaBytes(Value value) {
  Operation *producer = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!producer || isa<bufferization::ToTensorOp>(producer) ||
      matchPattern(producer, m_Constant()) || !type || !type.hasStaticShape() ||
      !type.getElementType().isIntOrFloat())
    return 0;
  auto elements = checkedProduct(type.getShape());
  auto bytes =
      elements ? checkedMul(*elements,
                            llvm::divideCeil(type.getElementTypeBitWidth(), 8))
               : std::nullopt;
  return bytes.value_or(0);
}

/// Whether `op` has an input that is made after what `producer` reads and
/// writes, as far as the graph tells.
static bool mayWaitForInputs(linalg::GenericOp op, linalg::GenericOp producer) {
  return llvm::any_of(op.getDpsInputs(), [&](Value input) {
    return input.getDefiningOp() != producer && getArenaBytes(input) > 0 &&
           !llvm::is_contained(producer.getDpsInputs(), input);
  });
}

bool shouldInlineProducer(OpOperand *operand) {
  if (!mayInlineProducer(operand))
    return false;
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !mayWaitForInputs(consumer, producer))
    return true;
  llvm::SmallSetVector<Value, 4> inputs;
  inputs.insert_range(producer.getDpsInputs());
  int64_t freed = 0;
  for (Value input : inputs)
    freed = checkedAdd(freed, getArenaBytes(input)).value_or(INT64_MAX);
  // One input is free to die either way: the result takes its place.
  return freed <= getArenaBytes(operand->get());
}

std::optional<AffineMap> matchTranspose(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops())
    return std::nullopt;
  Block &body = *op.getBody();
  if (body.getOperations().size() != 1 ||
      body.getTerminator()->getOperand(0) != body.getArgument(0))
    return std::nullopt;
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap write = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!read.isPermutation() || !write.isPermutation())
    return std::nullopt;
  // From the result's indices to the source's.
  return read.compose(inversePermutation(write));
}

} // namespace memplan
