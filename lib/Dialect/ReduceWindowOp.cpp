//===- ReduceWindowOp.cpp - memplan.reduce_window -------------------------===//

#include "StructuredOp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(ReduceWindowOp)

void ReduceWindowOp::build(OpBuilder &builder, OperationState &state,
                           WindowKind kind, Value input, Value init,
                           ArrayRef<int64_t> window, ArrayRef<int64_t> strides,
                           ArrayRef<int64_t> dilations,
                           ArrayRef<int64_t> padsBegin,
                           ArrayRef<int64_t> padsEnd, RegionBuilder map,
                           RegionBuilder epilogue) {
  build(builder, state,
        isa<TensorType>(init.getType()) ? init.getType() : Type(),
        WindowKindAttr::get(builder.getContext(), kind), input, ValueRange(),
        init, builder.getDenseI64ArrayAttr(window),
        builder.getDenseI64ArrayAttr(strides),
        builder.getDenseI64ArrayAttr(dilations),
        builder.getDenseI64ArrayAttr(padsBegin),
        builder.getDenseI64ArrayAttr(padsEnd), builder.getArrayAttr({}));
  detail::buildRegion(builder, state.location, *state.regions[0],
                      detail::getElementTypes(input), map);
  Type accumulator =
      cast<YieldOp>(state.regions[0]->front().back()).getValue().getType();
  detail::buildRegion(builder, state.location, *state.regions[1], accumulator,
                      epilogue);
}

Region &ReduceWindowOp::getEpilogueRegion() { return getEpilogue(); }

bool ReduceWindowOp::canAddEpilogueOperand(AffineMap map) {
  return detail::isProjectionOrZero(map);
}

BlockArgument ReduceWindowOp::addEpilogueOperand(Value operand, AffineMap map) {
  return detail::addExtra(
      getExtrasMutable(), getExtraMaps(),
      [&](ArrayAttr maps) { setExtraMapsAttr(maps); }, getEpilogue(), operand,
      map);
}

std::optional<int64_t> memplan::getWindowLine(ReduceWindowOp op) {
  // Of shared memory on every GPU, and what neighbouring elements of lines must
  // fill for loads not to be wasted.
  constexpr int64_t kMostBytes = 48 << 10, kSectorBytes = 32;
  auto input = cast<ShapedType>(op.getInput().getType());
  auto output = cast<ShapedType>(op.getInit().getType());
  Type held = cast<YieldOp>(op.getMap().front().back()).getValue().getType();
  if (!input.hasStaticShape() || input.getShape() != output.getShape() ||
      op.getKind() == WindowKind::AverageIncludePad || !held.isIntOrFloat() ||
      !input.getElementType().isIntOrFloat())
    return std::nullopt;
  std::optional<int64_t> line;
  int64_t inner = 1;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    bool isPlain = op.getWindow()[dim] == 1 && op.getPadsBegin()[dim] == 0;
    if (op.getStrides()[dim] != 1 || (!isPlain && line))
      return std::nullopt;
    inner = line ? inner * input.getDimSize(dim) : 1;
    if (!isPlain)
      line = dim;
  }
  auto bytesOf = [](Type type) {
    return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  };
  if (!line || inner < 1 ||
      inner < static_cast<int64_t>(kSectorBytes /
                                   bytesOf(input.getElementType())) ||
      input.getDimSize(*line) >
          static_cast<int64_t>(kMostBytes / kWindowLines / bytesOf(held)))
    return std::nullopt;
  return line;
}

bool ReduceWindowOp::canOverwrite(OpOperand &input, OpOperand &) {
  if (&input == &getInputMutable())
    return getWindowLine(*this).has_value();
  return detail::isReadInPlace(input, getExtrasMutable(), getExtraMaps());
}

bool ReduceWindowOp::canAccess(OpOperand &, MemRefType type) {
  return type.isStrided();
}

LogicalResult ReduceWindowOp::verify() {
  Operation *op = getOperation();
  if (failed(detail::verifyOperandsAndResult(op)))
    return failure();
  auto input = cast<ShapedType>(getInput().getType());
  auto output = cast<ShapedType>(getInit().getType());
  int64_t rank = input.getRank();
  if (output.getRank() != rank)
    return emitOpError("input and output differ in rank: ")
           << input << ", " << output;
  if (failed(detail::verifyEntries(op, "window", getWindow(), rank, 1)) ||
      failed(detail::verifyEntries(op, "strides", getStrides(), rank, 1)) ||
      failed(detail::verifyEntries(op, "dilations", getDilations(), rank, 1)) ||
      failed(
          detail::verifyEntries(op, "pads_begin", getPadsBegin(), rank, 0)) ||
      failed(detail::verifyEntries(op, "pads_end", getPadsEnd(), rank, 0)))
    return failure();
  for (int64_t i = 0; i < rank; ++i) {
    if (input.isDynamicDim(i) || output.isDynamicDim(i))
      continue;
    if (failed(detail::verifyWindowDim(op, i,
                                       {input.getDimSize(i), getPadsBegin()[i],
                                        getPadsEnd()[i], getWindow()[i],
                                        getDilations()[i], getStrides()[i]})))
      return failure();
    int64_t padded = input.getDimSize(i) + getPadsBegin()[i] + getPadsEnd()[i];
    int64_t reach = getDilations()[i] * (getWindow()[i] - 1) + 1;
    int64_t stride = getStrides()[i];
    // ceil((padded - reach) / stride) + 1: the last window may hang over.
    int64_t most =
        padded < reach ? 1 : (padded - reach + stride - 1) / stride + 1;
    if (output.getDimSize(i) > most)
      return emitOpError() << "output has extent " << output.getDimSize(i)
                           << " in dim " << i << ", at most " << most
                           << " windows fit";
  }
  if (failed(detail::verifyRegion(
          op, getMap(), "map", input.getElementType(),
          getEpilogue().front().getNumArguments() == 0
              ? Type()
              : getEpilogue().front().getArgument(0).getType())))
    return failure();
  if (failed(detail::verifyExtraMaps(op, getExtras(), getExtraMaps(), output)))
    return failure();
  return detail::verifyEpilogue(op, getEpilogue(), getExtras(), output);
}
