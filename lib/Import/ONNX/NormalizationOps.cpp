//===- NormalizationOps.cpp - Norms and softmax ---------------------------===//

#include "OpTable.h"
#include "RowMean.h"
#include "RowNorm.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Before opset 13 the input is seen as a matrix whose rows are all dims from
/// `axis` on; since then `axis` alone is the row.
static LogicalResult buildSoftmaxLike(NodeBuilder &n, bool isLog) {
  if (failed(n.floatInput(0)))
    return failure();
  ImportedTensor &x = n.input(0);
  bool isFlattened = n.opset < 13;
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", isFlattened ? 1 : -1), x.rank());
  if (failed(axis))
    return failure();
  SmallVector<int64_t> rows = llvm::to_vector(
      llvm::seq<int64_t>(*axis, isFlattened ? x.rank() : *axis + 1));
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  Type element = x.type.getElementType();
  auto shifted = [](OpBuilder &b, Location loc, Value x, Value max) -> Value {
    return arith::SubFOp::create(b, loc, toAccumulator(b, loc, x), max);
  };
  auto maxStage = [](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto sumStage = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    return math::ExpOp::create(b, loc, shifted(b, loc, args[0], args[1]));
  };
  RegionBuilder stages[] = {maxStage, sumStage};
  auto op = RowwiseOp::create(
      n.b, n.loc, n.value(0), empty(n, x.shape(), element), rows,
      {Combiner::Max, Combiner::Sum}, {identity, identity}, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value d = shifted(b, loc, args[0], args[1]);
        Value result;
        if (isLog)
          result = arith::SubFOp::create(b, loc, d,
                                         math::LogOp::create(b, loc, args[2]));
        else
          result = arith::DivFOp::create(b, loc, math::ExpOp::create(b, loc, d),
                                         args[2]);
        return fromAccumulator(b, loc, result, element);
      });
  return n.result(op.getResult(), x.dtype);
}

static LogicalResult buildSoftmax(NodeBuilder &n) {
  return buildSoftmaxLike(n, /*isLog=*/false);
}
static LogicalResult buildLogSoftmax(NodeBuilder &n) {
  return buildSoftmaxLike(n, /*isLog=*/true);
}

//===----------------------------------------------------------------------===//
// Normalization over rows
//===----------------------------------------------------------------------===//

namespace {
/// (x - mean) / sqrt(variance + epsilon) * scale + bias over rows of a tensor.
struct RowNorm {
  NodeBuilder &n;
  ImportedTensor &x;
  SmallVector<int64_t> shape, rows; // shape: of the view of x that is used
  double epsilon = 1e-5;
  /// Without: divides by the root of the mean square (RMSNormalization).
  bool subtractsMean = true;
  ImportedTensor *scale = nullptr, *bias = nullptr;
  ElementwiseOperands parameters;

  RowNorm(NodeBuilder &n, ImportedTensor &x, ArrayRef<int64_t> shape,
          ArrayRef<int64_t> rows)
      : n(n), x(x), shape(shape), rows(rows), parameters(n) {}

  Value number(OpBuilder &b, Location loc, double value) {
    return arith::ConstantOp::create(
        b, loc,
        b.getFloatAttr(getAccumulatorType(x.type.getElementType()), value));
  }
  double rowLength() {
    double length = 1;
    for (int64_t dim : rows)
      length *= static_cast<double>(shape[dim]);
    return length;
  }
  RowMean rowMean() { return {x.type.getElementType(), rowLength()}; }
  Value centred(OpBuilder &b, Location loc, Value element, Value sum) {
    if (!subtractsMean)
      return toAccumulator(b, loc, element);
    return rowMean().centred(b, loc, element, sum);
  }
  /// 1 / sqrt(variance + epsilon)
  Value inverse(OpBuilder &b, Location loc, Value squares) {
    Value mean =
        arith::DivFOp::create(b, loc, squares, number(b, loc, rowLength()));
    Value variance =
        arith::AddFOp::create(b, loc, mean, number(b, loc, epsilon));
    return arith::DivFOp::create(b, loc, number(b, loc, 1),
                                 math::SqrtOp::create(b, loc, variance));
  }

