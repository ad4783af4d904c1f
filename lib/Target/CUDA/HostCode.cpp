//===- HostCode.cpp - Scalars and variables on the host -------------------===//

#include "HostCode.h"

#include "CheckWrites.h"
#include "CppText.h"
#include "ScalarOps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace memplan {

/// The families of ops that have kernels. Named linalg ops became generic.
static OpEmitter findEmitter(Operation *op) {
  static const llvm::StringMap<OpEmitter> emitters = {
      {"linalg.generic", emitGeneric},
      {"memref.copy", emitCopy},
      {"memref.store", emitStore},
      {"memplan.conv", emitConv},
      {"memplan.matmul", emitMatMul},
      {"memplan.reduce_window", emitReduceWindow},
      {"memplan.rowwise", emitRowwise},
      {"memplan.scatter", emitScatter},
  };
  return emitters.lookup(op->getName().getStringRef());
}

/// Ops that need no code: views, constants, and the end of lives.
static bool needsNoCode(Operation *op) {
  if (auto exit = dyn_cast<func::ReturnOp>(op))
    return exit.getNumOperands() == 0;
  return BufferTable::isViewLike(op) || isa<memref::DeallocOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() ||
         (isMemoryEffectFree(op) && isOpTriviallyDead(op));
}

void HostCode::add(HostStep::Kind kind, std::string text, std::string defines,
                   int64_t point) {
  HostStep step{kind, std::move(text), {}, std::move(defines)};
  step.point = point;
  emitter.steps.push_back(std::move(step));
}

void HostCode::addComment(Operation *op, const Twine &what) {
  emitter.steps.back().comment =
      "// " + escapeForComment(getNodeName(op->getLoc())) + ": " + what.str();
}

int64_t HostCode::getExit(Operation *op) const {
  return std::max(points.begin(op), points.end(op) - 1);
}

LogicalResult HostCode::emitBlock(Block &block) {
  bool good = true;
  for (Operation &op : block) {
    if (needsNoCode(&op) || isa<scf::YieldOp, scf::ConditionOp>(op))
      continue;
    emitter.point = points.begin(&op);
    if (succeeded(emitOp(&op)))
      continue;
    good = false;
    // What uses its results is no error of its own.
    for (Value result : op.getResults())
      emitter.hostNames.try_emplace(result, "unknown");
  }
  return success(good);
}

LogicalResult HostCode::emitOp(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
    return emitSwitch(branch);
  if (auto region = dyn_cast<scf::ExecuteRegionOp>(op))
    return emitExecuteRegion(region);
  if (auto check = dyn_cast<cf::AssertOp>(op))
    return emitAssert(check);
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return emitLoad(load);
  bool isScalar = op->getNumResults() == 1 && op->getNumRegions() == 0 &&
                  isMemoryEffectFree(op);
  if (isScalar && isa<MemRefType>(op->getResult(0).getType()) &&
      isa<arith::SelectOp>(op))
    return emitSelect(op);
  if (isScalar && op->getResult(0).getType().isIntOrIndexOrFloat())
    return emitScalar(op);
  if (OpEmitter emit = findEmitter(op))
    return success(succeeded(emit(emitter, op)) &&
                   succeeded(checkWrites(buffers, op)));
  return op->emitError() << "'" << op->getName()
                         << "' is unsupported by the CUDA target";
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// C++ and the processor have no quotient by zero, and none of the least number
/// by -1: an error of the run instead of its end.
LogicalResult HostCode::emitDivisorCheck(Operation *op,
                                         ArrayRef<std::string> operands) {
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
                      arith::CeilDivSIOp>(op);
  if (!isSigned && !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op))
    return success();
  if (auto divisor = getConstantIntValue(op->getOperand(1));
      divisor && *divisor != 0 && *divisor != -1)
    return success();
  std::string call = isSigned ? "checkDivision(" : "checkDivisor(";
  call += quoteForString(getNodeName(op->getLoc())) + ", " +
          (isSigned ? operands[0] + ", " : "") + operands[1] + ")";
  add(HostStep::Kind::Check, "MEMPLAN_TRY(" + call + ");");
  return success();
}

