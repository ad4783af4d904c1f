//===- ControlFlow.cpp - scf to loops and branches of C++ -----------------===//

#include "CppText.h"
#include "HostCode.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace memplan {

using Kind = HostStep::Kind;

/// A bound of a loop: numbers are read more easily without a cast.
static FailureOr<std::string> getBound(Emitter &emitter, Value bound,
                                       Operation *loop) {
  if (auto number = getConstantIntValue(bound);
      number && bound.getType().isIndex() && *number != INT64_MIN)
    return std::to_string(*number);
  return emitter.getHostScalar(bound, loop);
}

/// How `name` gets to the next iteration. Not by a sum that may pass the end of
/// the type, which is undefined in C++.
static std::string getIncrement(StringRef name, std::optional<int64_t> step,
                                StringRef stepText, StringRef upper,
                                std::optional<int64_t> knownUpper) {
  if (step == 1)
    return ("++" + name).str();
  auto last =
      step && knownUpper ? checkedAdd(*step, *knownUpper) : std::nullopt;
  if (last && *last <= INT32_MAX)
    return (name + " += " + stepText).str();
  return (name + " = stepTo(" + name + ", " + stepText + ", " + upper + ")")
      .str();
}

LogicalResult HostCode::emitFor(scf::ForOp loop) {
  if (loop.getUnsignedCmp())
    return loop.emitError("unsigned bounds are unsupported by the CUDA target");
  Type type = loop.getInductionVar().getType();
  auto cppType = getCppType(type);
  if (!cppType)
    return loop.emitError() << "bounds of type " << type
                            << " are unsupported by the CUDA target";
  auto step = getConstantIntValue(loop.getStep());
  auto lower = getBound(emitter, loop.getLowerBound(), loop);
  auto upper = getBound(emitter, loop.getUpperBound(), loop);
  auto stepText = getBound(emitter, loop.getStep(), loop);
  if (failed(lower) || failed(upper) || failed(stepText))
    return failure();
  for (auto [argument, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
    if (failed(makeVariable(loop, {argument, result})))
      return failure();
  if (failed(initialize(loop, loop.getRegionIterArgs(), loop.getInitArgs())))
    return failure();
  if (!step || *step <= 0)
    add(Kind::Check, "MEMPLAN_TRY(checkStep(" +
                         quoteForString(getNodeName(loop.getLoc())) + ", " +
                         *stepText + "));");
  std::string name = newName("i", numLoops);
  emitter.hostNames[loop.getInductionVar()] = name;
  std::string next = getIncrement(name, step, *stepText, *upper,
                                  getConstantIntValue(loop.getUpperBound()));
  std::string text = "for (" + *cppType + " " + name + " = " + *lower + "; " +
                     name + " < " + *upper + "; " + next + ") {";
  add(Kind::OpenLoop, text, "", points.begin(loop));
  auto trips = loop.getStaticTripCount();
  addComment(loop, trips ? "scf.for, " + Twine(trips->getSExtValue()) +
                               (trips->isOne() ? " time" : " times")
                         : Twine("scf.for"));
  bool good = succeeded(emitBlock(*loop.getBody()));
  good &= succeeded(
      assign(loop, loop.getRegionIterArgs(), loop.getYieldedValues()));
  add(Kind::CloseLoop, "", "", points.begin(loop));
  return success(good);
}

/// Whether the after region of the loop, and what follows, may use the variable
/// of this operand of its condition as it is.
static bool isSetBefore(scf::WhileOp loop, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (argument.getOwner() == loop.getBeforeBody())
      return true;
  return value.getParentRegion()->isProperAncestor(&loop.getBefore());
}

LogicalResult HostCode::emitWhile(scf::WhileOp loop) {
  for (Value argument : loop.getBeforeArguments())
    if (failed(makeVariable(loop, {argument})))
      return failure();
  if (failed(initialize(loop, loop.getBeforeArguments(), loop.getInits())))
    return failure();
  // What the condition hands on: the variable that it already is, or a new one.
  scf::ConditionOp condition = loop.getConditionOp();
  SmallVector<Value> targets, sources, afterResults;
  for (auto [argument, result, source] : llvm::zip_equal(
           loop.getAfterArguments(), loop.getResults(), condition.getArgs())) {
    if (!isa<MemRefType>(source.getType()) && isSetBefore(loop, source)) {
      auto name = emitter.getHostScalar(source, loop);
      if (failed(name))
        return failure();
      emitter.hostNames[argument] = emitter.hostNames[result] = *name;
      continue;
    }
    if (failed(makeVariable(loop, {argument, result})))
      return failure();
    targets.push_back(result);
    sources.push_back(source);
    declareVariable(result);
  }
  add(Kind::OpenLoop, "while (true) {", "", points.begin(loop));
  addComment(loop, "scf.while");
  bool good = succeeded(emitBlock(*loop.getBeforeBody()));
  good &= succeeded(assign(loop, targets, sources));
  auto stays = emitter.getHostScalar(condition.getCondition(), loop);
  if (failed(stays))
    return failure();
  add(Kind::Break, "if (!" + *stays + ")", "", getExit(loop));
  good &= succeeded(emitBlock(*loop.getAfterBody()));
  good &= succeeded(
      assign(loop, loop.getBeforeArguments(), loop.getYieldedValues()));
  add(Kind::CloseLoop, "", "", points.begin(loop));
  return success(good);
}

LogicalResult HostCode::emitBranches(Operation *op, ArrayRef<std::string> heads,
                                     ArrayRef<Region *> regions) {
  if (failed(declareResults(op)))
    return failure();
  bool good = true;
  for (auto [head, region] : llvm::zip_equal(heads, regions)) {
    bool isFirst = region == regions.front();
    size_t before = emitter.steps.size();
    add(isFirst ? Kind::OpenBranch : Kind::Else, head, "",
        isFirst ? points.begin(op) : getExit(op));
    if (isFirst)
      addComment(op, op->getName().getStringRef());
    Block &block = region->front();
    good &= succeeded(emitBlock(block));
    good &= succeeded(
        assign(op, op->getResults(), block.getTerminator()->getOperands()));
    if (region == regions.back() && !isFirst &&
        emitter.steps.size() == before + 1)
      emitter.steps.pop_back(); // an else with nothing in it
  }
  add(Kind::CloseBranch, "", "", getExit(op));
  return success(good);
}

LogicalResult HostCode::emitIf(scf::IfOp branch) {
  auto condition = emitter.getHostScalar(branch.getCondition(), branch);
  if (failed(condition))
    return failure();
  SmallVector<std::string> heads = {"if (" + *condition + ") {"};
  SmallVector<Region *> regions = {&branch.getThenRegion()};
  if (!branch.getElseRegion().empty()) {
    heads.push_back("} else {");
    regions.push_back(&branch.getElseRegion());
  }
  return emitBranches(branch, heads, regions);
}

LogicalResult HostCode::emitSwitch(scf::IndexSwitchOp branch) {
  auto argument = emitter.getHostScalar(branch.getArg(), branch);
  if (failed(argument))
    return failure();
  SmallVector<std::string> heads;
  SmallVector<Region *> regions;
  for (auto [value, region] :
       llvm::zip_equal(branch.getCases(), branch.getCaseRegions())) {
    heads.push_back((heads.empty() ? "if (" : "} else if (") + *argument +
                    " == " + std::to_string(value) + ") {");
    regions.push_back(&region);
  }
  heads.push_back(heads.empty() ? "{" : "} else {");
  regions.push_back(&branch.getDefaultRegion());
  return emitBranches(branch, heads, regions);
}

LogicalResult HostCode::emitExecuteRegion(scf::ExecuteRegionOp op) {
  if (!op.getRegion().hasOneBlock())
    return op.emitError("branches among blocks are unsupported by the CUDA "
                        "target");
  return emitBranches(op, {"{"}, {&op.getRegion()});
}

} // namespace memplan
