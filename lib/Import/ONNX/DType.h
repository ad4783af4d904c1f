//===- DType.h - ONNX element types -----------------------------*- C++ -*-===//
//
// ONNX tells signed from unsigned integers by type, MLIR's arith by op: the
// importer carries a DType beside every tensor, whose MLIR type is signless.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_DTYPE_H
#define MEMPLAN_LIB_IMPORT_ONNX_DTYPE_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>

namespace memplan::onnx {

class DType {
public:
  enum Kind { Float, Signed, Unsigned, Bool };

  DType() = default;
  /// For a value of TensorProto.DataType; nullopt for types that the importer
  /// does not have.
  static std::optional<DType> fromCode(int64_t code);
  static DType f32() { return *fromCode(1); }
  static DType i64() { return *fromCode(7); }
  static DType boolean() { return *fromCode(9); }

  int64_t code() const { return typeCode; }
  Kind kind() const;
  bool isFloat() const { return kind() == Float; }
  bool isInteger() const { return kind() == Signed || kind() == Unsigned; }
  bool isSigned() const { return kind() == Signed; }
  bool isBool() const { return kind() == Bool; }
  unsigned bits() const;
  /// Size of an element in a file and in memory.
  int64_t bytes() const { return isBool() ? 1 : bits() / 8; }
  mlir::Type type(mlir::MLIRContext *context) const;

  bool operator==(DType other) const { return typeCode == other.typeCode; }
  bool operator!=(DType other) const { return typeCode != other.typeCode; }

private:
  int64_t typeCode = 0;
};

/// The name of a TensorProto.DataType, known to the importer or not.
std::string dtypeName(int64_t code);
inline std::string dtypeName(DType dtype) { return dtypeName(dtype.code()); }

/// "2x3xf32", with "ui8" for unsigned integers and "bool".
std::string typeText(DType dtype, llvm::ArrayRef<int64_t> shape);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_DTYPE_H
