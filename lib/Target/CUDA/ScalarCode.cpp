//===- ScalarCode.cpp - Regions of scalar ops to device functions ---------===//

#include "ScalarCode.h"

#include "CppText.h"
#include "ScalarOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

std::string
ScalarFunction::call(llvm::function_ref<std::string(unsigned)> argument,
                     llvm::function_ref<std::string(int64_t)> index,
                     ArrayRef<std::string> results) const {
  if (kind == Kind::Literal)
    return text;
  if (kind == Kind::Argument)
    return argument(arguments.front());
  SmallVector<std::string> operands;
  for (unsigned number : arguments)
    operands.push_back(argument(number));
  for (int64_t dim : indices)
    operands.push_back("int64_t(" + index(dim) + ")");
  for (const PointerArgument &table : tables)
    operands.push_back(table.name);
  for (const Capture &capture : captures)
    operands.push_back(capture.name);
  if (numResults > 1)
    operands.append(results.begin(), results.end());
  return text + "(" + llvm::join(operands, ", ") + ")";
}

/// Turns one region into text.
class ScalarCode {
public:
  ScalarCode(Emitter &emitter, Operation *op, Block &block,
             ArrayRef<std::string> argumentNames)
      : emitter(emitter), op(op), block(block), argumentNames(argumentNames) {}

  FailureOr<ScalarFunction> make();

private:
  FailureOr<std::string> getOperand(Value value, Operation *user);
  LogicalResult emitOp(Operation *inner);
  LogicalResult emitLoad(memref::LoadOp load);
  void bind(Value value, std::string expression);
  /// Where to report: bodies made from named ops may have no locations.
  InFlightDiagnostic emitErrorAt(Operation *inner) {
    return isa<UnknownLoc>(inner->getLoc()) ? op->emitError()
                                            : inner->emitError();
  }
  static bool isTemporary(StringRef name) { return name.starts_with("v"); }
  LogicalResult defineFunction(ValueRange yielded);

  Emitter &emitter;
  Operation *op;
  Block &block;
  ArrayRef<std::string> argumentNames;
  llvm::DenseMap<Value, std::string> text;
  std::string statements;
  unsigned numTemporaries = 0;
  llvm::SmallVector<std::string> words;
  Value returned; ///< The value whose expression is the return statement's.
  ScalarFunction function;
};

FailureOr<std::string> ScalarCode::getOperand(Value value, Operation *user) {
  auto found = text.find(value);
  if (found != text.end())
    return found->second;
  if (auto argument = dyn_cast<BlockArgument>(value);
      argument && argument.getOwner() == &block) {
    if (!getCppType(argument.getType())) {
      emitErrorAt(user) << "scalar of type " << argument.getType()
                        << " is unsupported by the CUDA target";
      return failure();
    }
    unsigned number = argument.getArgNumber();
    function.arguments.push_back(number);
    return text[value] = argumentNames[number];
  }
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    if (auto literal = getCppLiteral(constant))
      return text[value] = *literal;
  auto type = getCppType(value.getType());
  auto host = emitter.hostNames.find(value);
  if (!type || host == emitter.hostNames.end()) {
    emitErrorAt(user) << "uses a scalar of type " << value.getType()
                      << " from outside its region that the CUDA target's host "
                         "code can't compute";
    return failure();
  }
  std::string name = "s" + std::to_string(function.captures.size());
  function.captures.push_back({*type, name, host->second});
  return text[value] = name;
}

void ScalarCode::bind(Value value, std::string expression) {
  if (value == returned) {
    text[value] = std::move(expression);
    return;
  }
  std::string name = "v" + std::to_string(numTemporaries++);
  statements += "  const " + *getScalarCppType(value.getType()) + " " + name +
                " = " + expression + ";\n";
  text[value] = name;
}

LogicalResult ScalarCode::emitLoad(memref::LoadOp load) {
  auto ref = emitter.buffers.resolve(load.getMemRef(), load);
  if (failed(ref))
    return failure();
  std::string name = "t" + std::to_string(function.tables.size());
  std::string place;
  for (auto [index, stride] :
       llvm::zip_equal(load.getIndices(), ref->strides)) {
    auto operand = getOperand(index, load);
    if (failed(operand))
      return failure();
    place += (place.empty() ? "" : " + ") + *operand;
    if (stride != 1)
      place += " * " + std::to_string(stride);
  }
  function.tables.push_back({name, *ref, /*read=*/true, /*written=*/false});
  words.push_back("gather");
  bind(load.getResult(), name + "[" + (place.empty() ? "0" : place) + "]");
  return success();
}

