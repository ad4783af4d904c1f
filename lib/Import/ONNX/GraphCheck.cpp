//===- GraphCheck.cpp - Is the graph a graph? -----------------------------===//

#include "GraphCheck.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace memplan::onnx;

std::string memplan::onnx::nodeText(const Node &node, size_t index) {
  if (!node.name.empty())
    return "node " + quoted(node.name);
  for (StringRef output : node.outputs)
    if (!output.empty())
      return "the node that makes " + quoted(output);
  return "node number " + std::to_string(index);
}

std::string memplan::onnx::subgraphText(StringRef attribute, StringRef owner) {
  return (" in " + quoted(attribute) + " of " + owner).str();
}

namespace {
/// Checks one graph; those of its nodes' attributes get Sorters of their own.
class Sorter {
public:
  /// `place` is empty, or tells which subgraph it is.
  Sorter(const Graph &graph, const Sorter *outer, std::string place,
         CheckedGraphs &checked, Reporter &reporter)
      : graph(graph), outer(outer), place(std::move(place)), checked(checked),
        reporter(reporter), states(graph.nodes.size()),
        reads(graph.nodes.size()) {}

  LogicalResult run();

private:
  enum class State : uint8_t { New, Open, Done };

  LogicalResult defineNames();
  LogicalResult collectReads();
  LogicalResult collectOutputs();
  LogicalResult visit(size_t root);
  void takeNeeded(CheckedGraph &result);
  bool defines(StringRef name) const {
    return given.contains(name) || producers.contains(name);
  }
  /// Whether an enclosing graph has the name.
  bool isOuter(StringRef name) const {
    for (const Sorter *at = outer; at; at = at->outer)
      if (at->defines(name))
        return true;
    return false;
  }
  std::string text(size_t index) {
    return nodeText(graph.nodes[index], index) + place;
  }

  const Graph &graph;
  const Sorter *outer;
  std::string place;
  CheckedGraphs &checked;
  Reporter &reporter;
  llvm::DenseSet<StringRef> given; // inputs and initializers
  llvm::DenseMap<StringRef, size_t> producers;
  std::vector<State> states;
  /// What each node reads: its inputs and what its subgraphs capture.
  std::vector<SmallVector<StringRef>> reads;
  llvm::SetVector<StringRef> captures;
  std::vector<const Node *> order;
};
} // namespace

LogicalResult Sorter::defineNames() {
  llvm::DenseSet<StringRef> inputs, initializers;
  for (const ValueInfo &input : graph.inputs) {
    if (input.name.empty())
      return reporter.invalid() << "a graph input" << place << " has no name";
    if (!inputs.insert(input.name).second)
      return reporter.invalid() << "two graph inputs" << place << " are named "
                                << quoted(input.name);
  }
  for (const Tensor &tensor : graph.initializers) {
    if (tensor.name.empty())
      return reporter.invalid() << "an initializer" << place << " has no name";
    if (!initializers.insert(tensor.name).second)
      return reporter.invalid() << "two initializers" << place << " are named "
                                << quoted(tensor.name);
  }
  // An input may have an initializer of its name: its default value.
  given = inputs;
  given.insert(initializers.begin(), initializers.end());
  for (auto [index, node] : llvm::enumerate(graph.nodes))
    for (StringRef output : node.outputs) {
      if (output.empty())
        continue;
      if (given.contains(output))
        return reporter.invalid()
               << text(index) << " makes " << quoted(output)
               << ", which is also "
               << (inputs.contains(output) ? "a graph input"
                                           : "an initializer");
      auto [at, isNew] = producers.try_emplace(output, index);
      if (!isNew)
        return reporter.invalid()
               << text(index) << " makes " << quoted(output) << ", which "
               << text(at->second) << " makes as well";
    }
  return success();
}

