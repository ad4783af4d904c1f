//===- MicrosoftNorms.cpp - Norms of exported transformers ----------------===//

#include "ControlFlow.h"
#include "Indices.h"
#include "OpTable.h"
#include "RowNorm.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// ONNX Runtime has it in the default domain; its second output is the inverse
/// of the root of the mean square.
static LogicalResult buildSimplifiedLayerNormalization(NodeBuilder &n) {
  return buildLayerNorm(n, /*isRms=*/true, /*firstStatistic=*/0);
}

/// A norm of the rows of input + skip + bias. The sum is an output, too.
static LogicalResult buildSkipNorm(NodeBuilder &n, bool subtractsMean) {
  ImportedTensor &x = n.input(0);
  unsigned bias = subtractsMean ? 4 : 3;
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  if (x.rank() < 2)
    return n.invalid() << n.inputText(0u) << ": rank 2 or 3 is accepted";
  SmallVector<ImportedTensor *> summands = {&x, &n.input(1)};
  if (n.hasInput(bias))
    summands.push_back(&n.input(bias));
  for (ImportedTensor *tensor : summands) {
    auto fits = broadcastShapes({x.shape(), tensor->shape()});
    if (!fits || ArrayRef<int64_t>(*fits) != x.shape())
      return n.invalid() << n.inputText(*tensor) << " does not broadcast to "
                         << n.inputText(0u);
    if (tensor->dtype != x.dtype)
      return n.invalid() << n.inputText(*tensor) << " and " << n.inputText(0u)
                         << " differ in element type";
  }
  Value sum =
      broadcastElementwise(n, summands, x.type.getElementType(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, x.dtype);
                             Value sum = args[0];
                             for (Value arg : args.drop_front())
                               sum = s.add(sum, arg);
                             return sum;
                           });
  if (!sum)
    return failure();
  RowNormOptions options;
  options.subtractsMean = subtractsMean;
  options.epsilon = n.floatAttr("epsilon", 1e-12f);
  options.scale = &n.input(2);
  if (subtractsMean && n.hasInput(3))
    options.bias = &n.input(3);
  FailureOr<Value> y = normalizeRows(n, *keepValue(n, sum, x.dtype, x.name),
                                     x.rank() - 1, options);
  if (failed(y) || failed(n.result(0, *y, x.dtype)))
    return failure();
  return n.result(3, sum, x.dtype);
}

static LogicalResult buildSkipLayerNormalization(NodeBuilder &n) {
  return buildSkipNorm(n, /*subtractsMean=*/true);
}
static LogicalResult buildSkipSimplifiedLayerNormalization(NodeBuilder &n) {
  return buildSkipNorm(n, /*subtractsMean=*/false);
}

//===----------------------------------------------------------------------===//
// EmbedLayerNormalization
//===----------------------------------------------------------------------===//

