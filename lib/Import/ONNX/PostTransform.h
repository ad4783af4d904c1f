//===- PostTransform.h - From scores to probabilities -----------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_POSTTRANSFORM_H
#define MEMPLAN_LIB_IMPORT_ONNX_POSTTRANSFORM_H

#include "NodeBuilder.h"

namespace memplan::onnx {

enum class PostTransform { None, Softmax, Logistic };

/// Attribute 'post_transform': a word, or (`isNumber`) its number.
mlir::FailureOr<PostTransform> readPostTransform(NodeBuilder &n,
                                                 bool isNumber = false);

/// Applied to each row of scores.
mlir::Value postTransform(NodeBuilder &n, mlir::Value scores, DType dtype,
                          PostTransform how);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_POSTTRANSFORM_H
