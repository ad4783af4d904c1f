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

/// The labels of a classifier: attribute 'classlabels_ints' or, in trees,
/// 'classlabels_int64s'. At least three: for two there are as many conventions
/// as forms of their scores.
mlir::FailureOr<llvm::SmallVector<int64_t>>
readClassLabels(NodeBuilder &n, llvm::StringRef name);

/// Sets output 0, the label of the highest of each row of scores, and output 1,
/// the scores after `how`.
mlir::LogicalResult classify(NodeBuilder &n, mlir::Value scores,
                             llvm::ArrayRef<int64_t> labels, PostTransform how);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_POSTTRANSFORM_H
