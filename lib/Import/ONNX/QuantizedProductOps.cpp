//===- QuantizedProductOps.cpp - Products of integers ---------------------===//
//
// Sums are exact, in 32 bits; scales are multiplied together first, then with
// the sum, in float.
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "Quantize.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// An operand at input `i` with its zero point and scale, where they are.
static FailureOr<Factor> readOperand(NodeBuilder &n, unsigned i, unsigned zero,
                                     std::optional<unsigned> scale = {}) {
  ImportedTensor &tensor = n.input(i);
  if (!tensor.type.getElementType().isInteger(8))
    return n.unsupported() << n.inputText(i)
                           << "; integers of up to 8 bits are accepted";
  if (failed(checkZeroPoint(n, i, zero)))
    return failure();
  Factor factor{&tensor};
  if (n.hasInput(zero))
    factor.zero = &n.input(zero);
  if (!scale)
    return factor;
  factor.scale = &n.input(*scale);
  if (!factor.scale->dtype.isFloat())
    return n.invalid() << n.inputText(*scale) << " is a scale; floats are "
                       << "accepted";
  return factor;
}

static LogicalResult buildMatMulInteger(NodeBuilder &n) {
  auto a = readOperand(n, 0, 2), b = readOperand(n, 1, 3);
  if (failed(a) || failed(b))
    return failure();
  auto sumOf = [](OpBuilder &, Location, Value sum, ArrayRef<Value>) {
    return sum;
  };
  return n.result(buildMatrixProduct(n, *a, *b, DType::i32(), sumOf),
                  DType::i32());
}

static LogicalResult buildConvInteger(NodeBuilder &n) {
  auto x = readOperand(n, 0, 2), w = readOperand(n, 1, 3);
  if (failed(x) || failed(w))
    return failure();
  auto sumOf = [](OpBuilder &, Location, Value sum, ArrayRef<Value>) {
    return sum;
  };
  return n.result(buildConvolution(n, *x, *w, DType::i32(), sumOf),
                  DType::i32());
}

/// A sum times the scales of both factors, over that of the result.
static Value requantize(OpBuilder &b, Location loc, Value sum,
                        ArrayRef<Value> scales, ArrayRef<DType> types,
                        Value resultScale, Value resultZero, DType resultType) {
  SmallVector<Value> wide;
  for (auto [scale, type] : llvm::zip(scales, types))
    wide.push_back(castScalar(b, loc, scale, type, DType::f32()));
  Scalars s(b, loc, DType::f32());
  Value factor = s.div(s.mul(wide[0], wide[1]),
                       castScalar(b, loc, resultScale, types[2], DType::f32()));
  Value scaled = scaleSum(b, loc, sum, {factor});
  return roundToInteger(b, loc, scaled, resultZero, resultType);
}

/// a, its scale and zero point; b, its scale and zero point; scale and zero
/// point of the result.
static LogicalResult buildQLinearMatMul(NodeBuilder &n) {
  auto a = readOperand(n, 0, 2, 1), b = readOperand(n, 3, 5, 4);
  if (failed(a) || failed(b))
    return failure();
  DType to = n.input(7).dtype;
  if (to.numbers() == DType::Float || to.bits() > 8 || to.isBool())
    return n.unsupported() << n.inputText(7)
                           << "; integers of up to 8 bits are accepted";
  if (failed(checkOneScale(n, 6, 7, to)))
    return failure();
  DType types[] = {a->scale->dtype, b->scale->dtype, n.input(6).dtype};
  Value y = buildMatrixProduct(
      n, *a, *b, to,
      [&](OpBuilder &at, Location loc, Value sum, ArrayRef<Value> scalars) {
        return requantize(at, loc, sum, scalars.take_front(2), types,
                          scalars[2], scalars[3], to);
      },
      {&n.input(6), &n.input(7)});
  return n.result(y, to);
}

static LogicalResult buildQLinearConv(NodeBuilder &n) {
  auto x = readOperand(n, 0, 2, 1), w = readOperand(n, 3, 5, 4);
  DType to = n.input(7).dtype;
  if (failed(x) || failed(w) || failed(checkOneScale(n, 6, 7, to)))
    return failure();
  if (to.numbers() == DType::Float || to.bits() > 8 || to.isBool())
    return n.unsupported() << n.inputText(7)
                           << "; integers of up to 8 bits are accepted";
  DType types[] = {x->scale->dtype, w->scale->dtype, n.input(6).dtype};
  SmallVector<ImportedTensor *> more = {&n.input(6), &n.input(7)};
  bool hasBias = n.hasInput(8);
  if (hasBias) {
    if (n.input(8).dtype != DType::i32())
      return n.invalid() << n.inputText(8) << " is the bias; int32 is accepted";
    more.push_back(&n.input(8));
  }
  Value y = buildConvolution(
      n, *x, *w, to,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scalars) {
        if (hasBias)
          sum = arith::AddIOp::create(b, loc, sum, scalars[4]);
        return requantize(b, loc, sum, scalars.take_front(2), types, scalars[2],
                          scalars[3], to);
      },
      more);
  return n.result(y, to);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> quantizedProductOps() {
  static const OpEntry kOps[] = {
      {"ConvInteger", 10, kNewestOpset, 2, 4, 1, buildConvInteger},
      {"MatMulInteger", 10, kNewestOpset, 2, 4, 1, buildMatMulInteger},
      {"QLinearConv", 10, kNewestOpset, 8, 9, 1, buildQLinearConv},
      {"QLinearMatMul", 10, kNewestOpset, 8, 8, 1, buildQLinearMatMul},
  };
  return kOps;
}
} // namespace memplan::onnx
