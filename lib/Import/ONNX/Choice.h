//===- Choice.h - Elements that the run chooses -----------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_CHOICE_H
#define MEMPLAN_LIB_IMPORT_ONNX_CHOICE_H

#include "NodeBuilder.h"
#include "Places.h"

namespace memplan::onnx {

/// Which places of a vector are chosen.
struct Choice {
  mlir::Value sums;   ///< i32: how many up to each place.
  mlir::Value places; ///< i64: those chosen, in order; then zeros.
  mlir::Value count;  ///< tensor<i64>
  int64_t bound;      ///< Of the places.
};

/// The places of [0, extent) for which `isChosen`, in a body, is true. At most
/// `bound` of them are kept.
Choice choose(NodeBuilder &n, int64_t extent, int64_t bound,
              llvm::function_ref<mlir::Value(const Places &, mlir::Value place)>
                  isChosen);

/// A tensor with one dim of extent `bound` for what was chosen: `element` sees
/// where in it, and the chosen place; zeros beyond the count.
mlir::Value mapChosen(
    NodeBuilder &n, const Choice &choice, llvm::ArrayRef<int64_t> shape,
    int64_t dim, mlir::Type type,
    llvm::function_ref<mlir::Value(const Places &, mlir::Value place)> element);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_CHOICE_H
