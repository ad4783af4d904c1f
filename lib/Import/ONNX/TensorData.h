//===- TensorData.h - The values of tensors in the file ---------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_TENSORDATA_H
#define MEMPLAN_LIB_IMPORT_ONNX_TENSORDATA_H

#include "DType.h"
#include "Model.h"
#include "ModelFile.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace memplan::onnx {

/// A checked TensorProto: either a run of bytes in a file that are exactly the
/// row-major, little-endian elements (packed, for types of less than 8 bits),
/// or values taken out of it.
struct TensorData {
  DType dtype;
  mlir::RankedTensorType type;
  std::optional<FileBytes> inFile;
  mlir::DenseElementsAttr values; // when not inFile
};

/// Checks type, shape and size of `tensor` and finds its bytes. `owner` names
/// it in messages.
mlir::FailureOr<TensorData> checkTensor(const Tensor &tensor,
                                        const std::string &owner,
                                        ModelFile &file, Reporter &reporter);

/// Elements of `dtype` from a file's bytes, whose number fits `type`.
mlir::DenseElementsAttr readElements(DType dtype, mlir::RankedTensorType type,
                                     llvm::StringRef bytes);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_TENSORDATA_H
