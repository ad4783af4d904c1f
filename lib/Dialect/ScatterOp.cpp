//===- ScatterOp.cpp - memplan.scatter ------------------------------------===//

#include "StructuredOp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace memplan;

MEMPLAN_STRUCTURED_OP_METHODS(ScatterOp)

void ScatterOp::build(OpBuilder &builder, OperationState &state, Value data,
                      Value updates, ValueRange indices, Value init,
                      ArrayRef<int64_t> axes, ArrayRef<int64_t> loops,
                      ArrayRef<AffineMap> indexMaps, RegionBuilder combine) {
  build(builder, state,
        isa<TensorType>(init.getType()) ? init.getType() : Type(), data,
        updates, indices, init, builder.getDenseI64ArrayAttr(axes),
        builder.getDenseI64ArrayAttr(loops),
        builder.getAffineMapArrayAttr(indexMaps));
  detail::buildRegion(builder, state.location, *state.regions[0],
                      detail::getElementTypes({init, updates}), combine);
}

AffineMap ScatterOp::getIndexMap(unsigned i) {
  return cast<AffineMapAttr>(getIndexMaps()[i]).getValue();
}

/// The data is copied, unless it is in place already, before any update is
/// made; updates and indices are read in between.
bool ScatterOp::canOverwrite(OpOperand &input, OpOperand &) {
  return &input == &getDataMutable();
}

bool ScatterOp::canAccess(OpOperand &, MemRefType type) {
  return type.isStrided();
}

LogicalResult ScatterOp::verify() {
  Operation *op = getOperation();
  if (failed(detail::verifyOperandsAndResult(op)))
    return failure();
  auto data = cast<ShapedType>(getData().getType());
  auto updates = cast<ShapedType>(getUpdates().getType());
  auto output = cast<ShapedType>(getInit().getType());
  if (data.getShape() != output.getShape() ||
      data.getElementType() != output.getElementType())
    return emitOpError("data and output differ: ") << data << ", " << output;
  int64_t rank = output.getRank(), numLoops = updates.getRank();
  if (getAxes().empty() || getAxes().size() != getIndices().size() ||
      getIndexMaps().size() != getIndices().size())
    return emitOpError() << "has " << getIndices().size() << " indices, "
                         << getAxes().size() << " axes and "
                         << getIndexMaps().size()
                         << " index_maps, expected equal numbers, at least 1";
  llvm::SmallBitVector isIndexed(rank), isUsed(numLoops);
  for (int64_t axis : getAxes()) {
    if (axis < 0 || axis >= rank || isIndexed.test(axis))
      return emitOpError() << "axes has " << axis
                           << ", expected distinct dims below " << rank;
    isIndexed.set(axis);
  }
  if (getLoops().size() + getAxes().size() != static_cast<size_t>(rank))
    return emitOpError() << "loops has " << getLoops().size()
                         << " entries, expected one for each of the "
                         << rank - static_cast<int64_t>(getAxes().size())
                         << " dims that are not in axes";
  int64_t dim = -1;
  for (int64_t loop : getLoops()) {
    while (isIndexed.test(++dim))
      ;
    if (loop < 0 || loop >= numLoops || isUsed.test(loop))
      return emitOpError() << "loops has " << loop
                           << ", expected distinct dims of the updates";
    isUsed.set(loop);
    if (updates.getDimSize(loop) > output.getDimSize(dim))
      return emitOpError() << "dim " << loop << " of the updates has extent "
                           << updates.getDimSize(loop) << ", more than dim "
                           << dim << " of the output";
  }
  for (auto [i, operand] : llvm::enumerate(getIndices())) {
    auto type = cast<ShapedType>(operand.getType());
    AffineMap map = getIndexMap(i);
    if (!type.getElementType().isSignlessInteger() ||
        map.getNumDims() != static_cast<unsigned>(numLoops) ||
        !map.isProjectedPermutation() ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return emitOpError() << "index map " << i << " "
                           << AffineMapAttr::get(map) << " does not map "
                           << numLoops << " dims of the updates to integers "
                           << type;
    for (unsigned d = 0; d < map.getNumResults(); ++d)
      if (type.getDimSize(d) != updates.getDimSize(map.getDimPosition(d)))
        return emitOpError() << "indices " << i << " of type " << type
                             << " do not have the extents of the updates";
  }
  return detail::verifyRegion(
      op, getCombine(), "combine",
      {output.getElementType(), updates.getElementType()},
      output.getElementType());
}
