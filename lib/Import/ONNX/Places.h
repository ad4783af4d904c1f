//===- Places.h - Positions in tensors as numbers ---------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_PLACES_H
#define MEMPLAN_LIB_IMPORT_ONNX_PLACES_H

#include "Scalars.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace memplan::onnx {

/// Arithmetic on positions in the body of a linalg.generic.
struct Places : Scalars {
  Places(mlir::OpBuilder &b, mlir::Location loc)
      : Scalars(b, loc, DType::i64()) {}

  /// Where loop `dim` is.
  mlir::Value loop(int64_t dim) const {
    return mlir::arith::IndexCastOp::create(
        b, loc, type(), mlir::linalg::IndexOp::create(b, loc, dim));
  }
  /// Where the first `count` loops are, as indices.
  llvm::SmallVector<mlir::Value> indices(int64_t count) const {
    llvm::SmallVector<mlir::Value> all;
    for (int64_t i = 0; i < count; ++i)
      all.push_back(mlir::linalg::IndexOp::create(b, loc, i));
    return all;
  }
  mlir::Value index(mlir::Value number) const {
    return mlir::arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  }
  /// Moved to the nearest place within `extent`.
  mlir::Value clamp(mlir::Value number, int64_t extent) const {
    return max(integer(0), min(number, integer(extent - 1)));
  }
  /// Counted from the end if negative, then clamped.
  mlir::Value wrap(mlir::Value number, int64_t extent) const {
    mlir::Value wrapped =
        select(less(number, integer(0)), add(number, integer(extent)), number);
    return clamp(wrapped, extent);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) const {
    return make<mlir::arith::AndIOp>(x, y);
  }
  /// 0 <= number < extent
  mlir::Value isWithin(mlir::Value number, int64_t extent) const {
    return both(lessOrEqual(integer(0), number), less(number, integer(extent)));
  }
  mlir::Value remainder(mlir::Value x, int64_t divisor) const {
    return make<mlir::arith::RemSIOp>(x, integer(divisor));
  }
  mlir::Value quotient(mlir::Value x, int64_t divisor) const {
    return make<mlir::arith::DivSIOp>(x, integer(divisor));
  }
  /// The element at `places`, all numbers.
  mlir::Value read(mlir::Value tensor,
                   llvm::ArrayRef<mlir::Value> places) const {
    llvm::SmallVector<mlir::Value> at;
    for (mlir::Value place : places)
      at.push_back(index(place));
    return mlir::tensor::ExtractOp::create(b, loc, tensor, at);
  }
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_PLACES_H
