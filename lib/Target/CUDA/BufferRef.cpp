//===- BufferRef.cpp - A memref as a place in known memory ----------------===//

#include "BufferRef.h"

#include "CppText.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace memplan {

int64_t BufferRef::getElementBytes() const {
  return memplan::getElementBytes(elementType).value_or(0);
}

int64_t BufferRef::getNumElements() const {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent; // fits: the type's size in bytes was checked
  return elements;
}

bool BufferRef::isDense() const {
  int64_t expected = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && strides[dim] != expected)
      return false;
    expected *= shape[dim];
  }
  return true;
}

std::string BufferRef::format() const {
  return formatType(MemRefType::get(shape, elementType));
}

std::string BufferRef::pointer(bool writable) const {
  std::string type = *getCppType(elementType);
  std::string offset = std::to_string(byteOffset);
  switch (base) {
  case Base::Arena:
    return "run.arena<" + type + ">(" + offset + ")";
  case Base::Weights:
    return "run.weights<" + type + ">(" + offset + ")";
  case Base::Input:
  case Base::Output:
    std::string text = base == Base::Input ? "run.input<" : "run.output<";
    text += type + ">(" + std::to_string(number);
    return text + (byteOffset ? ", " + offset : "") + ")";
  }
  llvm_unreachable("all bases handled");
}

SmallVector<ByteRange> BufferRef::ranges(bool cover) const {
  constexpr size_t kMostRanges = 16;
  if (getNumElements() == 0)
    return {};
  // Dims from the outermost to the innermost in memory, merged.
  SmallVector<std::pair<int64_t, int64_t>> dims; // stride, extent
  for (auto [extent, stride] : llvm::zip_equal(shape, strides))
    if (extent != 1)
      dims.push_back({stride, extent});
  llvm::sort(dims, std::greater<>());
  int64_t width = getElementBytes(), row = width;
  while (!dims.empty() && dims.back().first * width == row)
    row *= dims.pop_back_val().second;
  int64_t span = width;
  for (auto [stride, extent] : dims)
    span += stride * width * (extent - 1);
  SmallVector<ByteRange> result = {{0, row, 1, row}};
  for (; !dims.empty(); dims.pop_back()) {
    auto [stride, extent] = dims.back();
    if (result.front().count == 1) {
      for (ByteRange &range : result)
        range.count = extent, range.stride = stride * width;
      continue;
    }
    if (result.size() * extent > kMostRanges) {
      if (!cover)
        return {};
      return {{0, span - width + row, 1, span}};
    }
    SmallVector<ByteRange> repeated;
    for (int64_t i = 0; i < extent; ++i)
      for (ByteRange range : result) {
        range.offset += i * stride * width;
        repeated.push_back(range);
      }
    result = std::move(repeated);
  }
  return result;
}

bool isOutputArgument(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttr(argument.getArgNumber(), "bufferize.result") !=
         nullptr;
}

bool isArenaArgument(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttr(argument.getArgNumber(), kArenaArgAttr) != nullptr;
}

bool BufferTable::isViewLike(Operation *op) {
  return isa<memref::AllocOp, memref::AssumeAlignmentOp, memref::CastOp,
             memref::CollapseShapeOp, memref::ExpandShapeOp,
             memref::GetGlobalOp, memref::ReinterpretCastOp, memref::SubViewOp,
             memref::TransposeOp, memref::ViewOp, memref::MemorySpaceCastOp>(
      op);
}

FailureOr<BufferRef> BufferTable::resolve(Value value, Operation *user) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.hasStaticShape()) {
    user->emitError() << "operand of type " << value.getType()
                      << " is unsupported by the CUDA target, which needs "
                         "static shapes";
    return failure();
  }
  if (!getCppType(type.getElementType()) || !getContentBytes(type)) {
    user->emitError() << "element type " << type.getElementType()
                      << " is unsupported by the CUDA target, which has f32, "
                         "f64, i1, i8, i16, i32, i64 and index";
    return failure();
  }
  FailureOr<BufferRef> ref = compute(value, user);
  if (succeeded(ref))
    known[value] = *ref;
  return ref;
}