  Value build();
  /// The row's mean, or the inverse of its deviation, alone.
  Value statistic(bool isMean);

private:
  SmallVector<Combiner> combiners() {
    return SmallVector<Combiner>(subtractsMean ? 2 : 1, Combiner::Sum);
  }
};
} // namespace

Value RowNorm::build() {
  Type element = x.type.getElementType();
  SmallVector<Value> inputs = {reshape(n, n.value(x), shape)};
  SmallVector<AffineMap> maps = {n.b.getMultiDimIdentityMap(shape.size())};
  llvm::append_range(inputs, parameters.values());
  llvm::append_range(maps, parameters.maps());
  maps.push_back(n.b.getMultiDimIdentityMap(shape.size()));
  unsigned numInputs = inputs.size();
  auto sumStage = [&](OpBuilder &b, Location loc, ValueRange args) {
    return rowMean().summand(b, loc, args[0]);
  };
  auto squareStage = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Value d =
        centred(b, loc, args[0], subtractsMean ? args[numInputs] : Value());
    return arith::MulFOp::create(b, loc, d, d);
  };
  SmallVector<RegionBuilder> stages;
  if (subtractsMean)
    stages.push_back(sumStage);
  stages.push_back(squareStage);
  auto op = RowwiseOp::create(
      n.b, n.loc, inputs, empty(n, shape, element), rows, combiners(), maps,
      stages, [&](OpBuilder &b, Location loc, ValueRange args) {
        Value d =
            centred(b, loc, args[0], subtractsMean ? args[numInputs] : Value());
        Value y =
            arith::MulFOp::create(b, loc, d, inverse(b, loc, args.back()));
        auto scalars = parameters.scalars(b, loc, args.slice(1, numInputs - 1));
        unsigned next = 0;
        if (scale)
          y = arith::MulFOp::create(b, loc, y,
                                    toAccumulator(b, loc, scalars[next++]));
        if (bias)
          y = arith::AddFOp::create(b, loc, y,
                                    toAccumulator(b, loc, scalars[next]));
        return fromAccumulator(b, loc, y, element);
      });
  return op.getResult();
}

Value RowNorm::statistic(bool isMean) {
  Value input = reshape(n, n.value(x), shape);
  Type wide = getAccumulatorType(x.type.getElementType());
  auto sumStage = [&](OpBuilder &b, Location loc, ValueRange args) {
    return rowMean().summand(b, loc, args[0]);
  };
  if (isMean)
    return reduceRows(n, input, rows, wide, Combiner::Sum,
                      RegionBuilder(sumStage),
                      [&](OpBuilder &b, Location loc, ValueRange args) {
                        return rowMean().mean(b, loc, args[1]);
                      });
  auto squareStage = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Value d = centred(b, loc, args[0], subtractsMean ? args[1] : Value());
    return arith::MulFOp::create(b, loc, d, d);
  };
  SmallVector<RegionBuilder> stages;
  if (subtractsMean)
    stages.push_back(sumStage);
  stages.push_back(squareStage);
  return reduceRows(n, input, rows, wide, combiners(), stages,
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      return inverse(b, loc, args.back());
                    });
}

/// Adds a parameter that broadcasts to the whole of x.
static LogicalResult addBroadcastParameter(RowNorm &norm,
                                           ImportedTensor &parameter) {
  bool hasType = parameter.dtype == norm.x.dtype ||
                 (parameter.dtype.isFloat() && parameter.dtype.bits() <= 32 &&
                  norm.x.dtype.bits() <= 32);
  if (!hasType)
    return norm.n.invalid()
           << norm.n.inputText(parameter) << " and " << norm.n.inputText(norm.x)
           << " differ in element type";
  auto fits = broadcastShapes({parameter.shape(), norm.x.shape()});
  if (!fits || ArrayRef<int64_t>(*fits) != norm.x.shape())
    return norm.n.invalid()
           << norm.n.inputText(parameter) << " does not broadcast to "
           << norm.n.inputText(norm.x);
  norm.parameters.addBroadcast(parameter, norm.x.shape());
  return success();
}

