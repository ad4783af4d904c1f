//===- Random.h - Numbers drawn by a counter --------------------*- C++ -*-===//
//
// Each element's number is a hash of its place and of the node's key, so that
// elements need not wait for one another. The key is that of attribute 'seed';
// without one it is made of the name of the node's output.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_RANDOM_H
#define MEMPLAN_LIB_IMPORT_ONNX_RANDOM_H

#include "NodeBuilder.h"
#include "Places.h"

namespace memplan::onnx {

/// Reads attribute 'seed', a float or (`isInt`) an int.
uint64_t randomKey(NodeBuilder &n, bool isInt = false);

/// A number of [0, 1), of type float or double, for element `place`. `stream`
/// tells draws of one element apart.
mlir::Value uniformScalar(const Places &p, mlir::Value place, uint64_t key,
                          uint64_t stream, DType dtype);

/// A tensor of such numbers.
mlir::Value uniform(NodeBuilder &n, llvm::ArrayRef<int64_t> shape, uint64_t key,
                    DType dtype);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_RANDOM_H
