//===- Decode.h - Bytes of an ONNX file to a Model --------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_DECODE_H
#define MEMPLAN_LIB_IMPORT_ONNX_DECODE_H

#include "Model.h"
#include "llvm/Support/LogicalResult.h"

namespace memplan::onnx {

/// Decodes a serialized ModelProto. Fails on what is no well-formed protobuf
/// of that shape; the result points into `bytes`.
llvm::LogicalResult decodeModel(llvm::StringRef bytes, Model &model);

/// The same for a serialized TensorProto.
llvm::LogicalResult decodeTensor(llvm::StringRef bytes, Tensor &tensor);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_DECODE_H
