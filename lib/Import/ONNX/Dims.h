//===- Dims.h - Symbolic dimensions of a graph ------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_DIMS_H
#define MEMPLAN_LIB_IMPORT_ONNX_DIMS_H

#include "Model.h"
#include "Reporter.h"

namespace memplan::onnx {

/// The dims of a graph's inputs, bound by the user's `--dim NAME=N`.
class Dims {
public:
  /// Binds every dim of `inputs`; one error names all that stay unbound.
  static mlir::FailureOr<Dims> bind(llvm::ArrayRef<const ValueInfo *> inputs,
                                    const ImportOptions &options,
                                    Reporter &reporter);

  /// The size of a dim of the value `owner`, if known.
  std::optional<int64_t> size(const Dim &dim, llvm::StringRef owner,
                              size_t index) const;

private:
  llvm::StringMap<int64_t> sizes;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_DIMS_H
