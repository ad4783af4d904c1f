//===- Evaluate.cpp - Run ops on constants --------------------------------===//

#include "Evaluate.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace memplan;

namespace {
/// The elements of a tensor; one entry for a tensor of one value.
struct Elements {
  RankedTensorType type;
  bool isSplat = false;
  SmallVector<Attribute, 0> values;

  explicit Elements(RankedTensorType type) : type(type) {}
  explicit Elements(DenseElementsAttr attribute)
      : type(cast<RankedTensorType>(attribute.getType())),
        isSplat(attribute.isSplat()) {
    if (isSplat)
      values.push_back(attribute.getSplatValue<Attribute>());
    else
      values.append(attribute.getValues<Attribute>().begin(),
                    attribute.getValues<Attribute>().end());
  }
  Attribute at(int64_t linear) const { return values[isSplat ? 0 : linear]; }
  DenseElementsAttr attribute() const {
    return DenseElementsAttr::get(type, values);
  }
};

using Scalars = DenseMap<Value, Attribute>;

class Evaluator {
public:
  explicit Evaluator(int64_t budget) : budget(budget) {}
  bool run(Block &block);
  DenseElementsAttr get(Value value) {
    auto found = tensors.find(value);
    // A tensor of no element has no value that could be missing.
    if (found == tensors.end() ||
        llvm::is_contained(found->second.values, Attribute()))
      return DenseElementsAttr();
    return found->second.attribute();
  }

private:
  bool runTensorOp(Operation &op);
  bool runReshape(Operation &op);
  bool runExtractSlice(tensor::ExtractSliceOp op);
  bool runInsertSlice(tensor::InsertSliceOp op);
  bool runGeneric(linalg::GenericOp op);
  bool runRowwise(RowwiseOp op);
  /// The operand of the block's terminator, given its arguments.
  Attribute runScalars(Block &block, ArrayRef<Attribute> arguments,
                       ArrayRef<int64_t> point);
  Attribute read(Value tensor, AffineMap map, ArrayRef<int64_t> point);
  bool spend(int64_t steps) {
    budget -= steps;
    return budget >= 0;
  }

  DenseMap<Value, Elements> tensors;
  int64_t budget;
};
} // namespace

/// Row-major position of `index` in a tensor of shape `shape`.
static int64_t linearize(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t linear = 0;
  for (auto [extent, i] : llvm::zip_equal(shape, index))
    linear = linear * extent + i;
  return linear;
}

/// Calls `body` with every index of `shape`, the last dim fastest, until it
/// returns false.
static bool forEachIndex(ArrayRef<int64_t> shape,
                         function_ref<bool(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return true;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    if (!body(index))
      return false;
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    for (; dim >= 0 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
    if (dim < 0)
      return true;
  }
}

static SmallVector<int64_t> apply(AffineMap map, ArrayRef<int64_t> point) {
  return map.compose(point);
}

Attribute Evaluator::read(Value tensor, AffineMap map,
                          ArrayRef<int64_t> point) {
  const Elements &elements = tensors.find(tensor)->second;
  if (elements.isSplat)
    return elements.values.front();
  return elements.at(linearize(elements.type.getShape(), apply(map, point)));
}

Attribute Evaluator::runScalars(Block &block, ArrayRef<Attribute> arguments,
                                ArrayRef<int64_t> point) {
  Scalars scalars;
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    scalars[argument] = value;
  for (Operation &op : block.without_terminator()) {
    if (!spend(1) || op.getNumResults() != 1)
      return {};
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      scalars[op.getResult(0)] = IntegerAttr::get(
          IndexType::get(op.getContext()), point[index.getDim()]);
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      auto found = tensors.find(extract.getTensor());
      if (found == tensors.end())
        return {};
      SmallVector<int64_t> index;
      for (auto [value, extent] :
           llvm::zip(extract.getIndices(), found->second.type.getShape())) {
        auto at = dyn_cast_or_null<IntegerAttr>(scalars.lookup(value));
        if (!at || at.getInt() < 0 || at.getInt() >= extent)
          return {};
        index.push_back(at.getInt());
      }
      scalars[op.getResult(0)] =
          found->second.at(linearize(found->second.type.getShape(), index));
      continue;
    }
    SmallVector<Attribute> operands;
    for (Value operand : op.getOperands())
      operands.push_back(scalars.lookup(operand));
    SmallVector<OpFoldResult> folded;
    if (failed(op.fold(operands, folded)) || folded.size() != 1)
      return {};
    auto value = dyn_cast<Attribute>(folded.front());
    if (!value)
      value = scalars.lookup(cast<Value>(folded.front()));
    if (!value)
      return {};
    scalars[op.getResult(0)] = value;
  }
  return scalars.lookup(block.getTerminator()->getOperand(0));
}

