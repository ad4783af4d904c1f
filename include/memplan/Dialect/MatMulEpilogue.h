//===- MatMulEpilogue.h - Epilogues that a GEMM call has --------*- C++ -*-===//
//
// In-place analysis and code generation ask the same question here: whether a
// matrix product and its epilogue are one call, which may store the result over
// a summand that has its place.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_DIALECT_MATMULEPILOGUE_H
#define MEMPLAN_DIALECT_MATMULEPILOGUE_H

#include "memplan/Dialect/MemPlanDialect.h"

#include <optional>

namespace memplan {

/// act(alpha * acc + beta * C + bias), as the op computes it.
struct MatMulEpilogue {
  enum class Activation { None, Relu, GeluTanh };

  float alpha = 1, beta = 0;
  /// Numbers of the extras, -1 for none. `bias` runs along n, with stride 1; a
  /// call adds it to rows of D, so that it takes none if D's rows are along m.
  int bias = -1, c = -1;
  Activation activation = Activation::None;
};

/// The epilogue in that form, which f32, f16 or bf16 throughout is needed for;
/// nullopt if it is not of it. A call computes it in f32 and rounds once. If
/// `overwritten` is the number of an extra, that is to be C: the result is
/// stored over it, and a call allows that of C alone.
std::optional<MatMulEpilogue> matchMatMulEpilogue(MatMulOp op,
                                                  int overwritten = -1);

} // namespace memplan

#endif // MEMPLAN_DIALECT_MATMULEPILOGUE_H
