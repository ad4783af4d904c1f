//===- MatMulEpilogue.cpp - Epilogues that a GEMM call has ----------------===//

#include "memplan/Dialect/MatMulEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace memplan {

namespace {

/// A summand: the epilogue's argument and its factor.
struct Summand {
  unsigned argument;
  float factor;
};

/// What a region computes, before it is known which summand is what.
struct Sum {
  float alpha = 1;
  SmallVector<Summand> summands;
};

} // namespace

/// What a number was before it was cast between f32 and the types of 16 bits: a
/// call computes in f32 and rounds once, in the end.
static Value skipCasts(Value value) {
  while (Operation *cast = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(cast))
      break;
    for (Type type : {cast->getOperand(0).getType(), value.getType()})
      if (!type.isF32() && !type.isF16() && !type.isBF16())
        return value;
    value = cast->getOperand(0);
  }
  return value;
}

static std::optional<double> getConstant(Value value) {
  FloatAttr attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  return attribute.getValueAsDouble();
}

static bool isConstant(Value value, double expected) {
  auto constant = getConstant(value);
  // As near as the type allows: half a unit in its last place.
  double unit = value.getType().isBF16()  ? 0x1p-8
                : value.getType().isF16() ? 0x1p-11
                                          : 1e-6;
  return constant && std::abs(*constant - expected) <= unit * expected;
}

/// The other operand of a commutative op of which one satisfies `matches`.
template <class Op, class Predicate>
static Value getOther(Value value, Predicate matches) {
  auto op = value ? value.getDefiningOp<Op>() : Op();
  if (!op)
    return nullptr;
  if (matches(op.getRhs()))
    return op.getLhs();
  return matches(op.getLhs()) ? op.getRhs() : Value();
}

template <class Op>
static Value getOtherThanConstant(Value value, double expected) {
  return getOther<Op>(value, [&](Value v) { return isConstant(v, expected); });
}

/// x of maximum(x, 0).
static Value matchRelu(Value value) {
  auto isZero = [](Value v) {
    auto constant = getConstant(v);
    return constant && *constant == 0;
  };
  return getOther<arith::MaximumFOp>(value, isZero);
}

/// Whether `value` is x^3, however it is multiplied together.
static bool isCube(Value value, Value x) {
  if (auto power = value.getDefiningOp<math::PowFOp>())
    return power.getLhs() == x && isConstant(power.getRhs(), 3);
  auto isX = [&](Value v) { return v == x; };
  return getOther<arith::MulFOp>(getOther<arith::MulFOp>(value, isX), isX) == x;
}

/// x + 0.044715 x^3.
static bool isGeluPolynomial(Value value, Value x) {
  Value rest = getOther<arith::AddFOp>(value, [&](Value v) { return v == x; });
  if (!rest)
    return false;
  Value cube = getOtherThanConstant<arith::MulFOp>(rest, 0.044715);
  return cube && isCube(cube, x);
}

/// x of 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), with the three factors
/// in any order.
static Value matchGeluTanh(Value value) {
  SmallVector<Value> factors = {value}, leaves;
  while (!factors.empty()) {
    Value factor = factors.pop_back_val();
    auto product = factor.getDefiningOp<arith::MulFOp>();
    if (product && leaves.size() + factors.size() < 3) {
      factors.push_back(product.getLhs());
      factors.push_back(product.getRhs());
    } else {
      leaves.push_back(factor);
    }
  }
  Value x, onePlusTanh;
  bool hasHalf = false;
  for (Value leaf : leaves) {
    if (isConstant(leaf, 0.5))
      hasHalf = true;
    else if (getOtherThanConstant<arith::AddFOp>(leaf, 1) && !onePlusTanh)
      onePlusTanh = leaf;
    else
      x = leaf;
  }
  if (leaves.size() != 3 || !hasHalf || !x || !onePlusTanh)
    return nullptr;
  auto tanh = getOtherThanConstant<arith::AddFOp>(onePlusTanh, 1)
                  .getDefiningOp<math::TanhOp>();
  if (!tanh)
    return nullptr;
  Value inner = getOtherThanConstant<arith::MulFOp>(tanh.getOperand(),
                                                    0.7978845608028654);
  return inner && isGeluPolynomial(inner, x) ? x : Value();
}

