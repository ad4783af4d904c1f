//===- DType.cpp - ONNX element types -------------------------------------===//

#include "DType.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
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
    {"undefined", 0, DType::Float},      {"float", 32, DType::Float},
    {"uint8", 8, DType::Unsigned},       {"int8", 8, DType::Signed},
    {"uint16", 16, DType::Unsigned},     {"int16", 16, DType::Signed},
    {"int32", 32, DType::Signed},        {"int64", 64, DType::Signed},
    {"string", 0, DType::Float},         {"bool", 1, DType::Bool},
    {"float16", 16, DType::Float},       {"double", 64, DType::Float},
    {"uint32", 32, DType::Unsigned},     {"uint64", 64, DType::Unsigned},
    {"complex64", 0, DType::Float},      {"complex128", 0, DType::Float},
    {"bfloat16", 16, DType::Float},      {"float8e4m3fn", 0, DType::Float},
    {"float8e4m3fnuz", 0, DType::Float}, {"float8e5m2", 0, DType::Float},
    {"float8e5m2fnuz", 0, DType::Float}, {"uint4", 0, DType::Unsigned},
    {"int4", 0, DType::Signed},          {"float4e2m1", 0, DType::Float},
};
static constexpr int64_t kNumRows = sizeof(kRows) / sizeof(kRows[0]);
static constexpr int64_t kBFloat16 = 16;

std::optional<DType> DType::fromCode(int64_t code) {
  if (code < 0 || code >= kNumRows || kRows[code].bits == 0)
    return std::nullopt;
  DType dtype;
  dtype.typeCode = code;
  return dtype;
}

DType::Kind DType::kind() const { return kRows[typeCode].kind; }
unsigned DType::bits() const { return kRows[typeCode].bits; }

Type DType::type(MLIRContext *context) const {
  if (!isFloat())
    return IntegerType::get(context, bits());
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
  const char *prefix = dtype.isFloat() ? "f" : dtype.isSigned() ? "i" : "ui";
  return text + prefix + std::to_string(dtype.bits());
}
