//===- LossOps.cpp - Losses -----------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// -weight[class] * x[n, class, d...], and the weights that were used.
struct ClassLoss {
  NodeBuilder &n;
  DType dtype;
  ImportedTensor &target;
  SmallVector<int64_t> shape; // of x
  Value logits;
  bool isIgnoring = false;
  int64_t ignored = 0;

  LogicalResult check();
  Value element(bool isWeight);
  LogicalResult build();
};
} // namespace

LogicalResult ClassLoss::check() {
  SmallVector<int64_t> wanted(shape);
  if (wanted.size() < 2)
    return n.invalid() << n.inputText(0u) << "; rank 2 and up is accepted";
  wanted.erase(wanted.begin() + 1);
  if (!target.dtype.isInteger() || target.shape() != ArrayRef<int64_t>(wanted))
    return n.invalid() << n.inputText(1) << " holds the classes of "
                       << n.inputText(0u);
  if (n.hasInput(2) && (n.input(2).dtype != dtype ||
                        n.input(2).shape() != ArrayRef<int64_t>(shape[1])))
    return n.invalid() << n.inputText(2) << " holds a weight a class; shape "
                       << shape[1] << " is accepted";
  if (shape[1] == 0 || target.numElements() == 0)
    return n.invalid() << n.inputText(0u) << " has no elements";
  return success();
}

/// The loss of each target, or its weight. Classes outside are moved to the
/// nearest one.
Value ClassLoss::element(bool isWeight) {
  ElementwiseOperands operands(n);
  operands.add(target, target.shape(),
               n.b.getMultiDimIdentityMap(target.rank()));
  bool hasWeights = n.hasInput(2);
  Value weights = hasWeights ? n.value(2) : Value();
  return operands.build(
      target.shape(), dtype.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype), index(b, loc, DType::i64());
        Value kind = castScalar(b, loc, args[0], target.dtype, DType::i64());
        Value safe = index.max(index.integer(0),
                               index.min(kind, index.integer(shape[1] - 1)));
        Value at = arith::IndexCastOp::create(b, loc, b.getIndexType(), safe);
        Value result = s.number(1);
        if (hasWeights)
          result = tensor::ExtractOp::create(b, loc, weights, at);
        if (!isWeight) {
          SmallVector<Value> place = {linalg::IndexOp::create(b, loc, 0), at};
          for (size_t i = 2; i < shape.size(); ++i)
            place.push_back(linalg::IndexOp::create(b, loc, i - 1));
          Value x = tensor::ExtractOp::create(b, loc, logits, place);
          result = s.negate(hasWeights ? s.mul(result, x) : x);
        }
        if (isIgnoring)
          result = s.select(index.equal(kind, index.integer(ignored)),
                            s.number(0), result);
        return result;
      });
}

LogicalResult ClassLoss::build() {
  StringRef reduction = n.stringAttr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.invalid() << "attribute 'reduction' is " << quoted(reduction)
                       << "; none, sum and mean are accepted";
  isIgnoring = n.hasAttr("ignore_index");
  ignored = n.intAttr("ignore_index", 0);
  if (failed(check()))
    return failure();
  Value losses = element(/*isWeight=*/false);
  if (reduction == "none")
    return n.result(losses, dtype);
  SmallVector<Value> inputs = {losses};
  bool isMean = reduction == "mean";
  bool isWeighted = isMean && (n.hasInput(2) || isIgnoring);
  if (isWeighted)
    inputs.push_back(element(/*isWeight=*/true));
  int64_t rank = target.rank();
  SmallVector<AffineMap> maps(inputs.size(), n.b.getMultiDimIdentityMap(rank));
  maps.push_back(AffineMap::get(rank, 0, n.context()));
  auto sumOf = [](unsigned i) {
    return [i](OpBuilder &b, Location loc, ValueRange args) {
      return toAccumulator(b, loc, args[i]);
    };
  };
  auto first = sumOf(0), second = sumOf(1);
  SmallVector<RegionBuilder> stages = {first};
  SmallVector<Combiner> combiners = {Combiner::Sum};
  if (isWeighted) {
    stages.push_back(second);
    combiners.push_back(Combiner::Sum);
  }
  Type type = dtype.type(n.context());
  auto op = RowwiseOp::create(
      n.b, n.loc, inputs, empty(n, {}, type),
      llvm::to_vector(llvm::seq<int64_t>(rank)), combiners, maps, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = args[inputs.size()];
        if (isMean) {
          Value count = isWeighted ? args[inputs.size() + 1] : Value();
          if (!count)
            count = arith::ConstantOp::create(
                b, loc,
                b.getFloatAttr(sum.getType(),
                               static_cast<double>(target.numElements())));
          sum = arith::DivFOp::create(b, loc, sum, count);
        }
        return fromAccumulator(b, loc, sum, type);
      });
  return n.result(op.getResult(), dtype);
}

static LogicalResult buildNegativeLogLikelihood(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  ImportedTensor &x = n.input(0);
  return ClassLoss{n, x.dtype, n.input(1), SmallVector<int64_t>(x.shape()),
                   n.value(0)}
      .build();
}

/// The second output is the logarithm of the softmax over the classes.
static LogicalResult buildSoftmaxCrossEntropy(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  ImportedTensor &x = n.input(0);
  if (x.rank() < 2 || x.numElements() == 0)
    return n.invalid() << n.inputText(0u)
                       << "; rank 2 and up, with elements, is accepted";
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  Type element = x.type.getElementType();
  auto shifted = [](OpBuilder &b, Location loc, ValueRange args) -> Value {
    return arith::SubFOp::create(b, loc, toAccumulator(b, loc, args[0]),
                                 args[1]);
  };
  auto largest = [](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto sum = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    return math::ExpOp::create(b, loc, shifted(b, loc, args));
  };
  RegionBuilder stages[] = {largest, sum};
  auto op = RowwiseOp::create(
      n.b, n.loc, n.value(0), empty(n, x.shape(), element), 1,
      {Combiner::Max, Combiner::Sum}, {identity, identity}, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value logarithm = math::LogOp::create(b, loc, args[2]);
        return fromAccumulator(
            b, loc,
            arith::SubFOp::create(b, loc, shifted(b, loc, args), logarithm)
                .getResult(),
            element);
      });
  if (failed(n.result(1, op.getResult(), x.dtype)))
    return failure();
  return ClassLoss{n, x.dtype, n.input(1), SmallVector<int64_t>(x.shape()),
                   op.getResult()}
      .build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> lossOps() {
  static const OpEntry kOps[] = {
      {"NegativeLogLikelihoodLoss", 12, kNewestOpset, 2, 3, 1,
       buildNegativeLogLikelihood},
      {"SoftmaxCrossEntropyLoss", 12, kNewestOpset, 2, 3, 2,
       buildSoftmaxCrossEntropy},
  };
  return kOps;
}
} // namespace memplan::onnx
