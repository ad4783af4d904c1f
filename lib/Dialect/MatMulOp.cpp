//===- MatMulOp.cpp - memplan.matmul --------------------------------------===//

#include "StructuredOp.h"
#include "memplan/Dialect/MatMulEpilogue.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(MatMulOp)

void MatMulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, ValueRange extras, Value init,
                     ArrayRef<AffineMap> indexingMaps,
                     ArrayRef<AffineMap> extraMaps, RegionBuilder epilogue) {
  build(
      builder, state, isa<TensorType>(init.getType()) ? init.getType() : Type(),
      lhs, rhs, extras, init, /*lhs_zero=*/Value(), /*rhs_zero=*/Value(),
      /*workspace=*/Value(), /*unsigned_lhs=*/UnitAttr(),
      /*unsigned_rhs=*/UnitAttr(), builder.getAffineMapArrayAttr(indexingMaps),
      builder.getAffineMapArrayAttr(extraMaps));
  SmallVector<Type> types = {
      getProductType(getElementTypeOrSelf(lhs.getType()),
                     getElementTypeOrSelf(rhs.getType()))};
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
AffineMap MatMulOp::getLhsZeroMap() {
  return getLhsZero() ? getMap(getIndexingMaps(), 3) : AffineMap();
}
AffineMap MatMulOp::getRhsZeroMap() {
  return getRhsZero() ? getMap(getIndexingMaps(), getLhsZero() ? 4 : 3)
                      : AffineMap();
}

void MatMulOp::setZeroPoints(Value lhs, AffineMap lhsMap, Value rhs,
                             AffineMap rhsMap) {
  SmallVector<Attribute> maps(getIndexingMaps().getValue().take_front(3));
  auto assign = [&](MutableOperandRange operand, Value zero, AffineMap map) {
    if (!zero)
      return operand.clear();
    operand.assign(zero);
    maps.push_back(AffineMapAttr::get(map));
  };
  assign(getLhsZeroMutable(), lhs, lhsMap);
  assign(getRhsZeroMutable(), rhs, rhsMap);
  setIndexingMapsAttr(ArrayAttr::get(getContext(), maps));
}

bool MatMulOp::isLibraryProduct() {
  Type lhs = getElementTypeOrSelf(getLhs()),
       rhs = getElementTypeOrSelf(getRhs());
  return isa<FloatType>(lhs) && lhs == rhs;
}

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
                                      ArrayRef<unsigned> forbidden) {
  auto fail = [&]() {
    return op.emitOpError()
           << name << " map " << AffineMapAttr::get(map) << " does not fit "
           << type << " in a space (batch..., m, n, k) of " << loops
           << " loops";
  };
  if (map.getNumDims() != loops || !map.isProjectedPermutation() ||
      map.getNumResults() != static_cast<unsigned>(type.getRank()))
    return fail();
  for (unsigned dim : forbidden)
    if (map.isFunctionOfDim(dim))
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
  return type && isLibraryProduct() && !type.getElementType().isF64() &&
         type.getNumElements() != 0;
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
  size_t numMaps = 3 + bool(getLhsZero()) + bool(getRhsZero());
  if (getIndexingMaps().size() != numMaps)
    return emitOpError("has ") << getIndexingMaps().size()
                               << " indexing_maps, expected " << numMaps;
  auto lhs = cast<ShapedType>(getLhs().getType());
  auto rhs = cast<ShapedType>(getRhs().getType());
  auto output = cast<ShapedType>(getInit().getType());
  if (failed(detail::verifyFactors(op, lhs, rhs)) ||
      failed(detail::verifyZeroPoint(op, "lhs", lhs, getLhsZero(),
                                     getUnsignedLhs())) ||
      failed(detail::verifyZeroPoint(op, "rhs", rhs, getRhsZero(),
                                     getUnsignedRhs())))
    return failure();
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
  SmallVector<std::pair<AffineMap, ShapedType>> operands = {{getLhsMap(), lhs},
                                                            {getRhsMap(), rhs}};
  if (Value zero = getLhsZero()) {
    operands.push_back({getLhsZeroMap(), cast<ShapedType>(zero.getType())});
    if (failed(verifyOperandMap(*this, "lhs_zero", getLhsZeroMap(),
                                operands.back().second, loops, {}, {n, k})))
      return failure();
  }
  if (Value zero = getRhsZero()) {
    operands.push_back({getRhsZeroMap(), cast<ShapedType>(zero.getType())});
    if (failed(verifyOperandMap(*this, "rhs_zero", getRhsZeroMap(),
                                operands.back().second, loops, {}, {m, k})))
      return failure();
  }
  SmallVector<int64_t> extents = getLoopExtents();
  for (auto [map, type] : operands)
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
