//===- Rotary.h - Rotary position embeddings --------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_ROTARY_H
#define MEMPLAN_LIB_IMPORT_ONNX_ROTARY_H

#include "ScaledAttention.h"

#include <functional>

namespace memplan::onnx {

/// Rotates pairs of the first `size` entries of each head by the angles of its
/// position.
struct Rotary {
  /// Tables of half of `size` columns: (positions, size / 2), or one row for
  /// each (batch, length) when `position` is not set.
  mlir::Value cosines, sines;
  int64_t size = 0;
  /// Pairs are neighbours; else halves.
  bool isInterleaved = false;
  /// Multiplies the angles' products.
  double scale = 1;
  /// The row of the tables, an index, of an entry (batch, length).
  std::function<mlir::Value(mlir::OpBuilder &, mlir::Location,
                            mlir::Value batch, mlir::Value length)>
      position;

  HeadTensor apply(NodeBuilder &n, const HeadTensor &x, DType dtype) const;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_ROTARY_H
