//===- QuantizedMicrosoftOps.cpp - Quantized operators of com.microsoft ---===//
//
// Operators that onnxruntime's quantization tools write. Each computes in float
// on numbers that it dequantizes where it reads them, and quantizes its result
// where it writes it; fusion makes one kernel of the steps.
//
//===----------------------------------------------------------------------===//

#include "Quantize.h"
#include "Window.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static constexpr const char *kMicrosoft = "com.microsoft";

namespace {
/// Inputs of a quantized tensor: its elements, scale and zero point.
struct QuantizedInput {
  unsigned elements, scale, zero;
};
} // namespace

/// Elements of 8 bits with one scale and zero point (which may be left out).
static LogicalResult checkQuantized(NodeBuilder &n, QuantizedInput input) {
  DType dtype = n.input(input.elements).dtype;
  if (dtype != DType::u8() && dtype != DType::i8())
    return n.unsupported() << n.inputText(input.elements)
                           << "; uint8 and int8 are accepted";
  return checkOneScale(n, input.scale, input.zero, dtype, /*isOptional=*/true);
}

/// The float that an element stands for, from operands at `next` on: that of
/// the element, the scale, the zero point if there is one.
static Value dequantizeNext(NodeBuilder &n, OpBuilder &b, Location loc,
                            QuantizedInput input, ValueRange args,
                            unsigned &next) {
  Value element = args[next++], scale = args[next++];
  Value zero = n.hasInput(input.zero) ? args[next++] : Value();
  return dequantizeScalar(b, loc, element, scale, zero,
                          n.input(input.elements).dtype,
                          n.input(input.scale).dtype);
}

/// The same number quantized by the scale and zero point that come next.
static Value quantizeNext(NodeBuilder &n, OpBuilder &b, Location loc, Value x,
                          DType to, unsigned scale, unsigned zero,
                          ValueRange args, unsigned &next) {
  Value by =
      castScalar(b, loc, args[next++], n.input(scale).dtype, DType::f32());
  Value moved = n.hasInput(zero) ? args[next++] : Value();
  return quantizeScalar(b, loc, x, by, moved, DType::f32(), to);
}

static void addScale(NodeBuilder &n, ElementwiseOperands &operands,
                     unsigned scale, unsigned zero, int64_t rank) {
  addScalar(n, operands, scale, rank);
  if (n.hasInput(zero))
    addScalar(n, operands, zero, rank);
}

/// The type of a result whose zero point is input `zero`.
static DType resultType(NodeBuilder &n, unsigned zero) {
  return n.hasInput(zero) ? n.input(zero).dtype : n.input(0).dtype;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// A and B with their scales and zero points, then those of the result.
template <Value (Scalars::*combine)(Value, Value) const>
static LogicalResult buildBinary(NodeBuilder &n) {
  QuantizedInput a{0, 1, 2}, c{3, 4, 5};
  DType to = resultType(n, 7);
  if (failed(checkQuantized(n, a)) || failed(checkQuantized(n, c)) ||
      failed(n.sameTypes({0, 3})) ||
      failed(checkOneScale(n, 6, 7, to, /*isOptional=*/true)))
    return failure();
  auto shape = broadcastShapes({n.input(0).shape(), n.input(3).shape()});
  if (!shape)
    return n.invalid() << "inputs do not broadcast: " << n.inputText(0u) << ", "
                       << n.inputText(3);
  ElementwiseOperands operands(n);
  for (QuantizedInput input : {a, c}) {
    operands.addBroadcast(n.input(input.elements), *shape);
    addScale(n, operands, input.scale, input.zero, shape->size());
  }
  addScale(n, operands, 6, 7, shape->size());
  Value y = operands.build(
      *shape, to.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        unsigned next = 0;
        Value x = dequantizeNext(n, b, loc, a, args, next);
        Value z = dequantizeNext(n, b, loc, c, args, next);
        Value made = (Scalars(b, loc, DType::f32()).*combine)(x, z);
        return quantizeNext(n, b, loc, made, to, 6, 7, args, next);
      });
  return n.result(y, to);
}

/// X with its scale and zero point, then those of the result.
static LogicalResult
buildUnary(NodeBuilder &n, function_ref<Value(const Scalars &, Value)> apply) {
  QuantizedInput x{0, 1, 2};
  DType to = resultType(n, 4);
  if (failed(checkQuantized(n, x)) ||
      failed(checkOneScale(n, 3, 4, to, /*isOptional=*/true)))
    return failure();
  ArrayRef<int64_t> shape = n.input(0).shape();
  ElementwiseOperands operands(n);
  operands.addBroadcast(n.input(0), shape);
  addScale(n, operands, 1, 2, shape.size());
  addScale(n, operands, 3, 4, shape.size());
  Value y = operands.build(
      shape, to.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        unsigned next = 0;
        Value wide = dequantizeNext(n, b, loc, x, args, next);
        Value made = apply(Scalars(b, loc, DType::f32()), wide);
        return quantizeNext(n, b, loc, made, to, 3, 4, args, next);
      });
  return n.result(y, to);
}

