//===- BufferRef.cpp - A memref as a place in known memory ----------------===//

#include "BufferRef.h"

#include "CppText.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

bool BufferRef::isAligned(int64_t bytes) const {
  return baseAlignment % bytes == 0 && byteOffset % bytes == 0 &&
         llvm::all_of(terms, [&](const OffsetTerm &term) {
           return term.bytes % bytes == 0;
         });
}

std::string
BufferRef::pointer(StringRef type,
                   llvm::function_ref<std::string(Value)> nameOf) const {
  // "64 + s0 * 16", "s0 * 16 - 64"
  bool isFirst = byteOffset > 0 || terms.empty();
  std::string offset = isFirst ? std::to_string(byteOffset) : "";
  for (const OffsetTerm &term : terms) {
    offset += (offset.empty() ? "" : " + ") + nameOf(term.scalar);
    if (term.bytes != 1)
      offset += " * " + std::to_string(term.bytes);
  }
  if (!isFirst && byteOffset != 0)
    offset += " - " + std::to_string(byteOffset).substr(1);
  std::string maybeOffset = offset == "0" ? "" : ", " + offset;
  std::string typed = ("<" + type + ">(").str();
  switch (base) {
  case Base::Arena:
    return "run.arena" + typed + offset + ")";
  case Base::Weights:
    return "run.weights" + typed + offset + ")";
  case Base::Input:
    return "run.input" + typed + std::to_string(number) + maybeOffset + ")";
  case Base::Output:
    return "run.output" + typed + std::to_string(number) + maybeOffset + ")";
  case Base::Carried:
    return "run.at" + typed + "p" + std::to_string(number) + maybeOffset + ")";
  }
  llvm_unreachable("all bases handled");
}

static bool addTerm(BufferRef &ref, Value scalar, int64_t bytes) {
  auto found = llvm::find_if(
      ref.terms, [&](const OffsetTerm &term) { return term.scalar == scalar; });
  if (found == ref.terms.end()) {
    ref.terms.push_back({scalar, bytes});
    return true;
  }
  auto total = checkedAdd(found->bytes, bytes);
  if (!total)
    return false;
  found->bytes = *total;
  if (*total == 0)
    ref.terms.erase(found);
  return true;
}

/// The same for an affine expression of `operands`.
static bool addExpression(BufferRef &ref, AffineExpr expr, unsigned numDims,
                          ValueRange operands, int64_t bytes) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ref.addToOffset(operands[dim.getPosition()], bytes);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return ref.addToOffset(operands[numDims + symbol.getPosition()], bytes);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    auto part = checkedMul(constant.getValue(), bytes);
    auto total = part ? checkedAdd(ref.byteOffset, *part) : std::nullopt;
    ref.byteOffset = total.value_or(0);
    return total.has_value();
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() == AffineExprKind::Add)
    return addExpression(ref, binary.getLHS(), numDims, operands, bytes) &&
           addExpression(ref, binary.getRHS(), numDims, operands, bytes);
  auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
  auto scaled = scale && binary.getKind() == AffineExprKind::Mul
                    ? checkedMul(scale.getValue(), bytes)
                    : std::nullopt;
  return scaled &&
         addExpression(ref, binary.getLHS(), numDims, operands, *scaled);
}

bool BufferRef::addToOffset(Value scalar, int64_t bytes) {
  if (bytes == 0)
    return true;
  if (auto constant = getConstantIntValue(scalar)) {
    auto part = checkedMul(*constant, bytes);
    auto total = part ? checkedAdd(byteOffset, *part) : std::nullopt;
    byteOffset = total.value_or(0);
    return total.has_value();
  }
  // Sums and multiples are taken apart, so that row t - 1 of a buffer is known
  // to be the one before row t. What can't be is a scalar of its own.
  BufferRef split = *this;
  Operation *def = scalar.getDefiningOp();
  bool isSplit = false;
  if (auto add = dyn_cast_or_null<arith::AddIOp>(def)) {
    isSplit = split.addToOffset(add.getLhs(), bytes) &&
              split.addToOffset(add.getRhs(), bytes);
  } else if (auto subtract = dyn_cast_or_null<arith::SubIOp>(def)) {
    isSplit = bytes != INT64_MIN &&
              split.addToOffset(subtract.getLhs(), bytes) &&
              split.addToOffset(subtract.getRhs(), -bytes);
  } else if (auto multiply = dyn_cast_or_null<arith::MulIOp>(def)) {
    auto factor = getConstantIntValue(multiply.getRhs());
    auto scaled = factor ? checkedMul(*factor, bytes) : std::nullopt;
    isSplit = scaled && split.addToOffset(multiply.getLhs(), *scaled);
  } else if (auto apply = dyn_cast_or_null<affine::AffineApplyOp>(def)) {
    AffineMap map = apply.getAffineMap();
    isSplit = addExpression(split, map.getResult(0), map.getNumDims(),
                            apply.getMapOperands(), bytes);
  }
  if (isSplit) {
    *this = std::move(split);
    return true;
  }
  return addTerm(*this, scalar, bytes);
}

