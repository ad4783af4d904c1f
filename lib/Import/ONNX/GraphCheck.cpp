//===- GraphCheck.cpp - Is the graph a graph? -----------------------------===//

#include "GraphCheck.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

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

namespace {
class Sorter {
public:
  Sorter(const Graph &graph, Reporter &reporter)
      : graph(graph), reporter(reporter), states(graph.nodes.size()) {}

  FailureOr<std::vector<const Node *>> run();

private:
  enum class State : uint8_t { New, Open, Done };

  LogicalResult defineNames();
  LogicalResult visit(size_t root);
  std::string text(size_t index) { return nodeText(graph.nodes[index], index); }

  const Graph &graph;
  Reporter &reporter;
  llvm::DenseSet<StringRef> given; // inputs and initializers
  llvm::DenseMap<StringRef, size_t> producers;
  std::vector<State> states;
  std::vector<const Node *> order;
};
} // namespace

LogicalResult Sorter::defineNames() {
  llvm::DenseSet<StringRef> inputs, initializers;
  for (const ValueInfo &input : graph.inputs) {
    if (input.name.empty())
      return reporter.invalid() << "a graph input has no name";
    if (!inputs.insert(input.name).second)
      return reporter.invalid()
             << "two graph inputs are named " << quoted(input.name);
  }
  for (const Tensor &tensor : graph.initializers) {
    if (tensor.name.empty())
      return reporter.invalid() << "an initializer has no name";
    if (!initializers.insert(tensor.name).second)
      return reporter.invalid()
             << "two initializers are named " << quoted(tensor.name);
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

/// Depth first without recursion: models have chains of thousands of nodes.
LogicalResult Sorter::visit(size_t root) {
  if (states[root] == State::Done)
    return success();
  SmallVector<std::pair<size_t, size_t>> stack = {{root, 0}};
  states[root] = State::Open;
  while (!stack.empty()) {
    auto &[index, next] = stack.back();
    const Node &node = graph.nodes[index];
    if (next == node.inputs.size()) {
      states[index] = State::Done;
      order.push_back(&node);
      stack.pop_back();
      continue;
    }
    StringRef input = node.inputs[next++];
    if (input.empty() || given.contains(input))
      continue;
    auto producer = producers.find(input);
    if (producer == producers.end())
      return reporter.invalid() << text(index) << " (" << node.opType.str()
                                << ") reads " << quoted(input)
                                << ", which is no graph input, no initializer "
                                   "and no node's output";
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

FailureOr<std::vector<const Node *>> Sorter::run() {
  if (failed(defineNames()))
    return failure();
  // All nodes are checked, also those that no output needs.
  for (size_t index = 0; index < graph.nodes.size(); ++index)
    if (failed(visit(index)))
      return failure();
  if (graph.outputs.empty())
    return reporter.invalid() << "the graph has no outputs";
  llvm::DenseSet<StringRef> needed;
  for (const ValueInfo &output : graph.outputs) {
    if (!given.contains(output.name) && !producers.contains(output.name))
      return reporter.invalid()
             << "nothing defines the graph output " << quoted(output.name);
    needed.insert(output.name);
  }
  std::vector<const Node *> live;
  for (const Node *node : llvm::reverse(order)) {
    if (llvm::none_of(node->outputs, [&](StringRef output) {
          return !output.empty() && needed.contains(output);
        }))
      continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    live.push_back(node);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

FailureOr<std::vector<const Node *>>
memplan::onnx::sortGraph(const Graph &graph, Reporter &reporter) {
  return Sorter(graph, reporter).run();
}
