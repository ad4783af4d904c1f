//===- ConditionalOps.cpp - If --------------------------------------------===//

#include "Attempt.h"
#include "ControlFlow.h"
#include "OpTable.h"
#include "RunDimRules.h"
#include "TensorOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

/// Both branches must make tensors of one element type and rank where which of
/// them runs is not known before the program runs.
static LogicalResult checkSameType(NodeBuilder &n, unsigned i,
                                   const ImportedTensor &x,
                                   const ImportedTensor &y) {
  if (&x == &y)
    return success();
  if (x.form == y.form && x.elements.size() == y.elements.size()) {
    for (auto [a, b] : llvm::zip_equal(x.elements, y.elements))
      if (failed(checkSameType(n, i, *a, *b)))
        return failure();
    if (x.isList() || (x.dtype == y.dtype && x.rank() == y.rank()))
      return success();
  }
  return n.unsupported() << "the output " << quoted(n.outputName(i)) << " is "
                         << typeText(x) << " from 'then_branch', "
                         << typeText(y)
                         << " from 'else_branch'; branches of one element type "
                            "and rank, or a condition that is known when "
                            "compiling, are accepted; the condition depends on "
                         << n.originText(&n.input(0)) << " (see --input-value)";
}

namespace {
/// A tensor from each of the branches, of which the condition chooses one.
struct Alternative {
  Alternative(ImportedTensor &x, ImportedTensor &y) : tensors{&x, &y} {
    for (int64_t i = 0; i < x.rank(); ++i) {
      bounds.push_back(std::max(x.dim(i), y.dim(i)));
      if (x.dim(i) != y.dim(i) || x.runExtent(i) || y.runExtent(i))
        runDims.push_back(i);
    }
  }

  ImportedTensor *tensors[2];
  /// Of both; where they differ, or differ in what they mean, only the run
  /// tells the extent.
  SmallVector<int64_t> bounds, runDims;
  Value chosen;
  SmallVector<Value> extents; ///< Of `runDims`.
};
} // namespace

/// The tensors that differ between two outputs of one structure.
static void collect(ImportedTensor &x, ImportedTensor &y,
                    SmallVectorImpl<Alternative> &alternatives) {
  if (&x == &y)
    return;
  if (!x.isList())
    alternatives.emplace_back(x, y);
  for (auto [a, b] : llvm::zip_equal(x.elements, y.elements))
    collect(*a, *b, alternatives);
}

/// What the two become, taking the alternatives in the order of `collect`.
static ImportedTensor *choose(NodeBuilder &n, ImportedTensor &x,
                              ImportedTensor &y,
                              ArrayRef<Alternative> &alternatives) {
  if (&x == &y)
    return &x;
  if (!x.isList()) {
    const Alternative &taken = alternatives.consume_front();
    ImportedTensor *result = keepValue(n, taken.chosen, x.dtype, x.name);
    for (auto [dim, extent] : llvm::zip_equal(taken.runDims, taken.extents))
      result->runDims.push_back({dim, extent});
    return result;
  }
  ImportedTensor list;
  list.name = x.name;
  list.form = x.form;
  for (auto [a, b] : llvm::zip_equal(x.elements, y.elements))
    list.elements.push_back(choose(n, *a, *b, alternatives));
  return n.keep(std::move(list));
}

