//===- TensorOps.cpp - Building ops on static tensors ---------------------===//

#include "TensorOps.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

Value memplan::onnx::empty(NodeBuilder &n, ArrayRef<int64_t> shape,
                           Type element) {
  return tensor::EmptyOp::create(n.b, n.loc, shape, element);
}

Value memplan::onnx::reshape(NodeBuilder &n, Value tensor,
                             ArrayRef<int64_t> shape) {
  auto target = RankedTensorType::get(
      shape, cast<RankedTensorType>(tensor.getType()).getElementType());
  while (true) {
    if (tensor.getType() == target)
      return tensor;
    if (auto op = tensor.getDefiningOp<tensor::CollapseShapeOp>())
      tensor = op.getSrc();
    else if (auto op = tensor.getDefiningOp<tensor::ExpandShapeOp>())
      tensor = op.getSrc();
    else
      break;
  }
  auto source = cast<RankedTensorType>(tensor.getType());
  auto step = [&](RankedTensorType to) {
    auto from = cast<RankedTensorType>(tensor.getType());
    if (from.getRank() == to.getRank())
      return false;
    auto groups = getReassociationIndicesForReshape(from, to);
    if (!groups)
      return false;
    if (from.getRank() > to.getRank())
      tensor = tensor::CollapseShapeOp::create(n.b, n.loc, to, tensor, *groups);
    else
      tensor = tensor::ExpandShapeOp::create(n.b, n.loc, to, tensor, *groups);
    return true;
  };
  if (step(target))
    return tensor;
  // In general: all in one dim, then split anew.
  auto flat =
      RankedTensorType::get({source.getNumElements()}, source.getElementType());
  if (source.getRank() != 1) {
    SmallVector<ReassociationIndices> groups;
    if (source.getRank() != 0)
      groups.emplace_back(
          llvm::to_vector(llvm::seq<int64_t>(source.getRank())));
    if (source.getRank() == 0)
      tensor = tensor::ExpandShapeOp::create(n.b, n.loc, flat, tensor, groups);
    else
      tensor =
          tensor::CollapseShapeOp::create(n.b, n.loc, flat, tensor, groups);
  }
  if (target.getRank() == 1)
    return tensor;
  SmallVector<ReassociationIndices> groups;
  if (target.getRank() == 0)
    return tensor::CollapseShapeOp::create(n.b, n.loc, target, tensor, groups);
  groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(target.getRank())));
  return tensor::ExpandShapeOp::create(n.b, n.loc, target, tensor, groups);
}

Value memplan::onnx::mapElements(NodeBuilder &n, ValueRange inputs,
                                 ArrayRef<AffineMap> maps,
                                 ArrayRef<int64_t> shape, Type element,
                                 RegionBuilder body) {
  Value init = empty(n, shape, element);
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(n.b.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      n.b, n.loc, init.getType(), inputs, init, allMaps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc, body(b, loc, args.drop_back()));
      });
  return op.getResult(0);
}

Value memplan::onnx::accumulate(NodeBuilder &n, ValueRange inputs,
                                ArrayRef<AffineMap> maps, Value init,
                                unsigned numReductions, RegionBuilder body) {
  auto type = cast<RankedTensorType>(init.getType());
  unsigned rank = type.getRank();
  SmallVector<AffineMap> allMaps(maps);
  SmallVector<AffineExpr> exprs;
  for (unsigned dim = 0; dim < rank; ++dim)
    exprs.push_back(n.b.getAffineDimExpr(dim));
  allMaps.push_back(
      AffineMap::get(rank + numReductions, 0, exprs, n.context()));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.append(numReductions, utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      n.b, n.loc, type, inputs, init, allMaps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc, body(b, loc, args));
      });
  return op.getResult(0);
}

Value memplan::onnx::filled(NodeBuilder &n, ArrayRef<int64_t> shape,
                            TypedAttr value) {
  Value scalar = arith::ConstantOp::create(n.b, n.loc, value);
  return linalg::FillOp::create(n.b, n.loc, scalar,
                                empty(n, shape, value.getType()))
      .getResult(0);
}