FailureOr<Value> memplan::onnx::normalizeRows(NodeBuilder &n, ImportedTensor &x,
                                              int64_t axis,
                                              const RowNormOptions &options) {
  RowNorm norm(n, x, x.shape(),
               llvm::to_vector(llvm::seq<int64_t>(axis, x.rank())));
  norm.subtractsMean = options.subtractsMean;
  norm.epsilon = options.epsilon;
  norm.scale = options.scale;
  norm.bias = options.bias;
  for (ImportedTensor *parameter : {options.scale, options.bias})
    if (parameter && failed(addBroadcastParameter(norm, *parameter)))
      return failure();
  return norm.build();
}

LogicalResult memplan::onnx::buildLayerNorm(NodeBuilder &n, bool isRms,
                                            int firstStatistic) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), x.rank());
  if (failed(n.floatInput(0)) || failed(axis))
    return failure();
  int64_t stash = n.intAttr("stash_type", 1);
  if (stash != 1 && !(x.dtype.bits() == 64 && stash == x.dtype.code()))
    return n.unsupported() << "attribute 'stash_type' is " << dtypeName(stash)
                           << "; float is accepted";
  RowNormOptions options;
  options.subtractsMean = !isRms;
  options.epsilon = n.floatAttr("epsilon", 1e-5f);
  options.scale = &n.input(1);
  options.bias = n.hasInput(2) ? &n.input(2) : nullptr;
  if (n.wantsOutput(0)) {
    FailureOr<Value> y = normalizeRows(n, x, *axis, options);
    if (failed(y) || failed(n.result(0, *y, x.dtype)))
      return failure();
  }
  RowNorm norm(n, x, x.shape(),
               llvm::to_vector(llvm::seq<int64_t>(*axis, x.rank())));
  norm.subtractsMean = !isRms;
  norm.epsilon = options.epsilon;
  SmallVector<int64_t> kept(x.shape().take_front(*axis));
  kept.append(x.rank() - *axis, 1);
  DType wide = x.dtype.bits() < 32 ? DType::f32() : x.dtype;
  for (int i : {1, 2})
    if (i >= firstStatistic && n.wantsOutput(i) &&
        failed(n.result(
            i, reshape(n, norm.statistic(i == firstStatistic), kept), wide)))
      return failure();
  return success();
}

static LogicalResult buildLayerNormalization(NodeBuilder &n) {
  return buildLayerNorm(n, /*isRms=*/false, /*firstStatistic=*/1);
}
static LogicalResult buildRMSNormalization(NodeBuilder &n) {
  return buildLayerNorm(n, /*isRms=*/true, /*firstStatistic=*/1);
}

static LogicalResult checkChannels(NodeBuilder &n, unsigned i) {
  if (n.input(i).shape() == ArrayRef<int64_t>(n.input(0).dim(1)))
    return success();
  return n.invalid() << n.inputText(i)
                     << " has one entry per channel: " << n.input(0).dim(1)
                     << " is accepted";
}

static LogicalResult buildInstanceNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  if (x.rank() < 3)
    return n.invalid() << n.inputText(0u)
                       << " has no spatial dims; rank 3 and up is accepted";
  RowNorm norm(n, x, x.shape(),
               llvm::to_vector(llvm::seq<int64_t>(2, x.rank())));
  norm.epsilon = n.floatAttr("epsilon", 1e-5f);
  norm.scale = &n.input(1);
  norm.bias = &n.input(2);
  AffineMap channel = AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(1));
  for (unsigned i : {1u, 2u}) {
    if (failed(checkChannels(n, i)))
      return failure();
    norm.parameters.add(n.input(i), n.input(i).shape(), channel);
  }
  return n.result(norm.build(), x.dtype);
}

