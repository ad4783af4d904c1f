//===- UnaryOps.cpp - Functions of one element ----------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

using UnaryFn = function_ref<Value(const Scalars &, Value)>;

static LogicalResult buildUnary(NodeBuilder &n, UnaryFn fn) {
  ImportedTensor &x = n.input(0);
  return n.result(
      broadcastElementwise(n, &x, x.type.getElementType(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             return fn(Scalars(b, loc, x.dtype), args[0]);
                           }),
      x.dtype);
}

static LogicalResult buildFloatUnary(NodeBuilder &n, UnaryFn fn) {
  if (failed(n.floatInput(0)))
    return failure();
  return buildUnary(n, fn);
}

static LogicalResult numberInput(NodeBuilder &n) {
  if (!n.input(0).dtype.isBool())
    return success();
  return n.invalid() << n.inputText(0u) << "; numbers are accepted";
}

template <typename Op>
static LogicalResult buildMath(NodeBuilder &n) {
  return buildFloatUnary(
      n, [](const Scalars &s, Value x) { return s.make<Op>(x); });
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static LogicalResult buildAbs(NodeBuilder &n) {
  if (failed(numberInput(n)))
    return failure();
  return buildUnary(n, [](const Scalars &s, Value x) { return s.abs(x); });
}

static LogicalResult buildNeg(NodeBuilder &n) {
  if (failed(numberInput(n)))
    return failure();
  return buildUnary(n, [](const Scalars &s, Value x) { return s.negate(x); });
}

static LogicalResult buildReciprocal(NodeBuilder &n) {
  return buildFloatUnary(
      n, [](const Scalars &s, Value x) { return s.div(s.number(1), x); });
}

/// -1, 0 or 1; a NaN stays one.
static LogicalResult buildSign(NodeBuilder &n) {
  if (failed(numberInput(n)))
    return failure();
  return buildUnary(n, [](const Scalars &s, Value x) {
    Value zero = s.integer(0);
    Value sign = s.select(s.less(zero, x), s.integer(1), x);
    if (!s.dtype.isFloat() && !s.dtype.isSigned())
      return sign;
    return s.select(s.less(x, zero), s.integer(-1), sign);
  });
}

static LogicalResult buildNot(NodeBuilder &n) {
  if (!n.input(0).dtype.isBool())
    return n.invalid() << n.inputText(0u) << "; bool is accepted";
  return buildUnary(n, [](const Scalars &s, Value x) {
    return s.make<arith::XOrIOp>(x, s.integer(1));
  });
}

static LogicalResult buildBitwiseNot(NodeBuilder &n) {
  if (!n.input(0).dtype.isInteger())
    return n.invalid() << n.inputText(0u) << "; integers are accepted";
  return buildUnary(n, [](const Scalars &s, Value x) {
    return s.make<arith::XOrIOp>(x, s.integer(-1));
  });
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

static LogicalResult buildPredicate(NodeBuilder &n, UnaryFn fn) {
  if (failed(n.floatInput(0)))
    return failure();
  ImportedTensor &x = n.input(0);
  return n.result(
      broadcastElementwise(n, &x, n.b.getI1Type(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             return fn(Scalars(b, loc, x.dtype), args[0]);
                           }),
      DType::boolean());
}

static LogicalResult buildIsNaN(NodeBuilder &n) {
  return buildPredicate(
      n, [](const Scalars &s, Value x) { return s.notEqual(x, x); });
}

static LogicalResult buildIsInf(NodeBuilder &n) {
  bool positive = n.intAttr("detect_positive", 1) != 0;
  bool negative = n.intAttr("detect_negative", 1) != 0;
  return buildPredicate(n, [&](const Scalars &s, Value x) {
    if (positive && negative)
      return s.equal(s.abs(x), s.highest());
    if (positive || negative)
      return s.equal(x, positive ? s.highest() : s.lowest());
    return s.notEqual(s.number(0), s.number(0));
  });
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

static LogicalResult buildRelu(NodeBuilder &n) {
  if (failed(numberInput(n)))
    return failure();
  return buildUnary(
      n, [](const Scalars &s, Value x) { return s.max(x, s.integer(0)); });
}

static Value sigmoid(const Scalars &s, Value x) {
  Value one = s.number(1);
  return s.div(one, s.add(one, s.make<math::ExpOp>(s.negate(x))));
}

static LogicalResult buildSigmoid(NodeBuilder &n) {
  return buildFloatUnary(n, sigmoid);
}

/// x * sigmoid(alpha * x)
static LogicalResult buildSwish(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 1.0f);
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    Value inner = alpha == 1 ? x : s.mul(s.number(alpha), x);
    return s.mul(x, sigmoid(s, inner));
  });
}