std::optional<SmallVector<int64_t>>
memplan::onnx::broadcastShapes(ArrayRef<ArrayRef<int64_t>> shapes) {
  size_t rank = 0;
  for (ArrayRef<int64_t> shape : shapes)
    rank = std::max(rank, shape.size());
  SmallVector<int64_t> result(rank, 1);
  for (ArrayRef<int64_t> shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &extent = result[rank - shape.size() + i];
      if (shape[i] == extent || shape[i] == 1)
        continue;
      if (extent != 1)
        return std::nullopt;
      extent = shape[i];
    }
  return result;
}

BroadcastRead memplan::onnx::broadcastTo(NodeBuilder &n, Value tensor,
                                         ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> kept;
  SmallVector<AffineExpr> exprs;
  int64_t offset = static_cast<int64_t>(shape.size()) - type.getRank();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (type.getDimSize(i) != shape[offset + i])
      continue; // 1, stretched
    // A dim of extent 1 in a tensor that is smaller anyway says nothing.
    if (type.getDimSize(i) == 1 && type.getNumElements() == 1 &&
        type.getRank() < static_cast<int64_t>(shape.size()))
      continue;
    kept.push_back(type.getDimSize(i));
    exprs.push_back(n.b.getAffineDimExpr(offset + i));
  }
  return {reshape(n, tensor, kept),
          AffineMap::get(shape.size(), 0, exprs, n.context())};
}

TypedAttr memplan::onnx::splatOf(const ImportedTensor &tensor) {
  DenseElementsAttr elements = tensor.constant;
  if (!elements && tensor.inFile && tensor.numElements() == 1)
    elements = readElements(tensor.dtype, tensor.type, tensor.inFile->bytes);
  if (!elements || !elements.isSplat())
    return {};
  return elements.getSplatValue<TypedAttr>();
}

void ElementwiseOperands::addBroadcast(ImportedTensor &tensor,
                                       ArrayRef<int64_t> shape) {
  splats.push_back(splatOf(tensor));
  if (splats.back())
    return;
  BroadcastRead read = broadcastTo(n, n.value(tensor), shape);
  operands.push_back(read.tensor);
  readMaps.push_back(read.map);
}

void ElementwiseOperands::add(ImportedTensor &tensor,
                              ArrayRef<int64_t> viewShape, AffineMap map) {
  splats.push_back(splatOf(tensor));
  if (splats.back())
    return;
  operands.push_back(reshape(n, n.value(tensor), viewShape));
  readMaps.push_back(map);
}

void ElementwiseOperands::add(Value value, AffineMap map) {
  splats.push_back({});
  operands.push_back(value);
  readMaps.push_back(map);
}

SmallVector<Value> ElementwiseOperands::scalars(OpBuilder &b, Location loc,
                                                ValueRange arguments) const {
  SmallVector<Value> all;
  for (TypedAttr splat : splats) {
    if (splat) {
      all.push_back(arith::ConstantOp::create(b, loc, splat));
      continue;
    }
    all.push_back(arguments.front());
    arguments = arguments.drop_front();
  }
  return all;
}

Value ElementwiseOperands::build(ArrayRef<int64_t> shape, Type element,
                                 RegionBuilder body) {
  return mapElements(n, operands, readMaps, shape, element,
                     [&](OpBuilder &b, Location loc, ValueRange arguments) {
                       return body(b, loc, scalars(b, loc, arguments));
                     });
}

Value memplan::onnx::broadcastElementwise(NodeBuilder &n,
                                          ArrayRef<ImportedTensor *> inputs,
                                          Type element, RegionBuilder body) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (ImportedTensor *input : inputs)
    shapes.push_back(input->shape());
  auto shape = broadcastShapes(shapes);
  if (!shape || !checkedProduct(*shape)) {
    auto diagnostic = n.invalid() << "inputs do not broadcast: ";
    llvm::interleave(
        inputs,
        [&](ImportedTensor *input) { diagnostic << n.inputText(*input); },
        [&] { diagnostic << ", "; });
    return {};
  }
  ElementwiseOperands operands(n);
  for (ImportedTensor *input : inputs)
    operands.addBroadcast(*input, *shape);
  return operands.build(*shape, element, body);
}

