//===- ProductFactor.h - An operand of a product ----------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_PRODUCTFACTOR_H
#define MEMPLAN_LIB_TARGET_CUDA_PRODUCTFACTOR_H

#include "Emitter.h"

namespace memplan {

/// An operand of a convolution or a matrix product and its zero point (null
/// without one), which has one element or one a feature, row or column.
struct ProductFactor {
  llvm::StringRef name;
  mlir::Value value, zero;
  bool isUnsigned;
};

/// Adds the operand and its zero point, `name` and `name_zero`, to `pointers`;
/// gives the text that makes the runtime's loader of its elements.
mlir::FailureOr<std::string> addFactor(Emitter &emitter, mlir::Operation *op,
                                       const ProductFactor &factor,
                                       std::vector<PointerArgument> &pointers);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_PRODUCTFACTOR_H