static Value clampedLine(const Scalars &s, Value x, float alpha, float beta) {
  Value line = s.add(s.mul(s.number(alpha), x), s.number(beta));
  return s.max(s.number(0), s.min(s.number(1), line));
}

static LogicalResult buildHardSigmoid(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 0.2f), beta = n.floatAttr("beta", 0.5f);
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    return clampedLine(s, x, alpha, beta);
  });
}

static LogicalResult buildHardSwish(NodeBuilder &n) {
  return buildFloatUnary(n, [](const Scalars &s, Value x) {
    return s.mul(x, clampedLine(s, x, 1.0f / 6.0f, 0.5f));
  });
}

/// x where it is positive, `below` of it elsewhere.
static LogicalResult buildBelowZero(NodeBuilder &n, UnaryFn below) {
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    return s.select(s.less(s.number(0), x), x, below(s, x));
  });
}

static LogicalResult buildLeakyRelu(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 0.01f);
  return buildBelowZero(
      n, [&](const Scalars &s, Value x) { return s.mul(s.number(alpha), x); });
}

static LogicalResult buildElu(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 1.0f);
  return buildBelowZero(n, [&](const Scalars &s, Value x) {
    return s.mul(s.number(alpha), s.make<math::ExpM1Op>(x));
  });
}

static LogicalResult buildCelu(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 1.0f);
  return buildBelowZero(n, [&](const Scalars &s, Value x) {
    Value scale = s.number(alpha);
    return s.mul(scale, s.make<math::ExpM1Op>(s.div(x, scale)));
  });
}

static LogicalResult buildSelu(NodeBuilder &n) {
  // The defaults are the floats nearest to these (onnx/defs/math); rounded
  // before opset 6.
  bool isOld = n.opset < 6;
  float alpha =
      n.floatAttr("alpha", isOld ? 1.6732f : 1.67326319217681884765625f);
  float gamma =
      n.floatAttr("gamma", isOld ? 1.0507f : 1.05070102214813232421875f);
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    Value below = s.mul(s.number(alpha), s.make<math::ExpM1Op>(x));
    return s.mul(s.number(gamma), s.select(s.less(s.number(0), x), x, below));
  });
}

static LogicalResult buildThresholdedRelu(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 1.0f);
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    return s.select(s.less(s.number(alpha), x), x, s.number(0));
  });
}

static LogicalResult buildShrink(NodeBuilder &n) {
  float bias = n.floatAttr("bias", 0.0f), lambd = n.floatAttr("lambd", 0.5f);
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    Value above = s.select(s.less(s.number(lambd), x), s.sub(x, s.number(bias)),
                           s.number(0));
    return s.select(s.less(x, s.number(-lambd)), s.add(x, s.number(bias)),
                    above);
  });
}

/// log(1 + e^x), written so that e^x cannot overflow.
static Value softplus(const Scalars &s, Value x) {
  Value tail = s.make<math::Log1pOp>(s.make<math::ExpOp>(s.negate(s.abs(x))));
  return s.add(s.max(x, s.number(0)), tail);
}

static LogicalResult buildSoftplus(NodeBuilder &n) {
  return buildFloatUnary(n, softplus);
}

static LogicalResult buildMish(NodeBuilder &n) {
  return buildFloatUnary(n, [](const Scalars &s, Value x) {
    return s.mul(x, s.make<math::TanhOp>(softplus(s, x)));
  });
}

static LogicalResult buildSoftsign(NodeBuilder &n) {
  return buildFloatUnary(n, [](const Scalars &s, Value x) {
    return s.div(x, s.add(s.number(1), s.abs(x)));
  });
}

