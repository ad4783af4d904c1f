//===- RecurrentActivation.h - Activations of RNN, GRU, LSTM ----*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RECURRENTACTIVATION_H
#define MEMPLAN_LIB_IMPORT_ONNX_RECURRENTACTIVATION_H

#include "NodeBuilder.h"
#include "Scalars.h"

namespace memplan::onnx {

/// One of the functions that attribute `activations` names, with its
/// parameters.
struct Activation {
  mlir::Value (*apply)(const Scalars &, mlir::Value x, float alpha,
                       float beta) = nullptr;
  float alpha = 0, beta = 0;

  mlir::Value operator()(const Scalars &s, mlir::Value x) const {
    return apply(s, x, alpha, beta);
  }
};

/// The node's activations, `defaults` for each of `numDirections` if it names
/// none. Names are taken in any case; the entries of activation_alpha and
/// activation_beta go, in order, to the functions that have such a parameter.
mlir::FailureOr<llvm::SmallVector<Activation>>
readActivations(NodeBuilder &n, llvm::ArrayRef<llvm::StringRef> defaults,
                int64_t numDirections);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RECURRENTACTIVATION_H
