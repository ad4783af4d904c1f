//===- StructuredOp.cpp - What the structured ops share -------------------===//

#include "StructuredOp.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace memplan::detail {

SmallVector<Type> getElementTypes(ValueRange values) {
  SmallVector<Type> types;
  for (Value value : values)
    types.push_back(cast<ShapedType>(value.getType()).getElementType());
  return types;
}

LogicalResult verifyOperandsAndResult(Operation *op) {
  bool anyTensor = false, anyMemref = false;
  for (Value operand : op->getOperands())
    (isa<TensorType>(operand.getType()) ? anyTensor : anyMemref) = true;
  if (anyTensor && anyMemref)
    return op->emitOpError("mixes tensors and memrefs among its operands");
  auto dps = cast<DestinationStyleOpInterface>(op);
  Type initType = dps.getDpsInits().front().getType();
  if (anyMemref && op->getNumResults() != 0)
    return op->emitOpError("on memrefs has no result");
  if (anyTensor && op->getNumResults() != 1)
    return op->emitOpError("on tensors has one result");
  if (anyTensor && op->getResult(0).getType() != initType)
    return op->emitOpError("result type ")
           << op->getResult(0).getType() << " differs from the destination's "
           << initType;
  return success();
}

LogicalResult verifyRegion(Operation *op, Region &region, StringRef name,
                           ArrayRef<Type> argumentTypes, Type yielded) {
  Block &block = region.front();
  if (block.getNumArguments() != argumentTypes.size())
    return op->emitOpError() << name << " takes " << block.getNumArguments()
                             << " arguments, expected " << argumentTypes.size();
  for (auto [index, expected] : llvm::enumerate(argumentTypes)) {
    Type found = block.getArgument(index).getType();
    if (expected && found != expected)
      return op->emitOpError() << name << " argument " << index << " has type "
                               << found << ", expected " << expected;
    if (!found.isIntOrIndexOrFloat())
      return op->emitOpError()
             << name << " argument " << index << " is not a scalar: " << found;
  }
  auto yield =
      dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return op->emitOpError() << name << " must end with memplan.yield";
  if (yielded && yield.getValue().getType() != yielded)
    return op->emitOpError() << name << " yields " << yield.getValue().getType()
                             << ", expected " << yielded;
  return success();
}

bool isReadInPlace(OpOperand &input, MutableOperandRange extras,
                   ArrayAttr maps) {
  for (auto [extra, map] : llvm::zip_equal(extras, maps))
    if (&extra == &input)
      return cast<AffineMapAttr>(map).getValue().isIdentity();
  return false;
}

bool isProjectionOrZero(AffineMap map) {
  if (map.getNumSymbols() != 0)
    return false;
  llvm::SmallBitVector seen(map.getNumDims());
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (seen.test(dim.getPosition()))
        return false;
      seen.set(dim.getPosition());
      continue;
    }
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (!constant || constant.getValue() != 0)
      return false;
  }
  return true;
}

LogicalResult verifyExtraMaps(Operation *op, OperandRange extras,
                              ArrayAttr maps, ShapedType output) {
  if (maps.size() != extras.size())
    return op->emitOpError() << "has " << extras.size() << " extras but "
                             << maps.size() << " extra_maps";
  for (auto [index, extra, attribute] : llvm::enumerate(extras, maps)) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    auto type = cast<ShapedType>(extra.getType());
    if (!isProjectionOrZero(map) ||
        map.getNumDims() != static_cast<unsigned>(output.getRank()) ||
        map.getNumResults() != static_cast<unsigned>(type.getRank()))
      return op->emitOpError()
             << "extra map " << index << " must map the " << output.getRank()
             << " output dims to the extra's " << type.getRank()
             << " indices, each a dim used once or 0, got "
             << AffineMapAttr::get(map);
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      int64_t wanted = dim ? output.getDimSize(dim.getPosition()) : 1;
      int64_t found = type.getDimSize(position);
      if (!ShapedType::isDynamic(wanted) && !ShapedType::isDynamic(found) &&
          wanted != found)
        return op->emitOpError()
               << "extra " << index << " has extent " << found << " in dim "
               << position << ", expected " << wanted;
    }
  }
  return success();
}

LogicalResult verifyEpilogue(Operation *op, Region &epilogue,
                             OperandRange extras, ShapedType output) {
  SmallVector<Type> types = {Type()};
  llvm::append_range(types, getElementTypes(extras));
  return verifyRegion(op, epilogue, "epilogue", types, output.getElementType());
}

LogicalResult verifyEntries(Operation *op, StringRef name,
                            ArrayRef<int64_t> attribute, int64_t rank,
                            int64_t least) {
  if (static_cast<int64_t>(attribute.size()) != rank)
    return op->emitOpError() << name << " has " << attribute.size()
                             << " entries, expected " << rank;
  for (int64_t entry : attribute)
    if (entry < least)
      return op->emitOpError()
             << name << " has entry " << entry << ", the least is " << least;
  return success();
}

