//===- CheckWrites.cpp - What an op may write -----------------------------===//

#include "CheckWrites.h"

#include "Overlap.h"
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
  // The data is copied before the first update; updates and indices are not.
  if (auto scatter = dyn_cast<ScatterOp>(op))
    return &read == &scatter.getDataMutable();
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

static bool isCarried(const BufferRef &ref) {
  return ref.base == BufferRef::Base::Carried;
}

/// Whether the place is known when the code is emitted.
static bool isFixed(const BufferRef &ref) {
  return ref.terms.empty() && !isCarried(ref);
}

/// Whether some thread may read what another one writes. `inStep`: each thread
/// reads what it alone writes, if the two are the same place.
static bool mayInterfere(BufferTable &buffers, const BufferRef &read,
                         const BufferRef &written, bool inStep) {
  inStep &= isSame(read, written);
  if (isFixed(read) && isFixed(written))
    return startTogether(read, written) && !inStep;
  if (!buffers.getCarried().mayShareBuffer(read, written))
    return false;
  // Offsets count from the buffer's start; that of a variable from what it
  // points at, which has to be the same.
  auto getOffset = [](const BufferRef &ref) {
    return ref.byteOffset - ref.rootOffset;
  };
  auto pointsAtStart = [&](const BufferRef &ref) {
    return !isCarried(ref) || !buffers.getCarried().get(ref.number).isInside;
  };
  bool areComparable = (isCarried(read) && isCarried(written) &&
                        read.number == written.number) ||
                       (pointsAtStart(read) && pointsAtStart(written));
  if (!areComparable)
    return read.getNumElements() != 0 && written.getNumElements() != 0;
  Overlap overlap =
      computeOverlap(read, getOffset(read), written, getOffset(written));
  return overlap.canBeShifted || (overlap.canStartTogether && !inStep);
}

static LogicalResult checkDestination(BufferTable &buffers, Operation *op,
                                      const BufferRef &ref) {
  if (ref.base == BufferRef::Base::Input)
    return op->emitError() << "writes to input " << ref.number
                           << ", and inputs are only read; mark an output "
                              "argument with {bufferize.result}";
  if (ref.base == BufferRef::Base::Weights)
    return op->emitError("writes to a memref.global, and weights are only "
                         "read; use a memref.alloc");
  if (ref.base == BufferRef::Base::Carried &&
      buffers.getCarried().get(ref.number).isReadOnly)
    return op->emitError("writes to a memref that may be an input or a "
                         "memref.global, which are only read; copy those to a "
                         "memref.alloc before control flow carries them");
  return success();
}

static LogicalResult reportInterference(Operation *op, const BufferRef &read,
                                        OpOperand &source,
                                        const BufferRef &written,
                                        OpOperand &destination) {
  if (isFixed(read) && isFixed(written))
    return op->emitError()
           << "reads operand " << source.getOperandNumber()
           << " in another order than it writes the same bytes as operand "
           << destination.getOperandNumber()
           << ", which the CUDA target's threads can't; write to another "
              "memref";
  return op->emitError()
         << "may overwrite as operand " << destination.getOperandNumber()
         << " what it has yet to read as operand " << source.getOperandNumber()
         << ": the CUDA target can't tell that they are apart, since offsets "
            "or "
            "control flow decide it; copy what is read to another memref";
}

/// What an op's body loads at places of its own choice must not be what the op
/// writes.
static LogicalResult checkLoads(BufferTable &buffers, Operation *op,
                                const BufferRef &written) {
  auto result = op->walk([&](memref::LoadOp load) {
    auto read = buffers.resolve(load.getMemRef(), load);
    if (failed(read))
      return WalkResult::interrupt();
    if (!mayInterfere(buffers, *read, written, /*inStep=*/false))
      return WalkResult::advance();
    load.emitError("may read what other threads of the op around it write; "
                   "write to another memref");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult checkWrites(BufferTable &buffers, Operation *op) {
  SmallVector<OpOperand *> destinations;
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    destinations.push_back(&copy.getTargetMutable());
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    destinations.push_back(&store.getMemrefMutable());
  else if (auto styled = dyn_cast<DestinationStyleOpInterface>(op))
    for (OpOperand &init : styled.getDpsInitsMutable())
      destinations.push_back(&init);
  for (OpOperand *destination : destinations) {
    if (!isa<MemRefType>(destination->get().getType()))
      continue;
    auto written = buffers.resolve(destination->get(), op);
    if (failed(written) || failed(checkDestination(buffers, op, *written)) ||
        failed(checkLoads(buffers, op, *written)))
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      if (&operand == destination || !isa<MemRefType>(operand.get().getType()))
        continue;
      auto read = buffers.resolve(operand.get(), op);
      if (failed(read))
        return failure();
      if (mayInterfere(buffers, *read, *written,
                       readsOwnElement(op, operand, *destination)))
        return reportInterference(op, *read, operand, *written, *destination);
    }
  }
  return success();
}

} // namespace memplan
