//===- SamplingOps.cpp - Samples at computed places -----------------------===//

#include "OpTable.h"
#include "Sampling.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// theta times (x, y[, z], 1) at each point of an image from -1 to 1.
static LogicalResult buildAffineGrid(NodeBuilder &n) {
  ImportedTensor &theta = n.input(0);
  FailureOr<SmallVector<int64_t>> size = n.ints(1, "the size");
  bool alignsCorners = n.intAttr("align_corners", 0) != 0;
  if (failed(size) || failed(n.floatInput(0)))
    return failure();
  int64_t rank = static_cast<int64_t>(size->size()) - 2;
  if ((rank != 2 && rank != 3) ||
      theta.shape() != ArrayRef<int64_t>({(*size)[0], rank, rank + 1}))
    return n.invalid() << n.inputText(0u) << " does not fit the size "
                       << shapeText(*size);
  SmallVector<int64_t> shape = {(*size)[0]};
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;
  Type type = theta.type.getElementType();
  for (int64_t d = 0; d < rank; ++d) {
    int64_t extent = (*size)[d + 2];
    if (extent < 1 || extent > (1 << 24))
      return n.invalid() << "the size has the extent " << extent;
    if (alignsCorners && extent == 1)
      return n.unsupported() << "attribute 'align_corners' with an extent of "
                                "1, for which ONNX defines no grid";
    double step =
        2.0 / static_cast<double>(alignsCorners ? extent - 1 : extent);
    SmallVector<Attribute> places;
    for (int64_t i = 0; i < extent; ++i)
      places.push_back(n.b.getFloatAttr(
          type,
          -1 + (static_cast<double>(i) + (alignsCorners ? 0 : 0.5)) * step));
    tables.push_back(arith::ConstantOp::create(
        n.b, n.loc,
        DenseElementsAttr::get(RankedTensorType::get({extent}, type), places)));
    maps.push_back(AffineMap::get(rank + 2, 0, n.b.getAffineDimExpr(d + 1)));
    shape.push_back(extent);
  }
  shape.push_back(rank);
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  Value source = n.value(0);
  Value y =
      mapElements(n, tables, maps, shape, type,
                  [&](OpBuilder &b, Location loc, ValueRange args) {
                    Scalars s(b, loc, theta.dtype);
                    Value image = linalg::IndexOp::create(b, loc, 0);
                    Value row = linalg::IndexOp::create(b, loc, rank + 1);
                    Value sum;
                    // x, y, z: the last dim first.
                    for (int64_t j = 0; j <= rank; ++j) {
                      Value column = arith::ConstantIndexOp::create(b, loc, j);
                      Value factor = tensor::ExtractOp::create(
                          b, loc, source, ValueRange{image, row, column});
                      Value term =
                          j < rank ? s.mul(factor, args[rank - 1 - j]) : factor;
                      sum = sum ? s.add(sum, term) : term;
                    }
                    return sum;
                  });
  return n.result(y, theta.dtype);
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

namespace {
enum class Interpolation { Nearest, Linear, Cubic };
enum class Padding { Zeros, Border, Reflection };

/// One spatial dim in a body: where its taps are, and their weights.
struct GridTaps {
  SmallVector<Value> places, weights, inside;
};

struct GridSampler {
  DType place; // of coordinates
  DType wide;  // of sums
  Interpolation mode;
  Padding padding;
  bool alignsCorners;

  Value denormalized(const Scalars &s, Value x, int64_t extent) const;
  Value reflected(const Scalars &s, Value x, int64_t extent) const;
  GridTaps taps(const Scalars &s, Value normalized, int64_t extent) const;
  void addTap(const Scalars &s, GridTaps &taps, Value at, int64_t extent) const;
};
} // namespace

Value GridSampler::denormalized(const Scalars &s, Value x,
                                int64_t extent) const {
  Value shifted = s.add(x, s.number(1));
  auto length = static_cast<double>(extent);
  if (alignsCorners)
    return s.mul(s.mul(shifted, s.number(0.5)), s.number(length - 1));
  return s.mul(s.sub(s.mul(shifted, s.number(length)), s.number(1)),
               s.number(0.5));
}

/// Mirrored at the borders until it is between them.
Value GridSampler::reflected(const Scalars &s, Value x, int64_t extent) const {
  auto length = static_cast<double>(extent);
  double low = alignsCorners ? 0 : -0.5;
  double high = alignsCorners ? length - 1 : length - 0.5;
  if (high <= low)
    return s.number(low);
  Value isLow = s.less(x, s.number(low)), isHigh = s.less(s.number(high), x);
  Value distance =
      s.select(isLow, s.sub(s.number(low), x), s.sub(x, s.number(high)));
  Value times = s.make<math::FloorOp>(s.div(distance, s.number(high - low)));
  Value rest = s.sub(distance, s.mul(times, s.number(high - low)));
  Value half = s.mul(times, s.number(0.5));
  Value isEven = s.equal(s.make<math::FloorOp>(half), half);
  // An even number of turns leaves it on its side.
  Value atLow = s.add(s.number(low), rest),
        atHigh = s.sub(s.number(high), rest);
  Value fromLow = s.select(isEven, atLow, atHigh);
  Value fromHigh = s.select(isEven, atHigh, atLow);
  return s.select(isLow, fromLow, s.select(isHigh, fromHigh, x));
}

/// `at`: a whole number, as a float.
void GridSampler::addTap(const Scalars &s, GridTaps &taps, Value at,
                         int64_t extent) const {
  Value last = s.number(static_cast<double>(extent - 1)), zero = s.number(0);
  if (padding == Padding::Zeros)
    taps.inside.push_back(s.make<arith::AndIOp>(s.lessOrEqual(zero, at),
                                                s.lessOrEqual(at, last)));
  if (padding == Padding::Reflection)
    at = s.make<math::TruncOp>(reflected(s, at, extent));
  taps.places.push_back(clampedIndex(s, at, extent));
}

GridTaps GridSampler::taps(const Scalars &s, Value normalized,
                           int64_t extent) const {
  Value x = bounded(s, denormalized(s, normalized, extent));
  if (mode == Interpolation::Nearest)
    x = s.make<math::RoundEvenOp>(x);
  // Border padding moves what is beyond the outermost pixels' outer edges; with
  // cubic interpolation runtimes only move the taps.
  auto length = static_cast<double>(extent);
  double low = alignsCorners ? 0 : -0.5;
  double high = alignsCorners ? length - 1 : length - 0.5;
  if (padding == Padding::Border && mode != Interpolation::Cubic) {
    Value isOut = s.make<arith::OrIOp>(s.less(x, s.number(low)),
                                       s.less(s.number(high), x));
    Value clamped = s.max(s.number(0), s.min(x, s.number(length - 1)));
    x = s.select(isOut, clamped, x);
  } else if (padding == Padding::Reflection) {
    x = reflected(s, x, extent);
  }
  GridTaps taps;
  if (mode == Interpolation::Nearest) {
    addTap(s, taps, s.make<math::TruncOp>(x), extent);
    return taps;
  }
  Value floor = s.make<math::FloorOp>(x), ratio = s.sub(x, floor);
  int64_t first = mode == Interpolation::Cubic ? -1 : 0;
  int64_t last = mode == Interpolation::Cubic ? 2 : 1;
  Scalars wideS(s.b, s.loc, wide);
  for (int64_t i = first; i <= last; ++i) {
    addTap(s, taps, s.add(floor, s.number(static_cast<double>(i))), extent);
    Value weight;
    if (mode == Interpolation::Linear)
      weight = i == 0 ? s.sub(s.number(1), ratio) : ratio;
    else
      weight =
          cubicWeight(s, s.abs(s.sub(ratio, s.number(static_cast<double>(i)))),
                      /*isInner=*/i == 0 || i == 1);
    taps.weights.push_back(castScalar(s.b, s.loc, weight, place, wide));
  }
  return taps;
}

static LogicalResult readGridSampler(NodeBuilder &n, GridSampler &sampler) {
  bool isNew = n.opset >= 20;
  StringRef mode = n.stringAttr("mode", isNew ? "linear" : "bilinear");
  StringRef padding = n.stringAttr("padding_mode", "zeros");
  sampler.alignsCorners = n.intAttr("align_corners", 0) != 0;
  if (mode == "nearest")
    sampler.mode = Interpolation::Nearest;
  else if (mode == (isNew ? "linear" : "bilinear"))
    sampler.mode = Interpolation::Linear;
  else if (mode == (isNew ? "cubic" : "bicubic"))
    sampler.mode = Interpolation::Cubic;
  else
    return n.invalid() << "attribute 'mode' is " << quoted(mode) << "; "
                       << (isNew ? "linear, nearest and cubic"
                                 : "bilinear, nearest and bicubic")
                       << " are accepted";
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return n.invalid() << "attribute 'padding_mode' is " << quoted(padding)
                       << "; zeros, border and reflection are accepted";
  sampler.padding = padding == "zeros"    ? Padding::Zeros
                    : padding == "border" ? Padding::Border
                                          : Padding::Reflection;
  return success();
}

static LogicalResult buildGridSample(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &grid = n.input(1);
  int64_t rank = x.rank() - 2;
  GridSampler sampler;
  if (failed(n.floatInput(1)) || failed(readGridSampler(n, sampler)))
    return failure();
  if ((rank != 2 && rank != 3))
    return n.unsupported() << n.inputText(0u) << " has " << rank
                           << " spatial dims; 2 and 3 are accepted";
  if (grid.rank() != x.rank() || grid.dim(0) != x.dim(0) ||
      grid.dim(rank + 1) != rank)
    return n.invalid() << n.inputText(1) << " does not fit " << n.inputText(0u);
  if (sampler.mode != Interpolation::Nearest && !x.dtype.isFloat())
    return n.unsupported() << n.inputText(0u)
                           << "; floats are accepted with this mode";
  auto isDouble = [](DType dtype) {
    return dtype.isFloat() && dtype.bits() == 64;
  };
  sampler.place = isDouble(grid.dtype) ? grid.dtype : DType::f32();
  sampler.wide = isDouble(x.dtype) ? x.dtype : DType::f32();
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1)};
  llvm::append_range(shape, grid.shape().drop_front().drop_back());
  auto count = checkedProduct(shape);
  if (!count || (x.numElements() == 0 && *count != 0))
    return n.invalid() << "the result cannot be sampled from "
                       << n.inputText(0u);
  if (*count == 0)
    return n.result(empty(n, shape, x.type.getElementType()), x.dtype);
  Value source = n.value(0), places = n.value(1);
  Value y = mapElements(
      n, {}, {}, shape, x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Scalars s(b, loc, sampler.place), sums(b, loc, sampler.wide);
        SmallVector<Value> at = {linalg::IndexOp::create(b, loc, 0)};
        for (int64_t d = 0; d < rank; ++d)
          at.push_back(linalg::IndexOp::create(b, loc, 2 + d));
        SmallVector<GridTaps> dims;
        for (int64_t d = 0; d < rank; ++d) {
          // The last dim's coordinate comes first.
          SmallVector<Value> entry(at);
          entry.push_back(arith::ConstantIndexOp::create(b, loc, rank - 1 - d));
          Value value = tensor::ExtractOp::create(b, loc, places, entry);
          dims.push_back(sampler.taps(
              s, castScalar(b, loc, value, grid.dtype, sampler.place),
              x.dim(2 + d)));
        }
        // Sums along the last dim are innermost.
        std::function<Value(unsigned, SmallVector<Value>, Value)> sumOver =
            [&](unsigned d, SmallVector<Value> index, Value inside) -> Value {
          if (d == dims.size()) {
            Value element = tensor::ExtractOp::create(b, loc, source, index);
            if (inside) {
              Scalars own(b, loc, x.dtype);
              element = own.select(inside, element, own.integer(0));
            }
            return sampler.mode == Interpolation::Nearest
                       ? element
                       : castScalar(b, loc, element, x.dtype, sampler.wide);
          }
          Value sum;
          for (size_t t = 0; t < dims[d].places.size(); ++t) {
            SmallVector<Value> next(index);
            next.push_back(dims[d].places[t]);
            Value nextInside = inside;
            if (!dims[d].inside.empty())
              nextInside =
                  inside ? s.make<arith::AndIOp>(inside, dims[d].inside[t])
                         : dims[d].inside[t];
            Value term = sumOver(d + 1, next, nextInside);
            if (dims[d].weights.empty())
              return term;
            term = sums.mul(dims[d].weights[t], term);
            sum = sum ? sums.add(sum, term) : term;
          }
          return sum;
        };
        Value result = sumOver(0,
                               {linalg::IndexOp::create(b, loc, 0),
                                linalg::IndexOp::create(b, loc, 1)},
                               Value());
        return sampler.mode == Interpolation::Nearest
                   ? result
                   : castScalar(b, loc, result, sampler.wide, x.dtype);
      });
  return n.result(y, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> samplingOps() {
  static const OpEntry kOps[] = {
      {"AffineGrid", 20, kNewestOpset, 2, 2, 1, buildAffineGrid},
      {"GridSample", 16, kNewestOpset, 2, 2, 1, buildGridSample},
      {"GridSample", 1, kNewestOpset, 2, 2, 1, buildGridSample,
       "com.microsoft"},
      {"MaxRoiPool", 1, kNewestOpset, 2, 2, 1, buildMaxRoiPool},
      {"RoiAlign", 10, kNewestOpset, 3, 3, 1, buildRoiAlign},
  };
  return kOps;
}
} // namespace memplan::onnx