namespace {
/// The norm of the sum of up to three embeddings of each token.
class EmbedNorm {
public:
  explicit EmbedNorm(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  enum Input {
    Ids,
    Segments,
    Words,
    Positions,
    SegmentTable,
    Gamma,
    Beta,
    Mask,
    PositionIds
  };

  LogicalResult checkShapes();
  Value sum();
  LogicalResult setMaskIndex();

  NodeBuilder &n;
  int64_t batch = 0, length = 0, hidden = 0;
};
} // namespace

LogicalResult EmbedNorm::checkShapes() {
  for (unsigned i : {Words, Positions, Gamma, Beta})
    if (!n.hasInput(i))
      return n.invalid() << "has no input " << i << ", which is required";
  ImportedTensor &ids = n.input(Ids), &words = n.input(Words);
  if (ids.rank() != 2 || words.rank() != 2)
    return n.invalid() << n.inputText(Ids) << " and " << n.inputText(Words)
                       << ": (batch, length) and (words, hidden) are accepted";
  batch = ids.dim(0);
  length = ids.dim(1);
  hidden = words.dim(1);
  if (n.hasInput(Segments) != n.hasInput(SegmentTable))
    return n.invalid() << "has segments or their embedding, but not both";
  for (unsigned i : {Words, Positions, SegmentTable}) {
    if (!n.hasInput(i))
      continue;
    if (failed(n.floatInput(i)) || failed(n.sameTypes({Words, i})))
      return failure();
    if (n.input(i).rank() != 2 || n.input(i).dim(1) != hidden ||
        n.input(i).dim(0) < 1)
      return n.invalid() << n.inputText(i) << " is an embedding of size "
                         << hidden;
  }
  for (unsigned i : {Ids, Segments, Mask, PositionIds}) {
    if (!n.hasInput(i))
      continue;
    ImportedTensor &x = n.input(i);
    bool isShared = i == PositionIds && x.rank() == 2 && x.dim(0) == 1;
    if (!x.dtype.isInteger() || x.rank() != 2 || x.dim(1) != length ||
        (x.dim(0) != batch && !isShared))
      return n.invalid() << n.inputText(i) << ": " << batch << "x" << length
                         << " integers are accepted";
  }
  if (!n.hasInput(PositionIds) && n.input(Positions).dim(0) < length)
    return n.invalid() << n.inputText(Positions) << " has fewer than " << length
                       << " positions";
  return success();
}

Value EmbedNorm::sum() {
  DType dtype = n.input(Words).dtype;
  Value words = n.value(Words), positions = n.value(Positions);
  Value segments = n.hasInput(Segments) ? n.value(SegmentTable) : Value();
  SmallVector<Value> inputs = {n.value(Ids)};
  AffineMap perToken = AffineMap::get(
      3, 0, {n.b.getAffineDimExpr(0), n.b.getAffineDimExpr(1)}, n.context());
  SmallVector<AffineMap> maps = {perToken};
  SmallVector<unsigned> which = {Ids};
  for (unsigned i : {Segments, PositionIds})
    if (n.hasInput(i)) {
      which.push_back(i);
      BroadcastRead read = broadcastTo(n, n.value(i), {batch, length});
      inputs.push_back(read.tensor);
      maps.push_back(read.map.compose(perToken));
    }
  return mapElements(
      n, inputs, maps, {batch, length, hidden}, dtype.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype);
        Value column = linalg::IndexOp::create(b, loc, 2);
        auto row = [&](unsigned input, Value table, Value index) -> Value {
          int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(0);
          Value at = safeIndex(b, loc, index, n.input(input).dtype, rows);
          return tensor::ExtractOp::create(b, loc, table,
                                           ValueRange{at, column});
        };
        Value total = row(Ids, words, args[0]);
        Value position;
        for (auto [input, arg] : llvm::zip(which, args)) {
          if (input == PositionIds)
            position = row(input, positions, arg);
          if (input == Segments)
            total = s.add(total, row(input, segments, arg));
        }
        if (!position)
          position = tensor::ExtractOp::create(
              b, loc, positions,
              ValueRange{linalg::IndexOp::create(b, loc, 1), column});
        return s.add(total, position);
      });
}

/// How many tokens of a sample its mask leaves.
LogicalResult EmbedNorm::setMaskIndex() {
  n.ignoreAttr("mask_index_type"); // of what no mask gives
  if (!n.wantsOutput(1))
    return success();
  DType index = *DType::fromCode(6);
  Type element = index.type(n.context());
  if (!n.hasInput(Mask))
    return n.result(1, splat(n, batch, n.b.getIntegerAttr(element, 0)), index);
  auto stage = [&](OpBuilder &b, Location loc, ValueRange args) {
    return castScalar(b, loc, args[0], n.input(Mask).dtype, index);
  };
  Value count = reduceRows(
      n, n.value(Mask), 1, element, Combiner::Sum, RegionBuilder(stage),
      [](OpBuilder &, Location, ValueRange args) { return args.back(); });
  return n.result(1, count, index);
}

LogicalResult EmbedNorm::build() {
  if (failed(checkShapes()))
    return failure();
  DType dtype = n.input(Words).dtype;
  Value total = sum();
  RowNormOptions options;
  options.epsilon = n.floatAttr("epsilon", 1e-12f);
  options.scale = &n.input(Gamma);
  options.bias = &n.input(Beta);
  FailureOr<Value> y = normalizeRows(
      n, *keepValue(n, total, dtype, n.outputName(0)), 2, options);
  if (failed(y) || failed(n.result(0, *y, dtype)) || failed(setMaskIndex()))
    return failure();
  return n.result(2, total, dtype);
}

static LogicalResult buildEmbedLayerNormalization(NodeBuilder &n) {
  return EmbedNorm(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> microsoftNorms() {
  static const OpEntry kOps[] = {
      {"EmbedLayerNormalization", 1, kNewestOpset, 1, 9, 3,
       buildEmbedLayerNormalization, "com.microsoft"},
      {"SimplifiedLayerNormalization", 1, kNewestOpset, 2, 2, 2,
       buildSimplifiedLayerNormalization},
      {"SkipLayerNormalization", 1, kNewestOpset, 3, 5, 4,
       buildSkipLayerNormalization, "com.microsoft"},
      {"SkipSimplifiedLayerNormalization", 1, kNewestOpset, 3, 4, 4,
       buildSkipSimplifiedLayerNormalization, "com.microsoft"},
  };
  return kOps;
}
} // namespace memplan::onnx
