//===- DType.cpp - ONNX element types -------------------------------------===//

#include "DType.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
struct Row {
  const char *name;
  unsigned bits; // 0: not supported
  DType::Kind kind;
};
} // namespace

/// By TensorProto.DataType.
static constexpr Row kRows[] = {
    {"undefined", 0, DType::Float},        {"float", 32, DType::Float},
    {"uint8", 8, DType::Unsigned},         {"int8", 8, DType::Signed},
    {"uint16", 16, DType::Unsigned},       {"int16", 16, DType::Signed},
    {"int32", 32, DType::Signed},          {"int64", 64, DType::Signed},
    {"string", 0, DType::Float},           {"bool", 1, DType::Bool},
    {"float16", 16, DType::Float},         {"double", 64, DType::Float},
    {"uint32", 32, DType::Unsigned},       {"uint64", 64, DType::Unsigned},
    {"complex64", 0, DType::Float},        {"complex128", 0, DType::Float},
    {"bfloat16", 16, DType::Float},        {"float8e4m3fn", 8, DType::Storage},
    {"float8e4m3fnuz", 8, DType::Storage}, {"float8e5m2", 8, DType::Storage},
    {"float8e5m2fnuz", 8, DType::Storage}, {"uint4", 4, DType::Storage},
    {"int4", 4, DType::Storage},           {"float4e2m1", 4, DType::Storage},
    {"float8e8m0", 8, DType::Storage},     {"uint2", 2, DType::Storage},
    {"int2", 2, DType::Storage},
};
static constexpr int64_t kNumRows = sizeof(kRows) / sizeof(kRows[0]);

/// Values of TensorProto.DataType.
enum : int64_t {
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUInt2 = 25,
  kInt2 = 26
};

std::optional<DType> DType::fromCode(int64_t code) {
  if (code < 0 || code >= kNumRows || kRows[code].bits == 0)
    return std::nullopt;
  DType dtype;
  dtype.typeCode = code;
  return dtype;
}

DType::Kind DType::kind() const { return kRows[typeCode].kind; }
unsigned DType::bits() const { return kRows[typeCode].bits; }

DType::Kind DType::numbers() const {
  if (!isStorage())
    return kind();
  if (typeCode == kUInt4 || typeCode == kUInt2)
    return Unsigned;
  return typeCode == kInt4 || typeCode == kInt2 ? Signed : Float;
}

std::optional<int64_t> DType::fileBytes(int64_t count) const {
  if (isPacked())
    return count / perByte() + (count % perByte() != 0);
  return checkedMul(count, bytes());
}

static Type getStoredFloat(MLIRContext *context, int64_t code) {
  switch (code) {
  case kFloat8E4M3FN:
    return Float8E4M3FNType::get(context);
  case kFloat8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case kFloat8E5M2:
    return Float8E5M2Type::get(context);
  case kFloat8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case kFloat8E8M0:
    return Float8E8M0FNUType::get(context);
  default:
    return Float4E2M1FNType::get(context);
  }
}

Type DType::type(MLIRContext *context) const {
  if (isStorage())
    return numbers() == Float ? getStoredFloat(context, typeCode)
                              : Type(IntegerType::get(context, 8));
  return declaredType(context);
}

Type DType::declaredType(MLIRContext *context) const {
  if (numbers() != Float)
    return IntegerType::get(context, bits());
  if (isStorage())
    return getStoredFloat(context, typeCode);
  if (typeCode == kBFloat16)
    return BFloat16Type::get(context);
  switch (bits()) {
  case 16:
    return Float16Type::get(context);
  case 32:
    return Float32Type::get(context);
  default:
    return Float64Type::get(context);
  }
}

std::string memplan::onnx::dtypeName(int64_t code) {
  if (code < 0 || code >= kNumRows)
    return "#" + std::to_string(code);
  return kRows[code].name;
}

std::string memplan::onnx::typeText(DType dtype,
                                    llvm::ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  if (dtype.isBool())
    return text + "bool";
  if (dtype.code() == kBFloat16)
    return text + "bf16";
  if (dtype.isStorage() && dtype.numbers() == DType::Float)
    return text + dtypeName(dtype);
  const char *prefix = dtype.isFloat() ? "f" : dtype.isUnsigned() ? "ui" : "i";
  return text + prefix + std::to_string(dtype.bits());
}
