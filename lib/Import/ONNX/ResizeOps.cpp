//===- ResizeOps.cpp - Resize and Upsample --------------------------------===//
//
// Where an output element's neighbours are, and their weights, is worked out
// here, axis by axis, into tables; the kernels only add up. Coordinates are
// computed in float, as runtimes do: models are made and tested with those.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Resample.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// More table entries than this for one axis are refused.
static constexpr int64_t kMostTableEntries = int64_t(1) << 24;

namespace {
enum class Mode { Nearest, Linear, Cubic };

/// The attributes.
struct ResizeSettings {
  Mode mode = Mode::Nearest;
  StringRef coordinates = "asymmetric", nearest = "simple";
  double cubicA = -0.75;
  bool excludesOutside = false, antialias = false;
  float extrapolation = 0;
};

/// One axis to be resized. `scaled` is the output's extent before rounding.
struct ResizedAxis {
  int64_t axis, input, output;
  float scale = 1, scaled = 0, roiBegin = 0, roiEnd = 1;
};
} // namespace

//===----------------------------------------------------------------------===//
// Coordinates and weights
//===----------------------------------------------------------------------===//

/// Where output element `o` is in the input.
static float coordinate(const ResizeSettings &settings, const ResizedAxis &a,
                        int64_t o) {
  StringRef kind = settings.coordinates;
  float x = static_cast<float>(o), last = static_cast<float>(a.input - 1);
  if (kind == "align_corners")
    return a.scaled == 1 ? 0 : x * last / (a.scaled - 1);
  if (kind == "asymmetric")
    return x / a.scale;
  if (kind == "tf_half_pixel_for_nn")
    return (x + 0.5f) / a.scale;
  if (kind == "tf_crop_and_resize") {
    float length = (a.roiEnd - a.roiBegin) * last;
    float inside = a.scaled == 1 ? length / 2 : x * length / (a.scaled - 1);
    return a.roiBegin * last + inside;
  }
  if (kind == "pytorch_half_pixel" && a.scaled == 1)
    return -0.5f;
  float halfPixel = (x + 0.5f) / a.scale - 0.5f;
  if (kind != "half_pixel_symmetric")
    return halfPixel;
  float center = static_cast<float>(a.input) / 2;
  return center * (1 - static_cast<float>(a.output) / a.scaled) + halfPixel;
}

static double roundNearest(StringRef rounding, double x, float scale) {
  if (rounding == "round_prefer_floor")
    return std::ceil(x - 0.5);
  if (rounding == "round_prefer_ceil")
    return std::floor(x + 0.5);
  if (rounding == "ceil")
    return std::ceil(x);
  if (rounding == "floor")
    return std::floor(x);
  // Before opset 11, undefined by ONNX; as runtimes do it.
  return scale < 1 ? std::ceil(x) : std::trunc(x);
}

static double cubicWeight(double a, double distance) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// Weights of the taps around a place `ratio` in (0, 1] after the tap at
/// position 0. When shrinking with antialias, the filter is stretched.
static SmallVector<double> tapWeights(const ResizeSettings &settings,
                                      double scale, double ratio) {
  double stretch = settings.antialias ? std::min(scale, 1.0) : 1;
  int64_t radius = settings.mode == Mode::Cubic ? 2 : 1;
  auto begin = static_cast<int64_t>(std::floor(-radius / stretch)) + 1;
  SmallVector<double> weights;
  double sum = 0;
  for (int64_t i = begin; i < 2 - begin; ++i) {
    double distance = (static_cast<double>(i) - ratio) * stretch;
    weights.push_back(settings.mode == Mode::Cubic
                          ? cubicWeight(settings.cubicA, distance)
                          : std::max(0.0, 1 - std::abs(distance)));
    sum += weights.back();
  }
  if (settings.antialias)
    for (double &weight : weights)
      weight /= sum;
  return weights;
}

/// Weights of elements outside are taken away, and those of the others scaled.
static void excludeOutside(MutableArrayRef<double> weights, int64_t first,
                           int64_t extent) {
  double sum = 0;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    int64_t at = first + static_cast<int64_t>(i);
    if (at < 0 || at >= extent)
      weight = 0;
    sum += weight;
  }
  if (sum != 0)
    for (double &weight : weights)
      weight /= sum;
}