Value memplan::onnx::gatherElements(
    NodeBuilder &n, Value source, ArrayRef<int64_t> shape,
    function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)> index) {
  Type element = cast<RankedTensorType>(source.getType()).getElementType();
  return mapElements(
      n, {}, {}, shape, element, [&](OpBuilder &b, Location loc, ValueRange) {
        SmallVector<Value> loops;
        for (size_t i = 0; i < shape.size(); ++i)
          loops.push_back(linalg::IndexOp::create(b, loc, i));
        return tensor::ExtractOp::create(b, loc, source, index(b, loc, loops))
            .getResult();
      });
}

Value memplan::onnx::transpose(NodeBuilder &n, Value tensor,
                               ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  SmallVector<unsigned> inverse(permutation.size());
  for (auto [i, from] : llvm::enumerate(permutation)) {
    shape.push_back(type.getDimSize(from));
    inverse[from] = i;
  }
  // Moving dims of extent 1 moves no element.
  SmallVector<int64_t> moved;
  for (int64_t from : permutation)
    if (type.getDimSize(from) != 1)
      moved.push_back(from);
  if (llvm::is_sorted(moved))
    return reshape(n, tensor, shape);
  AffineMap map = permutation.empty()
                      ? n.b.getMultiDimIdentityMap(0)
                      : AffineMap::getPermutationMap(inverse, n.context());
  return mapElements(
      n, tensor, map, shape, type.getElementType(),
      [](OpBuilder &, Location, ValueRange args) { return args.front(); });
}

Value memplan::onnx::splat(NodeBuilder &n, ArrayRef<int64_t> shape,
                           TypedAttr value) {
  auto type = RankedTensorType::get(shape, value.getType());
  return arith::ConstantOp::create(
      n.b, n.loc, DenseElementsAttr::get(type, Attribute(value)));
}

/// What a reduction of no elements gives.
static Value identityOf(OpBuilder &b, Location loc, Combiner combiner,
                        Type type) {
  TypedAttr value;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const auto &semantics = floatType.getFloatSemantics();
    switch (combiner) {
    case Combiner::Sum:
      value = b.getFloatAttr(type, 0.0);
      break;
    case Combiner::Prod:
      value = b.getFloatAttr(type, 1.0);
      break;
    case Combiner::Max:
    case Combiner::Min:
      value = b.getFloatAttr(
          type, APFloat::getInf(semantics, combiner == Combiner::Max));
      break;
    }
  } else {
    unsigned bits = type.getIntOrFloatBitWidth();
    APInt bound = combiner == Combiner::Max ? APInt::getSignedMinValue(bits)
                                            : APInt::getSignedMaxValue(bits);
    if (combiner == Combiner::Sum || combiner == Combiner::Prod)
      bound = APInt(bits, combiner == Combiner::Prod);
    value = b.getIntegerAttr(type, bound);
  }
  return arith::ConstantOp::create(b, loc, value);
}

Value memplan::onnx::reduceRows(NodeBuilder &n, Value input,
                                ArrayRef<int64_t> rowDims, Type element,
                                ArrayRef<Combiner> combiners,
                                ArrayRef<RegionBuilder> stages,
                                RegionBuilder finish) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (llvm::is_contained(rowDims, i))
      continue;
    shape.push_back(type.getDimSize(i));
    exprs.push_back(n.b.getAffineDimExpr(i));
  }
  // Rows without elements: the results do not depend on the input.
  if (type.getNumElements() == 0)
    return mapElements(
        n, {}, {}, shape, element, [&](OpBuilder &b, Location loc, ValueRange) {
          SmallVector<Value> arguments = {arith::ConstantOp::create(
              b, loc, b.getZeroAttr(type.getElementType()))};
          for (auto [combiner, stage] : llvm::zip(combiners, stages)) {
            Type wide = stage(b, loc, arguments).getType();
            arguments.push_back(identityOf(b, loc, combiner, wide));
          }
          return finish(b, loc, arguments);
        });
  SmallVector<AffineMap> maps = {
      n.b.getMultiDimIdentityMap(type.getRank()),
      AffineMap::get(type.getRank(), 0, exprs, n.context())};
  auto op = RowwiseOp::create(n.b, n.loc, input, empty(n, shape, element),
                              rowDims, combiners, maps, stages, finish);
  return op.getResult();
}
