//===- SignalOps.cpp - Fourier transforms ---------------------------------===//
//
// Sums over the whole signal for each frequency, in double, with the roots of
// unity in a table: a kernel whose work grows with the square of the length.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Places.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// The table of roots has two doubles for each element of the signal.
static constexpr int64_t kLongestTransform = 1 << 16;

namespace {
struct Transform {
  int64_t axis, length;
  bool isInverse, isOneSided;

  /// Real signals of which half a spectrum is given.
  bool givesReal() const { return isInverse && isOneSided; }
  int64_t extent() const {
    return isOneSided && !isInverse ? length / 2 + 1 : length;
  }
};
} // namespace

/// cos and sin of 2 pi i / length, a row each.
static Value rootTable(NodeBuilder &n, int64_t length) {
  SmallVector<double> values;
  for (int64_t part = 0; part < 2; ++part)
    for (int64_t i = 0; i < length; ++i) {
      // Exact where the angle is a multiple of a right one.
      bool isRight = i * 4 % length == 0;
      int64_t quarter = i * 4 / length + (part == 0 ? 1 : 0);
      static constexpr double kSines[] = {0, 1, 0, -1};
      double angle = 2 * M_PI * static_cast<double>(i) / length;
      values.push_back(isRight     ? kSines[quarter % 4]
                       : part == 0 ? std::cos(angle)
                                   : std::sin(angle));
    }
  return constantTensor<double>(n, {2, length}, values, n.b.getF64Type());
}

/// Part `part` (real, imaginary) of the first `taken` elements along the axis,
/// without the last dim.
static Value takePart(NodeBuilder &n, Value x, int64_t axis, int64_t taken,
                      int64_t part) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape()),
      ones(type.getRank(), 1);
  sizes[axis] = taken;
  sizes.back() = 1;
  offsets.back() = part;
  auto entries = [&](ArrayRef<int64_t> list) {
    return getAsIndexOpFoldResult(n.context(), list);
  };
  auto result =
      RankedTensorType::get(ArrayRef(sizes).drop_back(), type.getElementType());
  return tensor::ExtractSliceOp::create(n.b, n.loc, result, x, entries(offsets),
                                        entries(sizes), entries(ones));
}

/// `x` has a last dim of 1 (real) or 2 (complex).
static FailureOr<Value> transform(NodeBuilder &n, Value x, DType dtype,
                                  const Transform &how) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t rank = type.getRank(), parts = type.getDimSize(rank - 1);
  if (how.length < 1 || how.length > kLongestTransform)
    return n.unsupported() << "a transform of length " << how.length
                           << "; 1 to " << kLongestTransform << " is accepted";
  SmallVector<int64_t> shape(type.getShape());
  shape[how.axis] = how.extent();
  shape.back() = how.givesReal() ? 1 : 2;
  auto count = checkedProduct(shape);
  if (!count || !checkedMul(*count, 8))
    return n.invalid() << "the result has too many elements";
  int64_t most = how.givesReal() ? how.length / 2 + 1 : how.length;
  int64_t taken = std::min(type.getDimSize(how.axis), most);
  if (taken == 0 || *count == 0)
    return filled(n, shape,
                  cast<TypedAttr>(n.b.getZeroAttr(type.getElementType())));

  // Loops: those of the result, then along the signal.
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < rank - 1; ++i)
    exprs.push_back(n.b.getAffineDimExpr(i == how.axis ? rank : i));
  AffineMap map = AffineMap::get(rank + 1, 0, exprs, n.context());
  SmallVector<Value> inputs;
  for (int64_t part = 0; part < parts; ++part)
    inputs.push_back(takePart(n, x, how.axis, taken, part));
  SmallVector<AffineMap> maps(parts, map);
  Value roots = rootTable(n, how.length);
  DType wide = *DType::fromCode(11);
  Value sums = accumulate(
      n, inputs, maps, filled(n, shape, n.b.getF64FloatAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        Places places(b, loc);
        Value step = places.loop(rank);
        Value turn = places.remainder(places.mul(step, places.loop(how.axis)),
                                      how.length);
        Value cosine = places.read(roots, {places.integer(0), turn});
        Value sine = places.read(roots, {places.integer(1), turn});
        if (how.isInverse)
          sine = s.negate(sine);
        Value re = castScalar(b, loc, args[0], dtype, wide);
        Value real = s.mul(re, cosine), imaginary = s.negate(s.mul(re, sine));
        if (parts == 2) {
          Value im = castScalar(b, loc, args[1], dtype, wide);
          real = s.add(real, s.mul(im, sine));
          imaginary = s.add(imaginary, s.mul(im, cosine));
        }
        if (how.givesReal()) {
          // The other half of the spectrum adds the same again.
          Value isOnce = places.equal(step, places.integer(0));
          if (how.length % 2 == 0)
            isOnce = places.make<arith::OrIOp>(
                isOnce, places.equal(step, places.integer(how.length / 2)));
          real = s.select(isOnce, real, s.add(real, real));
          return s.add(args.back(), real);
        }
        Value isReal = places.equal(places.loop(rank - 1), places.integer(0));
        return s.add(args.back(), s.select(isReal, real, imaginary));
      });
  return mapElements(n, sums, n.b.getMultiDimIdentityMap(rank), shape,
                     type.getElementType(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, wide);
                       Value y = args[0];
                       if (how.isInverse)
                         y = s.div(y, s.integer(how.length));
                       return castScalar(b, loc, y, wide, dtype);
                     });
}

