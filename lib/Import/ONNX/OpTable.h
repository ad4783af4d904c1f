//===- OpTable.h - The operators that can be imported -----------*- C++ -*-===//
//
// One entry an operator and range of opsets. The families each live in a file
// and are listed in OpFamilies.def; to add an operator, add an entry and its
// builder to its family.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H
#define MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// The oldest and newest opsets whose definitions were read for this table.
inline constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;

using BuildFn = mlir::LogicalResult (*)(NodeBuilder &);

struct OpEntry {
  const char *name;
  /// Opsets of its domain in which the operator means what `build` builds;
  /// differences among them are the builder's business.
  int64_t firstOpset, lastOpset;
  /// How many inputs the operator takes; those up to `minInputs` must be given.
  unsigned minInputs, maxInputs;
  unsigned maxOutputs;
  BuildFn build;
  /// Empty: ONNX's own.
  const char *domain = "";
  /// Whether its inputs may be sequences and optionals; otherwise they are
  /// refused before it is built.
  bool takesLists = false;
};
inline constexpr unsigned kVariadic = ~0u;

/// "" and "ai.onnx" are the same domain.
bool isDefaultDomain(llvm::StringRef domain);

/// The entry for an operator of an opset of `domain`, or null.
const OpEntry *findOp(llvm::StringRef domain, llvm::StringRef name,
                      int64_t opset);

/// All entries, for the table of covered operators.
llvm::SmallVector<llvm::ArrayRef<OpEntry>> allOps();

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H
