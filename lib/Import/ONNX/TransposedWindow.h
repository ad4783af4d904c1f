//===- TransposedWindow.h - What reaches an output of a window --*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_TRANSPOSEDWINDOW_H
#define MEMPLAN_LIB_IMPORT_ONNX_TRANSPOSEDWINDOW_H

#include "NodeBuilder.h"

namespace memplan::onnx {

/// One dim of a window that runs backwards: input element i and tap k reach
/// output i * stride - pad + k * dilation.
struct TransposedDim {
  int64_t input, output, kernel, stride = 1, dilation = 1, pad = 0;
};

/// For each output position of a dim the taps and input elements that reach it:
/// two tables of `output` x `most` entries, -1 and 0 where there are fewer.
struct Reaching {
  mlir::Value taps, inputs;
  int64_t most = 0;
};
mlir::FailureOr<Reaching> findReaching(NodeBuilder &n,
                                       const TransposedDim &dim);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_TRANSPOSEDWINDOW_H