/// alpha * acc + factor * argument + ...; each argument once.
static bool matchSum(Value value, Block &block, double factor, Sum &result,
                     bool &foundAccumulator) {
  value = skipCasts(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != &block)
      return false;
    if (argument.getArgNumber() == 0) {
      if (foundAccumulator)
        return false;
      foundAccumulator = true;
      result.alpha = static_cast<float>(factor);
      return true;
    }
    result.summands.push_back(
        {argument.getArgNumber(), static_cast<float>(factor)});
    return true;
  }
  if (auto add = value.getDefiningOp<arith::AddFOp>())
    return factor == 1 &&
           matchSum(add.getLhs(), block, factor, result, foundAccumulator) &&
           matchSum(add.getRhs(), block, factor, result, foundAccumulator);
  if (auto divide = value.getDefiningOp<arith::DivFOp>()) {
    // A reciprocal may be off by half a unit in the last place.
    auto divisor = getConstant(divide.getRhs());
    return divisor && *divisor != 0 && std::isfinite(*divisor) && factor == 1 &&
           isa<BlockArgument>(skipCasts(divide.getLhs())) &&
           matchSum(divide.getLhs(), block, 1 / *divisor, result,
                    foundAccumulator);
  }
  auto multiply = value.getDefiningOp<arith::MulFOp>();
  if (!multiply || factor != 1)
    return false;
  auto constant = getConstant(multiply.getRhs());
  Value other = multiply.getLhs();
  if (!constant) {
    constant = getConstant(multiply.getLhs());
    other = multiply.getRhs();
  }
  // By a factor of 0 a call doesn't read the operand, NaN or not.
  return constant && *constant != 0 && isa<BlockArgument>(skipCasts(other)) &&
         matchSum(other, block, *constant, result, foundAccumulator);
}

/// Whether an extra is one number for each n, side by side.
static bool isAlongN(MatMulOp op, unsigned extra, ArrayRef<int64_t> extents) {
  unsigned n = extents.size() - 2;
  auto memref = dyn_cast<MemRefType>(op.getExtras()[extra].getType());
  if (extents[n] == 1 || (memref && !memref.getLayout().isIdentity()))
    return false;
  AffineMap map = cast<AffineMapAttr>(op.getExtraMaps()[extra])
                      .getValue()
                      .compose(op.getOutputMap());
  bool usesN = false;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || extents[dim.getPosition()] == 1)
      continue;
    if (dim.getPosition() != n)
      return false;
    usesN = true;
  }
  return usesN;
}

std::optional<MatMulEpilogue> matchMatMulEpilogue(MatMulOp op,
                                                  int overwritten) {
  Block &block = op.getEpilogue().front();
  Type type = block.getTerminator()->getOperand(0).getType();
  Value value = skipCasts(block.getTerminator()->getOperand(0));
  MatMulEpilogue result;
  if (!op.isLibraryProduct() || type != getElementTypeOrSelf(op.getLhs()))
    return std::nullopt;
  if (value == block.getArgument(0) && overwritten < 0)
    return result;
  if (!type.isF32() && !type.isF16() && !type.isBF16())
    return std::nullopt;
  for (Value extra : op.getExtras())
    if (getElementTypeOrSelf(extra) != type)
      return std::nullopt;
  if (Value inner = matchRelu(value)) {
    result.activation = MatMulEpilogue::Activation::Relu;
    value = inner;
  } else if (Value inner = matchGeluTanh(value)) {
    result.activation = MatMulEpilogue::Activation::GeluTanh;
    value = inner;
  }
  Sum sum;
  bool foundAccumulator = false;
  if (!matchSum(value, block, 1, sum, foundAccumulator) || !foundAccumulator)
    return std::nullopt;
  result.alpha = sum.alpha;
  SmallVector<int64_t> extents = op.getLoopExtents();
  unsigned n = extents.size() - 2;
  bool rowsAlongN = extents[n] == 1 || op.getOutputMap().getResults().back() ==
                                           getAffineDimExpr(n, op.getContext());
  for (auto [argument, factor] : sum.summands) {
    int extra = argument - 1;
    // One place as C and as bias is more than a call promises.
    if (extra != overwritten && overwritten >= 0 &&
        op.getExtras()[extra] == op.getExtras()[overwritten])
      return std::nullopt;
    if (extra != overwritten && result.bias < 0 && factor == 1 && rowsAlongN &&
        isAlongN(op, extra, extents)) {
      result.bias = extra;
    } else if (result.c < 0) {
      result.c = extra;
      result.beta = factor;
    } else {
      return std::nullopt;
    }
  }
  if (overwritten >= 0 && result.c != overwritten)
    return std::nullopt;
  return result;
}

} // namespace memplan
