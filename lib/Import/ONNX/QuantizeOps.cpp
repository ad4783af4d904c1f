//===- QuantizeOps.cpp - QuantizeLinear and its kin -----------------------===//

#include "Quantize.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// How scales and zero points are laid over a tensor.
struct Granularity {
  int64_t axis = -1;          ///< -1: one of all.
  int64_t block = 0;          ///< Elements of dim `axis` to each scale; 0: one.
  SmallVector<int64_t> shape; ///< Of the scales.
};
} // namespace

/// That of input 1 over input 0; input 2, if there, must have the same shape.
static FailureOr<Granularity> readGranularity(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &scale = n.input(1);
  Granularity result;
  result.shape.assign(scale.shape().begin(), scale.shape().end());
  if (n.hasInput(2) && n.input(2).shape() != scale.shape() &&
      (n.input(2).numElements() != 1 || scale.numElements() != 1))
    return n.invalid() << n.inputText(1) << " and " << n.inputText(2)
                       << ", scale and zero point, differ in shape";
  // Before opset 13 there is one scale; com.microsoft's only opset has the
  // axis.
  bool hasAxis = n.opset >= 13 || n.opset == 1;
  int64_t block =
      n.opset >= 21 || n.opset == 1 ? n.intAttr("block_size", 0) : 0;
  int64_t named = hasAxis ? n.intAttr("axis", 1) : 1;
  if (scale.numElements() == 1 && block == 0)
    return result;
  FailureOr<int64_t> axis = n.axis(named, x.rank());
  if (failed(axis))
    return failure();
  result.axis = *axis;
  if (block == 0) {
    if (hasAxis && scale.shape() == ArrayRef<int64_t>(x.dim(*axis)))
      return result;
    return n.invalid() << n.inputText(1) << " is not one scale"
                       << (hasAxis ? ", or one for each index of axis " : "")
                       << (hasAxis ? std::to_string(*axis) : "") << " of "
                       << n.inputText(0u);
  }
  result.block = block;
  bool fits = block > 0 && scale.rank() == x.rank();
  for (int64_t dim = 0; fits && dim < x.rank(); ++dim)
    fits = scale.dim(dim) ==
           (dim == *axis ? (x.dim(dim) + block - 1) / block : x.dim(dim));
  if (!fits)
    return n.invalid() << n.inputText(1) << " is not one scale for each "
                       << block << " indices of axis " << *axis << " of "
                       << n.inputText(0u);
  return result;
}

namespace {
/// An elementwise op on a tensor and its scales and zero points. Blocks become
/// a dim of their own if they divide the tensor; else scales are gathered.
class ScaledMap {
public:
  ScaledMap(NodeBuilder &n, const Granularity &granularity)
      : n(n), granularity(granularity), operands(n) {
    ImportedTensor &x = n.input(0);
    shape.assign(x.shape().begin(), x.shape().end());
    int64_t axis = granularity.axis;
    isSplit = granularity.block > 0 && x.dim(axis) % granularity.block == 0;
    if (isSplit) {
      shape[axis] = x.dim(axis) / granularity.block;
      shape.insert(shape.begin() + axis + 1, granularity.block);
    }
    operands.add(x, shape, n.b.getMultiDimIdentityMap(shape.size()));
  }

  /// Input `i`, a scale or zero point.
  void add(unsigned i) {
    ImportedTensor &tensor = n.input(i);
    int64_t rank = shape.size(), axis = granularity.axis;
    if (tensor.numElements() == 1 || splatOf(tensor))
      return operands.add(tensor, {}, AffineMap::get(rank, 0, n.context()));
    if (granularity.block == 0)
      return operands.add(tensor, tensor.shape(),
                          AffineMap::get(rank, 0, n.b.getAffineDimExpr(axis)));
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!isSplit || dim != axis + 1)
        exprs.push_back(n.b.getAffineDimExpr(dim));
    if (isSplit)
      return operands.add(tensor, tensor.shape(),
                          AffineMap::get(rank, 0, exprs, n.context()));
    Value repeated = gatherElements(
        n, n.value(tensor), shape,
        [&](OpBuilder &b, Location loc, ValueRange loops) {
          SmallVector<Value> at(loops);
          Value block =
              arith::ConstantIndexOp::create(b, loc, granularity.block);
          at[axis] = arith::DivUIOp::create(b, loc, at[axis], block);
          return at;
        });
    operands.add(repeated, n.b.getMultiDimIdentityMap(rank));
  }

