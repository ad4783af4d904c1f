//===- ConstantOps.cpp - Constants and shapes -----------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// A constant of int64 values, of rank 1 or a scalar.
static LogicalResult intResult(NodeBuilder &n, ArrayRef<int64_t> values,
                               bool isScalar = false) {
  SmallVector<int64_t> shape;
  if (!isScalar)
    shape.push_back(values.size());
  auto type = RankedTensorType::get(shape, n.b.getI64Type());
  return n.constantResult(DenseElementsAttr::get(type, values), DType::i64());
}

static LogicalResult floatResult(NodeBuilder &n, ArrayRef<float> values,
                                 bool isScalar) {
  SmallVector<int64_t> shape;
  if (!isScalar)
    shape.push_back(values.size());
  auto type = RankedTensorType::get(shape, n.b.getF32Type());
  return n.constantResult(DenseElementsAttr::get(type, values), DType::f32());
}

static LogicalResult buildConstant(NodeBuilder &n) {
  static constexpr const char *kForms[] = {
      "value",      "value_float",  "value_floats",  "value_int",
      "value_ints", "value_string", "value_strings", "sparse_value"};
  int numForms = 0;
  for (const char *form : kForms)
    numForms += n.hasAttr(form);
  if (numForms != 1)
    return n.invalid() << "has " << numForms
                       << " value attributes; exactly one is accepted";
  if (const Tensor *tensor = n.tensorAttr("value")) {
    FailureOr<TensorData> data = n.tensorData(*tensor);
    return failed(data) ? failure() : n.dataResult(*data);
  }
  if (n.hasAttr("value_float"))
    return floatResult(n, n.floatAttr("value_float", 0), /*isScalar=*/true);
  if (n.hasAttr("value_int"))
    return intResult(n, n.intAttr("value_int", 0), /*isScalar=*/true);
  if (auto floats = n.floatsAttr("value_floats"))
    return floatResult(n, *floats, /*isScalar=*/false);
  if (auto ints = n.intsAttr("value_ints"))
    return intResult(n, *ints);
  return n.unsupported() << "its value is a string or a sparse tensor; a dense "
                            "tensor or numbers are accepted";
}

static LogicalResult buildConstantOfShape(NodeBuilder &n) {
  FailureOr<SmallVector<int64_t>> shape = n.ints(0, "the shape");
  if (failed(shape))
    return failure();
  if (n.input(0).rank() != 1)
    return n.invalid() << "the shape comes from " << n.inputText(0u)
                       << "; a tensor of rank 1 is accepted";
  if (!checkedProduct(*shape))
    return n.invalid() << "the shape " << shapeText(*shape)
                       << " has a negative extent or overflows 64 bits";
  DType dtype = DType::f32();
  Attribute value = n.b.getF32FloatAttr(0);
  if (const Tensor *tensor = n.tensorAttr("value")) {
    FailureOr<TensorData> data = n.tensorData(*tensor);
    if (failed(data))
      return failure();
    if (data->type.getNumElements() != 1)
      return n.invalid() << "attribute 'value' has shape "
                         << shapeText(data->type.getShape())
                         << "; one element is accepted";
    DenseElementsAttr elements =
        data->inFile
            ? readElements(data->dtype, data->type, data->inFile->bytes)
            : data->values;
    dtype = data->dtype;
    value = *elements.value_begin<Attribute>();
  }
  auto type = RankedTensorType::get(*shape, dtype.type(n.context()));
  return n.constantResult(DenseElementsAttr::get(type, value), dtype);
}

static LogicalResult buildShape(NodeBuilder &n) {
  ArrayRef<int64_t> shape = n.input(0).shape();
  int64_t rank = shape.size();
  // Out-of-range ends are clamped, as in Python's slices.
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = 0, end = rank;
  if (n.opset >= 15) {
    start = clamp(n.intAttr("start", 0));
    end = clamp(n.intAttr("end", rank));
  }
  return intResult(n, shape.slice(start, std::max<int64_t>(end - start, 0)));
}

static LogicalResult buildSize(NodeBuilder &n) {
  return intResult(n, n.input(0).numElements(), /*isScalar=*/true);
}

/// start + i * delta; the number of elements must be known.
static LogicalResult buildRange(NodeBuilder &n) {
  if (failed(n.sameTypes({0, 1, 2})))
    return failure();
  DType dtype = n.input(0).dtype;
  double bounds[3];
  for (unsigned i = 0; i < 3; ++i) {
    FailureOr<DenseElementsAttr> elements = n.constant(i, i == 0   ? "start"
                                                          : i == 1 ? "limit"
                                                                   : "delta");
    if (failed(elements))
      return failure();
    if (elements->getNumElements() != 1)
      return n.invalid() << n.inputText(i) << " is not a scalar";
    if (dtype.isFloat())
      bounds[i] = elements->getValues<APFloat>()[0].convertToDouble();
    else
      bounds[i] =
          static_cast<double>(elements->getValues<APInt>()[0].getSExtValue());
  }
  if (bounds[2] == 0)
    return n.invalid() << "delta is 0";
  double steps = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (!(steps < 1e15))
    return n.invalid() << "the range has too many elements";
  int64_t count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  ElementwiseOperands operands(n);
  AffineMap scalar = AffineMap::get(1, 0, n.context());
  operands.add(n.input(0), {}, scalar);
  operands.add(n.input(2), {}, scalar);
  Value result = operands.build(
      count, dtype.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype);
        Value index = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 0));
        return s.add(
            args[0],
            s.mul(castScalar(b, loc, index, DType::i64(), dtype), args[1]));
      });
  return n.result(result, dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> constantOps() {
  static const OpEntry kOps[] = {
      {"Constant", 1, kNewestOpset, 0, 0, 1, buildConstant},
      {"ConstantOfShape", 9, kNewestOpset, 1, 1, 1, buildConstantOfShape},
      {"Range", 11, kNewestOpset, 3, 3, 1, buildRange},
      {"Shape", 1, kNewestOpset, 1, 1, 1, buildShape},
      {"Size", 1, kNewestOpset, 1, 1, 1, buildSize},
  };
  return kOps;
}
} // namespace memplan::onnx
