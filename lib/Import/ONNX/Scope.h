//===- Scope.h - The names of a graph during import -------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SCOPE_H
#define MEMPLAN_LIB_IMPORT_ONNX_SCOPE_H

#include "NodeBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan::onnx {

/// One building of one graph; a subgraph's is inside that of its node.
struct Scope {
  explicit Scope(const Graph &graph, const Scope *outer = nullptr,
                 std::string place = "")
      : graph(graph), outer(outer), place(std::move(place)) {}

  const Graph &graph;
  const Scope *outer;
  /// Empty, or which subgraph it is, for messages.
  std::string place;
  llvm::DenseMap<llvm::StringRef, ImportedTensor *> tensors;
  llvm::DenseMap<llvm::StringRef, const ValueInfo *> declarations;
  /// What NonZero made of a tensor: exporters write one for each use, and their
  /// extents must be the same one.
  llvm::DenseMap<const ImportedTensor *, ImportedTensor *> nonZeros;

  /// What the nearest graph that has the name means by it; null if none.
  ImportedTensor *find(llvm::StringRef name) const {
    for (const Scope *at = this; at; at = at->outer)
      if (ImportedTensor *tensor = at->tensors.lookup(name))
        return tensor;
    return nullptr;
  }
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SCOPE_H
