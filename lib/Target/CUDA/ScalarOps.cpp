//===- ScalarOps.cpp - arith and math ops as C++ expressions --------------===//

#include "ScalarOps.h"

#include "CppText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace memplan {

namespace {

/// In the text: $0, $1, $2 the operands; $t the result's type; $v the unsigned
/// type of operand 0; $w the same, at least 32 bits wide (narrower ones would
/// be promoted to signed int); $r the unsigned type of the result.
struct Pattern {
  const char *text;
  const char *word;
};

const llvm::StringMap<Pattern> &getPatterns() {
  static const llvm::StringMap<Pattern> patterns = {
      {"arith.addf", {"$0 + $1", "add"}},
      {"arith.subf", {"$0 - $1", "sub"}},
      {"arith.mulf", {"$0 * $1", "mul"}},
      {"arith.divf", {"$0 / $1", "div"}},
      {"arith.remf", {"remfOf($0, $1)", "rem"}},
      {"arith.negf", {"-$0", "neg"}},
      {"arith.maximumf", {"maximumOf($0, $1)", "max"}},
      {"arith.minimumf", {"minimumOf($0, $1)", "min"}},
      {"arith.maxnumf", {"maxnumOf($0, $1)", "max"}},
      {"arith.minnumf", {"minnumOf($0, $1)", "min"}},
      {"arith.select", {"$0 ? $1 : $2", "select"}},
      // Signed overflow wraps in MLIR and is undefined in C++.
      {"arith.addi", {"$t($w($0) + $w($1))", "add"}},
      {"arith.subi", {"$t($w($0) - $w($1))", "sub"}},
      {"arith.muli", {"$t($w($0) * $w($1))", "mul"}},
      {"arith.divsi", {"$t($0 / $1)", "div"}},
      {"arith.divui", {"$t($v($0) / $v($1))", "div"}},
      {"arith.remsi", {"$t($0 % $1)", "rem"}},
      {"arith.remui", {"$t($v($0) % $v($1))", "rem"}},
      {"arith.floordivsi",
       {"$t($0 / $1 - ($0 % $1 != 0 && ($0 < 0) != ($1 < 0)))", "floordiv"}},
      {"arith.ceildivsi",
       {"$t($0 / $1 + ($0 % $1 != 0 && ($0 < 0) == ($1 < 0)))", "ceildiv"}},
      {"arith.ceildivui",
       {"$t($v($0) / $v($1) + ($v($0) % $v($1) != 0))", "ceildiv"}},
      {"arith.andi", {"$t($0 & $1)", "and"}},
      {"arith.ori", {"$t($0 | $1)", "or"}},
      {"arith.xori", {"$t($0 ^ $1)", "xor"}},
      {"arith.shli", {"$t($w($0) << $1)", "shl"}},
      {"arith.shrsi", {"$t($0 >> $1)", "shr"}},
      {"arith.shrui", {"$t($v($0) >> $1)", "shr"}},
      {"arith.maxsi", {"maximumOf($0, $1)", "max"}},
      {"arith.minsi", {"minimumOf($0, $1)", "min"}},
      {"arith.maxui", {"$t(maximumOf($v($0), $v($1)))", "max"}},
      {"arith.minui", {"$t(minimumOf($v($0), $v($1)))", "min"}},
      {"arith.extf", {"$t($0)", ""}},
      {"arith.truncf", {"$t($0)", ""}},
      {"arith.extsi", {"$t($0)", ""}},
      {"arith.extui", {"$t($v($0))", ""}},
      {"arith.trunci", {"$t($0)", ""}},
      {"arith.sitofp", {"$t($0)", "cast"}},
      {"arith.uitofp", {"$t($v($0))", "cast"}},
      {"arith.fptosi", {"$t($0)", "cast"}},
      {"arith.fptoui", {"$t($r($0))", "cast"}},
      {"arith.index_cast", {"$t($0)", ""}},
      {"arith.index_castui", {"$t($v($0))", ""}},
      {"arith.bitcast", {"bitcastOf<$t>($0)", "bitcast"}},
      {"math.powf", {"powfOf($0, $1)", "pow"}},
      {"math.fpowi", {"fpowiOf($0, $1)", "pow"}},
      {"math.atan2", {"atan2Of($0, $1)", "atan2"}},
      {"math.copysign", {"copysignOf($0, $1)", "copysign"}},
      {"math.fma", {"fmaOf($0, $1, $2)", "fma"}},
  };
  return patterns;
}

/// i1 is `bool` in C++ and a number of one bit in MLIR, true being -1 when it
/// counts as signed.
const llvm::StringMap<Pattern> &getBoolPatterns() {
  static const llvm::StringMap<Pattern> patterns = {
      {"arith.addi", {"$0 != $1", "xor"}},
      {"arith.subi", {"$0 != $1", "xor"}},
      {"arith.muli", {"$0 && $1", "and"}},
      {"arith.andi", {"$0 && $1", "and"}},
      {"arith.ori", {"$0 || $1", "or"}},
      {"arith.xori", {"$0 != $1", "xor"}},
      {"arith.maxsi", {"$0 && $1", "and"}},
      {"arith.minsi", {"$0 || $1", "or"}},
      {"arith.maxui", {"$0 || $1", "or"}},
      {"arith.minui", {"$0 && $1", "and"}},
      {"arith.select", {"$0 ? $1 : $2", "select"}},
      {"arith.extsi", {"$t($0 ? -1 : 0)", ""}},
      {"arith.extui", {"$t($0)", ""}},
      {"arith.sitofp", {"$t($0 ? -1 : 0)", "cast"}},
      {"arith.uitofp", {"$t($0)", "cast"}},
      {"arith.index_cast", {"$t($0 ? -1 : 0)", ""}},
      {"arith.index_castui", {"$t($0)", ""}},
  };
  return patterns;
}

/// Ops of one operand that the runtime has under the op's own name: math.exp
/// is expOf.
bool isRuntimeFunction(StringRef name) {
  static const llvm::StringSet<> names = {
      "absf",  "absi",  "acos",  "acosh", "asin",      "asinh", "atan",
      "atanh", "cbrt",  "ceil",  "cos",   "cosh",      "erf",   "erfc",
      "exp",   "exp2",  "expm1", "floor", "isfinite",  "isinf", "isnan",
      "log",   "log10", "log1p", "log2",  "round",     "rsqrt", "sin",
      "sinh",  "sqrt",  "tan",   "tanh",  "roundeven", "trunc"};
  return names.contains(name);
}

const char *getPattern(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::OEQ:
    return "$0 == $1";
  case P::OGT:
    return "$0 > $1";
  case P::OGE:
    return "$0 >= $1";
  case P::OLT:
    return "$0 < $1";
  case P::OLE:
    return "$0 <= $1";
  case P::ONE:
    return "$0 < $1 || $0 > $1";
  case P::ORD:
    return "!isnanOf($0) && !isnanOf($1)";
  case P::UEQ:
    return "!($0 < $1 || $0 > $1)";
  case P::UGT:
    return "!($0 <= $1)";
  case P::UGE:
    return "!($0 < $1)";
  case P::ULT:
    return "!($0 >= $1)";
  case P::ULE:
    return "!($0 > $1)";
  case P::UNE:
    return "$0 != $1";
  case P::UNO:
    return "isnanOf($0) || isnanOf($1)";
  case P::AlwaysTrue:
    return "true";
  }
  llvm_unreachable("all predicates handled");
}