LogicalResult ScalarCode::emitOp(Operation *inner) {
  if (inner->hasTrait<OpTrait::ConstantLike>())
    return success(); // a literal where it is used
  for (Type type : inner->getResultTypes())
    if (!getScalarCppType(type)) {
      emitErrorAt(inner) << "scalar of type " << type
                         << " is unsupported by the CUDA target";
      return failure();
    }
  if (auto load = dyn_cast<memref::LoadOp>(inner))
    return emitLoad(load);
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    int64_t dim = index.getDim();
    if (!llvm::is_contained(function.indices, dim))
      function.indices.push_back(dim);
    text[index] = "i" + std::to_string(dim);
    return success();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(inner)) {
    AffineMap map = apply.getAffineMap();
    auto value = getAffineExpression(
        map.getResult(0), map.getNumDims(), [&](unsigned operand) {
          return getOperand(apply.getOperand(operand), inner);
        });
    if (failed(value))
      return failure();
    bind(apply, *value);
    return success();
  }
  SmallVector<std::string> operands;
  for (Value operand : inner->getOperands()) {
    auto name = getOperand(operand, inner);
    if (failed(name))
      return failure();
    operands.push_back(*name);
  }
  // Sums that only differ in their operands' order are to share their code; a
  // computed operand goes first.
  if (inner->hasTrait<OpTrait::IsCommutative>() && operands.size() == 2 &&
      !isTemporary(operands[0]) && isTemporary(operands[1]))
    std::swap(operands[0], operands[1]);
  auto expression = getScalarExpression(inner, operands);
  if (!expression) {
    emitErrorAt(inner) << inner->getName() << " on "
                       << (inner->getNumOperands()
                               ? inner->getOperand(0).getType()
                               : NoneType::get(inner->getContext()))
                       << " is unsupported by the CUDA target";
    return failure();
  }
  if (!expression->word.empty())
    words.push_back(expression->word);
  bind(inner->getResult(0), expression->text);
  return success();
}

LogicalResult ScalarCode::defineFunction(ValueRange yielded) {
  SmallVector<std::string> results;
  for (Value value : yielded) {
    auto result = getOperand(value, block.getTerminator());
    if (failed(result))
      return failure();
    results.push_back(*result);
  }
  llvm::sort(function.arguments);
  llvm::sort(function.indices);
  SmallVector<std::string> parameters;
  for (unsigned number : function.arguments)
    parameters.push_back(*getCppType(block.getArgument(number).getType()) +
                         " " + argumentNames[number]);
  for (int64_t dim : function.indices)
    parameters.push_back("int64_t i" + std::to_string(dim));
  for (const PointerArgument &table : function.tables)
    parameters.push_back("const " + *getCppType(table.ref.elementType) + " *" +
                         table.name);
  for (const ScalarFunction::Capture &capture : function.captures)
    parameters.push_back(capture.type + " " + capture.name);
  std::string type = *getCppType(yielded.front().getType());
  if (results.size() == 1) {
    statements += "  return " + results.front() + ";\n";
  } else {
    type = "void";
    for (auto [number, value] : llvm::enumerate(yielded)) {
      std::string name = "r" + std::to_string(number);
      parameters.push_back(*getCppType(value.getType()) + " &" + name);
      statements += "  " + name + " = " + results[number] + ";\n";
    }
  }
  // Names of long bodies: the first few words, each once.
  llvm::SmallSetVector<StringRef, 4> chosen;
  for (const std::string &word : words)
    if (chosen.size() < 4)
      chosen.insert(word);
  function.hint = chosen.empty() ? "copy" : llvm::join(chosen, "_");
  function.text = emitter.define(
      "compute_" + function.hint,
      "__device__ __forceinline__ " + type + " " + Emitter::kName.str() + "(" +
          llvm::join(parameters, ", ") + ") {\n" + statements + "}\n");
  return success();
}

FailureOr<ScalarFunction> ScalarCode::make() {
  Operation *terminator = block.getTerminator();
  ValueRange yielded = terminator->getOperands();
  function.numResults = yielded.size();
  for (Value value : yielded) {
    if (!getCppType(value.getType())) {
      emitErrorAt(terminator) << "scalar of type " << value.getType()
                              << " is unsupported by the CUDA target";
      return failure();
    }
    function.resultTypes.push_back(value.getType());
  }
  if (yielded.size() == 1) {
    Value value = yielded.front();
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner() == &block) {
      function.kind = ScalarFunction::Kind::Argument;
      function.arguments.push_back(argument.getArgNumber());
      function.hint = "copy";
      return function;
    }
    TypedAttr constant;
    if (matchPattern(value, m_Constant(&constant))) {
      auto literal = getOperand(value, terminator);
      if (failed(literal))
        return failure();
      function.kind = ScalarFunction::Kind::Literal;
      function.text = *literal;
      function.hint = "fill";
      return function;
    }
    if (value.hasOneUse())
      returned = value;
  }
  for (Operation &inner : block.without_terminator()) {
    if (isOpTriviallyDead(&inner))
      continue;
    if (failed(emitOp(&inner)))
      return failure();
  }
  if (failed(defineFunction(yielded)))
    return failure();
  return function;
}

FailureOr<ScalarFunction>
makeScalarFunction(Emitter &emitter, Operation *op, Region &region,
                   ArrayRef<std::string> argumentNames) {
  return ScalarCode(emitter, op, region.front(), argumentNames).make();
}

} // namespace memplan
