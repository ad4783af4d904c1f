//===- ElementwiseOps.cpp - One element out per element in ----------------===//
//
// Operators of two and more inputs, casts and comparisons. Functions of one
// element are in UnaryOps.cpp.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// Element types that an operator takes.
enum Accepts : unsigned {
  Floats = 1,
  Ints = 2,
  Bools = 4,
  Numbers = 3,
  Any = 7
};
using ScalarFn = function_ref<Value(const Scalars &, ValueRange)>;
} // namespace

static LogicalResult checkAccepts(NodeBuilder &n, unsigned i, Accepts accepts) {
  DType dtype = n.input(i).dtype;
  unsigned kind = dtype.isFloat() ? Floats : dtype.isBool() ? Bools : Ints;
  if (accepts & kind)
    return success();
  auto diagnostic = n.unsupported() << n.inputText(i) << "; accepted are";
  if (accepts & Floats)
    diagnostic << " floating-point";
  if (accepts & Ints)
    diagnostic << " integer";
  if (accepts & Bools)
    diagnostic << " bool";
  return diagnostic << " tensors";
}

/// Before opset 7 the second of two operands broadcasts to the first, if
/// attribute 'broadcast' says so: its dims are those of the first from 'axis'
/// on, or the last ones. Gives the operand with dims of extent 1 after its own.
static FailureOr<ImportedTensor> secondOperand(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &y = n.input(1);
  ImportedTensor result = y;
  if (n.opset >= 7)
    return result;
  bool broadcasts = n.intAttr("broadcast", 0) != 0;
  int64_t after = 0;
  if (n.hasAttr("axis")) {
    int64_t axis = n.intAttr("axis", 0);
    after = x.rank() - (axis < 0 ? axis + x.rank() : axis) - y.rank();
  }
  SmallVector<int64_t> shape(y.shape());
  shape.append(std::clamp<int64_t>(after, 0, x.rank()), 1);
  // One element is accepted with any axis.
  if (y.numElements() == 1)
    shape.assign(std::min(x.rank(), y.rank()), 1);
  auto fits = broadcastShapes({x.shape(), ArrayRef<int64_t>(shape)});
  if (!fits || ArrayRef<int64_t>(*fits) != x.shape() || after < 0 ||
      (!broadcasts && x.shape() != y.shape()))
    return n.invalid() << n.inputText(1) << " does not broadcast to "
                       << n.inputText(0u)
                       << " with attributes 'broadcast' = " << broadcasts
                       << " and 'axis', as before opset 7";
  result.type = RankedTensorType::get(shape, y.type.getElementType());
  if (!splatOf(y))
    result.value = reshape(n, n.value(1), shape);
  return result;
}

/// All inputs of one type, broadcast; the result has that type or is bool.
static LogicalResult buildBroadcast(NodeBuilder &n, Accepts accepts,
                                    ScalarFn fn, bool isPredicate = false,
                                    bool isBinary = true) {
  SmallVector<unsigned> which = llvm::to_vector(llvm::seq(n.numInputs()));
  SmallVector<ImportedTensor *> inputs;
  for (unsigned i : which) {
    if (!n.hasInput(i))
      return n.invalid() << "input " << i << " is left out";
    inputs.push_back(&n.input(i));
  }
  if (failed(checkAccepts(n, 0, accepts)) || failed(n.sameTypes(which)))
    return failure();
  FailureOr<ImportedTensor> second;
  if (isBinary && n.numInputs() == 2) {
    second = secondOperand(n);
    if (failed(second))
      return failure();
    inputs[1] = &*second;
  }
  DType dtype = n.input(0).dtype;
  DType result = isPredicate ? DType::boolean() : dtype;
  return n.result(
      broadcastElementwise(n, inputs, result.type(n.context()),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             return fn(Scalars(b, loc, dtype), args);
                           }),
      result);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <Value (Scalars::*fold)(Value, Value) const, Accepts accepts,
          bool isBinary = true>
static LogicalResult buildFold(NodeBuilder &n) {
  return buildBroadcast(
      n, accepts,
      [](const Scalars &s, ValueRange args) {
        Value result = args[0];
        for (Value arg : args.drop_front())
          result = (s.*fold)(result, arg);
        return result;
      },
      /*isPredicate=*/false, isBinary);
}

template <Value (Scalars::*predicate)(Value, Value) const, Accepts accepts>
static LogicalResult buildCompare(NodeBuilder &n) {
  return buildBroadcast(
      n, accepts,
      [](const Scalars &s, ValueRange args) {
        return (s.*predicate)(args[0], args[1]);
      },
      /*isPredicate=*/true);
}

