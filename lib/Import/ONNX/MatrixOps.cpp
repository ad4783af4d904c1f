//===- MatrixOps.cpp - MatMul, Gemm ---------------------------------------===//

#include "Products.h"
#include "Scalars.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Integers are summed as they are, and wrap.
static LogicalResult buildMatMul(NodeBuilder &n) {
  ImportedTensor &a = n.input(0), &c = n.input(1);
  DType dtype = a.dtype;
  if (dtype.isInteger() ? dtype.bits() < 32 : failed(n.floatInput(0)))
    return dtype.isInteger()
               ? n.invalid() << n.inputText(0u)
                             << "; floats and integers of 32 and 64 bits are "
                                "accepted"
               : failure();
  if (failed(n.sameTypes({0, 1})))
    return failure();
  // Quantized activations alone would only slow a library's product down.
  auto [lhs, rhs] = readFactors(n, a.rank() == 1 ? -2 : a.rank() - 2,
                                c.rank() == 1 ? -2 : c.rank() - 1,
                                a.rank() == 0 ? 0 : a.shape().back());
  if (!rhs.isInteger() || dtype.isInteger())
    lhs = Factor{&a};
  Type element = a.type.getElementType();
  Value y = buildMatrixProduct(
      n, lhs, rhs, dtype,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scales) {
        if (dtype.isInteger())
          return sum;
        return fromAccumulator(b, loc, scaleSum(b, loc, sum, scales), element);
      });
  return n.result(y, dtype);
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
  auto [lhs, rhs] =
      readFactors(n, transA ? 1 : 0, transB ? 0 : 1, a.dim(transA ? 0 : 1));
  if (!rhs.isInteger())
    lhs = Factor{&a};
  bool hasC = n.hasInput(2) && beta != 0;
  // Of no effect without C.
  bool broadcasts = !limitsBroadcast || n.intAttr("broadcast", 0) != 0;
  if (hasC && !broadcasts) {
    SmallVector<int64_t> shape = {a.dim(transA ? 1 : 0), c.dim(transB ? 0 : 1)};
    if (n.input(2).shape() != ArrayRef<int64_t>(shape))
      return n.invalid() << n.inputText(2) << " is not of the shape "
                         << shapeText(shape)
                         << ", and attribute 'broadcast' is 0";
  }
  SmallVector<ImportedTensor *> more;
  if (hasC)
    more.push_back(&n.input(2));
  Type element = a.type.getElementType();
  Value y = buildMatrixProduct(
      n, lhs, rhs, a.dtype,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scalars) {
        sum = scaleSum(b, loc, sum, scalars.drop_back(hasC));
        // In the accumulator's type, rounded once in the end.
        auto scaled = [&](Value value, double factor) -> Value {
          if (factor == 1)
            return value;
          Value constant = arith::ConstantOp::create(
              b, loc, b.getFloatAttr(value.getType(), factor));
          return arith::MulFOp::create(b, loc, constant, value);
        };
        sum = scaled(sum, alpha);
        if (hasC)
          sum = arith::AddFOp::create(
              b, loc, sum, scaled(toAccumulator(b, loc, scalars.back()), beta));
        return fromAccumulator(b, loc, sum, element);
      },
      more, transA, transB);
  return n.result(y, a.dtype);
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
