//===- MatMulOp.cpp - memplan.matmul --------------------------------------===//

#include "StructuredOp.h"
#include "memplan/Dialect/MatMulEpilogue.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(MatMulOp)

void MatMulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, ValueRange extras, Value init,
                     ArrayRef<AffineMap> indexingMaps,
                     ArrayRef<AffineMap> extraMaps, RegionBuilder epilogue) {
  build(builder, state,
        isa<TensorType>(init.getType()) ? init.getType() : Type(), lhs, rhs,
        extras, init, /*workspace=*/Value(),
        builder.getAffineMapArrayAttr(indexingMaps),
        builder.getAffineMapArrayAttr(extraMaps));
  SmallVector<Type> types = {
      getAccumulatorType(cast<ShapedType>(init.getType()).getElementType())};
  llvm::append_range(types, detail::getElementTypes(extras));
  detail::buildRegion(builder, state.location, *state.regions.front(), types,
                      epilogue);
}

static AffineMap getMap(ArrayAttr maps, unsigned index) {
  return cast<AffineMapAttr>(maps[index]).getValue();
}
AffineMap MatMulOp::getLhsMap() { return getMap(getIndexingMaps(), 0); }
AffineMap MatMulOp::getRhsMap() { return getMap(getIndexingMaps(), 1); }
AffineMap MatMulOp::getOutputMap() { return getMap(getIndexingMaps(), 2); }
int64_t MatMulOp::getNumLoops() { return getOutputMap().getNumDims(); }

SmallVector<int64_t> MatMulOp::getLoopExtents() {
  SmallVector<int64_t> extents(getNumLoops(), 1);
  for (auto [map, value] :
       {std::pair(getLhsMap(), getLhs()), std::pair(getRhsMap(), getRhs()),
        std::pair(getOutputMap(), getInit())})
    for (auto [index, expr] : llvm::enumerate(map.getResults()))
      extents[cast<AffineDimExpr>(expr).getPosition()] =
          cast<ShapedType>(value.getType()).getDimSize(index);
  return extents;
}

Region &MatMulOp::getEpilogueRegion() { return getEpilogue(); }

bool MatMulOp::canAddEpilogueOperand(AffineMap map) {
  return detail::isProjectionOrZero(map);
}

BlockArgument MatMulOp::addEpilogueOperand(Value operand, AffineMap map) {
  return detail::addExtra(
      getExtrasMutable(), getExtraMaps(),
      [&](ArrayAttr maps) { setExtraMapsAttr(maps); }, getEpilogue(), operand,
      map);
}

/// `map` permutes some of the loops, `required` among them and `forbidden` not.
static LogicalResult verifyOperandMap(MatMulOp op, StringRef name,
                                      AffineMap map, ShapedType type,
                                      unsigned loops,
                                      ArrayRef<unsigned> required,
                                      unsigned forbidden) {
  auto fail = [&]() {
    return op.emitOpError()
           << name << " map " << AffineMapAttr::get(map) << " does not fit "
           << type << " in a space (batch..., m, n, k) of " << loops
           << " loops";
  };
  if (map.getNumDims() != loops || !map.isProjectedPermutation() ||
      map.getNumResults() != static_cast<unsigned>(type.getRank()) ||
      map.isFunctionOfDim(forbidden))
    return fail();
  for (unsigned dim : required)
    if (!map.isFunctionOfDim(dim))
      return fail();
  return success();
}

/// A summand, if product and epilogue are one call. Otherwise the product is
/// stored before a second kernel applies the epilogue, which would read that in
/// place of its input.
bool MatMulOp::canOverwrite(OpOperand &input, OpOperand &) {
  return detail::isReadInPlace(input, getExtrasMutable(), getExtraMaps()) &&
         matchMatMulEpilogue(*this, input.getOperandNumber() - 2).has_value();
}

bool MatMulOp::canAccess(OpOperand &, MemRefType type) {
  return type.isStrided();
}

/// What goes to a library; products of other types are kernels of ours.
bool MatMulOp::canUseWorkspace() {
  auto type = dyn_cast<MemRefType>(getInit().getType());
  return type && type.getElementType().isF32() && type.getNumElements() != 0;
}

LogicalResult MatMulOp::verify() {
  Operation *op = getOperation();
  if (failed(detail::verifyOperandsAndResult(op)))
    return failure();
  if (Value workspace = getWorkspace()) {
    auto type = cast<MemRefType>(workspace.getType());
    if (type.getRank() != 1 || !type.hasStaticShape() ||
        !type.getElementType().isInteger(8) || !type.getLayout().isIdentity())
      return emitOpError("workspace must be a memref<Nxi8>, got ") << type;
  }
  if (getIndexingMaps().size() != 3)
    return emitOpError("has ")
           << getIndexingMaps().size() << " indexing_maps, expected 3";
  auto lhs = cast<ShapedType>(getLhs().getType());
  auto rhs = cast<ShapedType>(getRhs().getType());
  auto output = cast<ShapedType>(getInit().getType());
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("lhs and rhs differ in element type");
  unsigned loops = getNumLoops();
  if (loops < 3)
    return emitOpError("needs at least the loops m, n and k");
  unsigned m = loops - 3, n = loops - 2, k = loops - 1;
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, k));
  if (failed(
          verifyOperandMap(*this, "lhs", getLhsMap(), lhs, loops, {m, k}, n)) ||
      failed(
          verifyOperandMap(*this, "rhs", getRhsMap(), rhs, loops, {n, k}, m)) ||
      failed(verifyOperandMap(*this, "output", getOutputMap(), output, loops,
                              all, k)))
    return failure();
  SmallVector<int64_t> extents = getLoopExtents();
  for (auto [map, type] :
       {std::pair(getLhsMap(), lhs), std::pair(getRhsMap(), rhs)})
    for (auto [index, expr] : llvm::enumerate(map.getResults())) {
      unsigned dim = cast<AffineDimExpr>(expr).getPosition();
      int64_t found = type.getDimSize(index);
      if (found != extents[dim] && !ShapedType::isDynamic(found) &&
          !ShapedType::isDynamic(extents[dim]))
        return emitOpError() << "loop " << dim << " has extents " << found
                             << " and " << extents[dim];
    }
  if (failed(detail::verifyExtraMaps(op, getExtras(), getExtraMaps(), output)))
    return failure();
  return detail::verifyEpilogue(op, getEpilogue(), getExtras(), output);
}