template <typename Op, Accepts accepts>
static LogicalResult buildBits(NodeBuilder &n) {
  return buildBroadcast(n, accepts, [](const Scalars &s, ValueRange args) {
    return s.make<Op>(args[0], args[1]);
  });
}

static LogicalResult buildGreater(NodeBuilder &n) {
  return buildBroadcast(
      n, Numbers,
      [](const Scalars &s, ValueRange args) {
        return s.less(args[1], args[0]);
      },
      /*isPredicate=*/true);
}

static LogicalResult buildGreaterOrEqual(NodeBuilder &n) {
  return buildBroadcast(
      n, Numbers,
      [](const Scalars &s, ValueRange args) {
        return s.lessOrEqual(args[1], args[0]);
      },
      /*isPredicate=*/true);
}

static LogicalResult buildMean(NodeBuilder &n) {
  return buildBroadcast(
      n, Floats,
      [](const Scalars &s, ValueRange args) {
        Value sum = args[0];
        for (Value arg : args.drop_front())
          sum = s.add(sum, arg);
        return s.div(sum, s.integer(args.size()));
      },
      /*isPredicate=*/false, /*isBinary=*/false);
}

/// Without fmod the remainder has the divisor's sign, with it the dividend's.
static LogicalResult buildMod(NodeBuilder &n) {
  bool isFmod = n.intAttr("fmod", 0) != 0;
  if (n.input(0).dtype.isFloat() && !isFmod && n.opset < 28)
    return n.invalid() << n.inputText(0u) << " needs attribute 'fmod' to be 1";
  return buildBroadcast(n, Numbers, [&](const Scalars &s, ValueRange args) {
    Value x = args[0], y = args[1];
    if (!s.dtype.isFloat() && !s.dtype.isSigned())
      return s.make<arith::RemUIOp>(x, y);
    Value rest = s.dtype.isFloat() ? s.make<arith::RemFOp>(x, y)
                                   : s.make<arith::RemSIOp>(x, y);
    if (isFmod)
      return rest;
    Value zero = s.integer(0);
    Value differ = s.make<arith::XOrIOp>(s.less(rest, zero), s.less(y, zero));
    Value wraps = s.make<arith::AndIOp>(differ, s.notEqual(rest, zero));
    return s.select(wraps, s.add(rest, y), rest);
  });
}

static LogicalResult buildBitShift(NodeBuilder &n) {
  StringRef direction = n.stringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.invalid() << "attribute 'direction' is " << quoted(direction)
                       << "; LEFT and RIGHT are accepted";
  return buildBroadcast(n, Ints, [&](const Scalars &s, ValueRange args) {
    // A count outside [0, bits) leaves what sign extension gives in ONNX and
    // is undefined in arith.
    Value x = args[0], zero = s.integer(0), fill = zero, shifted;
    if (direction == "LEFT") {
      shifted = s.make<arith::ShLIOp>(x, args[1]);
    } else if (s.dtype.isSigned()) {
      shifted = s.make<arith::ShRSIOp>(x, args[1]);
      fill = s.select(s.less(x, zero), s.integer(-1), zero);
    } else {
      shifted = s.make<arith::ShRUIOp>(x, args[1]);
    }
    Value inRange = s.make<arith::CmpIOp>(arith::CmpIPredicate::ult, args[1],
                                          s.integer(s.dtype.bits()));
    return s.select(inRange, shifted, fill);
  });
}

/// The exponent may have another type than the base, which is the result's.
static LogicalResult buildPow(NodeBuilder &n) {
  if (failed(checkAccepts(n, 0, Numbers)) ||
      failed(checkAccepts(n, 1, Numbers)))
    return failure();
  FailureOr<ImportedTensor> second = secondOperand(n);
  if (failed(second))
    return failure();
  DType base = n.input(0).dtype, exponent = n.input(1).dtype;
  std::optional<double> known;
  if (TypedAttr splat = splatOf(n.input(1))) {
    if (auto value = dyn_cast<FloatAttr>(splat))
      known = value.getValueAsDouble();
    else
      known = static_cast<double>(
          exponent.isSigned()
              ? cast<IntegerAttr>(splat).getValue().getSExtValue()
              : cast<IntegerAttr>(splat).getValue().getZExtValue());
  }
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Scalars s(b, loc, base);
    Value x = args[0];
    if (known == 1)
      return x;
    if (known == 2)
      return s.mul(x, x);
    if (known == 3)
      return s.mul(s.mul(x, x), x);
    if (base.isFloat())
      return s.make<math::PowFOp>(x,
                                  castScalar(b, loc, args[1], exponent, base));
    // Integers through double, as the reference does for mixed types.
    DType wide = *DType::fromCode(11);
    Value power =
        math::PowFOp::create(b, loc, castScalar(b, loc, x, base, wide),
                             castScalar(b, loc, args[1], exponent, wide));
    return castScalar(b, loc, power, wide, base);
  };
  return n.result(broadcastElementwise(n, {&n.input(0), &*second},
                                       base.type(n.context()), body),
                  base);
}

