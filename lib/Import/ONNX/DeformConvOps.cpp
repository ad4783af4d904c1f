//===- DeformConvOps.cpp - Convolution at places from data ----------------===//
//
// First the samples: for each channel and tap of the filter an image as large
// as the output. Then they are the channels of a convolution of one tap.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Places.h"
#include "Sampling.h"
#include "TensorOps.h"
#include "Window.h"
#include "memplan/Support/CheckedMath.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
class DeformConvBuilder {
public:
  explicit DeformConvBuilder(NodeBuilder &n)
      : n(n), x(n.input(0)), w(n.input(1)) {}
  LogicalResult build();

private:
  LogicalResult read();
  Value sample();
  Value interpolate(const Places &p, ArrayRef<Value> sampleAndChannel,
                    ArrayRef<Value> where);

  NodeBuilder &n;
  ImportedTensor &x, &w;
  int64_t spatial = 0, groups = 1, offsetGroups = 1, taps = 1;
  Window window;
};
} // namespace

LogicalResult DeformConvBuilder::read() {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2, 3, 4})))
    return failure();
  spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || w.rank() != x.rank())
    return n.unsupported() << n.inputText(0u) << " and " << n.inputText(1)
                           << "; 1 to 3 spatial dims of both are accepted";
  groups = n.intAttr("group", 1);
  offsetGroups = n.intAttr("offset_group", 1);
  ArrayRef<int64_t> kernel = w.shape().drop_front(2);
  if (auto declared = n.intsAttr("kernel_shape");
      declared && ArrayRef<int64_t>(*declared) != kernel)
    return n.invalid() << "attribute 'kernel_shape' is " << shapeText(*declared)
                       << ", but " << n.inputText(1) << " is the filter";
  if (groups < 1 || offsetGroups < 1 || x.dim(1) % groups != 0 ||
      x.dim(1) % offsetGroups != 0 || w.dim(0) % groups != 0 ||
      w.dim(1) != x.dim(1) / groups)
    return n.invalid() << "with " << groups << " groups and " << offsetGroups
                       << " of offsets, " << n.inputText(0u) << " and "
                       << n.inputText(1) << " do not fit";
  FailureOr<Window> given =
      readWindow(n, x.shape().drop_front(2), kernel, /*canDilate=*/true,
                 /*canCeil=*/false);
  if (failed(given))
    return failure();
  window = *given;
  taps = *checkedProduct(kernel);
  auto check = [&](unsigned i, int64_t each) -> LogicalResult {
    SmallVector<int64_t> wanted = {x.dim(0), offsetGroups * taps * each};
    llvm::append_range(wanted, window.output);
    if (!n.hasInput(i) || n.input(i).shape() == ArrayRef<int64_t>(wanted))
      return success();
    return n.invalid() << n.inputText(i) << "; shape " << shapeText(wanted)
                       << " is accepted";
  };
  if (failed(check(2, spatial)) || failed(check(4, 1)))
    return failure();
  if (n.hasInput(3) && n.input(3).shape() != ArrayRef<int64_t>(w.dim(0)))
    return n.invalid() << n.inputText(3) << " is the bias; shape " << w.dim(0)
                       << " is accepted";
  if (x.numElements() == 0 || w.numElements() == 0)
    return n.unsupported() << n.inputText(0u) << " or " << n.inputText(1)
                           << " is empty";
  return success();
}

/// Linear between the neighbours of `where`, which count as 0 outside.
Value DeformConvBuilder::interpolate(const Places &p,
                                     ArrayRef<Value> sampleAndChannel,
                                     ArrayRef<Value> where) {
  Scalars s(p.b, p.loc, x.dtype);
  SmallVector<Value> low, part;
  for (Value at : where) {
    Value safe = bounded(s, at), floor = s.make<math::FloorOp>(safe);
    low.push_back(castScalar(p.b, p.loc, floor, x.dtype, p.dtype));
    part.push_back(s.sub(safe, floor));
  }
  Value source = n.value(0), sum = s.number(0);
  for (int64_t corner = 0; corner < (int64_t(1) << spatial); ++corner) {
    SmallVector<Value> at(sampleAndChannel);
    Value isInside, weight;
    for (int64_t i = 0; i < spatial; ++i) {
      bool isHigh = corner >> i & 1;
      int64_t extent = x.dim(2 + i);
      Value place = isHigh ? p.add(low[i], p.integer(1)) : low[i];
      Value fits = p.isWithin(place, extent);
      Value share = isHigh ? part[i] : s.sub(s.number(1), part[i]);
      isInside = isInside ? p.both(isInside, fits) : fits;
      weight = weight ? s.mul(weight, share) : share;
      at.push_back(p.clamp(place, extent));
    }
    Value term = s.mul(weight, p.read(source, at));
    sum = s.add(sum, s.select(isInside, term, s.number(0)));
  }
  return sum;
}

