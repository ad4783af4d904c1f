//===- Passes.td - The passes of memplan --------------------*- tablegen -*-===//
//
// This file is the manual: docs/Passes.md is generated from it. In the order
// in which the pipeline runs them.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TRANSFORMS_PASSES_TD
#define MEMPLAN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FuseStructured : Pass<"memplan-fuse", "::mlir::func::FuncOp"> {
  let summary = "Move elementwise work into the op that produces or consumes it";
  let description = [{
    On tensors, before bufferization. Repeats until nothing changes:

    - an elementwise `linalg.generic` moves into the epilogue of the op that
      produces its input (any `memplan::EpilogueOpInterface`: convolution, matrix
      product, window, rowwise), when that op's result has no other user and the
      maps agree: bias, activation, BatchNorm, residual add;
    - elementwise chains become one `linalg.generic` (upstream's patterns);
    - a transpose (a `linalg.generic` that only yields, or `linalg.transpose`)
      moves into the indexing maps of a matrix product's operand or result, or of
      an elementwise or rowwise reader;
    - an elementwise producer of the one input of a `memplan.reduce_window` moves
      into its `map` region.

    Values with several users are never recomputed, so that no fusion adds work.

    ```mlir
    %0 = memplan.conv ins(%x, %w : ...) ... { ^bb0(%acc: f32): memplan.yield %acc : f32 }
    %1 = linalg.generic {max(%0, 0)}
    // becomes
    %1 = memplan.conv ins(%x, %w : ...) ... { ^bb0(%acc: f32): memplan.yield max(%acc, 0) }
    ```
  }];
  let statistics = [
    Statistic<"numEpilogues", "epilogues-fused", "elementwise ops moved into a producer's epilogue">,
    Statistic<"numTransposes", "transposes-folded", "transposes folded into indexing maps">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect", "::memplan::MemPlanDialect"];
}

#endif // MEMPLAN_TRANSFORMS_PASSES_TD
