//===- MatMulEpilogue.h - Epilogues that a GEMM call has --------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_MATMULEPILOGUE_H
#define MEMPLAN_LIB_TARGET_CUDA_MATMULEPILOGUE_H

#include "mlir/IR/Region.h"

#include <optional>

namespace memplan {

/// act(alpha * acc + beta * C + bias), as a region computes it.
struct MatMulEpilogue {
  enum class Activation { None, Relu, GeluTanh };

  float alpha = 1;
  /// Summands: the epilogue's argument and its factor.
  struct Summand {
    unsigned argument;
    float factor;
  };
  llvm::SmallVector<Summand> summands;
  Activation activation = Activation::None;
};

/// Reads a region of f32 in that form; nullopt if it is not of it.
std::optional<MatMulEpilogue> matchMatMulEpilogue(mlir::Region &region);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_MATMULEPILOGUE_H