std::string getPattern(arith::CmpIPredicate predicate, bool isBool) {
  using P = arith::CmpIPredicate;
  const char *sign = nullptr;
  bool isSigned = true;
  switch (predicate) {
  case P::eq:
    return "$0 == $1";
  case P::ne:
    return "$0 != $1";
  case P::slt:
    sign = " < ";
    break;
  case P::sle:
    sign = " <= ";
    break;
  case P::sgt:
    sign = " > ";
    break;
  case P::sge:
    sign = " >= ";
    break;
  case P::ult:
    sign = " < ", isSigned = false;
    break;
  case P::ule:
    sign = " <= ", isSigned = false;
    break;
  case P::ugt:
    sign = " > ", isSigned = false;
    break;
  case P::uge:
    sign = " >= ", isSigned = false;
    break;
  }
  if (isBool)
    return isSigned ? std::string("-int($0)") + sign + "-int($1)"
                    : std::string("int($0)") + sign + "int($1)";
  return isSigned ? std::string("$0") + sign + "$1"
                  : std::string("$v($0)") + sign + "$v($1)";
}

std::optional<ScalarExpression> findPattern(Operation *op) {
  StringRef name = op->getName().getStringRef();
  Type operandType = op->getOperand(0).getType();
  // What is only stored is cast, and the code of a float of 4 bits is moved.
  auto isStored = [](Type type) {
    return type.isInteger(4) ||
           (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 16);
  };
  if (isStored(operandType) || isStored(op->getResult(0).getType())) {
    bool isCast = isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(op);
    bool isCode = isa<arith::TruncIOp, arith::ExtUIOp>(op);
    if (!isCast && !isCode && !isa<arith::SelectOp>(op))
      return std::nullopt;
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return {{getPattern(compare.getPredicate()), "cmp"}};
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return {
        {getPattern(compare.getPredicate(), operandType.isInteger(1)), "cmp"}};
  if (auto trunc = dyn_cast<arith::TruncIOp>(op))
    if (trunc.getType().isInteger(1))
      return {{"($0 & 1) != 0", ""}};
  if (operandType.isInteger(1)) {
    auto found = getBoolPatterns().find(name);
    if (found == getBoolPatterns().end())
      return std::nullopt;
    return {{found->second.text, found->second.word}};
  }
  auto found = getPatterns().find(name);
  if (found != getPatterns().end())
    return {{found->second.text, found->second.word}};
  StringRef function = name;
  if (op->getNumOperands() == 1 && function.consume_front("math.") &&
      isRuntimeFunction(function))
    return {{function.str() + "Of($0)", function.str()}};
  return std::nullopt;
}

} // namespace