  Value build(DType result, RegionBuilder body) {
    Value y = operands.build(shape, result.type(n.context()), body);
    return reshape(n, y, n.input(0).shape());
  }

private:
  NodeBuilder &n;
  const Granularity &granularity;
  ElementwiseOperands operands;
  SmallVector<int64_t> shape;
  bool isSplit = false;
};
} // namespace

/// A type that an attribute names, if it does.
static FailureOr<std::optional<DType>> typeAttr(NodeBuilder &n,
                                                StringRef name) {
  int64_t code = n.intAttr(name, 0);
  if (code == 0)
    return std::optional<DType>();
  std::optional<DType> dtype = DType::fromCode(code);
  if (!dtype)
    return n.unsupported() << "attribute " << name << " is " << dtypeName(code)
                           << "; " << kAcceptedTypes;
  return dtype;
}

static LogicalResult buildQuantizeLinear(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &scale = n.input(1);
  auto outputType = typeAttr(n, "output_dtype"),
       precisionType = typeAttr(n, "precision");
  if (failed(outputType) || failed(precisionType))
    return failure();
  CastRules rules;
  rules.saturate = n.intAttr("saturate", 1) != 0;
  DType to =
      n.hasInput(2) ? n.input(2).dtype : outputType->value_or(DType::u8());
  if (*outputType && **outputType != to)
    return n.invalid() << "attribute 'output_dtype' is "
                       << dtypeName(**outputType) << ", but " << n.inputText(2)
                       << " is the zero point";
  bool isQuantized = to.isStorage() || (to.isInteger() && to.bits() <= 16);
  if (!isQuantized || !scale.dtype.isFloat() || x.dtype.isBool() ||
      x.dtype.isStorage())
    return n.unsupported()
           << "to quantize " << n.inputText(0u) << " by " << n.inputText(1)
           << " to " << dtypeName(to)
           << "; numbers, floats and a type of up to 16 bits are "
              "accepted";
  DType precision = precisionType->value_or(scale.dtype);
  if (!precision.isFloat())
    return n.invalid() << "attribute 'precision' is " << dtypeName(precision)
                       << "; a float is accepted";
  FailureOr<Granularity> granularity = readGranularity(n);
  if (failed(granularity))
    return failure();
  ScaledMap map(n, *granularity);
  map.add(1);
  if (n.hasInput(2))
    map.add(2);
  Value y = map.build(to, [&](OpBuilder &b, Location loc, ValueRange args) {
    return quantizeScalar(
        b, loc, castScalar(b, loc, args[0], x.dtype, precision),
        castScalar(b, loc, args[1], scale.dtype, precision),
        n.hasInput(2) ? args[2] : Value(), precision, to, rules);
  });
  return n.result(y, to);
}

static LogicalResult buildDequantizeLinear(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &scale = n.input(1);
  auto outputType = typeAttr(n, "output_dtype");
  if (failed(outputType))
    return failure();
  DType to = outputType->value_or(scale.dtype);
  if (x.dtype.isFloat() || x.dtype.isBool() || x.dtype.bits() > 32 ||
      !scale.dtype.isFloat() || !to.isFloat())
    return n.unsupported()
           << "to dequantize " << n.inputText(0u) << " by " << n.inputText(1)
           << " to " << dtypeName(to)
           << "; a type of up to 16 bits or int32 and floats are "
              "accepted";
  if (n.hasInput(2) && n.input(2).dtype != x.dtype)
    return n.invalid() << n.inputText(2) << " is the zero point of "
                       << n.inputText(0u) << "; their types must agree";
  FailureOr<Granularity> granularity = readGranularity(n);
  if (failed(granularity))
    return failure();
  ScaledMap map(n, *granularity);
  map.add(1);
  if (n.hasInput(2))
    map.add(2);
  Value y = map.build(to, [&](OpBuilder &b, Location loc, ValueRange args) {
    Value wide = dequantizeScalar(b, loc, args[0], args[1],
                                  n.hasInput(2) ? args[2] : Value(), x.dtype,
                                  scale.dtype);
    return castScalar(b, loc, wide, DType::f32(), to);
  });
  if (failed(n.result(y, to)))
    return failure();
  if (granularity->block == 0 && x.dtype.numbers() != DType::Float)
    n.getResults().front().quantized = ImportedTensor::Quantized{
        &x, &scale, n.hasInput(2) ? &n.input(2) : nullptr, granularity->axis};
  return success();
}

