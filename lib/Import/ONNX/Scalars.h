//===- Scalars.h - Scalar arithmetic by ONNX element type -------*- C++ -*-===//
//
// Picks the arith or math op for an element type, so that one body serves
// floats, signed and unsigned integers.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SCALARS_H
#define MEMPLAN_LIB_IMPORT_ONNX_SCALARS_H

#include "DType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace memplan::onnx {

class Scalars {
public:
  Scalars(mlir::OpBuilder &b, mlir::Location loc, DType dtype)
      : b(b), loc(loc), dtype(dtype) {}

  mlir::Type type() const { return dtype.type(b.getContext()); }
  mlir::Value number(double value) const;
  mlir::Value integer(int64_t value) const;
  mlir::Value lowest() const;
  mlir::Value highest() const;

  mlir::Value add(mlir::Value x, mlir::Value y) const;
  mlir::Value sub(mlir::Value x, mlir::Value y) const;
  mlir::Value mul(mlir::Value x, mlir::Value y) const;
  /// Integers truncate towards zero.
  mlir::Value div(mlir::Value x, mlir::Value y) const;
  /// Floats: a NaN on either side gives NaN.
  mlir::Value max(mlir::Value x, mlir::Value y) const;
  mlir::Value min(mlir::Value x, mlir::Value y) const;
  mlir::Value negate(mlir::Value x) const;
  mlir::Value abs(mlir::Value x) const;
  /// Comparisons are ordered (false with a NaN), except notEqual.
  mlir::Value less(mlir::Value x, mlir::Value y) const;
  mlir::Value lessOrEqual(mlir::Value x, mlir::Value y) const;
  mlir::Value equal(mlir::Value x, mlir::Value y) const;
  mlir::Value notEqual(mlir::Value x, mlir::Value y) const;
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) const;

  /// A float or math op of one or two operands.
  template <typename Op, typename... Args>
  mlir::Value make(Args... args) const {
    return Op::create(b, loc, args...).getResult();
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  DType dtype;
};

/// How numbers become floats of 8 bits and less. What is beyond the greatest
/// number becomes that, or else an infinity or NaN, which 4 bits do not have.
/// Powers of two (float8e8m0) round as it says, all others to nearest even.
struct CastRules {
  enum Rounding { Up, Down, Nearest };
  bool saturate = true;
  Rounding powers = Up;
};

/// ONNX Cast: floats to integers truncate towards zero, anything to bool is
/// "not zero", bool to anything is 0 or 1. Integers drop the bits that don't
/// fit.
mlir::Value castScalar(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                       DType from, DType to, CastRules rules = {});

/// A signed type that holds all values of `dtype` in their order, since the
/// structured ops compare integers as signed; `dtype` itself for floats and
/// signed integers, nullopt for uint64.
std::optional<DType> orderedType(DType dtype);

/// A value of the type in which a structured op accumulates, as `element`.
mlir::Value fromAccumulator(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value value, mlir::Type element);
/// An element in the type in which structured ops accumulate its type.
mlir::Value toAccumulator(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SCALARS_H
