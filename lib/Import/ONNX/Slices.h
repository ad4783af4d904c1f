//===- Slices.h - Parts of tensors ------------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SLICES_H
#define MEMPLAN_LIB_IMPORT_ONNX_SLICES_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// A part of `source`; a destination if it has no elements.
mlir::Value extractSlice(NodeBuilder &n, mlir::Value source,
                         llvm::ArrayRef<int64_t> offsets,
                         llvm::ArrayRef<int64_t> sizes,
                         llvm::ArrayRef<int64_t> strides);

/// `into` with `source`, which must have elements, at `offsets`.
mlir::Value insertSlice(NodeBuilder &n, mlir::Value source, mlir::Value into,
                        llvm::ArrayRef<int64_t> offsets);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SLICES_H
