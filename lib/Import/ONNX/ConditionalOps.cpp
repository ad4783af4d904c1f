//===- ConditionalOps.cpp - If --------------------------------------------===//

#include "Attempt.h"
#include "ControlFlow.h"
#include "OpTable.h"
#include "TensorOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
struct Branch {
  explicit Branch(const char *name) : name(name) {}

  const char *name;
  const Graph *graph = nullptr;
  /// Its ops, in a block that has no place yet.
  Region region;
  SmallVector<ImportedTensor *> outputs;
  /// Why it cannot be built, if so.
  std::string fault;
};
} // namespace

/// Both branches must make tensors of one type where which of them runs is not
/// known before the program runs.
static LogicalResult checkSameType(NodeBuilder &n, unsigned i,
                                   const ImportedTensor &x,
                                   const ImportedTensor &y) {
  if (x.dtype == y.dtype && x.type == y.type)
    return success();
  return n.unsupported() << "the output " << quoted(n.outputName(i)) << " is "
                         << typeText(x.dtype, x.shape())
                         << " from 'then_branch', "
                         << typeText(y.dtype, y.shape())
                         << " from 'else_branch'; branches of one type, or a "
                            "condition that is known when compiling, are "
                            "accepted; the condition depends on "
                         << n.originText(&n.input(0)) << " (see --input-value)";
}

static void endBranch(NodeBuilder &n, Branch &branch,
                      ArrayRef<unsigned> indices) {
  OpBuilder::InsertionGuard guard(n.b);
  n.b.setInsertionPointToEnd(&branch.region.front());
  SmallVector<Value> results;
  for (unsigned i : indices)
    results.push_back(n.value(*branch.outputs[i]));
  scf::YieldOp::create(n.b, n.loc, results);
}

static LogicalResult buildBranch(NodeBuilder &n, Branch &branch) {
  return buildBlock(n, branch.region, {}, [&](Block &) {
    auto outputs = n.importGraph(branch.name, *branch.graph, {});
    if (failed(outputs))
      return failure();
    branch.outputs = *outputs;
    return success();
  });
}

/// A branch whose shapes are impossible for the model's inputs as they are
/// bound, while the other one's are possible: to take it is an error of the
/// run. It makes what the other one makes.
static void buildRefusal(NodeBuilder &n, Branch &branch, const Branch &other) {
  branch.region.getBlocks().clear();
  (void)buildBlock(n, branch.region, {}, [&](Block &) {
    Value isPossible =
        arith::ConstantOp::create(n.b, n.loc, n.b.getBoolAttr(false));
    cf::AssertOp::create(
        n.b, n.loc, isPossible,
        "the branch " + quoted(branch.name) +
            " is impossible for inputs of these shapes: " + branch.fault);
    for (ImportedTensor *output : other.outputs)
      branch.outputs.push_back(
          keepValue(n, empty(n, output->shape(), output->type.getElementType()),
                    output->dtype, output->name));
    return success();
  });
  n.getReporter().warning()
      << "a branch that cannot be built is an error of the run if it is "
         "taken: "
      << branch.fault;
}

static LogicalResult buildBranches(NodeBuilder &n,
                                   MutableArrayRef<Branch> branches) {
  Reporter &reporter = n.getReporter();
  for (unsigned i : {0, 1}) {
    Attempt attempt(reporter);
    bool isBuilt = succeeded(buildBranch(n, branches[i]));
    attempt.stop();
    if (isBuilt)
      continue;
    if (reporter.kind() != ImportErrorKind::InvalidModel ||
        !branches[1 - i].fault.empty())
      return failure();
    branches[i].fault = attempt.text();
    attempt.drop();
  }
  for (unsigned i : {0, 1})
    if (!branches[i].fault.empty())
      buildRefusal(n, branches[i], branches[1 - i]);
  return success();
}

static LogicalResult buildDynamicIf(NodeBuilder &n,
                                    MutableArrayRef<Branch> branches) {
  if (failed(buildBranches(n, branches)))
    return failure();
  SmallVector<unsigned> indices;
  for (unsigned i = 0; i < n.numOutputs(); ++i) {
    if (!n.wantsOutput(i))
      continue;
    ImportedTensor &x = *branches[0].outputs[i], &y = *branches[1].outputs[i];
    if (failed(checkSameType(n, i, x, y)))
      return failure();
    if (&x != &y)
      indices.push_back(i);
    else if (failed(n.aliasResult(i, x)))
      return failure();
  }
  if (indices.empty())
    return success();
  SmallVector<Type> types;
  for (unsigned i : indices)
    types.push_back(branches[0].outputs[i]->type);
  for (Branch &branch : branches)
    endBranch(n, branch, indices);
  auto op = scf::IfOp::create(n.b, n.loc, types, readScalar(n, n.input(0)),
                              /*withElseRegion=*/true);
  op.getThenRegion().takeBody(branches[0].region);
  op.getElseRegion().takeBody(branches[1].region);
  for (auto [i, value] : llvm::zip(indices, op.getResults()))
    if (failed(n.result(i, value, branches[0].outputs[i]->dtype)))
      return failure();
  return success();
}

static LogicalResult buildIf(NodeBuilder &n) {
  Branch branches[2] = {Branch("then_branch"), Branch("else_branch")};
  for (Branch &branch : branches) {
    branch.graph = n.graphAttr(branch.name);
    if (!branch.graph ||
        failed(checkCounts(n, branch.name, *branch.graph, 0, n.numOutputs())))
      return failure();
  }
  if (failed(checkCondition(n, n.input(0), "the condition")))
    return failure();
  std::optional<bool> condition = knownBool(n.input(0));
  if (!condition)
    return buildDynamicIf(n, branches);
  // The other branch is not even looked at: its shapes may be impossible here.
  Branch &taken = branches[*condition ? 0 : 1];
  auto outputs = n.importGraph(taken.name, *taken.graph, {});
  if (failed(outputs))
    return failure();
  for (auto [i, output] : llvm::enumerate(*outputs))
    if (failed(n.aliasResult(i, *output)))
      return failure();
  return success();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> conditionalOps() {
  static const OpEntry kOps[] = {
      {"If", 1, kNewestOpset, 1, 1, kVariadic, buildIf},
  };
  return kOps;
}
} // namespace memplan::onnx
