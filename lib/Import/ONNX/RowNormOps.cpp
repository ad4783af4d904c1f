//===- RowNormOps.cpp - Norms along axes ----------------------------------===//

#include "OpTable.h"
#include "RowMean.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value number(OpBuilder &b, Location loc, Value like, double value) {
  return arith::ConstantOp::create(b, loc,
                                   b.getFloatAttr(like.getType(), value));
}

/// x / (sum of |x|^p)^(1/p) along one axis, 0 where the norm is 0.
static LogicalResult buildLpNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), x.rank());
  int64_t p = n.intAttr("p", 2);
  if (failed(n.floatInput(0)) || failed(axis))
    return failure();
  if (p != 1 && p != 2)
    return n.invalid() << "attribute 'p' is " << p << "; 1 and 2 are accepted";
  if (x.numElements() == 0)
    return n.aliasResult(0, x);
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  auto stage = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Value wide = toAccumulator(b, loc, args[0]);
    if (p == 1)
      return math::AbsFOp::create(b, loc, wide);
    return arith::MulFOp::create(b, loc, wide, wide);
  };
  Type element = x.type.getElementType();
  auto op = RowwiseOp::create(
      n.b, n.loc, n.value(0), empty(n, x.shape(), element), *axis,
      {Combiner::Sum}, {identity, identity}, RegionBuilder(stage),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value wide = toAccumulator(b, loc, args[0]), norm = args[1];
        if (p == 2)
          norm = math::SqrtOp::create(b, loc, norm);
        Value zero = number(b, loc, norm, 0);
        Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                             norm, zero);
        Value quotient = arith::DivFOp::create(b, loc, wide, norm);
        return fromAccumulator(
            b, loc,
            arith::SelectOp::create(b, loc, isZero, zero, quotient).getResult(),
            element);
      });
  return n.result(op.getResult(), x.dtype);
}

/// (x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9) along some axes.
static LogicalResult buildMeanVarianceNormalization(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)))
    return failure();
  FailureOr<SmallVector<int64_t>> axes = n.axes(
      n.intsAttr("axes").value_or(SmallVector<int64_t>{0, 2, 3}), x.rank());
  if (failed(axes))
    return failure();
  if (x.numElements() == 0 || axes->empty())
    return n.invalid() << n.inputText(0u) << " has no elements along the axes";
  double length = 1;
  for (int64_t axis : *axes)
    length *= static_cast<double>(x.dim(axis));
  RowMean mean(x.type.getElementType(), length);
  auto centred = [&](OpBuilder &b, Location loc, ValueRange args) {
    return mean.centred(b, loc, args[0], args[1]);
  };
  auto sum = [&](OpBuilder &b, Location loc, ValueRange args) {
    return mean.summand(b, loc, args[0]);
  };
  auto squares = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Value d = centred(b, loc, args);
    return arith::MulFOp::create(b, loc, d, d);
  };
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  Type element = x.type.getElementType();
  llvm::sort(*axes);
  RegionBuilder stages[] = {sum, squares};
  auto op = RowwiseOp::create(
      n.b, n.loc, n.value(0), empty(n, x.shape(), element), *axes,
      {Combiner::Sum, Combiner::Sum}, {identity, identity}, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value variance = arith::DivFOp::create(b, loc, args[2],
                                               number(b, loc, args[2], length));
        Value deviation = arith::AddFOp::create(
            b, loc, math::SqrtOp::create(b, loc, variance),
            number(b, loc, variance, 1e-9));
        return fromAccumulator(
            b, loc,
            arith::DivFOp::create(b, loc, centred(b, loc, args), deviation)
                .getResult(),
            element);
      });
  return n.result(op.getResult(), x.dtype);
}

/// 1 for the first largest element of each row, 0 for the others. Before
/// opset 13 a row is all dims from `axis` on.
static LogicalResult buildHardmax(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  bool isFlattened = n.opset < 13;
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", isFlattened ? 1 : -1), x.rank());
  if (failed(n.floatInput(0)) || failed(axis))
    return failure();
  if (x.numElements() == 0)
    return n.aliasResult(0, x);
  SmallVector<int64_t> view(x.shape());
  if (isFlattened) {
    view = {1, 1};
    for (int64_t i = 0; i < x.rank(); ++i)
      view[i >= *axis] *= x.dim(i);
  }
  int64_t row = isFlattened ? 1 : *axis, rank = view.size();
  int64_t extent = view[row];
  // A row's body does not know its place: positions are an operand.
  Value positions = mapElements(
      n, {}, {}, extent, n.b.getI64Type(),
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        return arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                          linalg::IndexOp::create(b, loc, 0));
      });
  AffineMap identity = n.b.getMultiDimIdentityMap(rank);
  AffineMap alongRow = AffineMap::get(rank, 0, n.b.getAffineDimExpr(row));
  auto largest = [](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto first = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Scalars s(b, loc, DType::i64());
    Value isLargest =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                              toAccumulator(b, loc, args[0]), args[2]);
    return s.select(isLargest, args[1], s.integer(extent));
  };
  RegionBuilder stages[] = {largest, first};
  auto op = RowwiseOp::create(
      n.b, n.loc, ValueRange{reshape(n, n.value(0), view), positions},
      empty(n, view, x.type.getElementType()), row,
      {Combiner::Max, Combiner::Min}, {identity, alongRow, identity}, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype), index(b, loc, DType::i64());
        return s.select(index.equal(args[1], args[3]), s.number(1),
                        s.number(0));
      });
  return n.result(reshape(n, op.getResult(), x.shape()), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> rowNormOps() {
  static const OpEntry kOps[] = {
      {"Hardmax", 1, kNewestOpset, 1, 1, 1, buildHardmax},
      {"LpNormalization", 1, kNewestOpset, 1, 1, 1, buildLpNormalization},
      {"MeanVarianceNormalization", 9, kNewestOpset, 1, 1, 1,
       buildMeanVarianceNormalization},
  };
  return kOps;
}
} // namespace memplan::onnx
