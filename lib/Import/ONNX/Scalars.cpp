//===- Scalars.cpp - Scalar arithmetic by ONNX element type ---------------===//

#include "Scalars.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan::onnx;

using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

Value Scalars::number(double value) const {
  if (dtype.numbers() != DType::Float)
    return integer(static_cast<int64_t>(value));
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type(), value));
}

Value Scalars::integer(int64_t value) const {
  if (dtype.numbers() == DType::Float)
    return number(static_cast<double>(value));
  return arith::ConstantOp::create(
      b, loc,
      b.getIntegerAttr(type(), APInt(type().getIntOrFloatBitWidth(),
                                     static_cast<uint64_t>(value),
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

/// A float as a power of two (float8e8m0): its exponent, rounded by the digits
/// below it. The sign is dropped; ONNX leaves negative numbers open.
static Value castToPower(OpBuilder &b, Location loc, Value x, CastRules rules) {
  Scalars s(b, loc, DType::i32());
  Value bits = s.make<arith::AndIOp>(
      arith::BitcastOp::create(b, loc, s.type(), x), s.integer(0x7fffffff));
  Value code = s.make<arith::ShRUIOp>(bits, s.integer(23));
  Value below = s.make<arith::AndIOp>(bits, s.integer(0x7fffff));
  Value half = s.integer(0x400000), isUp;
  if (rules.powers == CastRules::Up) {
    isUp = s.notEqual(below, s.integer(0));
  } else if (rules.powers == CastRules::Nearest) {
    // A tie goes up, except to the least normal float: 2^-127 is one itself.
    Value isTie =
        s.make<arith::AndIOp>(s.equal(below, half), s.less(s.integer(0), code));
    isUp = s.make<arith::OrIOp>(s.less(half, below), isTie);
  }
  if (isUp)
    code = s.add(code, s.select(isUp, s.integer(1), s.integer(0)));
  Value nan = s.integer(0xff), infinity = s.integer(0x7f800000);
  Value isSpecial = s.less(infinity, bits);
  if (rules.saturate) {
    code = s.min(code, s.integer(0xfe));
  } else {
    isSpecial = s.make<arith::OrIOp>(isSpecial, s.equal(bits, infinity));
    isSpecial = s.make<arith::OrIOp>(isSpecial, s.less(bits, half));
  }
  code = s.select(isSpecial, nan, code);
  Value byte = arith::TruncIOp::create(b, loc, b.getI8Type(), code);
  return arith::BitcastOp::create(b, loc,
                                  Float8E8M0FNUType::get(b.getContext()), byte);
}

/// f32 to a float of 8 bits or less.
static Value castToStoredFloat(OpBuilder &b, Location loc, Value x, DType to,
                               CastRules rules) {
  auto type = cast<FloatType>(to.type(b.getContext()));
  if (isa<Float8E8M0FNUType>(type))
    return castToPower(b, loc, x, rules);
  Scalars s(b, loc, DType::f32());
  bool hasNaN = !isa<Float4E2M1FNType>(type);
  if (!hasNaN) // ONNX says nothing; its reference has -0
    x = s.select(s.make<arith::CmpFOp>(FloatPredicate::UNO, x, x),
                 s.number(-0.0), x);
  if (rules.saturate || !hasNaN) {
    bool isExact = true;
    APFloat most = APFloat::getLargest(type.getFloatSemantics());
    most.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &isExact);
    x = s.min(s.max(x, s.number(-most.convertToDouble())),
              s.number(most.convertToDouble()));
  }
  return arith::TruncFOp::create(b, loc, type, x);
}

/// Numbers to integers of less than 8 bits, in a byte: the low bits count.
static Value castToStoredInteger(OpBuilder &b, Location loc, Value x,
                                 DType from, DType to) {
  Value byte =
      from.isFloat()
          ? castScalar(b, loc, castScalar(b, loc, x, from, DType::i32()),
                       DType::i32(), DType::i8())
          : castScalar(b, loc, x, from, DType::i8());
  Scalars s(b, loc, DType::i8());
  if (to.isUnsigned())
    return s.make<arith::AndIOp>(byte, s.integer((1 << to.bits()) - 1));
  Value shift = s.integer(8 - to.bits());
  return s.make<arith::ShRSIOp>(s.make<arith::ShLIOp>(byte, shift), shift);
}

/// Casts from or to a type that is only stored.
static Value castStored(OpBuilder &b, Location loc, Value x, DType from,
                        DType to, CastRules rules) {
  if (from.isStorage()) {
    if (from.numbers() != DType::Float)
      return castScalar(
          b, loc, x, from.isUnsigned() ? DType::u8() : DType::i8(), to, rules);
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
    return castScalar(b, loc, wide, DType::f32(), to, rules);
  }
  if (to.numbers() != DType::Float)
    return castToStoredInteger(b, loc, x, from, to);
  return castToStoredFloat(b, loc, castScalar(b, loc, x, from, DType::f32()),
                           to, rules);
}

Value memplan::onnx::castScalar(OpBuilder &b, Location loc, Value x, DType from,
                                DType to, CastRules rules) {
  if (from == to)
    return x;
  if (from.isStorage() || to.isStorage())
    return castStored(b, loc, x, from, to, rules);
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
  if (dtype.isStorage())
    return std::nullopt;
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