/// A broken assertion ends the run with an error.
LogicalResult HostCode::emitAssert(cf::AssertOp op) {
  auto condition = emitter.getHostScalar(op.getArg(), op);
  if (failed(condition))
    return failure();
  add(HostStep::Kind::Check, "MEMPLAN_TRY(checkThat(" + *condition + ", " +
                                 quoteForString(getNodeName(op->getLoc())) +
                                 ", " + quoteForString(op.getMsg()) + "));");
  return success();
}

LogicalResult HostCode::emitScalar(Operation *op) {
  Value result = op->getResult(0);
  auto type = getCppType(result.getType());
  if (!type)
    return op->emitError() << "scalar of type " << result.getType()
                           << " is unsupported by the CUDA target";
  SmallVector<std::string> operands;
  for (Value operand : op->getOperands()) {
    auto name = emitter.getHostScalar(operand, op);
    if (failed(name))
      return failure();
    operands.push_back(*name);
  }
  std::string text;
  auto emitMap = [&](AffineMap map, const char *combine) -> LogicalResult {
    for (AffineExpr expr : map.getResults()) {
      auto part =
          getAffineExpression(expr, map.getNumDims(),
                              [&](unsigned number) -> FailureOr<std::string> {
                                return "int64_t(" + operands[number] + ")";
                              });
      if (failed(part))
        return failure();
      if (text.empty()) {
        text = *part;
        continue;
      }
      text.insert(0, std::string(combine) + "(");
      text += ", " + *part + ")";
    }
    return success();
  };
  LogicalResult isMap = failure();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    isMap = emitMap(apply.getAffineMap(), "");
  else if (auto least = dyn_cast<affine::AffineMinOp>(op))
    isMap = emitMap(least.getAffineMap(), "minimumOf");
  else if (auto most = dyn_cast<affine::AffineMaxOp>(op))
    isMap = emitMap(most.getAffineMap(), "maximumOf");
  if (failed(isMap)) {
    auto expression = getScalarExpression(op, operands);
    if (!expression)
      return op->emitError()
             << "'" << op->getName() << "' is unsupported by the CUDA target";
    text = expression->text;
    if (failed(emitDivisorCheck(op, operands)))
      return failure();
  }
  std::string name = newName("s", numScalars);
  emitter.hostNames[result] = name;
  add(HostStep::Kind::Statement,
      "const " + *type + " " + name + " = " + text + ";", name);
  return success();
}

LogicalResult HostCode::emitLoad(memref::LoadOp load) {
  auto type = getCppType(load.getType());
  auto ref = buffers.resolve(load.getMemRef(), load);
  if (failed(ref) || failed(moveToElement(*ref, load.getIndices(), load)))
    return failure();
  std::string name = newName("s", numScalars);
  emitter.hostNames[load] = name;
  emitter.addLaunch(load, "",
                    {PointerArgument{"x", *ref, /*read=*/true,
                                     /*written=*/false}},
                    "run.model.readback.read(" +
                        quoteForString(getNodeName(load.getLoc())) + ", x, " +
                        name + ", run.stream)");
  Launch &launch = emitter.launches.back();
  launch.title =
      "memref.load " + ref->format() + ", read back: waits for the stream";
  launch.result = HostVariable{*type, name};
  return success();
}