static bool haveSameTerms(const BufferRef &a, const BufferRef &b) {
  return a.terms.size() == b.terms.size() &&
         llvm::all_of(a.terms, [&](const OffsetTerm &term) {
           return llvm::any_of(b.terms, [&](const OffsetTerm &other) {
             return term.scalar == other.scalar && term.bytes == other.bytes;
           });
         });
}

bool haveSameStrides(const BufferRef &a, const BufferRef &b) {
  if (a.shape != b.shape)
    return false;
  for (auto [extent, left, right] :
       llvm::zip_equal(a.shape, a.strides, b.strides))
    if (extent > 1 && left != right)
      return false;
  return true;
}

bool areSamePlace(const BufferRef &a, const BufferRef &b) {
  return a.base == b.base && a.number == b.number &&
         a.byteOffset == b.byteOffset && a.elementType == b.elementType &&
         haveSameTerms(a, b) && haveSameStrides(a, b);
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

LogicalResult moveToElement(BufferRef &ref, ValueRange indices,
                            Operation *user) {
  for (auto [index, stride] : llvm::zip_equal(indices, ref.strides)) {
    auto bytes = checkedMul(stride, ref.getElementBytes());
    if (!bytes || !ref.addToOffset(index, *bytes))
      return user->emitError("indexes beyond 2^63 bytes");
  }
  ref.shape.clear();
  ref.strides.clear();
  return success();
}

/// Reports at `user`, or nowhere if that is null.
static LogicalResult report(Operation *user, const Twine &message,
                            Operation *note = nullptr,
                            const char *noteText = "") {
  if (!user)
    return failure();
  InFlightDiagnostic diagnostic = user->emitError(message);
  if (note)
    diagnostic.attachNote(note->getLoc()) << noteText;
  return failure();
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << "'" << type << "'";
  return text;
}

FailureOr<BufferRef> BufferTable::resolve(Value value, Operation *user) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || !type.hasStaticShape())
    return report(user, "operand of type " + print(value.getType()) +
                            " is unsupported by the CUDA target, which needs "
                            "static shapes");
  if (!getCppType(type.getElementType()) || !getContentBytes(type))
    return report(user, "element type " + print(type.getElementType()) +
                            " is unsupported by the CUDA target, which has "
                            "floats of 64 bits and less, i1, i8, i16, i32, i64 "
                            "and index");
  FailureOr<BufferRef> ref = compute(value, user);
  if (succeeded(ref))
    known[value] = *ref;
  return ref;
}

FailureOr<BufferRef> BufferTable::computeArgument(BlockArgument argument,
                                                  Operation *user) {
  if (argument.getOwner() != &function.getBody().front())
    return report(user, "a memref that control flow carries is unsupported by "
                        "the CUDA target but in scf.for, scf.while, scf.if and "
                        "scf.index_switch");
  auto type = cast<MemRefType>(argument.getType());
  if (!type.getLayout().isIdentity())
    return report(user, "argument " + Twine(argument.getArgNumber()) +
                            " of type " + print(type) +
                            " is unsupported by the CUDA target, whose inputs "
                            "and outputs have the identity layout");
  BufferRef ref;
  ref.base = isArenaArgument(argument)    ? BufferRef::Base::Arena
             : isOutputArgument(argument) ? BufferRef::Base::Output
                                          : BufferRef::Base::Input;
  ref.root = argument;
  if (ref.base != BufferRef::Base::Arena)
    ref.baseAlignment = kCallerAlignment;
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
  ref.root = alloc;
  if (alloc->hasAttr(kArenaArgAttr))
    return ref;
  if (auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr)) {
    ref.byteOffset = ref.rootOffset = slot.getOffset();
    return ref;
  }
  return report(user,
                "uses a buffer without a place in the arena, which the CUDA "
                "target doesn't allocate; run memplan-plan-arena and "
                "memplan-materialize-arena",
                alloc, "the buffer is made here");
}