/// Slope broadcasts to x in one direction only; before opset 7 it has an entry
/// for each channel, or one for all.
static LogicalResult buildPRelu(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), slope = n.input(1);
  if (failed(n.sameTypes({0, 1})) || failed(checkAccepts(n, 0, Numbers)))
    return failure();
  SmallVector<int64_t> shape(slope.shape());
  if (n.opset < 7 && slope.numElements() == 1)
    shape.clear();
  else if (n.opset < 7 && slope.rank() == 1 && x.rank() > 1)
    shape.append(x.rank() - 2, 1);
  auto fits = broadcastShapes({x.shape(), ArrayRef<int64_t>(shape)});
  if (!fits || ArrayRef<int64_t>(*fits) != x.shape())
    return n.invalid() << n.inputText(1) << " does not broadcast to "
                       << n.inputText(0u);
  if (shape != SmallVector<int64_t>(slope.shape()) && !splatOf(slope))
    slope.value = reshape(n, n.value(1), shape);
  slope.type = RankedTensorType::get(shape, slope.type.getElementType());
  return n.result(
      broadcastElementwise(n, {&x, &slope}, x.type.getElementType(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, x.dtype);
                             return s.select(s.less(args[0], s.integer(0)),
                                             s.mul(args[0], args[1]), args[0]);
                           }),
      x.dtype);
}

//===----------------------------------------------------------------------===//
// Selection by value
//===----------------------------------------------------------------------===//

static LogicalResult buildWhere(NodeBuilder &n) {
  if (!n.input(0).dtype.isBool())
    return n.invalid() << n.inputText(0u)
                       << " is the condition; bool is accepted";
  if (failed(n.sameTypes({1, 2})))
    return failure();
  DType dtype = n.input(1).dtype;
  return n.result(
      broadcastElementwise(
          n, {&n.input(0), &n.input(1), &n.input(2)}, dtype.type(n.context()),
          [&](OpBuilder &b, Location loc, ValueRange args) {
            return Scalars(b, loc, dtype).select(args[0], args[1], args[2]);
          }),
      dtype);
}

/// min(max(x, low), high); bounds are attributes before opset 11.
static LogicalResult buildClip(NodeBuilder &n) {
  if (failed(checkAccepts(n, 0, Numbers)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &x = n.input(0);
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, x.shape());
  for (unsigned i : {1u, 2u}) {
    if (!n.hasInput(i))
      continue;
    if (n.input(i).numElements() != 1)
      return n.invalid() << n.inputText(i)
                         << " is a bound; a scalar is accepted";
    operands.add(n.input(i), {}, AffineMap::get(x.rank(), 0, n.context()));
  }
  bool hasAttrs = n.opset < 11;
  bool hasLow = hasAttrs ? n.hasAttr("min") : n.hasInput(1);
  bool hasHigh = hasAttrs ? n.hasAttr("max") : n.hasInput(2);
  float lowAttr = n.opset < 11 ? n.floatAttr("min", 0) : 0;
  float highAttr = n.opset < 11 ? n.floatAttr("max", 0) : 0;
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, x.dtype);
    Value result = args[0];
    if (hasLow)
      result = s.max(result, hasAttrs ? s.number(lowAttr) : args[1]);
    if (hasHigh)
      result = s.min(result, hasAttrs ? s.number(highAttr) : args.back());
    return result;
  };
  return n.result(operands.build(x.shape(), x.type.getElementType(), body),
                  x.dtype);
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static LogicalResult buildCastTo(NodeBuilder &n, DType to) {
  ImportedTensor &x = n.input(0);
  CastRules rules;
  rules.saturate = n.intAttr("saturate", 1) != 0;
  StringRef rounding = n.stringAttr("round_mode", "up");
  if (rounding != "up" && rounding != "down" && rounding != "nearest")
    return n.invalid() << "attribute 'round_mode' is " << quoted(rounding)
                       << "; up, down and nearest are accepted";
  rules.powers = rounding == "up"     ? CastRules::Up
                 : rounding == "down" ? CastRules::Down
                                      : CastRules::Nearest;
  if (x.dtype == to)
    return n.aliasResult(0, x);
  return n.result(broadcastElementwise(
                      n, &x, to.type(n.context()),
                      [&](OpBuilder &b, Location loc, ValueRange args) {
                        return castScalar(b, loc, args[0], x.dtype, to, rules);
                      }),
                  to);
}