LogicalResult verifyWindowDim(Operation *op, int64_t dim,
                              const WindowDim &size) {
  auto padded = checkedAdd(size.extent, size.padBegin);
  padded = padded ? checkedAdd(*padded, size.padEnd) : std::nullopt;
  // The last window may hang over by less than a stride.
  if (!padded || !checkedAdd(*padded, size.stride))
    return op->emitOpError()
           << "in dim " << dim << ": extent " << size.extent << ", pads "
           << size.padBegin << " and " << size.padEnd << " and stride "
           << size.stride << " add up to more than 64 bits hold";
  auto reach = checkedMul(size.dilation, std::max<int64_t>(size.window - 1, 0));
  if (!reach || !checkedAdd(*reach, 1))
    return op->emitOpError() << "in dim " << dim << ": window " << size.window
                             << " times dilation " << size.dilation
                             << " is more than 64 bits hold";
  return success();
}

static bool isNarrowInteger(Type type) {
  return type.isInteger() && type.getIntOrFloatBitWidth() > 1 &&
         type.getIntOrFloatBitWidth() <= 16;
}

LogicalResult verifyFactors(Operation *op, ShapedType lhs, ShapedType rhs) {
  Type a = lhs.getElementType(), b = rhs.getElementType();
  if (a == b || (isNarrowInteger(a) && isa<FloatType, IntegerType>(b)) ||
      (isNarrowInteger(b) && isa<FloatType, IntegerType>(a)))
    return success();
  return op->emitOpError("multiplies elements of types ")
         << a << " and " << b
         << "; one type, or integers of up to 16 bits with another, is "
            "accepted";
}

LogicalResult verifyZeroPoint(Operation *op, StringRef name, ShapedType operand,
                              Value zero, bool isUnsigned) {
  if (!zero && !isUnsigned)
    return success();
  if (!isNarrowInteger(operand.getElementType()))
    return op->emitOpError()
           << name << " of type " << operand << " has a "
           << (zero ? "zero point" : "mark that it is unsigned")
           << ", which integers of up to 16 bits have";
  if (zero && cast<ShapedType>(zero.getType()).getElementType() !=
                  operand.getElementType())
    return op->emitOpError() << name << "'s zero point is " << zero.getType()
                             << ", of another element type than " << operand;
  return success();
}

BlockArgument addExtra(MutableOperandRange extras, ArrayAttr maps,
                       function_ref<void(ArrayAttr)> setMaps, Region &epilogue,
                       Value operand, AffineMap map) {
  extras.append(operand);
  SmallVector<Attribute> newMaps(maps.begin(), maps.end());
  newMaps.push_back(AffineMapAttr::get(map));
  setMaps(ArrayAttr::get(maps.getContext(), newMaps));
  return epilogue.front().addArgument(
      cast<ShapedType>(operand.getType()).getElementType(), operand.getLoc());
}

void buildRegion(OpBuilder &builder, Location loc, Region &region,
                 ArrayRef<Type> argumentTypes, RegionBuilder body) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locs(argumentTypes.size(), loc);
  Block *block =
      builder.createBlock(&region, region.end(), argumentTypes, locs);
  YieldOp::create(builder, loc, body(builder, loc, block->getArguments()));
}

void getStructuredEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  auto isWorkspace = [&](OpOperand &operand) {
    auto user = dyn_cast<WorkspaceOpInterface>(op.getOperation());
    return user && llvm::any_of(user.getWorkspaceMutable(), [&](auto &other) {
             return &other == &operand;
           });
  };
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<BaseMemRefType>(operand.get().getType()))
      continue;
    MemoryEffects::Effect *effect = MemoryEffects::Read::get();
    if (op.isDpsInit(&operand) || isWorkspace(operand))
      effect = MemoryEffects::Write::get();
    effects.emplace_back(effect, &operand, /*stage=*/0,
                         /*effectOnFullRegion=*/true,
                         SideEffects::DefaultResource::get());
  }
}

LogicalResult
bufferizeStructuredOp(DestinationStyleOpInterface op, RewriterBase &rewriter,
                      const bufferization::BufferizationOptions &options,
                      bufferization::BufferizationState &state) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  if (op->getNumResults() == 0)
    return success();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> buffer =
        bufferization::getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  Value destination =
      operands[op.getDpsInitsMutable().begin()->getOperandNumber()];
  OperationState newState(op->getLoc(), op->getName());
  newState.addOperands(operands);
  newState.propertiesAttr = op->getPropertiesAsAttribute();
  newState.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  for (unsigned i = 0, e = op->getNumRegions(); i < e; ++i)
    newState.addRegion();
  Operation *newOp = rewriter.create(newState);
  for (auto [from, to] : llvm::zip(op->getRegions(), newOp->getRegions()))
    rewriter.inlineRegionBefore(from, to, to.end());
  bufferization::replaceOpWithBufferizedValues(rewriter, op, destination);
  return success();
}

} // namespace memplan::detail
