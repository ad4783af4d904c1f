//===- Resample.h - Weighted sums of neighbours along axes ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RESAMPLE_H
#define MEMPLAN_LIB_IMPORT_ONNX_RESAMPLE_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// How one axis is resampled: output element `o` is the sum over the taps t of
/// weights[o * taps + t] times the input's element at[o * taps + t].
struct AxisTaps {
  int64_t axis = 0, output = 0, taps = 1;
  llvm::SmallVector<int32_t> at;
  llvm::SmallVector<double> weights;
  /// Whether `o` lies within the input; empty if all do.
  llvm::SmallVector<int8_t> inside;
};

/// Elements copied from where the one tap of each axis is.
mlir::Value resampleNearest(NodeBuilder &n, mlir::Value x,
                            llvm::ArrayRef<AxisTaps> axes);

/// Weighted sums along all axes. With few taps in all they are one kernel,
/// otherwise a kernel an axis. Sums of `dtype` other than double are in float;
/// those of integers are truncated towards zero, within the type's bounds.
mlir::Value resampleWeighted(NodeBuilder &n, mlir::Value x, DType dtype,
                             llvm::ArrayRef<AxisTaps> axes);

/// `y` with `value` where some axis is outside of the input.
mlir::Value fillOutside(NodeBuilder &n, mlir::Value y, DType dtype,
                        llvm::ArrayRef<AxisTaps> axes, double value);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RESAMPLE_H
