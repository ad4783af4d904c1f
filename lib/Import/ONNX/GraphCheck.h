//===- GraphCheck.h - Is the graph a graph? ---------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H
#define MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H

#include "Model.h"
#include "Reporter.h"

namespace memplan::onnx {

/// How messages call a node: its name, or else its first output's.
std::string nodeText(const Node &node, size_t index);

/// Checks that every name is defined once and every use has a definition, and
/// returns the nodes that the graph's outputs need, definitions before uses.
/// ONNX wants nodes sorted already; an unsorted graph without a cycle is taken.
mlir::FailureOr<std::vector<const Node *>> sortGraph(const Graph &graph,
                                                     Reporter &reporter);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_GRAPHCHECK_H