/// The tensor, with zeros up to `bounds`.
static Value padTo(NodeBuilder &n, ImportedTensor &x,
                   ArrayRef<int64_t> bounds) {
  if (x.shape() == bounds)
    return n.value(x);
  Value zeros = filled(
      n, bounds, cast<TypedAttr>(n.b.getZeroAttr(x.type.getElementType())));
  if (x.numElements() == 0)
    return zeros;
  SmallVector<OpFoldResult> offsets(x.rank(), n.b.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(n.context(), x.shape()),
      strides(x.rank(), n.b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(n.b, n.loc, n.value(x), zeros, offsets,
                                       sizes, strides);
}

static void endBranch(NodeBuilder &n, Branch &branch, unsigned which,
                      ArrayRef<Alternative> alternatives) {
  OpBuilder::InsertionGuard guard(n.b);
  n.b.setInsertionPointToEnd(&branch.region.front());
  SmallVector<Value> results;
  for (const Alternative &alternative : alternatives) {
    ImportedTensor &x = *alternative.tensors[which];
    results.push_back(padTo(n, x, alternative.bounds));
    for (int64_t dim : alternative.runDims) {
      Value extent = x.runExtent(dim);
      results.push_back(extent ? extent : scalarExtent(n, x.dim(dim)));
    }
  }
  scf::YieldOp::create(n.b, n.loc, results);
}

static LogicalResult buildBranch(NodeBuilder &n, Branch &branch) {
  return buildBlock(n, branch.region, {}, [&](Block &) {
    auto outputs = n.importAnyGraph(branch.name, *branch.graph, {});
    if (failed(outputs))
      return failure();
    branch.outputs = *outputs;
    return success();
  });
}

/// A tensor of `like`'s type with any elements; for a list one of each.
static ImportedTensor *makeLike(NodeBuilder &n, const ImportedTensor &like) {
  if (!like.isList())
    return keepValue(n, empty(n, like.shape(), like.type.getElementType()),
                     like.dtype, like.name);
  ImportedTensor list;
  list.name = like.name;
  list.form = like.form;
  for (const ImportedTensor *element : like.elements)
    list.elements.push_back(makeLike(n, *element));
  return n.keep(std::move(list));
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
    for (const ImportedTensor *output : other.outputs)
      branch.outputs.push_back(makeLike(n, *output));
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
  SmallVector<Alternative> alternatives;
  for (unsigned i = 0; i < n.numOutputs(); ++i) {
    if (!n.wantsOutput(i))
      continue;
    ImportedTensor &x = *branches[0].outputs[i], &y = *branches[1].outputs[i];
    if (failed(checkSameType(n, i, x, y)))
      return failure();
    collect(x, y, alternatives);
  }
  if (!alternatives.empty()) {
    SmallVector<Type> types;
    for (const Alternative &alternative : alternatives) {
      types.push_back(RankedTensorType::get(
          alternative.bounds, alternative.tensors[0]->type.getElementType()));
      types.append(alternative.runDims.size(),
                   RankedTensorType::get({}, n.b.getI64Type()));
    }
    for (unsigned which = 0; which < 2; ++which)
      endBranch(n, branches[which], which, alternatives);
    auto op = scf::IfOp::create(n.b, n.loc, types, readScalar(n, n.input(0)),
                                /*withElseRegion=*/true);
    op.getThenRegion().takeBody(branches[0].region);
    op.getElseRegion().takeBody(branches[1].region);
    ResultRange results = op.getResults();
    for (Alternative &alternative : alternatives) {
      size_t count = alternative.runDims.size();
      alternative.chosen = results.front();
      llvm::append_range(alternative.extents,
                         results.drop_front().take_front(count));
      results = results.drop_front(count + 1);
    }
  }
  ArrayRef<Alternative> rest(alternatives);
  for (unsigned i = 0; i < n.numOutputs(); ++i)
    if (n.wantsOutput(i) &&
        failed(n.aliasResult(i, *choose(n, *branches[0].outputs[i],
                                        *branches[1].outputs[i], rest))))
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
  if (failed(n.checkStatic(n.input(0))) ||
      failed(checkCondition(n, n.input(0), "the condition")))
    return failure();
  std::optional<bool> condition = knownBool(n.input(0));
  if (!condition)
    return buildDynamicIf(n, branches);
  // The other branch is not even looked at: its shapes may be impossible here.
  Branch &taken = branches[*condition ? 0 : 1];
  auto outputs = n.importAnyGraph(taken.name, *taken.graph, {});
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
      {"If", 1, kNewestOpset, 1, 1, kVariadic, buildIf, "", true},
  };
  return kOps;
}
} // namespace memplan::onnx
