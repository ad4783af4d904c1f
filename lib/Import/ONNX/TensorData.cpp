//===- TensorData.cpp - The values of tensors in the file -----------------===//

#include "TensorData.h"

#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSet.h"

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
  ModelFile::ExternalData data;
  llvm::StringSet<> seen;
  for (auto [key, value] : tensor.external) {
    if (!seen.insert(key).second)
      return reporter.invalid() << owner << " has two entries " << quoted(key)
                                << " in external_data; one is accepted";
    int64_t number = 0;
    bool isNumber = key == "offset" || key == "length";
    if (isNumber && (value.getAsInteger(10, number) || number < 0))
      return reporter.invalid()
             << owner << " has external_data " << key << " " << quoted(value)
             << "; a decimal number of bytes is accepted";
    if (key == "location")
      data.location = value;
    else if (key == "offset")
      data.offset = number;
    else if (key == "length")
      data.length = number;
    else if (key == "checksum")
      data.checksum = value;
    else
      return reporter.invalid()
             << owner << " has the entry " << quoted(key)
             << " in external_data; location, offset, length and checksum are "
                "accepted";
  }
  return file.external(data, owner, reporter);
}

/// Whether the data stands in the one field that the element type has.
static LogicalResult checkForm(const Tensor &tensor, DType dtype,
                               const std::string &owner, Reporter &reporter) {
  if (tensor.numForms + tensor.isExternal > 1)
    return reporter.invalid()
           << owner
           << " has its data more than once (raw, typed or external); "
              "one form is accepted";
  if (tensor.hasStrings)
    return reporter.invalid()
           << owner << " of type " << dtypeName(dtype) << " has string_data";
  if (tensor.typedField == 0)
    return success();
  // TensorProto's fields; what is narrower than 32 bits is in int32_data.
  int64_t wanted = 5;
  switch (dtype.code()) {
  case 1:
    wanted = 4;
    break;
  case 7:
    wanted = 7;
    break;
  case 11:
    wanted = 10;
    break;
  case 12:
  case 13:
    wanted = 11;
    break;
  }
  if (tensor.typedField == wanted)
    return success();
  auto name = [](int64_t field) {
    return field == 4    ? "float_data"
           : field == 5  ? "int32_data"
           : field == 7  ? "int64_data"
           : field == 10 ? "double_data"
                         : "uint64_data";
  };
  return reporter.invalid()
         << owner << " of type " << dtypeName(dtype) << " has its data in "
         << name(tensor.typedField) << ", expected " << name(wanted);
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
  if (tensor.dims.size() > kHighestRank)
    return reporter.error(ImportErrorKind::Unsupported)
           << owner << " has rank " << tensor.dims.size() << "; ranks up to "
           << kHighestRank << " are accepted";
  for (int64_t extent : tensor.dims)
    if (extent < 0)
      return reporter.invalid()
             << owner << " has a negative extent: " << shapeText(tensor.dims);
  auto count = checkedProduct(tensor.dims);
  auto bytes = count ? dtype->fileBytes(*count) : std::nullopt;
  if (!bytes)
    return reporter.invalid() << owner << " of shape " << shapeText(tensor.dims)
                              << " overflows: 64 bits cannot count its bytes";

  if (failed(checkForm(tensor, *dtype, owner, reporter)))
    return failure();
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