static FailureOr<AxisTaps>
makeTaps(NodeBuilder &n, const ResizeSettings &settings, const ResizedAxis &a) {
  AxisTaps taps;
  taps.axis = a.axis;
  taps.output = a.output;
  bool isNearest = settings.mode == Mode::Nearest;
  double radius = settings.mode == Mode::Cubic ? 2 : 1;
  double most =
      settings.antialias && a.scale < 1 ? 2 * radius / a.scale + 2 : 2 * radius;
  if (static_cast<double>(a.output) * most > kMostTableEntries ||
      a.input > std::numeric_limits<int32_t>::max())
    return n.unsupported() << "resizes axis " << a.axis << " from " << a.input
                           << " to " << a.output
                           << ", which needs too large a table of weights";
  for (int64_t o = 0; o < a.output; ++o) {
    // Far outside is as good as outside, and fits an integer.
    double limit = 4.0 * static_cast<double>(a.input) + 4;
    double x = coordinate(settings, a, o);
    x = std::isnan(x) ? -limit : std::clamp(x, -limit, limit);
    if (settings.coordinates == "tf_crop_and_resize")
      taps.inside.push_back(x >= 0 && x <= static_cast<double>(a.input - 1));
    auto clamped = [&](int64_t at) {
      return static_cast<int32_t>(std::clamp<int64_t>(at, 0, a.input - 1));
    };
    if (isNearest) {
      taps.at.push_back(clamped(
          static_cast<int64_t>(roundNearest(settings.nearest, x, a.scale))));
      continue;
    }
    // At a tap, that one counts as the left neighbour of ratio 1.
    double left = std::ceil(x) - 1;
    SmallVector<double> weights = tapWeights(settings, a.scale, x - left);
    taps.taps = static_cast<int64_t>(weights.size());
    int64_t first = static_cast<int64_t>(left) - taps.taps / 2 + 1;
    if (settings.excludesOutside)
      excludeOutside(weights, first, a.input);
    for (int64_t t = 0; t < taps.taps; ++t)
      taps.at.push_back(clamped(first + t));
    taps.weights.append(weights);
  }
  return taps;
}

//===----------------------------------------------------------------------===//
// Attributes and inputs
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<float>> floats(NodeBuilder &n, unsigned i,
                                            StringRef what) {
  if (failed(n.floatInput(i)))
    return failure();
  FailureOr<DenseElementsAttr> elements = n.constant(i, what);
  if (failed(elements))
    return failure();
  SmallVector<float> values;
  for (APFloat value : elements->getValues<APFloat>()) {
    bool losesInfo;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    values.push_back(value.convertToFloat());
  }
  return values;
}

static LogicalResult oneOf(NodeBuilder &n, StringRef attribute, StringRef found,
                           ArrayRef<StringRef> accepted) {
  if (llvm::is_contained(accepted, found))
    return success();
  auto diagnostic = n.invalid() << "attribute '" << attribute << "' is "
                                << quoted(found) << "; accepted: ";
  llvm::interleaveComma(accepted, diagnostic);
  return failure();
}

static FailureOr<ResizeSettings> readSettings(NodeBuilder &n, bool isModern) {
  ResizeSettings settings;
  StringRef mode = n.stringAttr("mode", "nearest");
  if (failed(isModern
                 ? oneOf(n, "mode", mode, {"nearest", "linear", "cubic"})
                 : oneOf(n, "mode", mode, {"nearest", "linear", "bilinear"})))
    return failure();
  settings.mode = mode == "nearest" ? Mode::Nearest
                  : mode == "cubic" ? Mode::Cubic
                                    : Mode::Linear;
  if (!isModern)
    return settings;
  settings.coordinates =
      n.stringAttr("coordinate_transformation_mode", "half_pixel");
  settings.nearest = n.stringAttr("nearest_mode", "round_prefer_floor");
  if (settings.coordinates == "tf_half_pixel_for_nn" && n.opset < 13) {
    // (x + 0.5) / scale, without a shift back.
    if (settings.mode != Mode::Nearest)
      return n.unsupported() << "attribute 'coordinate_transformation_mode' is "
                                "tf_half_pixel_for_nn, which is accepted with "
                                "mode nearest";
  } else if (failed(oneOf(
                 n, "coordinate_transformation_mode", settings.coordinates,
                 {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                  "align_corners", "asymmetric", "tf_crop_and_resize"}))) {
    return failure();
  }
  if (failed(
          oneOf(n, "nearest_mode", settings.nearest,
                {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})))
    return failure();
  settings.cubicA = n.floatAttr("cubic_coeff_a", -0.75f);
  settings.excludesOutside = n.intAttr("exclude_outside", 0) != 0;
  settings.extrapolation = n.floatAttr("extrapolation_value", 0);
  settings.antialias = n.opset >= 18 && n.intAttr("antialias", 0) != 0 &&
                       settings.mode != Mode::Nearest;
  return settings;
}

