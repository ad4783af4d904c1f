//===- InputValues.cpp - Inputs known when compiling ------------------===//

#include "InputValues.h"

#include "Decode.h"
#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

LogicalResult
memplan::onnx::checkInputValues(ArrayRef<const ValueInfo *> inputs,
                                const ImportOptions &options,
                                Reporter &reporter) {
  SmallVector<StringRef> names(options.inputValues.keys());
  llvm::sort(names);
  for (StringRef name : names) {
    bool isKnown =
        llvm::any_of(inputs, [&](auto *input) { return input->name == name; });
    if (isKnown && options.usedNames)
      options.usedNames->insert(("--input-value " + name).str());
    if (isKnown || options.usedNames)
      continue;
    auto diagnostic = reporter.error(ImportErrorKind::IO)
                      << "--input-value " << quoted(name)
                      << " names no input of the model; it has ";
    llvm::interleaveComma(inputs, diagnostic, [&](const ValueInfo *input) {
      diagnostic << quoted(input->name);
    });
    if (inputs.empty())
      diagnostic << "none";
    return failure();
  }
  return success();
}

/// One element of the list, or null.
static TypedAttr parseElement(StringRef text, DType dtype, Type type) {
  if (dtype.isFloat()) {
    double value;
    if (text.getAsDouble(value))
      return {};
    return FloatAttr::get(type, value);
  }
  if (dtype.isBool() && (text == "true" || text == "false"))
    return IntegerAttr::get(type, text == "true");
  APInt value;
  bool isNegative = text.consume_front("-");
  if (text.getAsInteger(10, value))
    return {};
  value = value.zextOrTrunc(std::max(128u, value.getBitWidth() + 1));
  if (isNegative)
    value = -value;
  bool fits = dtype.isSigned()
                  ? value.isSignedIntN(dtype.bits())
                  : value.isIntN(dtype.isBool() ? 1 : dtype.bits());
  if (!fits)
    return {};
  return IntegerAttr::get(type, value.trunc(type.getIntOrFloatBitWidth()));
}

static FailureOr<ImportedTensor> parseList(const ValueInfo &input,
                                           StringRef text, DType dtype,
                                           Reporter &reporter) {
  if (dtype.isStorage())
    return reporter.error(ImportErrorKind::IO)
           << "--input-value " << input.name << " is of " << dtypeName(dtype)
           << "; @FILE with a TensorProto is accepted";
  Type type = dtype.type(&reporter.getContext());
  SmallVector<StringRef> parts;
  if (!text.empty())
    text.split(parts, ',');
  SmallVector<Attribute> values;
  for (StringRef part : parts) {
    TypedAttr value = parseElement(part.trim(), dtype, type);
    if (!value)
      return reporter.error(ImportErrorKind::IO)
             << "--input-value " << input.name << ": " << quoted(part)
             << " is no " << dtypeName(dtype);
    values.push_back(value);
  }

  SmallVector<int64_t> shape;
  int64_t known = 1;
  std::optional<size_t> open;
  bool isOneOpen = true;
  if (input.shape)
    for (auto [index, dim] : llvm::enumerate(*input.shape)) {
      bool isKnown = dim.size && *dim.size >= 0;
      shape.push_back(isKnown ? *dim.size : 1);
      isOneOpen &= isKnown || !open;
      if (!isKnown)
        open = index;
    }
  else if (values.size() != 1)
    shape.push_back(values.size());
  auto product = checkedProduct(shape);
  int64_t count = values.size();
  if (product)
    known = *product;
  if (open && isOneOpen && known > 0)
    shape[*open] = count / known;
  if (!product || !isOneOpen || checkedProduct(shape) != count)
    return reporter.error(ImportErrorKind::IO)
           << "--input-value " << input.name << " has " << count
           << " values, which do not make its shape; the values of all "
              "elements in row-major order, or @FILE with a TensorProto, are "
              "accepted";
  ImportedTensor tensor;
  tensor.type = RankedTensorType::get(shape, type);
  tensor.constant = DenseElementsAttr::get(tensor.type, values);
  return tensor;
}

static FailureOr<ImportedTensor> readFile(const ValueInfo &input,
                                          StringRef path, Reporter &reporter) {
  std::string owner = "the tensor in " + quoted(path);
  Reporter inFile(reporter.getContext(), path);
  auto wrong = [&]() -> FailureOr<ImportedTensor> {
    return reporter.error(ImportErrorKind::IO)
           << "--input-value " << input.name << ": " << quoted(path)
           << " is not a file with a serialized TensorProto that holds its "
              "data";
  };
  FailureOr<ModelFile> file = ModelFile::open(inFile);
  if (failed(file)) {
    reporter.setKind(ImportErrorKind::IO);
    return failure();
  }
  Tensor proto;
  if (failed(decodeTensor(file->bytes(), proto)) || proto.isExternal ||
      file->bytes().empty())
    return wrong();
  FailureOr<TensorData> data = checkTensor(proto, owner, *file, inFile);
  if (failed(data)) {
    reporter.setKind(ImportErrorKind::IO);
    return failure();
  }
  ImportedTensor tensor;
  tensor.dtype = data->dtype;
  tensor.type = data->type;
  tensor.constant =
      data->inFile ? readElements(data->dtype, data->type, data->inFile->bytes)
                   : data->values;
  return tensor;
}

FailureOr<ImportedTensor> memplan::onnx::readInputValue(const ValueInfo &input,
                                                        StringRef text,
                                                        Reporter &reporter) {
  std::optional<DType> dtype = DType::fromCode(input.dataType);
  if (!dtype)
    return reporter.error(ImportErrorKind::Unsupported)
           << "--input-value " << input.name << ": the input's element type "
           << dtypeName(input.dataType) << " is not supported";
  FailureOr<ImportedTensor> tensor =
      text.consume_front("@") ? readFile(input, text, reporter)
                              : parseList(input, text, *dtype, reporter);
  if (failed(tensor))
    return failure();
  if (!tensor->dtype.code())
    tensor->dtype = *dtype;
  if (tensor->dtype != *dtype)
    return reporter.error(ImportErrorKind::IO)
           << "--input-value " << input.name << " is of "
           << dtypeName(tensor->dtype) << ", but the input of "
           << dtypeName(*dtype);
  tensor->name = input.name;
  return tensor;
}
