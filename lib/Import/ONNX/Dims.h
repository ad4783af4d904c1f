//===- Dims.h - Symbolic dimensions of a graph ------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_DIMS_H
#define MEMPLAN_LIB_IMPORT_ONNX_DIMS_H

#include "Model.h"
#include "Reporter.h"

namespace memplan::onnx {

/// The dims of a graph's inputs, bound by the user's `--dim NAME=N` and
/// `--input-shape NAME=1x3x8x8`. Equal symbols are equal: a symbol that is
/// bound in two ways is an error.
class Dims {
public:
  /// Binds every dim of `inputs`, all of which have shapes; one error names all
  /// that stay unbound.
  static mlir::FailureOr<Dims> bind(llvm::ArrayRef<const ValueInfo *> inputs,
                                    const ImportOptions &options,
                                    Reporter &reporter);

  /// The size of a dim of the value `owner`, if known.
  std::optional<int64_t> size(const Dim &dim, llvm::StringRef owner,
                              size_t index) const;

private:
  /// A symbol's size, and the flag that binds it.
  struct Binding {
    int64_t size;
    std::string flag;
  };
  mlir::LogicalResult bindSymbol(llvm::StringRef symbol, Binding binding,
                                 Reporter &reporter);
  mlir::LogicalResult bindShape(const ValueInfo &input,
                                llvm::ArrayRef<int64_t> shape,
                                Reporter &reporter);

  llvm::StringMap<Binding> bindings;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_DIMS_H