/// uint8 with the scale and zero point that the numbers themselves ask for.
static LogicalResult buildDynamicQuantizeLinear(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (x.dtype != DType::f32())
    return n.unsupported() << n.inputText(0u) << "; float32 is accepted";
  DynamicRange range = reduceRange(n, x);
  Value y = quantizeToRange(n, x, range);
  if (failed(n.result(0, y, DType::u8())) ||
      failed(n.result(1, range.scale, DType::f32())))
    return failure();
  return n.result(2, range.zero, DType::u8());
}

namespace memplan::onnx {

Value quantizeToRange(NodeBuilder &n, ImportedTensor &x, DynamicRange range) {
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, x.shape());
  AffineMap all = AffineMap::get(x.rank(), 0, n.context());
  operands.add(range.scale, all);
  operands.add(range.zero, all);
  return operands.build(x.shape(), DType::u8().type(n.context()),
                        [](OpBuilder &b, Location loc, ValueRange args) {
                          return quantizeScalar(b, loc, args[0], args[1],
                                                args[2], DType::f32(),
                                                DType::u8());
                        });
}

DynamicRange reduceRange(NodeBuilder &n, ImportedTensor &x) {
  Value flat = reshape(n, n.value(x), {x.numElements()});
  auto reduce = [&](Combiner combiner) {
    return reduceRows(
        n, flat, {0}, n.b.getF32Type(), {combiner},
        {[](OpBuilder &, Location, ValueRange args) { return args[0]; }},
        [](OpBuilder &, Location, ValueRange args) { return args[1]; });
  };
  Value least = reduce(Combiner::Min), most = reduce(Combiner::Max);
  AffineMap scalar = AffineMap::get(0, 0, n.context());
  // The range holds 0.
  auto bounds = [](const Scalars &s, ValueRange args) {
    Value zero = s.number(0);
    return std::pair(s.min(args[0], zero), s.max(args[1], zero));
  };
  auto scaleOf = [&](const Scalars &s, ValueRange args) {
    auto [low, high] = bounds(s, args);
    // Zeros alone: any scale will do.
    return s.select(s.equal(low, high), s.number(1),
                    s.div(s.sub(high, low), s.number(255)));
  };
  DynamicRange range;
  range.scale =
      mapElements(n, {least, most}, {scalar, scalar}, {}, n.b.getF32Type(),
                  [&](OpBuilder &b, Location loc, ValueRange args) {
                    return scaleOf(Scalars(b, loc, DType::f32()), args);
                  });
  range.zero =
      mapElements(n, {least, most}, {scalar, scalar}, {}, n.b.getI8Type(),
                  [&](OpBuilder &b, Location loc, ValueRange args) {
                    Scalars s(b, loc, DType::f32());
                    Value low = bounds(s, args).first;
                    Value at = s.div(s.negate(low), scaleOf(s, args));
                    return roundToInteger(b, loc, at, Value(), DType::u8());
                  });
  return range;
}

llvm::ArrayRef<OpEntry> quantizeOps() {
  static constexpr const char *kMicrosoft = "com.microsoft";
  static const OpEntry kOps[] = {
      {"DequantizeLinear", 10, kNewestOpset, 2, 3, 1, buildDequantizeLinear},
      {"DynamicQuantizeLinear", 11, kNewestOpset, 1, 1, 3,
       buildDynamicQuantizeLinear},
      {"QuantizeLinear", 10, kNewestOpset, 2, 3, 1, buildQuantizeLinear},
      {"DequantizeLinear", 1, 1, 2, 3, 1, buildDequantizeLinear, kMicrosoft},
      {"QuantizeLinear", 1, 1, 2, 3, 1, buildQuantizeLinear, kMicrosoft},
  };
  return kOps;
}
} // namespace memplan::onnx
