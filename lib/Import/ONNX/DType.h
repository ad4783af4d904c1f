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
  /// `Storage` are types that operators only move, cast and quantize: floats of
  /// 8 bits and less, and integers of less than 8.
  enum Kind { Float, Signed, Unsigned, Bool, Storage };

  DType() = default;
  /// For a value of TensorProto.DataType; nullopt for types that the importer
  /// does not have.
  static std::optional<DType> fromCode(int64_t code);
  static DType f32() { return *fromCode(1); }
  static DType u8() { return *fromCode(2); }
  static DType i8() { return *fromCode(3); }
  static DType i32() { return *fromCode(6); }
  static DType i64() { return *fromCode(7); }
  static DType boolean() { return *fromCode(9); }

  int64_t code() const { return typeCode; }
  Kind kind() const;
  bool isFloat() const { return kind() == Float; }
  bool isInteger() const { return kind() == Signed || kind() == Unsigned; }
  bool isSigned() const { return kind() == Signed; }
  bool isBool() const { return kind() == Bool; }
  bool isStorage() const { return kind() == Storage; }
  /// What the numbers of any type are: Float, Signed, Unsigned or Bool.
  Kind numbers() const;
  bool isUnsigned() const { return numbers() == Unsigned; }
  unsigned bits() const;
  /// Elements that share a byte in a file, and at the model's boundary; inside,
  /// each has a byte of its own.
  int64_t perByte() const { return bits() > 1 && bits() < 8 ? 8 / bits() : 1; }
  bool isPacked() const { return perByte() > 1; }
  /// Bytes of so many elements in a file; nullopt on overflow.
  std::optional<int64_t> fileBytes(int64_t count) const;
  /// Size of an element in memory.
  int64_t bytes() const { return bits() < 8 ? 1 : bits() / 8; }
  /// The type of an element in memory: i8 for integers of less than 8 bits,
  /// extended by their sign or zeros.
  mlir::Type type(mlir::MLIRContext *context) const;
  /// The type that the model's caller sees, which has as many bits as ONNX
  /// says.
  mlir::Type declaredType(mlir::MLIRContext *context) const;

  bool operator==(DType other) const { return typeCode == other.typeCode; }
  bool operator!=(DType other) const { return typeCode != other.typeCode; }

private:
  int64_t typeCode = 0;
};

/// The name of a TensorProto.DataType, known to the importer or not.
std::string dtypeName(int64_t code);
inline std::string dtypeName(DType dtype) { return dtypeName(dtype.code()); }

/// What messages say the importer takes.
inline constexpr llvm::StringLiteral kAcceptedTypes =
    "all types but strings and complex numbers are accepted";

/// "2x3xf32", with "ui8" for unsigned integers and "bool".
std::string typeText(DType dtype, llvm::ArrayRef<int64_t> shape);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_DTYPE_H
