//===- Packing.h - Elements that share bytes --------------------*- C++ -*-===//
//
// Elements of 2 and 4 bits are packed at the model's boundary, the first in a
// byte's low bits: in inputs, outputs and weights. Inside, each has a byte.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_PACKING_H
#define MEMPLAN_LIB_IMPORT_ONNX_PACKING_H

#include "DType.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace memplan::onnx {

/// The bytes, a tensor of rank 1, of so many elements.
mlir::RankedTensorType packedType(mlir::MLIRContext *context, DType dtype,
                                  llvm::ArrayRef<int64_t> shape);

/// A tensor of `shape` from the bytes that hold it, an op that reads them where
/// it needs them.
mlir::Value unpackElements(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value bytes, DType dtype,
                           llvm::ArrayRef<int64_t> shape);

/// The other way. Each byte is made by one point of an op.
mlir::Value packElements(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value elements, DType dtype);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_PACKING_H
