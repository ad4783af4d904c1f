//===- MatrixOps.cpp - MatMul, Gemm ---------------------------------------===//

#include "OpTable.h"
#include "Products.h"
#include "Scalars.h"
#include "TensorOps.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// An operand of rank 2 and up as (batch..., rows, columns).
struct ProductOperand {
  SmallVector<int64_t> shape;
  /// Where those dims are in the operand.
  SmallVector<int64_t> places;

  ProductOperand(ArrayRef<int64_t> given, bool isTransposed,
                 bool hasBatchInside) {
    int64_t rank = static_cast<int64_t>(given.size());
    places = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (hasBatchInside && rank > 2)
      std::rotate(places.begin(), places.begin() + 1, places.end() - 1);
    if (isTransposed && rank > 1)
      std::swap(places[rank - 1], places[rank - 2]);
    for (int64_t place : places)
      shape.push_back(given[place]);
  }
  ArrayRef<int64_t> batch() const {
    return ArrayRef<int64_t>(shape).drop_back(2);
  }
  int64_t rows() const { return shape[shape.size() - 2]; }
  int64_t columns() const { return shape.back(); }
};
} // namespace

/// Views `tensor` for a product with the batch dims `batch`: those along which
/// it is broadcast are dropped.
static std::pair<Value, AffineMap>
readBatched(NodeBuilder &n, Value tensor, const ProductOperand &operand,
            ArrayRef<int64_t> batch, AffineExpr row, AffineExpr column) {
  int64_t rank = static_cast<int64_t>(operand.shape.size());
  int64_t offset = static_cast<int64_t>(batch.size()) - (rank - 2);
  SmallVector<int64_t> kept;
  SmallVector<AffineExpr> exprs;
  for (int64_t place = 0; place < rank; ++place) {
    int64_t i = llvm::find(operand.places, place) - operand.places.begin();
    if (i < rank - 2 && operand.shape[i] != batch[offset + i])
      continue;
    kept.push_back(operand.shape[i]);
    exprs.push_back(i == rank - 1   ? column
                    : i == rank - 2 ? row
                                    : n.b.getAffineDimExpr(offset + i));
  }
  return {reshape(n, tensor, kept),
          AffineMap::get(batch.size() + 3, 0, exprs, n.context())};
}

LogicalResult memplan::onnx::buildProduct(NodeBuilder &n,
                                          const ProductOptions &options) {
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
  // Vectors are never transposed.
  ProductOperand x(lhsShape, options.transA && a.rank() > 1,
                   options.transBatchA),
      y(rhsShape, options.transB && c.rank() > 1, options.transBatchB);
  auto batch = broadcastShapes({x.batch(), y.batch()});
  if (!batch || x.columns() != y.rows())
    return mismatch();

  unsigned numBatch = batch->size();
  AffineExpr m = n.b.getAffineDimExpr(numBatch),
             column = n.b.getAffineDimExpr(numBatch + 1),
             inner = n.b.getAffineDimExpr(numBatch + 2);
  auto [lhs, lhsMap] = readBatched(n, n.value(0), x, *batch, m, inner);
  auto [rhs, rhsMap] = readBatched(n, n.value(1), y, *batch, inner, column);
  SmallVector<AffineExpr> outExprs;
  for (unsigned i = 0; i < numBatch + 2; ++i)
    outExprs.push_back(n.b.getAffineDimExpr(i));
  AffineMap outMap = AffineMap::get(numBatch + 3, 0, outExprs, n.context());

  SmallVector<int64_t> shape(*batch), result(*batch);
  shape.append({x.rows(), y.columns()});
  if (a.rank() != 1)
    result.push_back(x.rows());
  if (c.rank() != 1)
    result.push_back(y.columns());
  Type element = a.type.getElementType();
  auto op =
      MatMulOp::create(n.b, n.loc, lhs, rhs, ValueRange(),
                       empty(n, shape, element), {lhsMap, rhsMap, outMap}, {},
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         Value sum = fromAccumulator(b, loc, args[0], element);
                         if (options.alpha == 1)
                           return sum;
                         Scalars s(b, loc, a.dtype);
                         return s.mul(s.number(options.alpha), sum);
                       });
  return n.result(reshape(n, op.getResult(), result), a.dtype);
}

/// numpy.matmul: 1-D operands get a dim of extent 1 that the result loses.
static LogicalResult buildMatMul(NodeBuilder &n) {
  return buildProduct(n, ProductOptions());
}

/// alpha * A' * B' + beta * C
LogicalResult memplan::onnx::buildGemm(NodeBuilder &n, bool limitsBroadcast) {
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
  // Of no effect without C.
  bool broadcasts = !limitsBroadcast || n.intAttr("broadcast", 0) != 0;
  if (hasC) {
    auto fits = broadcastShapes({n.input(2).shape(), ArrayRef<int64_t>(shape)});
    if (!fits || *fits != shape)
      return n.invalid() << n.inputText(2) << " does not broadcast to "
                         << shapeText(shape);
    if (!broadcasts && n.input(2).shape() != ArrayRef<int64_t>(shape))
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

static LogicalResult buildOldGemm(NodeBuilder &n) {
  return buildGemm(n, /*limitsBroadcast=*/true);
}
static LogicalResult buildNewGemm(NodeBuilder &n) {
  return buildGemm(n, /*limitsBroadcast=*/false);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> matrixOps() {
  static const OpEntry kOps[] = {
      {"Gemm", 1, 6, 3, 3, 1, buildOldGemm},
      {"Gemm", 7, 10, 3, 3, 1, buildNewGemm},
      {"Gemm", 11, kNewestOpset, 2, 3, 1, buildNewGemm},
      {"MatMul", 1, kNewestOpset, 2, 2, 1, buildMatMul},
  };
  return kOps;
}
} // namespace memplan::onnx
