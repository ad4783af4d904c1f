//===- Functions.cpp - Operators that the model defines -------------------===//

#include "Functions.h"

#include "OpTable.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace memplan::onnx;

std::string memplan::onnx::functionText(const Function &function) {
  std::string text = function.name.str();
  if (!isDefaultDomain(function.domain))
    text = function.domain.str() + "." + text;
  if (!function.overload.empty())
    text += ":" + function.overload.str();
  return "function " + quoted(text);
}

static std::array<StringRef, 3> keyOf(StringRef domain, StringRef name,
                                      StringRef overload) {
  return {isDefaultDomain(domain) ? StringRef() : domain, name, overload};
}

const Function *Functions::find(const Node &node) const {
  auto found = functions.find(keyOf(node.domain, node.opType, node.overload));
  return found == functions.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// What one body calls.
struct Functions::Calls {
  struct Edge {
    const Function *callee;
    int64_t nesting; ///< Subgraphs around the call.
    std::string text;
  };
  std::vector<Edge> edges;
  int64_t numNodes = 0, deepest = 0;

  /// Known when all callees are.
  int64_t inlinedNodes = 0, depth = 0;
  bool isOpen = false, isDone = false;
  size_t next = 0;

  void collect(const Functions &functions, const Graph &graph,
               const std::string &place, int64_t nesting) {
    deepest = std::max(deepest, nesting);
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      ++numNodes;
      std::string text = nodeText(node, index) + place;
      if (const Function *callee = functions.find(node))
        edges.push_back({callee, nesting, text});
      for (const NodeAttribute &attribute : node.attributes)
        if (attribute.g)
          collect(functions, *attribute.g, subgraphText(attribute.name, text),
                  nesting + 1);
    }
  }

  void finish(const llvm::DenseMap<const Function *, Calls> &all) {
    // Saturates: the count doubles with each level of two calls.
    constexpr int64_t kMany = Functions::kMostInlinedNodes + 1;
    depth = deepest;
    inlinedNodes = std::min(numNodes, kMany);
    for (const Edge &edge : edges) {
      const Calls &callee = all.find(edge.callee)->second;
      depth = std::max(depth, edge.nesting + 1 + callee.depth);
      inlinedNodes = std::min(inlinedNodes + callee.inlinedNodes, kMany);
    }
    isDone = true;
  }
};

/// Depth first without recursion: a chain of calls may be as long as the file.
LogicalResult Functions::measure(const Model &model, Reporter &reporter) {
  llvm::DenseMap<const Function *, Calls> all;
  for (const Function &function : model.functions)
    all[&function].collect(*this, function.body,
                           " in " + functionText(function), 0);
  for (const Function &root : model.functions) {
    if (all[&root].isDone)
      continue;
    SmallVector<const Function *> stack = {&root};
    all[&root].isOpen = true;
    while (!stack.empty()) {
      Calls &calls = all[stack.back()];
      if (calls.next == calls.edges.size()) {
        calls.finish(all);
        calls.isOpen = false;
        stack.pop_back();
        continue;
      }
      const Calls::Edge &edge = calls.edges[calls.next++];
      Calls &callee = all[edge.callee];
      if (callee.isOpen) {
        auto diagnostic = reporter.invalid()
                          << edge.text << " calls "
                          << functionText(*edge.callee)
                          << ", which is recursive: it is called by ";
        auto from = llvm::find(stack, edge.callee);
        llvm::interleaveComma(
            llvm::make_range(from, std::min(from + 8, stack.end())), diagnostic,
            [&](const Function *f) { diagnostic << functionText(*f); });
        return diagnostic << "; functions that call themselves have no end";
      }
      if (!callee.isDone) {
        callee.isOpen = true;
        stack.push_back(edge.callee);
      }
    }
  }
  Calls graph;
  graph.collect(*this, *model.graph, "", 0);
  graph.numNodes = 0; // its own are no function's
  graph.finish(all);
  if (graph.depth > kDeepestCall)
    return reporter.error(ImportErrorKind::Unsupported)
           << "calls of functions and subgraphs are nested " << graph.depth
           << " deep; up to " << kDeepestCall << " are accepted";
  if (graph.inlinedNodes > kMostInlinedNodes)
    return reporter.error(ImportErrorKind::Unsupported)
           << "the model's functions stand for more than " << kMostInlinedNodes
           << " nodes, counted once for each call; so many are accepted";
  return success();
}

LogicalResult Functions::check(const Model &model, CheckedGraphs &checked,
                               Reporter &reporter) {
  for (const Function &function : model.functions) {
    if (function.name.empty())
      return reporter.invalid() << "a function has no name";
    auto key = keyOf(function.domain, function.name, function.overload);
    if (!functions.try_emplace(key, &function).second)
      return reporter.invalid()
             << "two functions are " << functionText(function)
             << "; those of a domain differ in name or overload";
    if (failed(checkGraphs(function.body, " in " + functionText(function),
                           checked, reporter)))
      return failure();
  }
  return model.functions.empty() ? success() : measure(model, reporter);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const NodeAttribute *FunctionCall::attribute(StringRef name) const {
  for (const NodeAttribute &attribute : node.attributes)
    if (attribute.name == name)
      return &attribute;
  for (const NodeAttribute &attribute : function.defaults)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

FailureOr<Node> memplan::onnx::resolveAttributes(const Node &node,
                                                 const FunctionCall *call,
                                                 StringRef text,
                                                 Reporter &reporter) {
  Node resolved = node;
  resolved.attributes.clear();
  for (const NodeAttribute &attribute : node.attributes) {
    if (attribute.reference.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    auto fault = [&] {
      return reporter.invalid()
             << text << ": attribute " << quoted(attribute.name)
             << " refers to " << quoted(attribute.reference);
    };
    if (!call)
      return fault() << ", an attribute of a function, but is in none";
    const Function &function = call->function;
    bool isDeclared =
        llvm::is_contained(function.attributes, attribute.reference) ||
        llvm::any_of(function.defaults, [&](const NodeAttribute &other) {
          return other.name == attribute.reference;
        });
    if (!isDeclared)
      return fault() << ", which is no attribute of " << functionText(function);
    // A call without it leaves the attribute out here, too.
    if (const NodeAttribute *given = call->attribute(attribute.reference)) {
      resolved.attributes.push_back(*given);
      resolved.attributes.back().name = attribute.name;
    }
  }
  return resolved;
}
