//===- ConditionalOps.cpp - If --------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
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
                            "condition that is known at import, are accepted";
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

static LogicalResult buildDynamicIf(NodeBuilder &n,
                                    MutableArrayRef<Branch> branches) {
  for (Branch &branch : branches)
    if (failed(buildBlock(n, branch.region, {}, [&](Block &) {
          auto outputs = n.importGraph(branch.name, *branch.graph, {});
          if (failed(outputs))
            return failure();
          branch.outputs = *outputs;
          return success();
        })))
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
