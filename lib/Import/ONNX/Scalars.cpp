//===- Scalars.cpp - Scalar arithmetic by ONNX element type ---------------===//

#include "Scalars.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan::onnx;

using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

Value Scalars::number(double value) const {
  if (!dtype.isFloat())
    return integer(static_cast<int64_t>(value));
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type(), value));
}

Value Scalars::integer(int64_t value) const {
  if (dtype.isFloat())
    return number(static_cast<double>(value));
  return arith::ConstantOp::create(
      b, loc,
      b.getIntegerAttr(type(), APInt(dtype.bits(), static_cast<uint64_t>(value),
                                     /*isSigned=*/false,
                                     /*implicitTrunc=*/true)));
}

static Value limit(const Scalars &s, bool isHighest) {
  if (auto type = dyn_cast<FloatType>(s.type()))
    return arith::ConstantOp::create(
        s.b, s.loc,
        s.b.getFloatAttr(
            type, APFloat::getInf(type.getFloatSemantics(), !isHighest)));
  unsigned bits = s.dtype.bits();
  APInt value =
      s.dtype.isSigned()
          ? (isHighest ? APInt::getSignedMaxValue(bits)
                       : APInt::getSignedMinValue(bits))
          : (isHighest ? APInt::getMaxValue(bits) : APInt::getMinValue(bits));
  return arith::ConstantOp::create(s.b, s.loc,
                                   s.b.getIntegerAttr(s.type(), value));
}

Value Scalars::lowest() const { return limit(*this, false); }
Value Scalars::highest() const { return limit(*this, true); }

Value Scalars::add(Value x, Value y) const {
  return dtype.isFloat() ? make<arith::AddFOp>(x, y)
                         : make<arith::AddIOp>(x, y);
}

Value Scalars::sub(Value x, Value y) const {
  return dtype.isFloat() ? make<arith::SubFOp>(x, y)
                         : make<arith::SubIOp>(x, y);
}

Value Scalars::mul(Value x, Value y) const {
  return dtype.isFloat() ? make<arith::MulFOp>(x, y)
                         : make<arith::MulIOp>(x, y);
}

Value Scalars::div(Value x, Value y) const {
  if (dtype.isFloat())
    return make<arith::DivFOp>(x, y);
  return dtype.isSigned() ? make<arith::DivSIOp>(x, y)
                          : make<arith::DivUIOp>(x, y);
}

Value Scalars::max(Value x, Value y) const {
  if (dtype.isFloat())
    return make<arith::MaximumFOp>(x, y);
  return dtype.isSigned() ? make<arith::MaxSIOp>(x, y)
                          : make<arith::MaxUIOp>(x, y);
}

Value Scalars::min(Value x, Value y) const {
  if (dtype.isFloat())
    return make<arith::MinimumFOp>(x, y);
  return dtype.isSigned() ? make<arith::MinSIOp>(x, y)
                          : make<arith::MinUIOp>(x, y);
}

Value Scalars::negate(Value x) const {
  return dtype.isFloat() ? make<arith::NegFOp>(x)
                         : make<arith::SubIOp>(integer(0), x);
}

Value Scalars::abs(Value x) const {
  if (dtype.isFloat())
    return make<math::AbsFOp>(x);
  return dtype.isSigned() ? make<math::AbsIOp>(x) : x;
}

Value Scalars::less(Value x, Value y) const {
  if (dtype.isFloat())
    return make<arith::CmpFOp>(FloatPredicate::OLT, x, y);
  return make<arith::CmpIOp>(
      dtype.isSigned() ? IntPredicate::slt : IntPredicate::ult, x, y);
}

Value Scalars::lessOrEqual(Value x, Value y) const {
  if (dtype.isFloat())
    return make<arith::CmpFOp>(FloatPredicate::OLE, x, y);
  return make<arith::CmpIOp>(
      dtype.isSigned() ? IntPredicate::sle : IntPredicate::ule, x, y);
}

Value Scalars::equal(Value x, Value y) const {
  return dtype.isFloat() ? make<arith::CmpFOp>(FloatPredicate::OEQ, x, y)
                         : make<arith::CmpIOp>(IntPredicate::eq, x, y);
}

Value Scalars::notEqual(Value x, Value y) const {
  return dtype.isFloat() ? make<arith::CmpFOp>(FloatPredicate::UNE, x, y)
                         : make<arith::CmpIOp>(IntPredicate::ne, x, y);
}

Value Scalars::select(Value condition, Value x, Value y) const {
  return make<arith::SelectOp>(condition, x, y);
}

Value memplan::onnx::castScalar(OpBuilder &b, Location loc, Value x, DType from,
                                DType to) {
  if (from == to)
    return x;
  Scalars source(b, loc, from);
  Type type = to.type(b.getContext());
  if (to.isBool())
    return source.notEqual(x, source.integer(0));
  if (from.isFloat() && to.isFloat()) {
    if (to.bits() > from.bits())
      return arith::ExtFOp::create(b, loc, type, x);
    if (to.bits() < from.bits())
      return arith::TruncFOp::create(b, loc, type, x);
    // float16 and bfloat16: through float.
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
    return arith::TruncFOp::create(b, loc, type, wide);
  }
  if (from.isFloat()) {
    if (to.isSigned())
      return arith::FPToSIOp::create(b, loc, type, x);
    return arith::FPToUIOp::create(b, loc, type, x);
  }
  if (to.isFloat()) {
    if (from.isSigned())
      return arith::SIToFPOp::create(b, loc, type, x);
    return arith::UIToFPOp::create(b, loc, type, x);
  }
  if (to.bits() < from.bits())
    return arith::TruncIOp::create(b, loc, type, x);
  if (to.bits() == from.bits())
    return x;
  if (from.isSigned())
    return arith::ExtSIOp::create(b, loc, type, x);
  return arith::ExtUIOp::create(b, loc, type, x);
}

std::optional<DType> memplan::onnx::orderedType(DType dtype) {
  if (dtype.isFloat() || dtype.isSigned())
    return dtype;
  if (dtype.bits() == 64)
    return std::nullopt;
  return DType::i64();
}

Value memplan::onnx::fromAccumulator(OpBuilder &b, Location loc, Value value,
                                     Type element) {
  if (value.getType() == element)
    return value;
  return arith::TruncFOp::create(b, loc, element, value);
}

Value memplan::onnx::toAccumulator(OpBuilder &b, Location loc, Value value) {
  Type type = getAccumulatorType(value.getType());
  if (value.getType() == type)
    return value;
  return arith::ExtFOp::create(b, loc, type, value);
}
