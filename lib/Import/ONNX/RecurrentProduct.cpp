//===- RecurrentProduct.cpp - Products of recurrent operators -------------===//

#include "RecurrentProduct.h"

#include "ControlFlow.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value multiplyFloats(NodeBuilder &n, Value lhs, Value rhs, Value bias,
                            DType dtype) {
  Type element = dtype.type(n.context());
  AffineExpr m = n.b.getAffineDimExpr(0), column = n.b.getAffineDimExpr(1),
             inner = n.b.getAffineDimExpr(2);
  auto map = [&](AffineExpr x, AffineExpr y) {
    return AffineMap::get(3, 0, {x, y}, n.context());
  };
  SmallVector<Value> extras;
  SmallVector<AffineMap> extraMaps;
  if (bias) {
    extras.push_back(bias);
    extraMaps.push_back(AffineMap::get(2, 0, {column}, n.context()));
  }
  int64_t rows = cast<RankedTensorType>(lhs.getType()).getDimSize(0);
  int64_t columns = cast<RankedTensorType>(rhs.getType()).getDimSize(0);
  auto op = MatMulOp::create(
      n.b, n.loc, lhs, rhs, extras, empty(n, {rows, columns}, element),
      {map(m, inner), map(column, inner), map(m, column)}, extraMaps,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = fromAccumulator(b, loc, args[0], element);
        return bias ? Scalars(b, loc, dtype).add(sum, args[1]) : sum;
      });
  return op.getResult();
}

Value memplan::onnx::multiplyGates(NodeBuilder &n, Value lhs,
                                   const GateWeights &weights, Value bias,
                                   DType dtype) {
  if (!weights.integers)
    return multiplyFloats(n, lhs, weights.floats, bias, dtype);
  ImportedTensor *x = keepValue(n, lhs, dtype, n.input(0).name);
  SmallVector<ImportedTensor *> more;
  if (bias)
    more.push_back(keepValue(n, bias, dtype, n.input(3).name));
  return buildMatrixProduct(
      n, quantizeByRange(n, *x), *weights.integers, dtype,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scalars) {
        Value scaled = scaleSum(b, loc, sum, scalars.take_front(2));
        if (!bias)
          return scaled;
        return arith::AddFOp::create(b, loc, scaled, scalars[2]).getResult();
      },
      more);
}

LogicalResult memplan::onnx::checkQuantizedGates(NodeBuilder &n,
                                                 unsigned weights,
                                                 unsigned scale,
                                                 int64_t numDirections,
                                                 int64_t columns) {
  DType dtype = n.input(weights).dtype;
  if (dtype != DType::u8() && dtype != DType::i8())
    return n.unsupported() << n.inputText(weights)
                           << "; uint8 and int8 are accepted";
  if (!n.hasInput(scale) || n.input(scale).dtype != DType::f32())
    return n.invalid() << "input " << scale << " is the scale of "
                       << n.inputText(weights)
                       << "; it must be there, of float32";
  if (failed(checkZeroPoint(n, weights, scale + 1)))
    return failure();
  for (unsigned i : {scale, scale + 1}) {
    if (!n.hasInput(i))
      continue;
    ArrayRef<int64_t> shape = n.input(i).shape();
    if (shape != ArrayRef<int64_t>{numDirections} &&
        shape != ArrayRef<int64_t>{numDirections, columns})
      return n.invalid() << n.inputText(i) << "; the shapes " << numDirections
                         << " and " << numDirections << "x" << columns
                         << " are accepted";
  }
  return success();
}

GateWeights memplan::onnx::readQuantizedGates(NodeBuilder &n, unsigned weights,
                                              unsigned scale,
                                              int64_t direction) {
  auto read = [&](unsigned i) -> ImportedTensor * {
    if (!n.hasInput(i))
      return nullptr;
    ImportedTensor &all = n.input(i);
    Value own = all.dim(0) == 1
                    ? reshape(n, n.value(i), all.shape().drop_front())
                    : extractRow(n, n.value(i), n.b.getIndexAttr(direction));
    return keepValue(n, own, all.dtype, all.name);
  };
  GateWeights result;
  result.integers = Factor{read(weights), read(scale + 1), read(scale)};
  return result;
}
