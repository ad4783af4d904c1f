//===- BatchedProduct.cpp - Products with batch dims anywhere -------------===//

#include "BatchedProduct.h"

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