static LogicalResult buildDFT(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  Transform how;
  how.isInverse = n.intAttr("inverse", 0) != 0;
  how.isOneSided = n.intAttr("onesided", 0) != 0;
  int64_t given = n.opset >= 20 ? -2 : n.intAttr("axis", 1);
  if (n.opset >= 20 && n.hasInput(2)) {
    FailureOr<int64_t> input = n.scalarInt(2, "the axis");
    if (failed(input))
      return failure();
    given = *input;
  }
  FailureOr<int64_t> axis = n.axis(given, x.rank());
  if (failed(n.floatInput(0)) || failed(axis))
    return failure();
  int64_t parts = x.rank() < 2 ? 0 : x.dim(x.rank() - 1);
  if ((parts != 1 && parts != 2) || *axis == x.rank() - 1)
    return n.invalid() << n.inputText(0u)
                       << "; a last dim of 1 (real) or 2 (complex), and "
                          "another one to transform along, are accepted";
  how.axis = *axis;
  how.length = x.dim(*axis);
  if (how.givesReal())
    how.length = std::max<int64_t>(1, 2 * (how.length - 1));
  if (n.hasInput(1)) {
    FailureOr<int64_t> length = n.scalarInt(1, "the length");
    if (failed(length))
      return failure();
    how.length = *length;
  }
  if (how.isOneSided && !how.isInverse && parts == 2)
    return n.invalid() << n.inputText(0u)
                       << " is complex: its spectrum has no half that says all";
  FailureOr<Value> y = transform(n, n.value(0), x.dtype, how);
  if (failed(y))
    return failure();
  return n.result(*y, x.dtype);
}

static LogicalResult buildSTFT(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> step = n.scalarInt(1, "the frame step");
  if (failed(n.floatInput(0)) || failed(step))
    return failure();
  bool hasWindow = n.hasInput(2);
  int64_t length = 0;
  if (hasWindow) {
    if (n.input(2).rank() != 1 || n.input(2).dtype != x.dtype)
      return n.invalid() << n.inputText(2)
                         << " is the window; a vector of the signal's type is "
                            "accepted";
    length = n.input(2).dim(0);
  }
  if (n.hasInput(3)) {
    FailureOr<int64_t> given = n.scalarInt(3, "the frame length");
    if (failed(given))
      return failure();
    if (hasWindow && *given != length)
      return n.invalid() << "the frame length is " << *given << ", but "
                         << n.inputText(2) << " is the window";
    length = *given;
  }
  // Early models leave out the last dim of real signals.
  SmallVector<int64_t> signal(x.shape());
  if (x.rank() == 2)
    signal.push_back(1);
  if (signal.size() != 3 || signal[2] < 1 || signal[2] > 2 || length < 1 ||
      length > signal[1] || *step < 1)
    return n.invalid() << n.inputText(0u) << ", frames of length " << length
                       << " and a step of " << *step << " do not fit";
  Value source = reshape(n, n.value(0), signal);
  SmallVector<int64_t> shape = {signal[0], (signal[1] - length) / *step + 1,
                                length, signal[2]};
  auto count = checkedProduct(shape);
  if (!count || !checkedMul(*count, 8))
    return n.invalid() << "the frames have too many elements";
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  if (hasWindow) {
    inputs.push_back(n.value(2));
    maps.push_back(AffineMap::get(4, 0, n.b.getAffineDimExpr(2)));
  }
  Value frames =
      mapElements(n, inputs, maps, shape, x.type.getElementType(),
                  [&](OpBuilder &b, Location loc, ValueRange args) {
                    Places p(b, loc);
                    Value at =
                        p.add(p.mul(p.loop(1), p.integer(*step)), p.loop(2));
                    Value element = p.read(source, {p.loop(0), at, p.loop(3)});
                    if (!hasWindow)
                      return element;
                    return Scalars(b, loc, x.dtype).mul(element, args[0]);
                  });
  Transform how{2, length, false, n.intAttr("onesided", 1) != 0};
  FailureOr<Value> y = transform(n, frames, x.dtype, how);
  if (failed(y))
    return failure();
  return n.result(*y, x.dtype);
}