static LogicalResult buildGroupNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  int64_t groups = n.intAttr("num_groups", 0);
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    return n.invalid() << n.inputText(0u) << " has channels that attribute "
                       << "'num_groups' = " << groups << " does not divide";
  int64_t stash = n.opset < 21 ? 1 : n.intAttr("stash_type", 1);
  if (stash != 1)
    return n.unsupported() << "attribute 'stash_type' is " << dtypeName(stash)
                           << "; float is accepted";
  SmallVector<int64_t> shape = {x.dim(0), groups, x.dim(1) / groups};
  llvm::append_range(shape, x.shape().drop_front(2));
  RowNorm norm(n, x, shape,
               llvm::to_vector(llvm::seq<int64_t>(2, shape.size())));
  norm.epsilon = n.floatAttr("epsilon", 1e-5f);
  norm.scale = &n.input(1);
  norm.bias = &n.input(2);
  // Before opset 21 the parameters have one entry per group.
  bool isPerGroup = n.opset < 21;
  SmallVector<AffineExpr> exprs = {n.b.getAffineDimExpr(1)};
  SmallVector<int64_t> view = {groups};
  if (!isPerGroup) {
    exprs.push_back(n.b.getAffineDimExpr(2));
    view.push_back(x.dim(1) / groups);
  }
  AffineMap map = AffineMap::get(shape.size(), 0, exprs, n.context());
  for (unsigned i : {1u, 2u}) {
    if (isPerGroup && n.input(i).shape() != ArrayRef<int64_t>(groups))
      return n.invalid() << n.inputText(i)
                         << " has one entry per group: " << groups
                         << " is accepted before opset 21";
    if (!isPerGroup && failed(checkChannels(n, i)))
      return failure();
    norm.parameters.add(n.input(i), view, map);
  }
  return n.result(reshape(n, norm.build(), x.shape()), x.dtype);
}

//===----------------------------------------------------------------------===//
// BatchNormalization
//===----------------------------------------------------------------------===//

/// Mean and variance of each channel, over all samples.
static std::pair<Value, Value> channelStatistics(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  DType dtype = x.dtype;
  SmallVector<int64_t> rows = {0};
  for (int64_t i = 2; i < x.rank(); ++i)
    rows.push_back(i);
  double count = static_cast<double>(x.numElements() / x.dim(1));
  Type wide = getAccumulatorType(x.type.getElementType());
  DType wideType = wide.isF64() ? *DType::fromCode(11) : DType::f32();
  auto mean = [&](const Scalars &s, Value sum) {
    return s.div(sum, s.number(count));
  };
  auto element = [](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto square = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, wideType);
    Value apart = s.sub(toAccumulator(b, loc, args[0]), mean(s, args[1]));
    return s.mul(apart, apart);
  };
  auto finish = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, wideType);
    return fromAccumulator(b, loc, mean(s, args.back()),
                           dtype.type(b.getContext()));
  };
  RegionBuilder stages[] = {element, square};
  Combiner combiners[] = {Combiner::Sum, Combiner::Sum};
  auto reduce = [&](size_t count) {
    return reduceRows(n, n.value(0), rows, x.type.getElementType(),
                      ArrayRef(combiners).take_front(count),
                      ArrayRef(stages).take_front(count), finish);
  };
  Value means = reduce(1), variances = reduce(2);
  return {means, variances};
}

/// Normalizes by the samples' own statistics, and moves the given ones towards
/// them.
static LogicalResult buildTrainedBatchNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  double epsilon = n.floatAttr("epsilon", 1e-5f);
  double momentum = n.floatAttr("momentum", 0.9f);
  DType dtype = x.dtype;
  if (x.rank() < 2 || x.numElements() == 0)
    return n.invalid() << n.inputText(0u)
                       << "; samples of channels are accepted";
  for (unsigned i = 1; i < 5; ++i)
    if (!n.input(i).dtype.isFloat() ||
        n.input(i).shape() != ArrayRef<int64_t>(x.dim(1)))
      return n.invalid() << n.inputText(i) << " is a parameter of "
                         << n.inputText(0u) << "; " << x.dim(1)
                         << " floats are accepted";
  auto [means, variances] = channelStatistics(n);
  Value own[2] = {means, variances};
  AffineMap map = AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(1));
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(), n.b.getMultiDimIdentityMap(x.rank()));
  for (unsigned i = 1; i < 3; ++i)
    operands.add(n.input(i), n.input(i).shape(), map);
  for (Value statistic : own)
    operands.add(statistic, map);
  auto given = [&](OpBuilder &b, Location loc, Value element, unsigned i) {
    return castScalar(b, loc, element, n.input(i).dtype, dtype);
  };
  Value y = operands.build(x.shape(), x.type.getElementType(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, dtype);
                             Value inverse = s.make<math::RsqrtOp>(
                                 s.add(args[4], s.number(epsilon)));
                             Value slope =
                                 s.mul(given(b, loc, args[1], 1), inverse);
                             return s.add(s.mul(s.sub(args[0], args[3]), slope),
                                          given(b, loc, args[2], 2));
                           });
  if (failed(n.result(0, y, dtype)))
    return failure();
  for (unsigned i = 0; i < 2; ++i) {
    if (!n.wantsOutput(1 + i))
      continue;
    ImportedTensor &old = n.input(3 + i);
    AffineMap identity = n.b.getMultiDimIdentityMap(1);
    ElementwiseOperands pair(n);
    pair.add(old, old.shape(), identity);
    pair.add(own[i], identity);
    Value moved =
        pair.build(old.shape(), old.type.getElementType(),
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     Scalars s(b, loc, old.dtype);
                     Value now = castScalar(b, loc, args[1], dtype, old.dtype);
                     return s.add(s.mul(args[0], s.number(momentum)),
                                  s.mul(now, s.number(1 - momentum)));
                   });
    if (failed(n.result(1 + i, moved, old.dtype)))
      return failure();
  }
  return success();
}