static LogicalResult buildSigmoid(NodeBuilder &n) {
  return buildUnary(n, [](const Scalars &s, Value x) {
    Value one = s.number(1);
    return s.div(one, s.add(one, s.make<math::ExpOp>(s.negate(x))));
  });
}

static LogicalResult buildLeakyRelu(NodeBuilder &n) {
  double alpha = n.floatAttr("alpha", 0.01f);
  return buildUnary(n, [&](const Scalars &s, Value x) {
    return s.select(s.less(x, s.number(0)), s.mul(s.number(alpha), x), x);
  });
}

//===----------------------------------------------------------------------===//
// Whole tensors
//===----------------------------------------------------------------------===//

/// Input 0 as floats.
static Value dequantizeFirst(NodeBuilder &n, QuantizedInput x) {
  ArrayRef<int64_t> shape = n.input(x.elements).shape();
  ElementwiseOperands operands(n);
  operands.addBroadcast(n.input(x.elements), shape);
  addScale(n, operands, x.scale, x.zero, shape.size());
  return operands.build(shape, n.b.getF32Type(),
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          unsigned next = 0;
                          return dequantizeNext(n, b, loc, x, args, next);
                        });
}

/// A tensor of floats, quantized by inputs `scale` and `zero`.
static Value quantizeTensor(NodeBuilder &n, Value x, DType to, unsigned scale,
                            unsigned zero) {
  auto type = cast<RankedTensorType>(x.getType());
  ElementwiseOperands operands(n);
  operands.add(x, n.b.getMultiDimIdentityMap(type.getRank()));
  addScale(n, operands, scale, zero, type.getRank());
  return operands.build(type.getShape(), to.type(n.context()),
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          unsigned next = 1;
                          return quantizeNext(n, b, loc, args[0], to, scale,
                                              zero, args, next);
                        });
}

/// The dims of `tensor` with the channels moved from the last place to the
/// second, or back.
static Value moveChannels(NodeBuilder &n, Value tensor, bool toSecond) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  SmallVector<int64_t> order = {0};
  if (toSecond)
    order.push_back(rank - 1);
  for (int64_t dim = toSecond ? 1 : 2; dim < rank - toSecond; ++dim)
    order.push_back(dim);
  if (!toSecond)
    order.push_back(1);
  return transpose(n, tensor, order);
}

static SmallVector<int64_t> withLeading(ArrayRef<int64_t> spatial,
                                        int64_t value) {
  SmallVector<int64_t> all = {value, value};
  all.append(spatial.begin(), spatial.end());
  return all;
}

/// Average pooling in windows; all spatial dims are one window if `isGlobal`.
template <bool isGlobal>
static LogicalResult buildAveragePool(NodeBuilder &n) {
  QuantizedInput input{0, 1, 2};
  DType to = n.input(0).dtype;
  ImportedTensor &x = n.input(0);
  if (failed(checkQuantized(n, input)) ||
      failed(checkOneScale(n, 3, 4, to, /*isOptional=*/true)))
    return failure();
  if (x.rank() < 3)
    return n.invalid() << n.inputText(0u)
                       << " has no spatial dims; rank 3 and up is accepted";
  bool isLast = n.intAttr("channels_last", 0) != 0;
  Value floats = dequantizeFirst(n, input);
  if (isLast)
    floats = moveChannels(n, floats, /*toSecond=*/true);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(floats.getType()).getShape();
  ArrayRef<int64_t> spatial = shape.drop_front(2);
  SmallVector<int64_t> ones(spatial.size(), 1), zeros(spatial.size(), 0);
  Window window{SmallVector<int64_t>(spatial), ones, ones, zeros, zeros, ones};
  WindowKind kind = WindowKind::Average;
  if (!isGlobal) {
    auto kernel = n.intsAttr("kernel_shape");
    if (!kernel || kernel->size() != spatial.size())
      return n.invalid() << "needs attribute 'kernel_shape' with "
                         << spatial.size() << " entries";
    if (n.intAttr("count_include_pad", 0) != 0)
      kind = WindowKind::AverageIncludePad;
    FailureOr<Window> read = readWindow(n, spatial, *kernel,
                                        /*canDilate=*/false, /*canCeil=*/true);
    if (failed(read))
      return failure();
    window = *read;
  }
  SmallVector<int64_t> result = {shape[0], shape[1]};
  result.append(window.output.begin(), window.output.end());
  auto same = [](OpBuilder &, Location, ValueRange args) { return args[0]; };
  auto op = ReduceWindowOp::create(
      n.b, n.loc, kind, floats, empty(n, result, n.b.getF32Type()),
      withLeading(window.kernel, 1), withLeading(window.strides, 1),
      withLeading(window.dilations, 1), withLeading(window.padsBegin, 0),
      withLeading(window.padsEnd, 0), same, same);
  Value y = op.getResult();
  if (isLast)
    y = moveChannels(n, y, /*toSecond=*/false);
  return n.result(quantizeTensor(n, y, to, 3, 4), to);
}

