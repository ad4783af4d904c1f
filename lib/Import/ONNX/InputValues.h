//===- InputValues.h - Inputs that are known when compiling ----------*- C++
//-*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_INPUTVALUES_H
#define MEMPLAN_LIB_IMPORT_ONNX_INPUTVALUES_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// Every name in `--input-value` is one of `inputs`, or an error.
mlir::LogicalResult checkInputValues(llvm::ArrayRef<const ValueInfo *> inputs,
                                     const ImportOptions &options,
                                     Reporter &reporter);

/// The constant that `--input-value NAME=TEXT` makes of an input. TEXT has the
/// elements in row-major order, or is `@` and a file with a serialized
/// TensorProto. A dim that the model leaves open is what the values need;
/// more than one such dim takes a file.
mlir::FailureOr<ImportedTensor> readInputValue(const ValueInfo &input,
                                               llvm::StringRef text,
                                               Reporter &reporter);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_INPUTVALUES_H
