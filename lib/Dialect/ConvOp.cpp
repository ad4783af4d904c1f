//===- ConvOp.cpp - memplan.conv ------------------------------------------===//

#include "StructuredOp.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(ConvOp)

void ConvOp::build(OpBuilder &builder, OperationState &state, Value input,
                   Value filter, ValueRange extras, Value init,
                   ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                   ArrayRef<int64_t> padsBegin, ArrayRef<int64_t> padsEnd,
                   int64_t groups, ArrayRef<AffineMap> extraMaps,
                   RegionBuilder epilogue) {
  build(
      builder, state, isa<TensorType>(init.getType()) ? init.getType() : Type(),
      input, filter, extras, init, /*input_zero=*/Value(),
      /*filter_zero=*/Value(), /*unsigned_input=*/UnitAttr(),
      /*unsigned_filter=*/UnitAttr(), builder.getDenseI64ArrayAttr(strides),
      builder.getDenseI64ArrayAttr(dilations),
      builder.getDenseI64ArrayAttr(padsBegin),
      builder.getDenseI64ArrayAttr(padsEnd), builder.getI64IntegerAttr(groups),
      /*pool=*/WindowKindAttr(), /*pool_window=*/DenseI64ArrayAttr(),
      /*interleaved=*/UnitAttr(), /*upsample=*/DenseI64ArrayAttr(),
      builder.getAffineMapArrayAttr(extraMaps));
  SmallVector<Type> types = {
      getProductType(getElementTypeOrSelf(input.getType()),
                     getElementTypeOrSelf(filter.getType()))};
  llvm::append_range(types, detail::getElementTypes(extras));
  detail::buildRegion(builder, state.location, *state.regions.front(), types,
                      epilogue);
}

bool ConvOp::hasWideTypes() {
  return llvm::any_of(
      ValueRange{getInput(), getFilter(), getInit()}, [](Value value) {
        return getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() >
               32;
      });
}

bool ConvOp::canYield(Type type) {
  return hasWideTypes() || type.getIntOrFloatBitWidth() <= 32;
}

int64_t ConvOp::getSpatialRank() {
  return cast<ShapedType>(getInput().getType()).getRank() - 2;
}

SmallVector<int64_t> ConvOp::getUpsampleShifts() {
  SmallVector<int64_t> shifts(getSpatialRank(), 0);
  if (auto factors = getUpsample())
    for (auto [shift, factor] : llvm::zip(shifts, *factors))
      shift = llvm::Log2_64(factor);
  return shifts;
}

SmallVector<int64_t> ConvOp::getUnpooledShape() {
  SmallVector<int64_t> shifts = getUpsampleShifts();
  auto input = cast<ShapedType>(getInput().getType());
  auto filter = cast<ShapedType>(getFilter().getType());
  SmallVector<int64_t> shape = {input.getDimSize(0), filter.getDimSize(0)};
  for (int64_t i = 0; i < getSpatialRank(); ++i) {
    if (input.isDynamicDim(i + 2) || filter.isDynamicDim(i + 2)) {
      shape.push_back(ShapedType::kDynamic);
      continue;
    }
    int64_t padded = (input.getDimSize(i + 2) << shifts[i]) +
                     getPadsBegin()[i] + getPadsEnd()[i];
    int64_t reach = getDilations()[i] * (filter.getDimSize(i + 2) - 1) + 1;
    shape.push_back(padded < reach ? 0
                                   : (padded - reach) / getStrides()[i] + 1);
  }
  return shape;
}

Region &ConvOp::getEpilogueRegion() { return getEpilogue(); }

bool ConvOp::canAddEpilogueOperand(AffineMap map) {
  return detail::isProjectionOrZero(map);
}

BlockArgument ConvOp::addEpilogueOperand(Value operand, AffineMap map) {
  return detail::addExtra(
      getExtrasMutable(), getExtraMaps(),
      [&](ArrayAttr maps) { setExtraMapsAttr(maps); }, getEpilogue(), operand,
      map);
}

/// Where the epilogue doesn't yield the output, its operands are read in other
/// places than the result is stored.
bool ConvOp::canOverwrite(OpOperand &input, OpOperand &) {
  return yieldsOutput() &&
         detail::isReadInPlace(input, getExtrasMutable(), getExtraMaps());
}

/// Strides between images and channels only; a filter has none.
bool ConvOp::canAccess(OpOperand &operand, MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  unsigned number = operand.getOperandNumber();
  if (number == 1)
    return type.getLayout().isIdentity();
  if (number > 1 && number != getInitOperand().getOperandNumber())
    return true;
  int64_t dense = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 2; --dim) {
    if (type.getDimSize(dim) != 1 && strides[dim] != dense)
      return false;
    dense *= type.getDimSize(dim);
  }
  return true;
}

/// Windows that are powers of two can be reduced among neighbouring threads.
static LogicalResult verifyPool(ConvOp op) {
  auto kind = op.getPool();
  auto window = op.getPoolWindow();
  if (kind.has_value() != window.has_value())
    return op.emitOpError("has one of pool and pool_window without the other");
  if (!kind)
    return success();
  if (*kind != WindowKind::Max && *kind != WindowKind::Average)
    return op.emitOpError("pool is <")
           << stringifyWindowKind(*kind) << ">, expected <max> or <average>";
  if (failed(memplan::detail::verifyEntries(op, "pool window", *window,
                                            op.getSpatialRank(), 1)))
    return failure();
  int64_t area = 1;
  for (int64_t extent : *window)
    area = llvm::isPowerOf2_64(extent) && extent <= ConvOp::kMostPooled
               ? area * extent
               : 0;
  if (area >= 2 && area <= ConvOp::kMostPooled)
    return success();
  return op.emitOpError("pool window has extents [")
         << *window
         << "], expected powers of two of which the product is from 2 to "
         << ConvOp::kMostPooled;
}

