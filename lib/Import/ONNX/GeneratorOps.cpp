//===- GeneratorOps.cpp - Tensors made from little ------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// OneHot and EyeLike
//===----------------------------------------------------------------------===//

static LogicalResult buildOneHot(NodeBuilder &n) {
  ImportedTensor &indices = n.input(0), &values = n.input(2);
  // Any numeric type may hold the depth.
  FailureOr<DenseElementsAttr> given = n.constant(1, "the depth");
  if (failed(given))
    return failure();
  if (n.input(1).numElements() != 1 || n.input(1).dtype.isBool())
    return n.invalid() << n.inputText(1)
                       << " holds the depth; one number is accepted";
  int64_t depth;
  if (n.input(1).dtype.isFloat()) {
    double value = (*given->getValues<APFloat>().begin()).convertToDouble();
    if (!(value >= 0 && value < 9e15))
      return n.invalid() << "the depth is " << value;
    depth = static_cast<int64_t>(value);
  } else {
    depth = (*given->getValues<APInt>().begin()).getSExtValue();
  }
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), indices.rank() + 1);
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(indices.shape());
  shape.insert(shape.begin() + *axis, depth);
  if (depth < 1 || !checkedProduct(shape) || indices.dtype.isBool())
    return n.invalid() << "the depth is " << depth << " for " << n.inputText(0u)
                       << "; a positive number and numeric indices are "
                          "accepted";
  if (values.shape() != ArrayRef<int64_t>(2))
    return n.invalid() << n.inputText(2)
                       << " holds the off and on value; two elements are "
                          "accepted";
  int64_t rank = shape.size();
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < rank; ++i)
    if (i != *axis)
      exprs.push_back(n.b.getAffineDimExpr(i));
  ElementwiseOperands operands(n);
  operands.add(indices, indices.shape(),
               AffineMap::get(rank, 0, exprs, n.context()));
  // The two values as operands of no dim.
  Value both = n.value(2);
  for (int64_t i = 0; i < 2; ++i) {
    auto entries = [&](int64_t entry) {
      return getAsIndexOpFoldResult(n.context(), ArrayRef<int64_t>(entry));
    };
    auto type = RankedTensorType::get({1}, values.type.getElementType());
    Value one = tensor::ExtractSliceOp::create(
        n.b, n.loc, type, both, entries(i), entries(1), entries(1));
    operands.add(reshape(n, one, {}), AffineMap::get(rank, 0, n.context()));
  }
  Value y = operands.build(
      shape, values.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value index = castScalar(b, loc, args[0], indices.dtype, s.dtype);
        index = s.select(s.less(index, s.integer(0)),
                         s.add(index, s.integer(depth)), index);
        Value place = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, *axis));
        return s.select(s.equal(index, place), args[2], args[1]);
      });
  return n.result(y, values.dtype);
}

static LogicalResult buildEyeLike(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t code = n.intAttr("dtype", x.dtype.code()), k = n.intAttr("k", 0);
  std::optional<DType> dtype = DType::fromCode(code);
  if (!dtype)
    return n.unsupported() << "attribute 'dtype' is " << dtypeName(code);
  if (x.rank() != 2)
    return n.invalid() << n.inputText(0u) << "; a matrix is accepted";
  k = std::clamp(k, -x.dim(0), x.dim(1));
  Value y = mapElements(
      n, {}, {}, x.shape(), dtype->type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Scalars s(b, loc, *dtype), index(b, loc, DType::i64());
        auto place = [&](int64_t dim) -> Value {
          return arith::IndexCastOp::create(
              b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, dim));
        };
        Value isOne =
            index.equal(index.add(place(0), index.integer(k)), place(1));
        return s.select(isOne, s.integer(1), s.integer(0));
      });
  return n.result(y, *dtype);
}

//===----------------------------------------------------------------------===//
// Windows of signal processing
//===----------------------------------------------------------------------===//

/// Longer windows have no place in a model.
static constexpr int64_t kLongestWindow = 1 << 20;

/// a - b cos(2 pi i / N) + c cos(4 pi i / N), a constant.
static LogicalResult buildWindow(NodeBuilder &n, double a, double b, double c) {
  FailureOr<int64_t> size = n.scalarInt(0, "the size");
  int64_t code = n.intAttr("output_datatype", DType::f32().code());
  bool isPeriodic = n.intAttr("periodic", 1) != 0;
  std::optional<DType> dtype = DType::fromCode(code);
  if (failed(size))
    return failure();
  if (!dtype || dtype->isBool())
    return n.unsupported() << "attribute 'output_datatype' is "
                           << dtypeName(code);
  if (*size < 0 || *size > kLongestWindow)
    return n.invalid() << "the size is " << *size << "; 0 to " << kLongestWindow
                       << " is accepted";
  double period =
      std::max<double>(1, static_cast<double>(isPeriodic ? *size : *size - 1));
  Type type = dtype->type(n.context());
  auto tensorType = RankedTensorType::get({*size}, type);
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < *size; ++i) {
    double angle = 2 * M_PI * static_cast<double>(i) / period;
    double value = a - b * std::cos(angle) + c * std::cos(2 * angle);
    if (dtype->isFloat())
      values.push_back(n.b.getFloatAttr(type, value));
    else
      values.push_back(n.b.getIntegerAttr(type, static_cast<int64_t>(value)));
  }
  return n.constantResult(DenseElementsAttr::get(tensorType, values), *dtype);
}

static LogicalResult buildHannWindow(NodeBuilder &n) {
  return buildWindow(n, 0.5, 0.5, 0);
}
static LogicalResult buildHammingWindow(NodeBuilder &n) {
  return buildWindow(n, 25.0 / 46, 21.0 / 46, 0);
}
static LogicalResult buildBlackmanWindow(NodeBuilder &n) {
  return buildWindow(n, 0.42, 0.5, 0.08);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> generatorOps() {
  static const OpEntry kOps[] = {
      {"BlackmanWindow", 17, kNewestOpset, 1, 1, 1, buildBlackmanWindow},
      {"EyeLike", 9, kNewestOpset, 1, 1, 1, buildEyeLike},
      {"HammingWindow", 17, kNewestOpset, 1, 1, 1, buildHammingWindow},
      {"HannWindow", 17, kNewestOpset, 1, 1, 1, buildHannWindow},
      {"OneHot", 9, kNewestOpset, 3, 3, 1, buildOneHot},
  };
  return kOps;
}
} // namespace memplan::onnx
