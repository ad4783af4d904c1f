//===- GraphCheck.h - Is the graph a graph? ---------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H
#define MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H

#include "Model.h"
#include "Reporter.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan::onnx {

/// How messages call a node: its name, or else its first output's.
std::string nodeText(const Node &node, size_t index);
/// How messages call the place of a subgraph: " in 'body' of node 'loop'",
/// where `owner` is what they call the node.
std::string subgraphText(llvm::StringRef attribute, llvm::StringRef owner);

struct CheckedGraph {
  /// The nodes that the graph's outputs need, definitions before uses.
  std::vector<const Node *> nodes;
  /// Names of enclosing graphs that it or its subgraphs read, in order of use.
  llvm::SmallVector<llvm::StringRef> captures;
};
using CheckedGraphs = llvm::DenseMap<const Graph *, CheckedGraph>;

/// Checks `graph` and all its subgraphs: every name is defined once in its
/// graph, every use has a definition there or in an enclosing graph (the
/// nearest counts), and there is no cycle, be it through what a subgraph reads.
/// ONNX wants nodes sorted already; an unsorted graph without a cycle is taken.
/// `place` is empty, or tells whose graph it is.
mlir::LogicalResult checkGraphs(const Graph &graph, std::string place,
                                CheckedGraphs &checked, Reporter &reporter);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H