static LogicalResult buildGelu(NodeBuilder &n) {
  StringRef form = n.stringAttr("approximate", "none");
  if (form != "none" && form != "tanh")
    return n.invalid() << "attribute 'approximate' is " << quoted(form)
                       << "; none and tanh are accepted";
  return buildFloatUnary(n, [&](const Scalars &s, Value x) {
    Value inner;
    if (form == "none") {
      inner = s.make<math::ErfOp>(s.div(x, s.number(std::sqrt(2.0))));
    } else {
      Value cube = s.mul(s.mul(x, x), x);
      Value sum = s.add(x, s.mul(s.number(0.044715), cube));
      inner = s.make<math::TanhOp>(s.mul(s.number(std::sqrt(2.0 / M_PI)), sum));
    }
    return s.mul(s.mul(s.number(0.5), x), s.add(s.number(1), inner));
  });
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> unaryOps() {
  static const OpEntry kOps[] = {
      {"Abs", 1, kNewestOpset, 1, 1, 1, buildAbs},
      {"Acos", 7, kNewestOpset, 1, 1, 1, buildMath<math::AcosOp>},
      {"Acosh", 9, kNewestOpset, 1, 1, 1, buildMath<math::AcoshOp>},
      {"Asin", 7, kNewestOpset, 1, 1, 1, buildMath<math::AsinOp>},
      {"Asinh", 9, kNewestOpset, 1, 1, 1, buildMath<math::AsinhOp>},
      {"Atan", 7, kNewestOpset, 1, 1, 1, buildMath<math::AtanOp>},
      {"Atanh", 9, kNewestOpset, 1, 1, 1, buildMath<math::AtanhOp>},
      {"BitwiseNot", 18, kNewestOpset, 1, 1, 1, buildBitwiseNot},
      {"Ceil", 1, kNewestOpset, 1, 1, 1, buildMath<math::CeilOp>},
      {"Celu", 12, kNewestOpset, 1, 1, 1, buildCelu},
      {"Cos", 7, kNewestOpset, 1, 1, 1, buildMath<math::CosOp>},
      {"Cosh", 9, kNewestOpset, 1, 1, 1, buildMath<math::CoshOp>},
      {"Elu", 1, kNewestOpset, 1, 1, 1, buildElu},
      {"Erf", 9, kNewestOpset, 1, 1, 1, buildMath<math::ErfOp>},
      {"Exp", 1, kNewestOpset, 1, 1, 1, buildMath<math::ExpOp>},
      {"Floor", 1, kNewestOpset, 1, 1, 1, buildMath<math::FloorOp>},
      {"Gelu", 20, kNewestOpset, 1, 1, 1, buildGelu},
      {"HardSigmoid", 1, kNewestOpset, 1, 1, 1, buildHardSigmoid},
      {"HardSwish", 14, kNewestOpset, 1, 1, 1, buildHardSwish},
      {"IsInf", 10, kNewestOpset, 1, 1, 1, buildIsInf},
      {"IsNaN", 9, kNewestOpset, 1, 1, 1, buildIsNaN},
      {"LeakyRelu", 1, kNewestOpset, 1, 1, 1, buildLeakyRelu},
      {"Log", 1, kNewestOpset, 1, 1, 1, buildMath<math::LogOp>},
      {"Mish", 18, kNewestOpset, 1, 1, 1, buildMish},
      {"Neg", 1, kNewestOpset, 1, 1, 1, buildNeg},
      {"Not", 1, kNewestOpset, 1, 1, 1, buildNot},
      {"Reciprocal", 1, kNewestOpset, 1, 1, 1, buildReciprocal},
      {"Relu", 1, kNewestOpset, 1, 1, 1, buildRelu},
      {"Round", 11, kNewestOpset, 1, 1, 1, buildMath<math::RoundEvenOp>},
      {"Selu", 1, kNewestOpset, 1, 1, 1, buildSelu},
      {"Shrink", 9, kNewestOpset, 1, 1, 1, buildShrink},
      {"Sigmoid", 1, kNewestOpset, 1, 1, 1, buildSigmoid},
      {"Sign", 9, kNewestOpset, 1, 1, 1, buildSign},
      {"Sin", 7, kNewestOpset, 1, 1, 1, buildMath<math::SinOp>},
      {"Sinh", 9, kNewestOpset, 1, 1, 1, buildMath<math::SinhOp>},
      {"Softplus", 1, kNewestOpset, 1, 1, 1, buildSoftplus},
      {"Softsign", 1, kNewestOpset, 1, 1, 1, buildSoftsign},
      {"Sqrt", 1, kNewestOpset, 1, 1, 1, buildMath<math::SqrtOp>},
      {"Swish", 24, kNewestOpset, 1, 1, 1, buildSwish},
      {"Tan", 7, kNewestOpset, 1, 1, 1, buildMath<math::TanOp>},
      {"Tanh", 1, kNewestOpset, 1, 1, 1, buildMath<math::TanhOp>},
      {"ThresholdedRelu", 10, kNewestOpset, 1, 1, 1, buildThresholdedRelu},
  };
  return kOps;
}
} // namespace memplan::onnx