bool Evaluator::runReshape(Operation &op) {
  auto source = tensors.find(op.getOperand(0));
  if (source == tensors.end())
    return false;
  Elements result = source->second;
  result.type = cast<RankedTensorType>(op.getResult(0).getType());
  tensors.insert({op.getResult(0), std::move(result)});
  return true;
}

/// The positions that a slice names in the larger tensor, in row-major order.
static bool sliceIndices(OffsetSizeAndStrideOpInterface op,
                         ArrayRef<int64_t> shape,
                         SmallVectorImpl<int64_t> &positions) {
  auto isDynamic = [](int64_t entry) { return ShapedType::isDynamic(entry); };
  if (llvm::any_of(op.getStaticOffsets(), isDynamic) ||
      llvm::any_of(op.getStaticSizes(), isDynamic) ||
      llvm::any_of(op.getStaticStrides(), isDynamic))
    return false;
  return forEachIndex(op.getStaticSizes(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at;
    for (auto [i, offset, stride] :
         llvm::zip(index, op.getStaticOffsets(), op.getStaticStrides()))
      at.push_back(offset + i * stride);
    positions.push_back(linearize(shape, at));
    return true;
  });
}

bool Evaluator::runExtractSlice(tensor::ExtractSliceOp op) {
  auto source = tensors.find(op.getSource());
  SmallVector<int64_t> positions;
  if (source == tensors.end() || !spend(op.getType().getNumElements()) ||
      !sliceIndices(op, source->second.type.getShape(), positions))
    return false;
  Elements result(op.getType());
  for (int64_t position : positions)
    result.values.push_back(source->second.at(position));
  tensors.insert({op.getResult(), std::move(result)});
  return true;
}

bool Evaluator::runInsertSlice(tensor::InsertSliceOp op) {
  auto source = tensors.find(op.getSource());
  SmallVector<int64_t> positions;
  if (source == tensors.end() || !spend(op.getType().getNumElements()) ||
      !sliceIndices(op, op.getType().getShape(), positions))
    return false;
  Elements result(op.getType());
  auto dest = tensors.find(op.getDest());
  for (int64_t i = 0, e = op.getType().getNumElements(); i < e; ++i)
    result.values.push_back(dest == tensors.end() ? Attribute()
                                                  : dest->second.at(i));
  for (auto [i, position] : llvm::enumerate(positions))
    result.values[position] = source->second.at(i);
  tensors.insert({op.getResult(), std::move(result)});
  return true;
}

bool Evaluator::runGeneric(linalg::GenericOp op) {
  if (op.getNumResults() != 1 || op.getNumReductionLoops() != 0 ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool allSplat = !op.hasIndexSemantics();
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto found = tensors.find(input->get());
    if (found == tensors.end())
      return false;
    allSplat &= found->second.isSplat;
  }
  for (Operation &scalar : *op.getBody())
    allSplat &= !isa<tensor::ExtractOp>(scalar);
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  Elements result(type);
  result.isSplat = allSplat && type.getNumElements() > 0;
  if (!result.isSplat) {
    if (type.getNumElements() > budget)
      return false;
    result.values.resize(type.getNumElements());
  }
  auto compute = [&](ArrayRef<int64_t> point) {
    SmallVector<Attribute> arguments;
    for (auto [index, input] : llvm::enumerate(op.getDpsInputOperands()))
      arguments.push_back(read(input->get(), maps[index], point));
    Attribute value = runScalars(*op.getBody(), arguments, point);
    if (!value || !spend(1))
      return false;
    if (result.isSplat)
      result.values.push_back(value);
    else
      result.values[linearize(type.getShape(), apply(maps.back(), point))] =
          value;
    return true;
  };
  bool done = result.isSplat
                  ? compute(SmallVector<int64_t>(op.getNumLoops(), 0))
                  : forEachIndex(op.getStaticLoopRanges(), compute);
  if (done)
    tensors.insert({op.getResult(0), std::move(result)});
  return done;
}