/// (x - mean) * (scale / sqrt(variance + epsilon)) + bias, with given mean and
/// variance.
static LogicalResult buildBatchNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (n.opset >= 14 && n.intAttr("training_mode", 0) != 0)
    return buildTrainedBatchNormalization(n);
  n.ignoreAttr("momentum"); // of training
  float epsilon = n.floatAttr("epsilon", 1e-5f);
  bool isSpatial = n.opset >= 9 || n.intAttr("spatial", 1) != 0;
  if (n.opset < 7 && n.intAttr("is_test", 0) == 0)
    return n.unsupported() << "attribute 'is_test' is 0, which is training; 1 "
                              "is accepted";
  if (failed(n.floatInput(0)))
    return failure();
  if (x.rank() < 1)
    return n.invalid() << n.inputText(0u) << " is a scalar";
  // A tensor of rank 1 has one channel.
  ArrayRef<int64_t> wanted = x.shape().drop_front();
  int64_t channels = x.rank() > 1 ? x.dim(1) : 1;
  if (isSpatial)
    wanted = channels;
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 1; i < x.rank(); ++i)
    if (i == 1 || !isSpatial)
      exprs.push_back(n.b.getAffineDimExpr(i));
  SmallVector<int64_t> view(wanted);
  if (x.rank() == 1)
    view.clear();
  AffineMap map = AffineMap::get(x.rank(), 0, exprs, n.context());
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(), n.b.getMultiDimIdentityMap(x.rank()));
  for (unsigned i = 1; i < 5; ++i) {
    if (failed(n.floatInput(i)))
      return failure();
    if (n.input(i).shape() != wanted)
      return n.invalid() << n.inputText(i) << " is a parameter of "
                         << n.inputText(0u) << "; shape " << shapeText(wanted)
                         << " is accepted";
    operands.add(n.input(i), view, map);
  }
  DType dtype = x.dtype;
  Value y = operands.build(
      x.shape(), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype);
        auto parameter = [&](unsigned i) {
          return castScalar(b, loc, args[i], n.input(i).dtype, dtype);
        };
        // rsqrt rather than a root and a division: those are calls on a GPU,
        // whose registers a convolution's epilogue doesn't have to spare.
        Value inverse =
            s.make<math::RsqrtOp>(s.add(parameter(4), s.number(epsilon)));
        Value slope = s.mul(parameter(1), inverse);
        return s.add(s.mul(s.sub(args[0], parameter(3)), slope), parameter(2));
      });
  return n.result(y, dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> normalizationOps() {
  static const OpEntry kOps[] = {
      {"BatchNormalization", 1, kNewestOpset, 5, 5, 5, buildBatchNormalization},
      {"GroupNormalization", 18, kNewestOpset, 3, 3, 1,
       buildGroupNormalization},
      {"InstanceNormalization", 1, kNewestOpset, 3, 3, 1,
       buildInstanceNormalization},
      // Before opset 17 an operator of ONNX Runtime's.
      {"LayerNormalization", 1, kNewestOpset, 2, 3, 3, buildLayerNormalization},
      {"LogSoftmax", 1, kNewestOpset, 1, 1, 1, buildLogSoftmax},
      {"RMSNormalization", 23, kNewestOpset, 2, 2, 1, buildRMSNormalization},
      {"Softmax", 1, kNewestOpset, 1, 1, 1, buildSoftmax},
  };
  return kOps;
}
} // namespace memplan::onnx
