//===- Quantize.cpp - Numbers to their quantized form and back ------------===//

#include "Quantize.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

Value memplan::onnx::roundToInteger(OpBuilder &b, Location loc, Value x,
                                    Value zero, DType to) {
  Scalars s(b, loc, DType::f32());
  Value rounded = s.make<math::RoundEvenOp>(x);
  if (zero)
    rounded = s.add(rounded, castScalar(b, loc, zero, to, DType::f32()));
  // Saturated as a float, for what is beyond an integer's range has no integer.
  // A NaN becomes the least number.
  double least = to.isUnsigned() ? 0 : -std::ldexp(1.0, to.bits() - 1);
  double most = std::ldexp(1.0, to.bits() - (to.isUnsigned() ? 0 : 1)) - 1;
  Value saturated =
      s.min(s.make<arith::MaxNumFOp>(rounded, s.number(least)), s.number(most));
  return castScalar(b, loc,
                    castScalar(b, loc, saturated, DType::f32(), DType::i32()),
                    DType::i32(), to);
}

Value memplan::onnx::quantizeScalar(OpBuilder &b, Location loc, Value x,
                                    Value scale, Value zero, DType precision,
                                    DType to, CastRules rules) {
  Value scaled = castScalar(b, loc, Scalars(b, loc, precision).div(x, scale),
                            precision, DType::f32());
  if (to.numbers() != DType::Float)
    return roundToInteger(b, loc, scaled, zero, to);
  if (zero)
    scaled = arith::AddFOp::create(b, loc, scaled,
                                   castScalar(b, loc, zero, to, DType::f32()));
  return castScalar(b, loc, scaled, DType::f32(), to, rules);
}

Value memplan::onnx::dequantizeScalar(OpBuilder &b, Location loc, Value x,
                                      Value scale, Value zero, DType from,
                                      DType scaleType) {
  Value moved;
  if (from.numbers() == DType::Float) {
    moved = castScalar(b, loc, x, from, DType::f32());
    if (zero)
      moved = arith::SubFOp::create(
          b, loc, moved, castScalar(b, loc, zero, from, DType::f32()));
  } else {
    Value wide = castScalar(b, loc, x, from, DType::i32());
    if (zero)
      wide = arith::SubIOp::create(
          b, loc, wide, castScalar(b, loc, zero, from, DType::i32()));
    moved = castScalar(b, loc, wide, DType::i32(), DType::f32());
  }
  return arith::MulFOp::create(
      b, loc, moved, castScalar(b, loc, scale, scaleType, DType::f32()));
}

LogicalResult memplan::onnx::checkOneScale(NodeBuilder &n, unsigned scale,
                                           unsigned zero, DType quantized,
                                           bool isOptional) {
  if (!n.hasInput(scale) || (!isOptional && !n.hasInput(zero)))
    return n.invalid() << "has no input " << (n.hasInput(scale) ? zero : scale)
                       << ", a scale or zero point";
  if (!n.input(scale).dtype.isFloat() || n.input(scale).numElements() != 1)
    return n.unsupported() << n.inputText(scale)
                           << " is a scale; one float is accepted";
  if (!n.hasInput(zero))
    return success();
  if (n.input(zero).dtype != quantized || n.input(zero).numElements() != 1)
    return n.unsupported() << n.inputText(zero)
                           << " is a zero point; one element of type "
                           << dtypeName(quantized) << " is accepted";
  return success();
}

void memplan::onnx::addScalar(NodeBuilder &n, ElementwiseOperands &operands,
                              unsigned i, int64_t rank) {
  operands.add(n.input(i), {}, AffineMap::get(rank, 0, n.context()));
}