/// Sizes under keep_aspect_ratio_policy: one scale for all axes.
static LogicalResult keepAspectRatio(NodeBuilder &n,
                                     MutableArrayRef<ResizedAxis> axes) {
  StringRef policy = n.opset >= 18
                         ? n.stringAttr("keep_aspect_ratio_policy", "stretch")
                         : StringRef("stretch");
  if (failed(oneOf(n, "keep_aspect_ratio_policy", policy,
                   {"stretch", "not_larger", "not_smaller"})))
    return failure();
  if (policy == "stretch" || axes.empty())
    return success();
  float scale = axes.front().scale;
  for (const ResizedAxis &a : axes)
    scale = policy == "not_larger" ? std::min(scale, a.scale)
                                   : std::max(scale, a.scale);
  for (ResizedAxis &a : axes) {
    a.scale = scale;
    a.scaled = scale * static_cast<float>(a.input);
    if (!(a.scaled < 9e15f))
      return n.invalid() << "axis " << a.axis << " becomes too large";
    a.output = static_cast<int64_t>(std::round(a.scaled));
  }
  return success();
}

/// Output extents from either list, of one entry per axis of `axes`.
static LogicalResult readExtents(NodeBuilder &n, int scalesInput,
                                 int sizesInput,
                                 MutableArrayRef<ResizedAxis> axes) {
  auto isGiven = [&](int i) {
    return i > 0 && n.hasInput(i) && n.input(i).numElements() != 0;
  };
  bool hasSizes = isGiven(sizesInput);
  SmallVector<float> scales;
  if (scalesInput == 0 && n.opset < 7) {
    // Of the last two dims.
    scales.assign(axes.size(), 1);
    if (axes.size() != 4)
      return n.invalid() << n.inputText(0u) << ": rank 4 is accepted";
    scales[2] = n.floatAttr("height_scale", 1);
    scales[3] = n.floatAttr("width_scale", 1);
  } else if (scalesInput == 0) {
    scales = n.floatsAttr("scales").value_or(SmallVector<float>());
  } else if (!hasSizes && isGiven(scalesInput)) {
    FailureOr<SmallVector<float>> read = floats(n, scalesInput, "the scales");
    if (failed(read))
      return failure();
    scales = *read;
  }
  SmallVector<int64_t> sizes;
  if (hasSizes) {
    FailureOr<SmallVector<int64_t>> read = n.ints(sizesInput, "the sizes");
    if (failed(read))
      return failure();
    sizes = *read;
  }
  size_t count = hasSizes ? sizes.size() : scales.size();
  if (count != axes.size())
    return n.invalid() << "has " << count << (hasSizes ? " sizes" : " scales")
                       << " for " << axes.size() << " axes";
  for (auto [i, a] : llvm::enumerate(axes)) {
    if (hasSizes) {
      a.output = sizes[i];
      a.scaled = static_cast<float>(a.output);
      a.scale = a.input ? a.scaled / static_cast<float>(a.input) : 1;
    } else {
      a.scale = scales[i];
      a.scaled = a.scale * static_cast<float>(a.input);
      if (!(a.scale > 0) || !(a.scaled < 9e15f))
        return n.invalid() << "scale " << a.scale << " of axis " << a.axis
                           << " is not a positive number, or too large";
      a.output = static_cast<int64_t>(a.scaled);
    }
  }
  if (hasSizes && failed(keepAspectRatio(n, axes)))
    return failure();
  if (!hasSizes && n.opset >= 18)
    n.ignoreAttr("keep_aspect_ratio_policy"); // of sizes
  for (const ResizedAxis &a : axes)
    if (a.output < 0 || (a.input == 0 && a.output != 0))
      return n.invalid() << "axis " << a.axis << " of extent " << a.input
                         << " cannot become " << a.output;
  return success();
}

