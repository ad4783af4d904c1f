//===- Import.h - ONNX models to linalg on tensors --------------*- C++ -*-===//
//
// Turns an ONNX file into one module: `func.func @main` on statically shaped
// tensors, made of linalg, tensor, arith, math and memplan ops. Weights stay in
// their file: each becomes an external `memref.global` that says where its
// bytes are (`memplan.weight`). Which operators are covered, and for which
// opsets, is the table in lib/Import/ONNX (one file a family).
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_IMPORT_ONNX_IMPORT_H
#define MEMPLAN_IMPORT_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace memplan {

/// Why an import failed. The values are the exit codes of the tools.
enum class ImportErrorKind {
  /// The file cannot be read, or a flag such as `--dim` names nothing of the
  /// model's.
  IO = 1,
  /// The file is not a valid ONNX model.
  InvalidModel = 2,
  /// A valid model asks for what the importer does not have.
  Unsupported = 3,
  /// A dimension of an input is symbolic and no `--dim` binds it.
  UnboundShape = 4,
  /// The importer made invalid IR: a bug in memplan.
  Internal = 70,
};

struct ImportOptions {
  /// Values of symbolic dimensions (`--dim NAME=N`). An input dimension that
  /// has neither a size nor a name is called INPUT.INDEX, such as `image.0`;
  /// `?` is no name.
  llvm::StringMap<int64_t> dims;
  /// Shapes of inputs (`--input-shape NAME=1x3x224x224`), which bind their
  /// symbolic dims, and say what a model without shapes leaves open. The
  /// elements of a sequence are called NAME[0], NAME[1], ...; NAME alone is all
  /// that have no entry of their own.
  llvm::StringMap<llvm::SmallVector<int64_t>> inputShapes;
  /// Inputs that are known when compiling (`--input-value NAME=1,2,3`, or
  /// `NAME=@FILE` with a serialized TensorProto). They are constants then, and
  /// not among the inputs of the emitted code.
  llvm::StringMap<std::string> inputValues;
  /// One more folder in which external data may lie, also behind symbolic
  /// links (`--external-data-root`); empty for none.
  std::string externalDataRoot;
  /// Lengths of inputs that are sequences (`--sequence-length NAME=N`). The
  /// elements are called NAME[0], NAME[1], ...
  llvm::StringMap<int64_t> sequenceLengths;
  /// Optional inputs that have no value (`--absent NAME`).
  llvm::StringSet<> absent;
  /// For several models with the same options: what an option names in this
  /// one is added, as in "--dim N", and an option that names nothing is passed
  /// over. If null, it is an error.
  llvm::StringSet<> *usedNames = nullptr;
  /// The module's `memplan.model`; the file's stem when empty.
  std::string modelName;
};

/// Makes the dialects of imported modules known to `registry`.
void registerImportDialects(mlir::DialectRegistry &registry);

/// Imports the model in the file `path`. Everything that is wrong is reported
/// through the context's diagnostics, each naming the file, the node and what
/// would be accepted; `kindOnFailure`, if given, is then set.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importONNX(llvm::StringRef path, mlir::MLIRContext &context,
           const ImportOptions &options = {},
           ImportErrorKind *kindOnFailure = nullptr);

} // namespace memplan

#endif // MEMPLAN_IMPORT_ONNX_IMPORT_H