/// One of several buffers: the first source if all are that, else a variable.
FailureOr<BufferRef> BufferTable::computeCarried(const CarriedBuffer &buffer,
                                                 Operation *user) {
  auto ref = resolve(buffer.sources.front(), user);
  if (failed(ref) || !buffer.isVariable)
    return ref;
  BufferRef variable;
  variable.base = BufferRef::Base::Carried;
  variable.number = buffer.number;
  variable.baseAlignment = buffer.alignment;
  variable.strides = ref->strides;
  return variable;
}

/// MLIR's verifier leaves offsets that are operands alone, constant or not.
static LogicalResult checkConstantOffsets(memref::SubViewOp view,
                                          Operation *user) {
  SmallVector<OpFoldResult> offsets = view.getMixedOffsets();
  for (OpFoldResult &offset : offsets)
    if (auto constant = getConstantIntValue(offset))
      offset = Builder(view.getContext()).getIndexAttr(*constant);
  SliceBoundsVerificationResult bounds = verifyInBoundsSlice(
      view.getSourceType().getShape(), offsets, view.getMixedSizes(),
      view.getMixedStrides(), /*generateErrorMessage=*/true);
  if (bounds.isValid)
    return success();
  return report(user ? view.getOperation() : nullptr, bounds.errorMessage);
}

/// Moves `ref` from the view's source to its result.
LogicalResult BufferTable::offsetByView(BufferRef &ref, Operation *op) {
  if (auto view = dyn_cast<memref::ViewOp>(op)) {
    if (!ref.addToOffset(view.getByteShift(), 1))
      return failure();
    // A planned buffer is one of its own; the plan keeps it apart from others.
    if (view->hasAttr(kSlotAttr) && ref.terms.empty()) {
      ref.root = view;
      ref.rootOffset = ref.byteOffset;
    }
    return success();
  }
  if (auto subview = dyn_cast<memref::SubViewOp>(op)) {
    for (auto [offset, stride] :
         llvm::zip_equal(subview.getMixedOffsets(), ref.strides)) {
      auto bytes = checkedMul(stride, ref.getElementBytes());
      if (!bytes)
        return failure();
      if (auto value = dyn_cast<Value>(offset)) {
        if (!ref.addToOffset(value, *bytes))
          return failure();
        continue;
      }
      ref.byteOffset += *getConstantIntValue(offset) * *bytes;
    }
    return success();
  }
  auto recast = dyn_cast<memref::ReinterpretCastOp>(op);
  if (!recast)
    return success();
  // Its offset counts from the base, which is the source's first element less
  // the source's own offset.
  auto source = cast<MemRefType>(recast.getSource().getType());
  SmallVector<int64_t> strides;
  int64_t sourceOffset;
  if (failed(source.getStridesAndOffset(strides, sourceOffset)) ||
      ShapedType::isDynamic(sourceOffset))
    return failure();
  ref.byteOffset -= sourceOffset * ref.getElementBytes();
  OpFoldResult offset = recast.getMixedOffsets().front();
  if (auto value = dyn_cast<Value>(offset))
    return success(ref.addToOffset(value, ref.getElementBytes()));
  ref.byteOffset += *getConstantIntValue(offset) * ref.getElementBytes();
  return success();
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
    std::string from =
        def ? ": it comes from '" + def->getName().getStringRef().str() + "'"
            : "";
    return report(user, "uses a memref of type " + print(type) +
                            " whose place the CUDA target can't tell" + from);
  };
  if (const CarriedBuffer *buffer = carried.find(value)) {
    ref = computeCarried(*buffer, user);
    if (succeeded(ref) && !hasStrides) {
      strides = ref->strides; // those of all sources
      hasStrides = true;
    }
  } else if (auto argument = dyn_cast<BlockArgument>(value)) {
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
    ref->root = value;
    ref->rootOffset = ref->byteOffset;
  } else if (isViewLike(def)) {
    ref = resolve(def->getOperand(0), user);
    if (failed(ref))
      return failure();
    if (auto view = dyn_cast<memref::SubViewOp>(def);
        view && failed(checkConstantOffsets(view, user)))
      return failure();
    if (failed(offsetByView(*ref, def)))
      return unsupported();
    if (isa<memref::CastOp, memref::AssumeAlignmentOp,
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