//===----------------------------------------------------------------------===//
// MelWeightMatrix
//===----------------------------------------------------------------------===//

/// Where the triangles of the mel scale begin, peak and end: bins of the
/// spectrum.
static SmallVector<int64_t> melBins(int64_t count, int64_t length, double rate,
                                    double low, double high) {
  auto toMel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double first = toMel(low), step = (toMel(high) - first) / (count + 2);
  SmallVector<int64_t> bins;
  for (int64_t i = 0; i < count + 2; ++i) {
    double hertz = 700 * (std::pow(10, (i * step + first) / 2595) - 1);
    bins.push_back(
        static_cast<int64_t>(std::floor((length + 1) * hertz / rate)));
  }
  return bins;
}

static LogicalResult buildMelWeightMatrix(NodeBuilder &n) {
  int64_t code = n.intAttr("output_datatype", DType::f32().code());
  std::optional<DType> dtype = DType::fromCode(code);
  if (!dtype || dtype->isBool())
    return n.unsupported() << "attribute 'output_datatype' is "
                           << dtypeName(code);
  int64_t numbers[3]; // mel bins, length of the transform, sample rate
  static constexpr const char *kNames[] = {
      "the number of mel bins", "the transform's length", "the sample rate"};
  for (unsigned i = 0; i < 3; ++i) {
    FailureOr<int64_t> number = n.scalarInt(i, kNames[i]);
    if (failed(number))
      return failure();
    numbers[i] = *number;
  }
  double edges[2];
  for (unsigned i = 0; i < 2; ++i) {
    FailureOr<DenseElementsAttr> edge =
        n.constant(3 + i, i ? "the upper edge" : "the lower edge");
    if (failed(edge) || failed(n.floatInput(3 + i)))
      return failure();
    if (edge->getNumElements() != 1)
      return n.invalid() << n.inputText(3 + i) << "; one number is accepted";
    edges[i] = (*edge->value_begin<APFloat>()).convertToDouble();
  }
  auto [count, length, rate] = numbers;
  if (count < 1 || length < 1 || rate < 1 || count > kLongestTransform ||
      length > kLongestTransform || !(edges[0] >= 0) ||
      !(edges[1] >= edges[0]) || !(edges[1] <= 1e9))
    return n.invalid() << count << " mel bins of " << edges[0] << " to "
                       << edges[1] << " Hz from a transform of length "
                       << length << " at rate " << rate;
  int64_t rows = length / 2 + 1;
  if (rows * count > (int64_t(1) << 24))
    return n.unsupported() << "the matrix has " << rows << " rows and " << count
                           << " columns; at most 2^24 elements are accepted";
  SmallVector<int64_t> bins = melBins(count, length, rate, edges[0], edges[1]);
  std::vector<double> matrix(rows * count, 0);
  auto set = [&](int64_t row, int64_t column, double value) {
    if (row < rows)
      matrix[row * count + column] = value;
  };
  for (int64_t i = 0; i < count; ++i) {
    int64_t low = bins[i], peak = bins[i + 1], high = bins[i + 2];
    if (low == peak)
      set(peak, i, 1);
    else
      for (int64_t j = low; j <= peak; ++j)
        set(j, i, static_cast<double>(j - low) / (peak - low));
    for (int64_t j = peak; j < high; ++j)
      set(j, i, static_cast<double>(high - j) / (high - peak));
  }
  Type type = dtype->type(n.context());
  SmallVector<Attribute> values;
  for (double value : matrix)
    values.push_back(dtype->isFloat()
                         ? Attribute(n.b.getFloatAttr(type, value))
                         : n.b.getIntegerAttr(type, int64_t(value)));
  return n.constantResult(
      DenseElementsAttr::get(RankedTensorType::get({rows, count}, type),
                             values),
      *dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> signalOps() {
  static const OpEntry kOps[] = {
      {"DFT", 17, 19, 1, 2, 1, buildDFT},
      {"DFT", 20, kNewestOpset, 1, 3, 1, buildDFT},
      {"MelWeightMatrix", 17, kNewestOpset, 5, 5, 1, buildMelWeightMatrix},
      {"STFT", 17, kNewestOpset, 2, 4, 1, buildSTFT},
  };
  return kOps;
}
} // namespace memplan::onnx