std::optional<ScalarExpression>
getScalarExpression(Operation *op, ArrayRef<std::string> operands) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      op->getNumRegions() != 0)
    return std::nullopt;
  for (Type type : {op->getResult(0).getType(), op->getOperand(0).getType()})
    if (!getScalarCppType(type))
      return std::nullopt;
  auto pattern = findPattern(op);
  if (!pattern)
    return std::nullopt;
  Type type = op->getOperand(0).getType();
  std::string text;
  for (size_t i = 0; i < pattern->text.size(); ++i) {
    char c = pattern->text[i];
    if (c != '$') {
      text += c;
      continue;
    }
    switch (char key = pattern->text[++i]) {
    case 't':
      text += *getScalarCppType(op->getResult(0).getType());
      break;
    case 'v':
      text += getUnsignedCppType(type);
      break;
    case 'w':
      text += getUnsignedCppType(type) == "uint64_t" ? "uint64_t" : "uint32_t";
      break;
    case 'r':
      text += getUnsignedCppType(op->getResult(0).getType());
      break;
    default:
      text += operands[key - '0'];
    }
  }
  return {{text, pattern->word}};
}

FailureOr<std::string> getAffineExpression(
    AffineExpr expr, unsigned numDims,
    llvm::function_ref<FailureOr<std::string>(unsigned)> getOperand) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return "int64_t(" + std::to_string(constant.getValue()) + ")";
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return getOperand(dim.getPosition());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return getOperand(numDims + symbol.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto lhs = getAffineExpression(binary.getLHS(), numDims, getOperand);
  auto rhs = getAffineExpression(binary.getRHS(), numDims, getOperand);
  if (failed(lhs) || failed(rhs))
    return failure();
  // Divisors are positive; the remainder takes the divisor's sign.
  std::string floor =
      *lhs + " / " + *rhs + " - (" + *lhs + " % " + *rhs + " < 0)";
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return "(" + *lhs + " + " + *rhs + ")";
  case AffineExprKind::Mul:
    return "(" + *lhs + " * " + *rhs + ")";
  case AffineExprKind::FloorDiv:
    return "(" + floor + ")";
  case AffineExprKind::CeilDiv:
    return "(" + *lhs + " / " + *rhs + " + (" + *lhs + " % " + *rhs + " > 0))";
  case AffineExprKind::Mod:
    return "(" + *lhs + " - " + *rhs + " * (" + floor + "))";
  default:
    llvm_unreachable("all binary kinds handled");
  }
}

} // namespace memplan