static Attribute combine(Combiner combiner, Attribute x, Attribute y) {
  if (auto a = dyn_cast<IntegerAttr>(x)) {
    APInt p = a.getValue(), q = cast<IntegerAttr>(y).getValue();
    switch (combiner) {
    case Combiner::Sum:
      return IntegerAttr::get(a.getType(), p + q);
    case Combiner::Prod:
      return IntegerAttr::get(a.getType(), p * q);
    case Combiner::Max: // of signed integers, the importer makes no others
      return IntegerAttr::get(a.getType(), llvm::APIntOps::smax(p, q));
    case Combiner::Min:
      return IntegerAttr::get(a.getType(), llvm::APIntOps::smin(p, q));
    }
  }
  auto a = cast<FloatAttr>(x);
  APFloat p = a.getValue(), q = cast<FloatAttr>(y).getValue();
  switch (combiner) {
  case Combiner::Sum:
    return FloatAttr::get(a.getType(), p + q);
  case Combiner::Prod:
    return FloatAttr::get(a.getType(), p * q);
  case Combiner::Max:
    return FloatAttr::get(a.getType(), llvm::maximum(p, q));
  case Combiner::Min:
    return FloatAttr::get(a.getType(), llvm::minimum(p, q));
  }
  return {};
}

/// Reductions of one stage; rows of no element are left alone.
bool Evaluator::runRowwise(RowwiseOp op) {
  if (!op.isReduction() || op.getStages().size() != 1)
    return false;
  for (Value input : op.getInputs())
    if (!tensors.count(input))
      return false;
  SmallVector<int64_t> extents = op.getLoopExtents();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (type.getNumElements() > budget)
    return false;
  SmallVector<Attribute, 0> sums(type.getNumElements());
  auto readAll = [&](ArrayRef<int64_t> point) {
    SmallVector<Attribute> arguments;
    for (auto [index, input] : llvm::enumerate(op.getInputs()))
      arguments.push_back(read(input, op.getInputMap(index), point));
    return arguments;
  };
  bool done = forEachIndex(extents, [&](ArrayRef<int64_t> point) {
    Attribute value =
        runScalars(op.getStages()[0].front(), readAll(point), point);
    if (!value || !spend(1))
      return false;
    Attribute &sum =
        sums[linearize(type.getShape(), apply(op.getOutputMap(), point))];
    sum = sum ? combine(op.getCombiner(0), sum, value) : value;
    return bool(sum);
  });
  if (!done || llvm::is_contained(sums, Attribute()))
    return false;
  // `finish` reads no element that depends on the row: any point of it serves.
  Elements result(type);
  SmallVector<int64_t> zeros(extents.size(), 0);
  for (Attribute sum : sums) {
    SmallVector<Attribute> arguments = readAll(zeros);
    for (auto [index, argument] : llvm::enumerate(arguments))
      if (!op.getFinish().front().getArgument(index).use_empty())
        return false;
    arguments.push_back(sum);
    Attribute value = runScalars(op.getFinish().front(), arguments, zeros);
    if (!value)
      return false;
    result.values.push_back(value);
  }
  tensors.insert({op.getResult(), std::move(result)});
  return true;
}

bool Evaluator::runTensorOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      tensors.insert({op.getResult(0), Elements(elements)});
    return true;
  }
  if (isa<tensor::EmptyOp>(op)) {
    // Elements that nobody wrote are missing, unless there are none.
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (type.getNumElements() == 0)
      tensors.insert({op.getResult(0), Elements(type)});
    return true;
  }
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return runReshape(op);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return runExtractSlice(slice);
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return runInsertSlice(slice);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return runGeneric(generic);
  if (auto rowwise = dyn_cast<RowwiseOp>(op))
    return runRowwise(rowwise);
  return false;
}

bool Evaluator::run(Block &block) {
  return llvm::all_of(block, [&](Operation &op) { return runTensorOp(op); });
}

std::optional<SmallVector<DenseElementsAttr>>
memplan::onnx::evaluate(Block &block, ArrayRef<Value> results, int64_t budget) {
  Evaluator evaluator(budget);
  if (!evaluator.run(block))
    return std::nullopt;
  SmallVector<DenseElementsAttr> values;
  for (Value result : results) {
    values.push_back(evaluator.get(result));
    if (!values.back())
      return std::nullopt;
  }
  return values;
}