static LogicalResult verifyUpsample(ConvOp op) {
  auto factors = op.getUpsample();
  if (!factors)
    return success();
  if (failed(memplan::detail::verifyEntries(op, "upsample", *factors,
                                            op.getSpatialRank(), 1)))
    return failure();
  for (int64_t factor : *factors)
    if (!llvm::isPowerOf2_64(factor) || factor > ConvOp::kMostUpsampled)
      return op.emitOpError("upsample has factor ")
             << factor << ", expected powers of two up to "
             << ConvOp::kMostUpsampled;
  return success();
}

/// What getUnpooledShape computes doesn't overflow.
static LogicalResult verifyWindows(ConvOp op) {
  auto input = cast<ShapedType>(op.getInput().getType());
  auto filter = cast<ShapedType>(op.getFilter().getType());
  SmallVector<int64_t> shifts = op.getUpsampleShifts();
  for (int64_t i = 0; i < op.getSpatialRank(); ++i) {
    if (input.isDynamicDim(i + 2) || filter.isDynamicDim(i + 2))
      continue;
    auto extent = checkedMul(input.getDimSize(i + 2), int64_t(1) << shifts[i]);
    if (!extent)
      return op.emitOpError("in dim ")
             << i + 2 << ": extent " << input.getDimSize(i + 2) << " times "
             << (int64_t(1) << shifts[i]) << " is more than 64 bits hold";
    if (failed(memplan::detail::verifyWindowDim(
            op, i + 2,
            {*extent, op.getPadsBegin()[i], op.getPadsEnd()[i],
             filter.getDimSize(i + 2), op.getDilations()[i],
             op.getStrides()[i]})))
      return failure();
  }
  return success();
}

LogicalResult ConvOp::verify() {
  Operation *op = getOperation();
  if (failed(detail::verifyOperandsAndResult(op)))
    return failure();
  auto input = cast<ShapedType>(getInput().getType());
  auto filter = cast<ShapedType>(getFilter().getType());
  auto output = cast<ShapedType>(getInit().getType());
  int64_t rank = input.getRank();
  if (rank < 3 || rank > 5)
    return emitOpError("input must have rank 3 to 5, got ") << input;
  if (filter.getRank() != rank || output.getRank() != rank)
    return emitOpError("input, filter and output differ in rank: ")
           << input << ", " << filter << ", " << output;
  if (failed(detail::verifyFactors(op, input, filter)) ||
      failed(detail::verifyZeroPoint(op, "input", input, getInputZero(),
                                     getUnsignedInput())) ||
      failed(detail::verifyZeroPoint(op, "filter", filter, getFilterZero(),
                                     getUnsignedFilter())))
    return failure();
  if (Value zero = getInputZero();
      zero && cast<ShapedType>(zero.getType()).getRank() != 0)
    return emitOpError("input_zero must have rank 0, got ") << zero.getType();
  if (Value zero = getFilterZero()) {
    auto type = cast<ShapedType>(zero.getType());
    if (type.getRank() > 1 ||
        (type.getRank() == 1 && type.getDimSize(0) != filter.getDimSize(0)))
      return emitOpError("filter_zero must have one element, or one a feature "
                         "of the filter, got ")
             << type;
  }
  int64_t spatial = rank - 2;
  if (failed(detail::verifyEntries(op, "strides", getStrides(), spatial, 1)) ||
      failed(
          detail::verifyEntries(op, "dilations", getDilations(), spatial, 1)) ||
      failed(detail::verifyEntries(op, "pads_begin", getPadsBegin(), spatial,
                                   0)) ||
      failed(detail::verifyEntries(op, "pads_end", getPadsEnd(), spatial, 0)))
    return failure();
  if (failed(verifyPool(*this)) || failed(verifyUpsample(*this)) ||
      failed(verifyWindows(*this)))
    return failure();
  int64_t groups = getGroups();
  if (groups < 1)
    return emitOpError("groups must be at least 1, got ") << groups;
  if (input.hasStaticShape() && filter.hasStaticShape() &&
      output.hasStaticShape()) {
    int64_t channels = input.getDimSize(1), features = filter.getDimSize(0);
    if (channels % groups != 0 || features % groups != 0 ||
        filter.getDimSize(1) != channels / groups)
      return emitOpError() << "with " << groups << " groups: input has "
                           << channels << " channels, filter is " << filter;
    if (output.getDimSize(0) != input.getDimSize(0) ||
        output.getDimSize(1) != features)
      return emitOpError("output ")
             << output << " does not have the input's batch and the filter's "
             << features << " features";
    for (int64_t i = 0; i < spatial; ++i) {
      int64_t expected = getUnpooledShape()[i + 2];
      if (getPoolWindow())
        expected /= (*getPoolWindow())[i];
      if (output.getDimSize(i + 2) != expected)
        return emitOpError()
               << "output has extent " << output.getDimSize(i + 2)
               << " in spatial dim " << i << ", expected " << expected;
    }
  }
  ShapedType unpooled = output;
  if (getPool())
    unpooled =
        RankedTensorType::get(getUnpooledShape(), output.getElementType());
  if (failed(
          detail::verifyExtraMaps(op, getExtras(), getExtraMaps(), unpooled)))
    return failure();
  return detail::verifyEpilogue(op, getEpilogue(), getExtras(), output);
}
