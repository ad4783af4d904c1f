//===- RowMean.cpp - Distances from the mean of a row ---------------------===//

#include "RowMean.h"

#include "Scalars.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

Value RowMean::summand(OpBuilder &b, Location loc, Value x) const {
  // Narrower floats are not as exact as the sum in float of them.
  if (!element.isF32())
    return toAccumulator(b, loc, x);
  return arith::ExtFOp::create(b, loc, b.getF64Type(), x);
}

Value RowMean::exactMean(OpBuilder &b, Location loc, Value sum) const {
  Type type = sum.getType();
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  };
  // A division in double is slow, and would be no better in float's terms.
  if (element.isF32())
    return arith::MulFOp::create(b, loc, sum, constant(1 / length));
  return arith::DivFOp::create(b, loc, sum, constant(length));
}

Value RowMean::mean(OpBuilder &b, Location loc, Value sum) const {
  Value exact = exactMean(b, loc, sum);
  if (!element.isF32())
    return exact;
  return arith::TruncFOp::create(b, loc, b.getF32Type(), exact);
}

Value RowMean::centred(OpBuilder &b, Location loc, Value x, Value sum) const {
  Value wide = toAccumulator(b, loc, x), exact = exactMean(b, loc, sum);
  if (!element.isF32())
    return arith::SubFOp::create(b, loc, wide, exact);
  Value high = arith::TruncFOp::create(b, loc, b.getF32Type(), exact);
  Value rest = arith::SubFOp::create(
      b, loc, exact, arith::ExtFOp::create(b, loc, b.getF64Type(), high));
  Value low = arith::TruncFOp::create(b, loc, b.getF32Type(), rest);
  return arith::SubFOp::create(
      b, loc, arith::SubFOp::create(b, loc, wide, high).getResult(), low);
}
