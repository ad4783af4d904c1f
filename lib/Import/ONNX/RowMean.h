//===- RowMean.h - Distances from the mean of a row -------------*- C++ -*-===//
//
// The mean of a row of floats is good to some units in its last place. Where it
// is far above the deviation, as of rows that an offset was added to, its error
// is a large part of what is left when it is subtracted. So floats are summed
// in double, and the mean is subtracted as two floats, which costs one
// conversion and one addition in double an element.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_ROWMEAN_H
#define MEMPLAN_LIB_IMPORT_ONNX_ROWMEAN_H

#include "mlir/IR/Builders.h"

namespace memplan::onnx {

class RowMean {
public:
  /// Of rows of `length` elements of the type `element`.
  RowMean(mlir::Type element, double length)
      : element(element), length(length) {}

  /// What the stage sums over the row.
  mlir::Value summand(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value x) const;
  /// The mean, as an accumulator, from the sum.
  mlir::Value mean(mlir::OpBuilder &b, mlir::Location loc,
                   mlir::Value sum) const;
  /// x - mean, as an accumulator.
  mlir::Value centred(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Value sum) const;

private:
  mlir::Value exactMean(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value sum) const;

  mlir::Type element;
  double length;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_ROWMEAN_H
