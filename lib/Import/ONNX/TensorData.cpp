//===- TensorData.cpp - The values of tensors in the file -----------------===//

#include "TensorData.h"

#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Packed elements, each in a byte: integers extended by their sign or zeros.
static std::string unpack(DType dtype, StringRef packed, int64_t count) {
  std::string elements;
  elements.reserve(count);
  unsigned bits = dtype.bits(), mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    unsigned byte = static_cast<unsigned char>(packed[i / dtype.perByte()]);
    unsigned value = byte >> (i % dtype.perByte() * bits) & mask;
    if (dtype.numbers() == DType::Signed && value >> (bits - 1) != 0)
      value |= ~mask;
    elements.push_back(static_cast<char>(value));
  }
  return elements;
}

DenseElementsAttr memplan::onnx::readElements(DType dtype,
                                              RankedTensorType type,
                                              StringRef bytes) {
  std::string unpacked;
  if (dtype.isPacked()) {
    unpacked = unpack(dtype, bytes, type.getNumElements());
    bytes = unpacked;
  }
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(bytes.data(), bytes.size()));
}

/// Elements from the typed integer fields, which hold every type narrower than
/// 64 bits in 32 and floats as their bit patterns.
static DenseElementsAttr readInts(const Tensor &tensor, DType dtype,
                                  RankedTensorType type) {
  Type element = type.getElementType();
  SmallVector<APInt> bits;
  bits.reserve(tensor.ints.size());
  for (int64_t value : tensor.ints)
    bits.push_back(APInt(dtype.bits(), static_cast<uint64_t>(value),
                         /*isSigned=*/false, /*implicitTrunc=*/true));
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> floats;
    for (const APInt &value : bits)
      floats.emplace_back(floatType.getFloatSemantics(), value);
    return DenseElementsAttr::get(type, floats);
  }
  return DenseElementsAttr::get(type, bits);
}

/// The bytes of external data (onnx/docs/ExternalData.md).
static FailureOr<FileBytes> findExternal(const Tensor &tensor,
                                         const std::string &owner,
                                         ModelFile &file, Reporter &reporter) {
  StringRef location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (auto [key, value] : tensor.external) {
    int64_t number = 0;
    bool isNumber = key == "offset" || key == "length";
    if (isNumber && (value.getAsInteger(10, number) || number < 0))
      return reporter.invalid()
             << owner << " has external_data " << key << " " << quoted(value)
             << "; a decimal number of bytes is accepted";
    if (key == "location")
      location = value;
    else if (key == "offset")
      offset = number;
    else if (key == "length")
      length = number;
  }
  return file.external(location, offset, length, owner, reporter);
}

FailureOr<TensorData> memplan::onnx::checkTensor(const Tensor &tensor,
                                                 const std::string &owner,
                                                 ModelFile &file,
                                                 Reporter &reporter) {
  std::optional<DType> dtype = DType::fromCode(tensor.dataType);
  if (!dtype)
    return reporter.error(tensor.dataType == 0 ? ImportErrorKind::InvalidModel
                                               : ImportErrorKind::Unsupported)
           << owner << " has element type " << dtypeName(tensor.dataType)
           << "; " << kAcceptedTypes;
  if (tensor.isSegment)
    return reporter.error(ImportErrorKind::Unsupported)
           << owner << " is stored in segments; one piece is accepted";
  for (int64_t extent : tensor.dims)
    if (extent < 0)
      return reporter.invalid()
             << owner << " has a negative extent: " << shapeText(tensor.dims);
  auto count = checkedProduct(tensor.dims);
  auto bytes = count ? dtype->fileBytes(*count) : std::nullopt;
  if (!bytes)
    return reporter.invalid() << owner << " of shape " << shapeText(tensor.dims)
                              << " overflows: 64 bits cannot count its bytes";

  TensorData data;
  data.dtype = *dtype;
  data.type =
      RankedTensorType::get(tensor.dims, dtype->type(&reporter.getContext()));
  auto wrongSize = [&](int64_t found, const Twine &unit, int64_t wanted) {
    return reporter.invalid()
           << owner << " of type " << dtypeName(*dtype) << " and shape "
           << shapeText(tensor.dims) << " has " << found << " " << unit
           << ", expected " << wanted;
  };

  if (tensor.isExternal) {
    auto found = findExternal(tensor, owner, file, reporter);
    if (failed(found))
      return failure();
    int64_t size = found->bytes.size();
    bool hasLength = llvm::any_of(
        tensor.external, [](auto &entry) { return entry.first == "length"; });
    if (size < *bytes || (hasLength && size != *bytes))
      return wrongSize(size, "bytes in " + quoted(found->file), *bytes);
    found->bytes = found->bytes.take_front(*bytes);
    data.inFile = *found;
  } else if (tensor.raw) {
    if (static_cast<int64_t>(tensor.raw->size()) != *bytes)
      return wrongSize(tensor.raw->size(), "bytes of data", *bytes);
    data.inFile = file.locate(*tensor.raw);
  } else if (!tensor.scattered.empty()) {
    if (static_cast<int64_t>(tensor.scattered.size()) != *bytes)
      return wrongSize(tensor.scattered.size(), "bytes of data", *bytes);
    data.values = readElements(*dtype, data.type, tensor.scattered);
  } else if (dtype->isPacked()) {
    // Each number of int32_data is a byte of several elements.
    if (static_cast<int64_t>(tensor.ints.size()) != *bytes)
      return wrongSize(tensor.ints.size(), "values of packed bytes", *bytes);
    std::string packed;
    for (int64_t value : tensor.ints)
      packed.push_back(static_cast<char>(value));
    data.values = readElements(*dtype, data.type, packed);
  } else {
    if (static_cast<int64_t>(tensor.ints.size()) != *count)
      return wrongSize(tensor.ints.size(), "values", *count);
    data.values = readInts(tensor, *dtype, data.type);
  }
  return data;
}
