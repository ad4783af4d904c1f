//===- RecurrentProduct.h - Products of recurrent operators -----*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RECURRENTPRODUCT_H
#define MEMPLAN_LIB_IMPORT_ONNX_RECURRENTPRODUCT_H

#include "OpTable.h"
#include "Products.h"

namespace memplan::onnx {

/// What inputs or states of one direction are multiplied by.
struct GateWeights {
  /// [columns, k]
  mlir::Value floats;
  /// Of 8 bits, [k, columns], instead.
  std::optional<Factor> integers;
};

/// lhs [rows, k] times the weights, plus `bias` [columns], unless null. With
/// weights of integers lhs becomes integers, too, by the range of its numbers.
mlir::Value multiplyGates(NodeBuilder &n, mlir::Value lhs,
                          const GateWeights &weights, mlir::Value bias,
                          DType dtype);

/// Whether input `weights` is of 8 bits, and the inputs at `scale` and the
/// place after it are scales and zero points that fit: one a direction, or one
/// a column.
mlir::LogicalResult checkQuantizedGates(NodeBuilder &n, unsigned weights,
                                        unsigned scale, int64_t numDirections,
                                        int64_t columns);

/// Those weights of one direction.
GateWeights readQuantizedGates(NodeBuilder &n, unsigned weights, unsigned scale,
                               int64_t direction);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RECURRENTPRODUCT_H