static LogicalResult readRegion(NodeBuilder &n,
                                MutableArrayRef<ResizedAxis> axes) {
  if (!n.hasInput(1))
    return n.invalid() << "needs the input 'roi' with tf_crop_and_resize";
  FailureOr<SmallVector<float>> roi = floats(n, 1, "the region of interest");
  if (failed(roi))
    return failure();
  if (roi->size() != 2 * axes.size())
    return n.invalid() << n.inputText(1) << " is the region of interest; "
                       << 2 * axes.size() << " elements are accepted";
  for (auto [i, a] : llvm::enumerate(axes)) {
    a.roiBegin = (*roi)[i];
    a.roiEnd = (*roi)[axes.size() + i];
    if (!std::isfinite(a.roiBegin) || !std::isfinite(a.roiEnd))
      return n.invalid() << "the region of interest is not finite";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The operators
//===----------------------------------------------------------------------===//

static LogicalResult resample(NodeBuilder &n, const ResizeSettings &settings,
                              ArrayRef<ResizedAxis> axes) {
  ImportedTensor &x = n.input(0);
  SmallVector<int64_t> shape(x.shape());
  SmallVector<AxisTaps> all;
  for (const ResizedAxis &a : axes)
    shape[a.axis] = a.output;
  auto count = checkedProduct(shape);
  if (!count)
    return n.invalid() << "the result has too many elements";
  if (*count == 0)
    return n.result(empty(n, shape, x.type.getElementType()), x.dtype);
  bool isCrop = settings.coordinates == "tf_crop_and_resize";
  for (const ResizedAxis &a : axes) {
    if (a.output == a.input && a.scale == 1 && !isCrop)
      continue;
    FailureOr<AxisTaps> taps = makeTaps(n, settings, a);
    if (failed(taps))
      return failure();
    all.push_back(*taps);
  }
  if (all.empty())
    return n.aliasResult(0, x);
  if (x.dtype.isBool() && settings.mode != Mode::Nearest)
    return n.unsupported() << n.inputText(0u)
                           << "; numbers are accepted with this mode";
  Value y = settings.mode == Mode::Nearest
                ? resampleNearest(n, n.value(0), all)
                : resampleWeighted(n, n.value(0), x.dtype, all);
  return n.result(fillOutside(n, y, x.dtype, all, settings.extrapolation),
                  x.dtype);
}

static LogicalResult buildResize(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  bool isModern = n.opset >= 11;
  FailureOr<ResizeSettings> settings = readSettings(n, isModern);
  if (failed(settings))
    return failure();
  SmallVector<int64_t> which = llvm::to_vector(llvm::seq<int64_t>(x.rank()));
  if (n.opset >= 18)
    if (auto given = n.intsAttr("axes")) {
      FailureOr<SmallVector<int64_t>> wrapped = n.axes(*given, x.rank());
      if (failed(wrapped))
        return failure();
      which = *wrapped;
    }
  SmallVector<ResizedAxis> axes;
  for (int64_t axis : which)
    axes.push_back({axis, x.dim(axis), x.dim(axis)});
  if (failed(readExtents(n, isModern ? 2 : 1, isModern ? 3 : 0, axes)))
    return failure();
  if (settings->coordinates == "tf_crop_and_resize" &&
      failed(readRegion(n, axes)))
    return failure();
  return resample(n, *settings, axes);
}

static LogicalResult buildUpsample(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<ResizeSettings> settings = readSettings(n, /*isModern=*/false);
  if (failed(settings))
    return failure();
  SmallVector<ResizedAxis> axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    axes.push_back({axis, x.dim(axis), x.dim(axis)});
  if (failed(readExtents(n, n.opset < 9 ? 0 : 1, 0, axes)))
    return failure();
  return resample(n, *settings, axes);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> resizeOps() {
  static const OpEntry kOps[] = {
      {"Resize", 10, 10, 2, 2, 1, buildResize},
      {"Resize", 11, 12, 3, 4, 1, buildResize},
      {"Resize", 13, kNewestOpset, 1, 4, 1, buildResize},
      {"Upsample", 1, 8, 1, 1, 1, buildUpsample},
      {"Upsample", 9, 9, 2, 2, 1, buildUpsample},
  };
  return kOps;
}
} // namespace memplan::onnx
