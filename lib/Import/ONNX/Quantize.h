//===- Quantize.h - Numbers to their quantized form and back ----*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_QUANTIZE_H
#define MEMPLAN_LIB_IMPORT_ONNX_QUANTIZE_H

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"

namespace memplan::onnx {

/// round(x / scale) + zero, saturated, or the nearest float of 8 bits or less
/// to x / scale + zero. `x` and `scale` are of the float type `precision`;
/// `zero` (null: 0) is of type `to`.
mlir::Value quantizeScalar(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value x, mlir::Value scale, mlir::Value zero,
                           DType precision, DType to, CastRules rules = {});

/// A number that is scaled already, f32: rounded, moved to `zero`, saturated.
mlir::Value roundToInteger(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value x, mlir::Value zero, DType to);

/// (x - zero) * scale in f32, `scale` of type `scaleType`.
mlir::Value dequantizeScalar(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value x, mlir::Value scale, mlir::Value zero,
                             DType from, DType scaleType);

/// Whether a scale and zero point of one element are inputs `scale` and `zero`
/// (which may be left out if `isOptional`); or an error.
mlir::LogicalResult checkOneScale(NodeBuilder &n, unsigned scale, unsigned zero,
                                  DType quantized, bool isOptional = false);

/// The scale (f32) and zero point (uint8), scalars, with which the numbers of
/// `x` and 0 fill the range of uint8.
struct DynamicRange {
  mlir::Value scale, zero;
};
DynamicRange reduceRange(NodeBuilder &n, ImportedTensor &x);
/// `x` as uint8 in that range.
mlir::Value quantizeToRange(NodeBuilder &n, ImportedTensor &x,
                            DynamicRange range);

/// Reads input `i`, of one element, wherever the op is.
void addScalar(NodeBuilder &n, ElementwiseOperands &operands, unsigned i,
               int64_t rank);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_QUANTIZE_H