FailureOr<BufferRef> BufferTable::computeArgument(BlockArgument argument,
                                                  Operation *user) {
  if (argument.getOwner() != &function.getBody().front()) {
    user->emitError("a memref that control flow carries is unsupported by the "
                    "CUDA target");
    return failure();
  }
  auto type = cast<MemRefType>(argument.getType());
  if (!type.getLayout().isIdentity()) {
    user->emitError() << "argument " << argument.getArgNumber() << " of type "
                      << type << " is unsupported by the CUDA target, whose "
                      << "inputs and outputs have the identity layout";
    return failure();
  }
  BufferRef ref;
  ref.base = isArenaArgument(argument)    ? BufferRef::Base::Arena
             : isOutputArgument(argument) ? BufferRef::Base::Output
                                          : BufferRef::Base::Input;
  for (BlockArgument other :
       function.getArguments().take_front(argument.getArgNumber()))
    if (!isArenaArgument(other) &&
        isOutputArgument(other) == isOutputArgument(argument))
      ++ref.number;
  return ref;
}

/// The base of an alloc: a planned buffer that is not a view yet, or the arena
/// itself.
static FailureOr<BufferRef> computeAlloc(memref::AllocOp alloc,
                                         Operation *user) {
  BufferRef ref;
  if (alloc->hasAttr(kArenaArgAttr))
    return ref;
  if (auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr)) {
    ref.byteOffset = slot.getOffset();
    return ref;
  }
  InFlightDiagnostic diagnostic = user->emitError(
      "uses a buffer without a place in the arena, which the CUDA target "
      "doesn't allocate; run memplan-plan-arena and memplan-materialize-arena");
  diagnostic.attachNote(alloc.getLoc()) << "the buffer is made here";
  return failure();
}

FailureOr<BufferRef> BufferTable::compute(Value value, Operation *user) {
  auto type = cast<MemRefType>(value.getType());
  FailureOr<BufferRef> ref = failure();
  SmallVector<int64_t> strides;
  int64_t typeOffset;
  bool hasStrides = succeeded(type.getStridesAndOffset(strides, typeOffset)) &&
                    llvm::none_of(strides, ShapedType::isDynamic);
  if (!hasStrides && llvm::is_contained(type.getShape(), 0)) {
    // MLIR has no strides for these, and nothing needs them.
    strides.assign(type.getRank(), 1);
    hasStrides = true;
  }
  Operation *def = value.getDefiningOp();
  auto unsupported = [&]() -> FailureOr<BufferRef> {
    InFlightDiagnostic diagnostic =
        user->emitError() << "uses a memref of type " << type
                          << " whose place the CUDA target can't tell";
    if (def)
      diagnostic << ": it comes from '" << def->getName() << "'";
    return failure();
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    ref = computeArgument(argument, user);
  } else if (auto alloc = dyn_cast<memref::AllocOp>(def)) {
    ref = computeAlloc(alloc, user);
  } else if (auto get = dyn_cast<memref::GetGlobalOp>(def)) {
    auto index = weights.indexOfSymbol.find(get.getName());
    if (index == weights.indexOfSymbol.end())
      return unsupported();
    ref = BufferRef();
    ref->base = BufferRef::Base::Weights;
    ref->byteOffset = weights.weights[index->second].blockOffset;
  } else if (isViewLike(def)) {
    ref = resolve(def->getOperand(0), user);
    if (failed(ref))
      return failure();
    if (auto view = dyn_cast<memref::ViewOp>(def)) {
      auto shift = getConstantIntValue(view.getByteShift());
      if (!shift)
        return unsupported();
      ref->byteOffset += *shift;
    } else if (auto subview = dyn_cast<memref::SubViewOp>(def)) {
      for (auto [offset, stride] :
           llvm::zip_equal(subview.getMixedOffsets(), ref->strides)) {
        auto known = getConstantIntValue(offset);
        if (!known)
          return unsupported();
        ref->byteOffset += *known * stride * ref->getElementBytes();
      }
    } else if (auto recast = dyn_cast<memref::ReinterpretCastOp>(def)) {
      // Its offset counts from the base, which is the source's first element
      // less the source's own offset.
      auto source = cast<MemRefType>(recast.getSource().getType());
      SmallVector<int64_t> sourceStrides;
      int64_t sourceOffset;
      if (failed(source.getStridesAndOffset(sourceStrides, sourceOffset)) ||
          ShapedType::isDynamic(sourceOffset) ||
          ShapedType::isDynamic(typeOffset))
        return unsupported();
      ref->byteOffset += (typeOffset - sourceOffset) * ref->getElementBytes();
    } else if (isa<memref::CastOp, memref::AssumeAlignmentOp,
                   memref::MemorySpaceCastOp>(def)) {
      strides = ref->strides; // those of the type may be unknown
      hasStrides = true;
    }
  } else {
    return unsupported();
  }
  if (failed(ref))
    return failure();
  if (!hasStrides)
    return unsupported();
  ref->elementType = type.getElementType();
  ref->shape.assign(type.getShape().begin(), type.getShape().end());
  ref->strides = strides;
  return ref;
}

} // namespace memplan