/// Also checks the subgraphs, whose captures are reads of their node.
LogicalResult Sorter::collectReads() {
  for (auto [index, node] : llvm::enumerate(graph.nodes)) {
    SmallVector<StringRef> &names = reads[index];
    for (StringRef input : node.inputs)
      if (!input.empty())
        names.push_back(input);
    for (const NodeAttribute &attribute : node.attributes) {
      if (!attribute.g)
        continue;
      if (failed(Sorter(*attribute.g, this,
                        subgraphText(attribute.name, text(index)), checked,
                        reporter)
                     .run()))
        return failure();
      llvm::append_range(names, checked[attribute.g.get()].captures);
    }
    for (StringRef name : names) {
      if (defines(name))
        continue;
      if (!isOuter(name))
        return reporter.invalid()
               << text(index) << " (" << node.opType.str() << ") reads "
               << quoted(name)
               << ", which is no graph input, no initializer and no node's "
                  "output"
               << (outer ? ", here or in an enclosing graph" : "");
      captures.insert(name);
    }
  }
  return success();
}

LogicalResult Sorter::collectOutputs() {
  if (graph.outputs.empty())
    return reporter.invalid() << "the graph" << place << " has no outputs";
  for (const ValueInfo &output : graph.outputs) {
    if (defines(output.name))
      continue;
    if (!isOuter(output.name))
      return reporter.invalid() << "nothing defines the graph output "
                                << quoted(output.name) << place;
    captures.insert(output.name);
  }
  return success();
}

/// Depth first without recursion: models have chains of thousands of nodes.
LogicalResult Sorter::visit(size_t root) {
  if (states[root] == State::Done)
    return success();
  SmallVector<std::pair<size_t, size_t>> stack = {{root, 0}};
  states[root] = State::Open;
  while (!stack.empty()) {
    auto &[index, next] = stack.back();
    const Node &node = graph.nodes[index];
    if (next == reads[index].size()) {
      states[index] = State::Done;
      order.push_back(&node);
      stack.pop_back();
      continue;
    }
    StringRef input = reads[index][next++];
    auto producer = producers.find(input);
    if (producer == producers.end())
      continue; // given, or another graph's
    size_t other = producer->second;
    if (states[other] == State::Open) {
      auto diagnostic = reporter.invalid()
                        << "the graph has a cycle: " << text(index) << " reads "
                        << quoted(input) << ", which depends on it through ";
      auto *from = llvm::find_if(
          stack, [&](auto &entry) { return entry.first == other; });
      llvm::interleaveComma(
          llvm::make_range(from, std::min(from + 8, stack.end())), diagnostic,
          [&](auto &entry) { diagnostic << text(entry.first); });
      return diagnostic;
    }
    if (states[other] == State::New) {
      states[other] = State::Open;
      stack.push_back({other, 0});
    }
  }
  return success();
}

void Sorter::takeNeeded(CheckedGraph &result) {
  llvm::DenseSet<StringRef> needed;
  for (const ValueInfo &output : graph.outputs)
    needed.insert(output.name);
  for (const Node *node : llvm::reverse(order)) {
    if (llvm::none_of(node->outputs, [&](StringRef output) {
          return !output.empty() && needed.contains(output);
        }))
      continue;
    for (StringRef name : reads[node - graph.nodes.data()])
      needed.insert(name);
    result.nodes.push_back(node);
  }
  std::reverse(result.nodes.begin(), result.nodes.end());
}

LogicalResult Sorter::run() {
  if (graph.hasSparseInitializers)
    return reporter.error(memplan::ImportErrorKind::Unsupported)
           << "the graph" << place
           << " has sparse initializers; dense ones are accepted";
  if (failed(defineNames()) || failed(collectReads()))
    return failure();
  // All nodes are checked, also those that no output needs.
  for (size_t index = 0; index < graph.nodes.size(); ++index)
    if (failed(visit(index)))
      return failure();
  if (failed(collectOutputs()))
    return failure();
  CheckedGraph &result = checked[&graph];
  takeNeeded(result);
  result.captures = captures.takeVector();
  return success();
}

LogicalResult memplan::onnx::checkGraphs(const Graph &graph, std::string place,
                                         CheckedGraphs &checked,
                                         Reporter &reporter) {
  return Sorter(graph, nullptr, std::move(place), checked, reporter).run();
}
