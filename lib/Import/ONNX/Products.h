//===- Products.h - Matrix products and convolutions ------------*- C++ -*-===//
//
// Both take operands of floats, or of integers with zero points: those of the
// quantized operators, and those that a DequantizeLinear before them has turned
// to floats. Sums of integers are exact; scales come in the epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H
#define MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H

#include "OpTable.h"
#include "TensorOps.h"

namespace memplan::onnx {

/// What is multiplied: elements, less a zero point, times a scale. Either may
/// be missing. Both have one element, or are broadcast to the operand.
struct Factor {
  ImportedTensor *elements;
  ImportedTensor *zero = nullptr;
  ImportedTensor *scale = nullptr;

  bool isInteger() const { return !elements->dtype.isFloat(); }
};

/// Input `i` as a factor of floats; or what a DequantizeLinear made it from, if
/// that has one scale, or one an index of dim `axis`.
Factor readFactor(NodeBuilder &n, unsigned i, int64_t axis);
/// Both, of a product that sums `depth` elements: as integers only if their sum
/// fits 32 bits.
std::pair<Factor, Factor> readFactors(NodeBuilder &n, int64_t axisA,
                                      int64_t axisB, int64_t depth);

/// Floats of any origin as integers of 8 bits, by the range of their numbers.
Factor quantizeByRange(NodeBuilder &n, ImportedTensor &x);

/// Whether zero points (inputs `zero`, if there) have their operand's type.
mlir::LogicalResult checkZeroPoint(NodeBuilder &n, unsigned operand,
                                   unsigned zero);

/// What an epilogue makes of a sum: gets it (f32, or i32 if both factors are
/// integers), and the scales of both factors if they have some.
using ProductEnd = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::Value sum,
    llvm::ArrayRef<mlir::Value> scales)>;

/// numpy.matmul of shapes as they are; or transposed matrices, for Gemm.
/// `more` are further operands of the epilogue, broadcast to the result; `end`
/// gets their elements after the scales.
mlir::Value buildMatrixProduct(NodeBuilder &n, Factor a, Factor b, DType result,
                               ProductEnd end,
                               llvm::ArrayRef<ImportedTensor *> more = {},
                               bool transA = false, bool transB = false);

/// Conv, its attributes read from the node; inputs as in Conv from `x` on.
/// `more` are one element, or one a feature.
mlir::Value buildConvolution(NodeBuilder &n, Factor x, Factor w, DType result,
                             ProductEnd end,
                             llvm::ArrayRef<ImportedTensor *> more = {});

/// A sum as a float, times the scales.
mlir::Value scaleSum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value sum,
                     llvm::ArrayRef<mlir::Value> scales);

/// Builders that operators of other domains share. `limitsBroadcast`: attribute
/// 'broadcast' must say that C does.
mlir::LogicalResult buildGemm(NodeBuilder &n, bool limitsBroadcast);
mlir::LogicalResult buildConv(NodeBuilder &n);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_PRODUCTS_H
