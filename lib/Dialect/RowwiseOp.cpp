//===- RowwiseOp.cpp - memplan.rowwise ------------------------------------===//

#include "StructuredOp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(RowwiseOp)

void RowwiseOp::build(OpBuilder &builder, OperationState &state,
                      ValueRange inputs, Value init, ArrayRef<int64_t> rowDims,
                      ArrayRef<Combiner> combiners,
                      ArrayRef<AffineMap> indexingMaps,
                      ArrayRef<RegionBuilder> stages, RegionBuilder finish) {
  SmallVector<Attribute> combinerAttrs;
  for (Combiner combiner : combiners)
    combinerAttrs.push_back(CombinerAttr::get(builder.getContext(), combiner));
  build(builder, state,
        isa<TensorType>(init.getType()) ? init.getType() : Type(), inputs, init,
        builder.getDenseI64ArrayAttr(rowDims),
        builder.getArrayAttr(combinerAttrs),
        builder.getAffineMapArrayAttr(indexingMaps), stages.size());
  // Regions in the order of their definition: finish first, then the stages,
  // whose yields give the types that later regions take.
  SmallVector<Type> types = detail::getElementTypes(inputs);
  for (auto [index, stage] : llvm::enumerate(stages)) {
    Region &region = *state.regions[index + 1];
    detail::buildRegion(builder, state.location, region, types, stage);
    types.push_back(cast<YieldOp>(region.front().back()).getValue().getType());
  }
  detail::buildRegion(builder, state.location, *state.regions[0], types,
                      finish);
}

static AffineMap getMap(ArrayAttr maps, unsigned index) {
  return cast<AffineMapAttr>(maps[index]).getValue();
}
AffineMap RowwiseOp::getOutputMap() {
  return getMap(getIndexingMaps(), getIndexingMaps().size() - 1);
}
AffineMap RowwiseOp::getInputMap(unsigned i) {
  return getMap(getIndexingMaps(), i);
}
bool RowwiseOp::isReduction() {
  return getOutputMap().getNumResults() < getOutputMap().getNumDims();
}
Combiner RowwiseOp::getCombiner(unsigned stage) {
  return cast<CombinerAttr>(getCombiners()[stage]).getValue();
}

/// Calls `visit(loop, extent, operand)` for each loop that an operand indexes.
static void forEachExtent(RowwiseOp op,
                          function_ref<void(unsigned, int64_t, Value)> visit) {
  SmallVector<Value> values(op.getInputs());
  values.push_back(op.getInit());
  for (auto [index, value] : llvm::enumerate(values)) {
    AffineMap map = getMap(op.getIndexingMaps(), index);
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        visit(dim.getPosition(),
              cast<ShapedType>(value.getType()).getDimSize(position), value);
  }
}

SmallVector<int64_t> RowwiseOp::getLoopExtents() {
  SmallVector<int64_t> extents(getOutputMap().getNumDims(), 1);
  forEachExtent(*this, [&](unsigned loop, int64_t extent, Value) {
    extents[loop] = extent;
  });
  return extents;
}

Region &RowwiseOp::getEpilogueRegion() { return getFinish(); }

bool RowwiseOp::canAddEpilogueOperand(AffineMap map) {
  return detail::isProjectionOrZero(map);
}

BlockArgument RowwiseOp::addEpilogueOperand(Value operand, AffineMap map) {
  Type type = cast<ShapedType>(operand.getType()).getElementType();
  unsigned position = getInputs().size();
  getInputsMutable().append(operand);
  SmallVector<Attribute> maps(getIndexingMaps().begin(),
                              getIndexingMaps().end());
  // From the loops to the output's dims, then to the operand's indices.
  maps.insert(maps.end() - 1, AffineMapAttr::get(map.compose(getOutputMap())));
  setIndexingMapsAttr(ArrayAttr::get(getContext(), maps));
  for (Region &stage : getStages())
    stage.front().insertArgument(position, type, operand.getLoc());
  return getFinish().front().insertArgument(position, type, operand.getLoc());
}

