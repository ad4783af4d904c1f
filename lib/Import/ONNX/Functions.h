//===- Functions.h - Operators that the model defines -----------*- C++ -*-===//
//
// A call of a model-local function is built as if the function's nodes stood in
// its place. Functions may call functions, so that a small file can stand for
// much work: how much, and how deep it nests, is known before anything is
// built.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_FUNCTIONS_H
#define MEMPLAN_LIB_IMPORT_ONNX_FUNCTIONS_H

#include "GraphCheck.h"

#include <map>

namespace memplan::onnx {

/// How messages call a function: 'domain.name', and its overload.
std::string functionText(const Function &function);

class Functions {
public:
  /// Calls and subgraphs within each other up to this depth are built.
  static constexpr int64_t kDeepestCall = 100;
  /// Nodes of functions, counted as often as they are built.
  static constexpr int64_t kMostInlinedNodes = 50000;

  /// Checks the model's functions, each body like a graph, that none calls
  /// itself, and what the model's graph makes of them.
  mlir::LogicalResult check(const Model &model, CheckedGraphs &checked,
                            Reporter &reporter);

  /// The function that a node calls, or null.
  const Function *find(const Node &node) const;

private:
  struct Calls;
  mlir::LogicalResult measure(const Model &model, Reporter &reporter);

  /// By domain, name and overload.
  std::map<std::array<llvm::StringRef, 3>, const Function *> functions;
};

/// A call that is being built.
struct FunctionCall {
  const Function &function;
  /// The call, its attributes no longer references.
  const Node &node;

  /// The value of the function's attribute `name`, or null.
  const NodeAttribute *attribute(llvm::StringRef name) const;
};

/// `node` with the values of attributes that refer to those of the call, which
/// may be null: then it is in no function.
mlir::FailureOr<Node> resolveAttributes(const Node &node,
                                        const FunctionCall *call,
                                        llvm::StringRef text,
                                        Reporter &reporter);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_FUNCTIONS_H