/// Loops: sample, channel, tap, output.
Value DeformConvBuilder::sample() {
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1), taps};
  llvm::append_range(shape, window.output);
  Value offsets = n.value(2);
  Value mask = n.hasInput(4) ? n.value(4) : Value();
  return mapElements(
      n, {}, {}, shape, x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Places p(b, loc);
        Scalars s(b, loc, x.dtype);
        Value group = p.quotient(p.loop(1), x.dim(1) / offsetGroups);
        Value entry = p.add(p.mul(group, p.integer(taps)), p.loop(2));
        auto readAt = [&](Value tensor, Value channel) {
          SmallVector<Value> at = {p.loop(0), channel};
          for (int64_t i = 0; i < spatial; ++i)
            at.push_back(p.loop(3 + i));
          return p.read(tensor, at);
        };
        SmallVector<Value> where;
        int64_t inner = taps; // taps for each step of the filter's dim
        for (int64_t i = 0; i < spatial; ++i) {
          inner /= window.kernel[i];
          Value tap =
              p.remainder(p.quotient(p.loop(2), inner), window.kernel[i]);
          Value start =
              p.sub(p.add(p.mul(p.loop(3 + i), p.integer(window.strides[i])),
                          p.mul(tap, p.integer(window.dilations[i]))),
                    p.integer(window.padsBegin[i]));
          Value offset = readAt(
              offsets, p.add(p.mul(entry, p.integer(spatial)), p.integer(i)));
          where.push_back(
              s.add(castScalar(b, loc, start, p.dtype, x.dtype), offset));
        }
        Value value = interpolate(p, {p.loop(0), p.loop(1)}, where);
        return mask ? s.mul(value, readAt(mask, entry)) : value;
      });
}

LogicalResult DeformConvBuilder::build() {
  if (failed(read()))
    return failure();
  SmallVector<int64_t> image = {x.dim(0)}, shape = {x.dim(0), w.dim(0)},
                       filter = {w.dim(0)};
  auto channels = checkedMul(x.dim(1), taps);
  auto size = channels ? checkedProduct(window.output) : std::nullopt;
  size = size ? checkedMul(*size, *channels) : std::nullopt;
  if (!size || !checkedMul(*size, 8 * x.dim(0)))
    return n.invalid() << "the samples have too many elements";
  image.push_back(*channels);
  filter.push_back(*channels / groups);
  llvm::append_range(image, window.output);
  llvm::append_range(shape, window.output);
  filter.append(spatial, 1);
  SmallVector<int64_t> ones(spatial, 1), zeros(spatial, 0);
  ElementwiseOperands extras(n);
  if (n.hasInput(3))
    extras.add(n.input(3), n.input(3).shape(),
               AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(1)));
  Type element = x.type.getElementType();
  Value samples = reshape(n, sample(), image);
  auto op = ConvOp::create(
      n.b, n.loc, samples, reshape(n, n.value(1), filter), extras.values(),
      empty(n, shape, element), ones, ones, zeros, zeros, groups, extras.maps(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = fromAccumulator(b, loc, args[0], element);
        auto scalars = extras.scalars(b, loc, args.drop_front());
        if (scalars.empty())
          return sum;
        return Scalars(b, loc, x.dtype).add(sum, scalars[0]);
      });
  return n.result(op.getResult(), x.dtype);
}

static LogicalResult buildDeformConv(NodeBuilder &n) {
  return DeformConvBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> deformConvOps() {
  static const OpEntry kOps[] = {
      {"DeformConv", 19, kNewestOpset, 3, 5, 1, buildDeformConv},
  };
  return kOps;
}
} // namespace memplan::onnx