/// A row is read to its end before the first of its elements is stored, and
/// nobody reads another's row.
bool RowwiseOp::canOverwrite(OpOperand &input, OpOperand &) {
  return !isReduction() &&
         getInputMap(input.getOperandNumber()) == getOutputMap();
}

bool RowwiseOp::canAccess(OpOperand &, MemRefType type) {
  return type.isStrided();
}

LogicalResult RowwiseOp::verify() {
  Operation *op = getOperation();
  if (failed(detail::verifyOperandsAndResult(op)))
    return failure();
  if (getIndexingMaps().size() != getInputs().size() + 1)
    return emitOpError() << "has " << getIndexingMaps().size()
                         << " indexing_maps, expected one per input and one "
                            "for the output";
  AffineMap outputMap = getOutputMap();
  unsigned loops = outputMap.getNumDims();
  auto output = cast<ShapedType>(getInit().getType());
  SmallVector<Value> values(getInputs());
  values.push_back(getInit());
  for (auto [index, value] : llvm::enumerate(values)) {
    AffineMap map = getMap(getIndexingMaps(), index);
    auto type = cast<ShapedType>(value.getType());
    if (map.getNumDims() != loops || !detail::isProjectionOrZero(map) ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return emitOpError() << "indexing map " << index << " "
                           << AffineMapAttr::get(map) << " does not map "
                           << loops << " loops to " << type;
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (isa<AffineConstantExpr>(expr) && type.getDimSize(position) > 1)
        return emitOpError() << "indexing map " << index
                             << " reads only index 0 of an extent of "
                             << type.getDimSize(position);
  }
  llvm::SmallBitVector isRow(loops);
  for (int64_t dim : getRowDims()) {
    if (dim < 0 || dim >= static_cast<int64_t>(loops) || isRow.test(dim))
      return emitOpError() << "row_dims has " << dim << ", expected distinct "
                           << "loops below " << loops;
    isRow.set(dim);
  }
  if (!outputMap.isIdentity()) {
    bool drops = outputMap.isProjectedPermutation();
    for (unsigned dim = 0; dim < loops; ++dim)
      drops &= outputMap.isFunctionOfDim(dim) != isRow.test(dim);
    if (!drops)
      return emitOpError() << "output map " << AffineMapAttr::get(outputMap)
                           << " must be the identity or drop exactly row_dims";
  }
  SmallVector<int64_t> extents(loops, -1);
  std::string conflict;
  forEachExtent(*this, [&](unsigned loop, int64_t extent, Value) {
    if (extents[loop] == -1)
      extents[loop] = extent;
    else if (extents[loop] != extent && conflict.empty())
      conflict = ("loop " + Twine(loop) + " has extents " +
                  Twine(extents[loop]) + " and " + Twine(extent))
                     .str();
  });
  if (!conflict.empty())
    return emitOpError() << conflict;
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (extent == -1)
      return emitOpError() << "no operand gives the extent of loop " << loop;
  if (getCombiners().size() != getStages().size())
    return emitOpError() << "has " << getStages().size() << " stages but "
                         << getCombiners().size() << " combiners";
  SmallVector<Type> types = detail::getElementTypes(getInputs());
  for (auto [index, stage] : llvm::enumerate(getStages())) {
    std::string name = ("stage " + Twine(index)).str();
    if (failed(detail::verifyRegion(op, stage, name, types, Type())))
      return failure();
    types.push_back(cast<YieldOp>(stage.front().back()).getValue().getType());
  }
  if (failed(detail::verifyRegion(op, getFinish(), "finish", types,
                                  output.getElementType())))
    return failure();
  if (!isReduction())
    return success();
  for (auto [index, input] : llvm::enumerate(getInputs()))
    for (int64_t dim : getRowDims())
      if (getInputMap(index).isFunctionOfDim(dim) &&
          !getFinish().front().getArgument(index).use_empty())
        return emitOpError() << "finish of a reduction uses input " << index
                             << ", which depends on row dim " << dim;
  return success();
}
