//===- CheckWrites.cpp - What an op may write -----------------------------===//

#include "CheckWrites.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace memplan {

static bool startTogether(const BufferRef &a, const BufferRef &b) {
  return a.base == b.base && a.number == b.number &&
         a.byteOffset == b.byteOffset && a.getNumElements() != 0 &&
         b.getNumElements() != 0;
}

static bool isSame(const BufferRef &a, const BufferRef &b) {
  if (a.shape != b.shape || a.getElementBytes() != b.getElementBytes())
    return false;
  for (size_t dim = 0; dim < a.shape.size(); ++dim)
    if (a.shape[dim] > 1 && a.strides[dim] != b.strides[dim])
      return false;
  return true;
}

/// Whether `operand`, of an op with so many inputs before its extras, is one
/// that is read where the result is written.
static bool isIdentityExtra(ArrayAttr maps, OpOperand &operand,
                            unsigned numInputs) {
  unsigned number = operand.getOperandNumber();
  return number >= numInputs && number - numInputs < maps.size() &&
         cast<AffineMapAttr>(maps[number - numInputs]).getValue().isIdentity();
}

/// Whether each thread reads of `read` what it alone writes to `written`, an
/// operand with the same elements.
static bool readsOwnElement(Operation *op, OpOperand &read,
                            OpOperand &written) {
  if (isa<memref::CopyOp>(op))
    return true;
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    AffineMap map = generic.getMatchingIndexingMap(&written);
    return generic.getNumParallelLoops() == generic.getNumLoops() &&
           map.isPermutation() && generic.getMatchingIndexingMap(&read) == map;
  }
  if (auto rowwise = dyn_cast<RowwiseOp>(op))
    return !rowwise.isReduction() &&
           rowwise.getInputMap(read.getOperandNumber()) ==
               rowwise.getOutputMap();
  // What a sum runs over belongs to many threads.
  if (auto window = dyn_cast<ReduceWindowOp>(op))
    return (read.getOperandNumber() == 0 && getWindowLine(window)) ||
           isIdentityExtra(window.getExtraMaps(), read, 1);
  if (auto conv = dyn_cast<ConvOp>(op))
    return conv.yieldsOutput() && isIdentityExtra(conv.getExtraMaps(), read, 2);
  if (auto matmul = dyn_cast<MatMulOp>(op))
    return isIdentityExtra(matmul.getExtraMaps(), read, 2);
  return true;
}

static LogicalResult checkDestination(Operation *op, const BufferRef &ref) {
  if (ref.base == BufferRef::Base::Input)
    return op->emitError() << "writes to input " << ref.number
                           << ", and inputs are only read; mark an output "
                              "argument with {bufferize.result}";
  if (ref.base == BufferRef::Base::Weights)
    return op->emitError("writes to a memref.global, and weights are only "
                         "read; use a memref.alloc");
  return success();
}

LogicalResult checkWrites(BufferTable &buffers, Operation *op) {
  SmallVector<OpOperand *> destinations;
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    destinations.push_back(&copy.getTargetMutable());
  else if (auto styled = dyn_cast<DestinationStyleOpInterface>(op))
    for (OpOperand &init : styled.getDpsInitsMutable())
      destinations.push_back(&init);
  for (OpOperand *destination : destinations) {
    if (!isa<MemRefType>(destination->get().getType()))
      continue;
    auto written = buffers.resolve(destination->get(), op);
    if (failed(written) || failed(checkDestination(op, *written)))
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      if (&operand == destination || !isa<MemRefType>(operand.get().getType()))
        continue;
      auto read = buffers.resolve(operand.get(), op);
      if (failed(read))
        return failure();
      if (startTogether(*read, *written) &&
          !(isSame(*read, *written) &&
            readsOwnElement(op, operand, *destination)))
        return op->emitError()
               << "reads operand " << operand.getOperandNumber()
               << " in another order than it writes the same bytes as operand "
               << destination->getOperandNumber()
               << ", which the CUDA target's threads can't; write to another "
                  "memref";
    }
  }
  return success();
}

} // namespace memplan