/// Before opset 13 (attribute 'opset', that of the Softmax it was made from)
/// all dims from `axis` on are one row.
static LogicalResult buildSoftmax(NodeBuilder &n) {
  QuantizedInput input{0, 1, 2};
  ImportedTensor &x = n.input(0);
  DType to = x.dtype;
  int64_t made = n.intAttr("opset", 13);
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", made < 13 ? 1 : -1), x.rank());
  if (failed(axis) || failed(checkQuantized(n, input)) ||
      failed(checkOneScale(n, 3, 4, to, /*isOptional=*/true)))
    return failure();
  SmallVector<int64_t> rows;
  for (int64_t dim = *axis; dim < (made < 13 ? x.rank() : *axis + 1); ++dim)
    rows.push_back(dim);
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  auto exponential = [](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Value shifted = arith::SubFOp::create(b, loc, args[0], args[1]);
    return math::ExpOp::create(b, loc, shifted);
  };
  auto element = [](OpBuilder &, Location, ValueRange args) { return args[0]; };
  auto finish = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    return arith::DivFOp::create(b, loc, exponential(b, loc, args), args[2]);
  };
  auto op =
      RowwiseOp::create(n.b, n.loc, dequantizeFirst(n, input),
                        empty(n, x.shape(), n.b.getF32Type()), rows,
                        ArrayRef<Combiner>{Combiner::Max, Combiner::Sum},
                        ArrayRef<AffineMap>{identity, identity},
                        ArrayRef<RegionBuilder>{element, exponential}, finish);
  return n.result(quantizeTensor(n, op.getResult(), to, 3, 4), to);
}

/// Scale and zero point of the result, then three inputs a part.
static LogicalResult buildConcat(NodeBuilder &n) {
  DType to = n.input(1).dtype;
  unsigned numParts = (n.numInputs() - 2) / 3;
  if (numParts == 0 || n.numInputs() != 2 + 3 * numParts)
    return n.invalid() << "has " << n.numInputs()
                       << " inputs; 2 and 3 for each part are accepted";
  if (failed(checkOneScale(n, 0, 1, to)))
    return failure();
  int64_t rank = n.input(2).rank();
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), rank);
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(n.input(2).shape());
  shape[*axis] = 0;
  for (unsigned part = 0; part < numParts; ++part) {
    QuantizedInput input{2 + 3 * part, 3 + 3 * part, 4 + 3 * part};
    if (failed(checkQuantized(n, input)))
      return failure();
    ImportedTensor &x = n.input(input.elements);
    bool fits = x.rank() == rank;
    for (int64_t dim = 0; fits && dim < rank; ++dim)
      fits = dim == *axis || x.dim(dim) == shape[dim];
    if (!fits)
      return n.invalid() << n.inputText(2) << " and "
                         << n.inputText(input.elements)
                         << " differ in dims other than axis " << *axis;
    shape[*axis] += x.dim(*axis);
  }
  Value whole = empty(n, shape, to.type(n.context()));
  SmallVector<OpFoldResult> offsets(rank, n.b.getIndexAttr(0)),
      strides(rank, n.b.getIndexAttr(1));
  int64_t at = 0;
  for (unsigned part = 0; part < numParts; ++part) {
    QuantizedInput input{2 + 3 * part, 3 + 3 * part, 4 + 3 * part};
    Value made =
        quantizeTensor(n, dequantizeFirst(n, input), to, /*scale=*/0, 1);
    SmallVector<OpFoldResult> sizes;
    for (int64_t extent : n.input(input.elements).shape())
      sizes.push_back(n.b.getIndexAttr(extent));
    offsets[*axis] = n.b.getIndexAttr(at);
    at += n.input(input.elements).dim(*axis);
    whole = tensor::InsertSliceOp::create(n.b, n.loc, made, whole, offsets,
                                          sizes, strides);
  }
  return n.result(whole, to);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> quantizedMicrosoftOps() {
  static const OpEntry kOps[] = {
      {"QLinearAdd", 1, 1, 7, 8, 1, buildBinary<&Scalars::add>, kMicrosoft},
      {"QLinearAveragePool", 1, 1, 4, 5, 1, buildAveragePool<false>,
       kMicrosoft},
      {"QLinearConcat", 1, 1, 5, kVariadic, 1, buildConcat, kMicrosoft},
      {"QLinearGlobalAveragePool", 1, 1, 4, 5, 1, buildAveragePool<true>,
       kMicrosoft},
      {"QLinearLeakyRelu", 1, 1, 4, 5, 1, buildLeakyRelu, kMicrosoft},
      {"QLinearMul", 1, 1, 7, 8, 1, buildBinary<&Scalars::mul>, kMicrosoft},
      {"QLinearSigmoid", 1, 1, 4, 5, 1, buildSigmoid, kMicrosoft},
      {"QLinearSoftmax", 1, 1, 4, 5, 1, buildSoftmax, kMicrosoft},
  };
  return kOps;
}
} // namespace memplan::onnx
