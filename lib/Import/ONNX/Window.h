//===- Window.h - Sliding windows of convolutions and pools -----*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_WINDOW_H
#define MEMPLAN_LIB_IMPORT_ONNX_WINDOW_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// One entry per spatial dim.
struct Window {
  llvm::SmallVector<int64_t> kernel, strides, dilations, padsBegin, padsEnd,
      output;
};

/// Reads strides, dilations, pads, auto_pad (and ceil_mode, if `canCeil`) of
/// the node and works out pads and output extents for windows of `kernel` over
/// `input`. Without `canDilate` the operator has no dilations.
mlir::FailureOr<Window> readWindow(NodeBuilder &n,
                                   llvm::ArrayRef<int64_t> input,
                                   llvm::ArrayRef<int64_t> kernel,
                                   bool canDilate, bool canCeil);

/// The second output of a MaxPool of these windows: for each window the
/// position in the whole input of its largest element. With `isColumnMajor`
/// positions within a channel count with the first spatial dim fastest.
mlir::FailureOr<mlir::Value>
buildMaxPoolIndices(NodeBuilder &n, const Window &window, bool isColumnMajor);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_WINDOW_H
