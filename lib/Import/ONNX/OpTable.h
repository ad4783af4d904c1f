//===- OpTable.h - The operators that can be imported -----------*- C++ -*-===//
//
// One entry an operator and range of opsets. The families each live in a file;
// to add an operator, add an entry and its builder there.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H
#define MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// The oldest and newest opsets whose definitions were read for this table.
inline constexpr int64_t kOldestOpset = 7, kNewestOpset = 28;

using BuildFn = mlir::LogicalResult (*)(NodeBuilder &);

struct OpEntry {
  const char *name;
  /// Opsets of the default domain in which the operator means what `build`
  /// builds; differences among them are the builder's business.
  int64_t firstOpset, lastOpset;
  /// How many inputs the operator takes; those up to `minInputs` must be given.
  unsigned minInputs, maxInputs;
  unsigned maxOutputs;
  BuildFn build;
};
inline constexpr unsigned kVariadic = ~0u;

llvm::ArrayRef<OpEntry> conditionalOps();
llvm::ArrayRef<OpEntry> constantOps();
llvm::ArrayRef<OpEntry> convolutionOps();
llvm::ArrayRef<OpEntry> einsumOps();
llvm::ArrayRef<OpEntry> elementwiseOps();
llvm::ArrayRef<OpEntry> gatherOps();
llvm::ArrayRef<OpEntry> generatorOps();
llvm::ArrayRef<OpEntry> indexOps();
llvm::ArrayRef<OpEntry> layoutOps();
llvm::ArrayRef<OpEntry> loopOps();
llvm::ArrayRef<OpEntry> lossOps();
llvm::ArrayRef<OpEntry> matrixOps();
llvm::ArrayRef<OpEntry> normalizationOps();
llvm::ArrayRef<OpEntry> padOps();
llvm::ArrayRef<OpEntry> poolingOps();
llvm::ArrayRef<OpEntry> prefixOps();
llvm::ArrayRef<OpEntry> recurrentOps();
llvm::ArrayRef<OpEntry> reductionOps();
llvm::ArrayRef<OpEntry> resizeOps();
llvm::ArrayRef<OpEntry> rowNormOps();
llvm::ArrayRef<OpEntry> samplingOps();
llvm::ArrayRef<OpEntry> scanOps();
llvm::ArrayRef<OpEntry> scatterOps();
llvm::ArrayRef<OpEntry> selectionOps();
llvm::ArrayRef<OpEntry> sortOps();
llvm::ArrayRef<OpEntry> transposedWindowOps();
llvm::ArrayRef<OpEntry> unaryOps();

/// The entry for an operator of the default domain, or null.
const OpEntry *findOp(llvm::StringRef name, int64_t opset);

/// All entries, for the table of covered operators.
llvm::SmallVector<llvm::ArrayRef<OpEntry>> allOps();

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_OPTABLE_H