/// One of two buffers.
LogicalResult HostCode::emitSelect(Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  const CarriedBuffer *buffer = buffers.getCarried().find(select);
  if (!buffer->isVariable)
    return success();
  auto condition = emitter.getHostScalar(select.getCondition(), op);
  auto ifTrue = makeAssignment(op, select, select.getTrueValue());
  auto ifFalse = makeAssignment(op, select, select.getFalseValue());
  if (failed(condition) || failed(ifTrue) || failed(ifFalse))
    return failure();
  assert(*ifTrue && *ifFalse && "neither operand is the result itself");
  add(HostStep::Kind::Statement,
      (*ifTrue)->type + (*ifTrue)->name + " = " + *condition + " ? " +
          (*ifTrue)->value + " : " + (*ifFalse)->value + ";",
      (*ifTrue)->name);
  return success();
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

LogicalResult HostCode::makeVariable(Operation *op, ArrayRef<Value> values) {
  Type type = values.front().getType();
  if (isa<MemRefType>(type))
    return success(); // CarriedBuffers has named it
  if (!getCppType(type))
    return op->emitError() << "carries a value of type " << type
                           << ", which is unsupported by the CUDA target";
  std::string name = newName("s", numScalars);
  for (Value value : values)
    emitter.hostNames[value] = name;
  return success();
}

FailureOr<std::optional<HostCode::Assignment>>
HostCode::makeAssignment(Operation *op, Value target, Value source) {
  if (!isa<MemRefType>(target.getType())) {
    auto value = emitter.getHostScalar(source, op);
    if (failed(value))
      return failure();
    const std::string &name = emitter.hostNames[target];
    if (*value == name)
      return std::optional<Assignment>();
    return std::optional<Assignment>(
        {*getCppType(target.getType()) + " ", name, *value});
  }
  auto from = buffers.resolve(source, op);
  auto to = buffers.resolve(target, op);
  if (failed(from) || failed(to))
    return failure();
  const CarriedBuffer *buffer = buffers.getCarried().find(target);
  if (!buffer->isVariable)
    return std::optional<Assignment>();
  if (!haveSameStrides(*from, *to)) {
    InFlightDiagnostic diagnostic = op->emitError()
                                    << "carries buffers of different strides, "
                                       "which is unsupported by the CUDA "
                                       "target; copy one to a memref of the "
                                       "other's layout";
    return diagnostic;
  }
  std::string name = "p" + std::to_string(buffer->number);
  std::string value = emitter.getPointer("char", *from);
  if (from->base == BufferRef::Base::Carried && from->byteOffset == 0 &&
      from->terms.empty())
    value = "p" + std::to_string(from->number);
  if (value == name)
    return std::optional<Assignment>();
  return std::optional<Assignment>(
      {buffer->isReadOnly ? "const char *" : "char *", name, value});
}

LogicalResult HostCode::initialize(Operation *op, ValueRange targets,
                                   ValueRange sources) {
  for (auto [target, source] : llvm::zip_equal(targets, sources)) {
    auto made = makeAssignment(op, target, source);
    if (failed(made))
      return failure();
    if (*made)
      add(HostStep::Kind::Statement,
          (*made)->type + (*made)->name + " = " + (*made)->value + ";",
          (*made)->name);
  }
  return success();
}

void HostCode::declareVariable(Value value) {
  if (!isa<MemRefType>(value.getType())) {
    const std::string &name = emitter.hostNames[value];
    add(HostStep::Kind::Statement,
        *getCppType(value.getType()) + " " + name + "{};", name);
    return;
  }
  const CarriedBuffer *buffer = buffers.getCarried().find(value);
  if (!buffer->isVariable)
    return;
  std::string name = "p" + std::to_string(buffer->number);
  add(HostStep::Kind::Statement,
      (buffer->isReadOnly ? "const char *" : "char *") + name + " = nullptr;",
      name);
}

LogicalResult HostCode::declareResults(Operation *op) {
  for (Value result : op->getResults()) {
    if (failed(makeVariable(op, {result})))
      return failure();
    declareVariable(result);
  }
  return success();
}

LogicalResult HostCode::assign(Operation *op, ValueRange targets,
                               ValueRange sources) {
  SmallVector<Assignment> assignments;
  for (auto [target, source] : llvm::zip_equal(targets, sources)) {
    auto made = makeAssignment(op, target, source);
    if (failed(made))
      return failure();
    if (*made)
      assignments.push_back(**made);
  }
  // In turn, unless one needs what an earlier one has overwritten.
  llvm::StringSet<> set;
  bool inTurn = true;
  for (const Assignment &assignment : assignments) {
    llvm::StringSet<> used;
    collectIdentifiers(assignment.value, used);
    for (const auto &name : used)
      inTurn &= !set.contains(name.getKey());
    set.insert(assignment.name);
  }
  if (!inTurn)
    for (Assignment &assignment : assignments) {
      std::string next = assignment.name + "_next";
      add(HostStep::Kind::Statement,
          (StringRef(assignment.type).ends_with("*")
               ? assignment.type + "const "
               : "const " + assignment.type) +
              next + " = " + assignment.value + ";",
          next);
      assignment.value = next;
    }
  for (const Assignment &assignment : assignments)
    add(HostStep::Kind::Statement,
        assignment.name + " = " + assignment.value + ";", assignment.name);
  return success();
}

} // namespace memplan