static LogicalResult buildCast(NodeBuilder &n) {
  int64_t code = n.intAttr("to", 0);
  std::optional<DType> to = DType::fromCode(code);
  if (!to)
    return n.unsupported() << "attribute 'to' is " << dtypeName(code) << "; "
                           << kAcceptedTypes;
  return buildCastTo(n, *to);
}

/// Before opset 6 the type has its name.
static LogicalResult buildNamedCast(NodeBuilder &n) {
  StringRef name = n.stringAttr("to", "");
  for (int64_t code = 1; code < 17; ++code)
    if (name.equals_insensitive(dtypeName(code)) && DType::fromCode(code))
      return buildCastTo(n, *DType::fromCode(code));
  return n.unsupported() << "attribute 'to' is " << quoted(name)
                         << "; FLOAT, DOUBLE, FLOAT16, BOOL and integers of 8 "
                            "to 64 bits, such as INT64, are accepted";
}

static LogicalResult buildCastLike(NodeBuilder &n) {
  return buildCastTo(n, n.input(1).dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> elementwiseOps() {
  static const OpEntry kOps[] = {
      {"Add", 1, kNewestOpset, 2, 2, 1, buildFold<&Scalars::add, Numbers>},
      {"And", 1, kNewestOpset, 2, 2, 1, buildBits<arith::AndIOp, Bools>},
      {"BitShift", 11, kNewestOpset, 2, 2, 1, buildBitShift},
      {"BitwiseAnd", 18, kNewestOpset, 2, 2, 1, buildBits<arith::AndIOp, Ints>},
      {"BitwiseOr", 18, kNewestOpset, 2, 2, 1, buildBits<arith::OrIOp, Ints>},
      {"BitwiseXor", 18, kNewestOpset, 2, 2, 1, buildBits<arith::XOrIOp, Ints>},
      {"Cast", 1, 5, 1, 1, 1, buildNamedCast},
      {"Cast", 6, kNewestOpset, 1, 1, 1, buildCast},
      {"CastLike", 15, kNewestOpset, 2, 2, 1, buildCastLike},
      {"Clip", 1, 10, 1, 1, 1, buildClip},
      {"Clip", 11, kNewestOpset, 1, 3, 1, buildClip},
      {"Div", 1, kNewestOpset, 2, 2, 1, buildFold<&Scalars::div, Numbers>},
      {"Equal", 1, kNewestOpset, 2, 2, 1, buildCompare<&Scalars::equal, Any>},
      {"Greater", 1, kNewestOpset, 2, 2, 1, buildGreater},
      {"GreaterOrEqual", 12, kNewestOpset, 2, 2, 1, buildGreaterOrEqual},
      {"Less", 1, kNewestOpset, 2, 2, 1, buildCompare<&Scalars::less, Numbers>},
      {"LessOrEqual", 12, kNewestOpset, 2, 2, 1,
       buildCompare<&Scalars::lessOrEqual, Numbers>},
      {"Max", 1, kNewestOpset, 1, kVariadic, 1,
       buildFold<&Scalars::max, Numbers, /*isBinary=*/false>},
      {"Mean", 1, kNewestOpset, 1, kVariadic, 1, buildMean},
      {"Min", 1, kNewestOpset, 1, kVariadic, 1,
       buildFold<&Scalars::min, Numbers, /*isBinary=*/false>},
      {"Mod", 10, kNewestOpset, 2, 2, 1, buildMod},
      {"Mul", 1, kNewestOpset, 2, 2, 1, buildFold<&Scalars::mul, Numbers>},
      {"Or", 1, kNewestOpset, 2, 2, 1, buildBits<arith::OrIOp, Bools>},
      {"Pow", 1, kNewestOpset, 2, 2, 1, buildPow},
      {"PRelu", 1, kNewestOpset, 2, 2, 1, buildPRelu},
      {"Sub", 1, kNewestOpset, 2, 2, 1, buildFold<&Scalars::sub, Numbers>},
      {"Sum", 1, kNewestOpset, 1, kVariadic, 1,
       buildFold<&Scalars::add, Floats, /*isBinary=*/false>},
      {"Where", 9, kNewestOpset, 3, 3, 1, buildWhere},
      {"Xor", 1, kNewestOpset, 2, 2, 1, buildBits<arith::XOrIOp, Bools>},
  };
  return kOps;
}
} // namespace memplan::onnx
