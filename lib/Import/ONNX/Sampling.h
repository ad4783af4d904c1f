//===- Sampling.h - Places in a tensor from floats --------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SAMPLING_H
#define MEMPLAN_LIB_IMPORT_ONNX_SAMPLING_H

#include "NodeBuilder.h"
#include "Scalars.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace memplan::onnx {

/// `x` if it is a number of moderate size, so that it may become an integer.
inline mlir::Value bounded(const Scalars &s, mlir::Value x) {
  mlir::Value most = s.number(1e9), least = s.number(-1e9);
  mlir::Value upper = s.select(s.less(x, most), x, most); // also for a NaN
  return s.select(s.less(least, upper), upper, least);
}

/// A whole number as an index below `extent`.
inline mlir::Value clampedIndex(const Scalars &s, mlir::Value at,
                                int64_t extent) {
  Scalars whole(s.b, s.loc, DType::i64());
  mlir::Value number = castScalar(s.b, s.loc, at, s.dtype, whole.dtype);
  mlir::Value safe =
      whole.max(whole.integer(0), whole.min(number, whole.integer(extent - 1)));
  return mlir::arith::IndexCastOp::create(s.b, s.loc, s.b.getIndexType(), safe);
}

/// The weight of a tap at `distance` in cubic interpolation with a = -0.75;
/// `isInner` for the nearest two.
inline mlir::Value cubicWeight(const Scalars &s, mlir::Value distance,
                               bool isInner) {
  auto number = [&](double value) { return s.number(value); };
  constexpr double a = -0.75;
  if (isInner) {
    mlir::Value slope = s.sub(s.mul(number(a + 2), distance), number(a + 3));
    return s.add(s.mul(s.mul(slope, distance), distance), number(1));
  }
  mlir::Value first = s.sub(s.mul(number(a), distance), number(5 * a));
  mlir::Value second = s.add(s.mul(first, distance), number(8 * a));
  return s.sub(s.mul(second, distance), number(4 * a));
}

/// Pools of regions of interest, in RegionPooling.cpp.
mlir::LogicalResult buildRoiAlign(NodeBuilder &n);
mlir::LogicalResult buildMaxRoiPool(NodeBuilder &n);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SAMPLING_H
