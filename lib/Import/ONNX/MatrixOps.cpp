//===- MatrixOps.cpp - MatMul, Gemm ---------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Views `operand` (batch..., rows, columns) for a product with the batch dims
/// `batch`: batch dims along which it is broadcast are dropped.
static std::pair<Value, AffineMap>
readBatched(NodeBuilder &n, Value operand, ArrayRef<int64_t> shape,
            ArrayRef<int64_t> batch, AffineExpr row, AffineExpr column) {
  SmallVector<int64_t> kept;
  SmallVector<AffineExpr> exprs;
  int64_t own = static_cast<int64_t>(shape.size()) - 2;
  int64_t offset = static_cast<int64_t>(batch.size()) - own;
  for (int64_t i = 0; i < own; ++i) {
    if (shape[i] != batch[offset + i])
      continue;
    kept.push_back(shape[i]);
    exprs.push_back(n.b.getAffineDimExpr(offset + i));
  }
  kept.append(shape.end() - 2, shape.end());
  exprs.append({row, column});
  return {reshape(n, operand, kept),
          AffineMap::get(batch.size() + 3, 0, exprs, n.context())};
}

/// numpy.matmul: 1-D operands get a dim of extent 1 that the result loses.
static LogicalResult buildMatMul(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1})))
    return failure();
  ImportedTensor &a = n.input(0), &c = n.input(1);
  auto mismatch = [&]() {
    return n.invalid() << "shapes do not multiply: " << n.inputText(0u)
                       << " and " << n.inputText(1);
  };
  if (a.rank() == 0 || c.rank() == 0)
    return mismatch();
  SmallVector<int64_t> lhsShape(a.shape()), rhsShape(c.shape());
  if (a.rank() == 1)
    lhsShape.insert(lhsShape.begin(), 1);
  if (c.rank() == 1)
    rhsShape.push_back(1);
  ArrayRef<int64_t> lhsRef(lhsShape), rhsRef(rhsShape);
  auto batch = broadcastShapes({lhsRef.drop_back(2), rhsRef.drop_back(2)});
  int64_t k = lhsShape.back();
  if (!batch || rhsShape[rhsShape.size() - 2] != k)
    return mismatch();

  unsigned numBatch = batch->size();
  AffineExpr m = n.b.getAffineDimExpr(numBatch),
             column = n.b.getAffineDimExpr(numBatch + 1),
             inner = n.b.getAffineDimExpr(numBatch + 2);
  auto [lhs, lhsMap] = readBatched(n, n.value(0), lhsShape, *batch, m, inner);
  auto [rhs, rhsMap] =
      readBatched(n, n.value(1), rhsShape, *batch, inner, column);
  SmallVector<AffineExpr> outExprs;
  for (unsigned i = 0; i < numBatch + 2; ++i)
    outExprs.push_back(n.b.getAffineDimExpr(i));
  AffineMap outMap = AffineMap::get(numBatch + 3, 0, outExprs, n.context());

  SmallVector<int64_t> shape(*batch), result(*batch);
  shape.append({lhsShape[lhsShape.size() - 2], rhsShape.back()});
  if (a.rank() != 1)
    result.push_back(lhsShape[lhsShape.size() - 2]);
  if (c.rank() != 1)
    result.push_back(rhsShape.back());
  Type element = a.type.getElementType();
  auto op =
      MatMulOp::create(n.b, n.loc, lhs, rhs, ValueRange(),
                       empty(n, shape, element), {lhsMap, rhsMap, outMap}, {},
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         return fromAccumulator(b, loc, args[0], element);
                       });
  return n.result(reshape(n, op.getResult(), result), a.dtype);
}

/// alpha * A' * B' + beta * C
static LogicalResult buildGemm(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &a = n.input(0), &c = n.input(1);
  bool transA = n.intAttr("transA", 0) != 0,
       transB = n.intAttr("transB", 0) != 0;
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (a.rank() != 2 || c.rank() != 2)
    return n.invalid() << "matrices are accepted, found " << n.inputText(0u)
                       << " and " << n.inputText(1);
  if (a.dim(transA ? 0 : 1) != c.dim(transB ? 1 : 0))
    return n.invalid() << "shapes do not multiply with transA=" << transA
                       << ", transB=" << transB << ": " << n.inputText(0u)
                       << " and " << n.inputText(1);
  AffineExpr m = n.b.getAffineDimExpr(0), column = n.b.getAffineDimExpr(1),
             inner = n.b.getAffineDimExpr(2);
  auto map = [&](AffineExpr x, AffineExpr y, bool isTransposed) {
    if (isTransposed)
      std::swap(x, y);
    return AffineMap::get(3, 0, {x, y}, n.context());
  };
  SmallVector<int64_t> shape = {a.dim(transA ? 1 : 0), c.dim(transB ? 0 : 1)};
  ElementwiseOperands extras(n);
  bool hasC = n.hasInput(2) && beta != 0;
  if (n.opset < 7)
    n.ignoreAttr("broadcast"); // without C
  if (hasC) {
    auto fits = broadcastShapes({n.input(2).shape(), ArrayRef<int64_t>(shape)});
    if (!fits || *fits != shape)
      return n.invalid() << n.inputText(2) << " does not broadcast to "
                         << shapeText(shape);
    if (n.opset < 7 && n.intAttr("broadcast", 0) == 0 &&
        n.input(2).shape() != ArrayRef<int64_t>(shape))
      return n.invalid() << n.inputText(2) << " is not of the shape "
                         << shapeText(shape)
                         << ", and attribute 'broadcast' is 0";
    extras.addBroadcast(n.input(2), shape);
  }
  Type element = a.type.getElementType();
  auto op = MatMulOp::create(
      n.b, n.loc, n.value(0), n.value(1), extras.values(),
      empty(n, shape, element),
      {map(m, inner, transA), map(inner, column, transB),
       map(m, column, false)},
      extras.maps(), [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, a.dtype);
        Value sum = fromAccumulator(b, loc, args[0], element);
        if (alpha != 1)
          sum = s.mul(s.number(alpha), sum);
        auto scalars = extras.scalars(b, loc, args.drop_front());
        if (!hasC)
          return sum;
        Value addend = scalars[0];
        if (beta != 1)
          addend = s.mul(s.number(beta), addend);
        return s.add(sum, addend);
      });
  return n.result(op.getResult(), a.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> matrixOps() {
  static const OpEntry kOps[] = {
      {"Gemm", 1, 10, 3, 3, 1, buildGemm},
      {"Gemm", 11, kNewestOpset, 2, 3, 1, buildGemm},
      {"MatMul", 1, kNewestOpset, 2, 2, 1, buildMatMul},
  };
  return kOps;
}
} // namespace memplan::onnx
