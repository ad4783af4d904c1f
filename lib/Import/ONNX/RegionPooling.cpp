//===- RegionPooling.cpp - RoiAlign and MaxRoiPool ------------------------===//
//
// Regions are data, so that the loops over samples run to a bound and skip what
// a region does not have.
//
//===----------------------------------------------------------------------===//

#include "Sampling.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Operands that only give two reduction loops, the fifth and sixth, their
/// extents.
static void addLoopExtents(NodeBuilder &n, ArrayRef<int64_t> extents,
                           SmallVectorImpl<Value> &inputs,
                           SmallVectorImpl<AffineMap> &maps) {
  for (auto [i, extent] : llvm::enumerate(extents)) {
    int8_t zero = 0;
    inputs.push_back(
        constantTensor(n, {extent}, ArrayRef(zero), n.b.getI8Type()));
    maps.push_back(AffineMap::get(6, 0, n.b.getAffineDimExpr(4 + i)));
  }
}

static Value loopNumber(const Scalars &s, int64_t loop) {
  Value index = arith::IndexCastOp::create(
      s.b, s.loc, s.b.getI64Type(), linalg::IndexOp::create(s.b, s.loc, loop));
  return castScalar(s.b, s.loc, index, DType::i64(), s.dtype);
}

static Value both(const Scalars &s, Value x, Value y) {
  return s.make<arith::AndIOp>(x, y);
}

static Value regionEntry(const Scalars &s, Value rois, int64_t column) {
  Value region = linalg::IndexOp::create(s.b, s.loc, 0);
  Value at = arith::ConstantIndexOp::create(s.b, s.loc, column);
  Value entry =
      tensor::ExtractOp::create(s.b, s.loc, rois, ValueRange{region, at});
  return bounded(s, entry);
}

static LogicalResult checkRegions(NodeBuilder &n, int64_t columns) {
  ImportedTensor &x = n.input(0), &rois = n.input(1);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1})))
    return failure();
  if (x.dtype.bits() < 32)
    return n.unsupported() << n.inputText(0u)
                           << "; float and double are accepted";
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != columns ||
      x.numElements() == 0)
    return n.invalid() << n.inputText(1) << " holds regions of "
                       << n.inputText(0u) << "; rank 2 with " << columns
                       << " columns, and images of rank 4, are accepted";
  return success();
}

static Value ceilOf(const Scalars &s, Value x) {
  return s.make<math::CeilOp>(x);
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {
struct RoiAlign {
  ImportedTensor &x;
  int64_t height, width; // of the output
  int64_t ratio;         // samples a bin and dim; 0: as many as pixels
  int64_t samples[2];    // their bound
  double scale;
  bool isHalfPixel, isMax;

  /// One dim of a region: where a bin's sample is, and whether there is one.
  struct Sample {
    Value place, exists, count;
  };
  Sample sample(const Scalars &s, Value rois, bool isRow) const;
  Value body(OpBuilder &b, Location loc, Value image, Value rois, Value batch,
             Value sum) const;
};

/// The pixels around a place and their weights.
struct Neighbours {
  Value low, high, lowWeight, highWeight, isInside;
};
} // namespace

RoiAlign::Sample RoiAlign::sample(const Scalars &s, Value rois,
                                  bool isRow) const {
  int64_t column = isRow ? 1 : 0, output = isRow ? height : width;
  auto coordinate = [&](int64_t at) {
    return s.sub(s.mul(regionEntry(s, rois, at), s.number(scale)),
                 s.number(isHalfPixel ? 0.5 : 0));
  };
  Value start = coordinate(column);
  Value length = s.sub(coordinate(column + 2), start);
  if (!isHalfPixel) // malformed regions are 1 x 1
    length = s.max(length, s.number(1));
  Value bin = s.div(length, s.number(static_cast<double>(output)));
  Value count =
      ratio > 0 ? s.number(static_cast<double>(ratio))
                : s.min(ceilOf(s, bin),
                        s.number(static_cast<double>(samples[isRow ? 0 : 1])));
  Value number = loopNumber(s, isRow ? 4 : 5);
  Value within = s.div(s.mul(s.add(number, s.number(0.5)), bin), count);
  Value place =
      s.add(s.add(start, s.mul(loopNumber(s, isRow ? 2 : 3), bin)), within);
  return {bounded(s, place), s.less(number, count), count};
}

static Neighbours neighbours(const Scalars &s, Value at, int64_t extent) {
  Neighbours result;
  auto size = static_cast<double>(extent);
  result.isInside = both(s, s.lessOrEqual(s.number(-1), at),
                         s.lessOrEqual(at, s.number(size)));
  Value place = s.min(s.max(at, s.number(0)), s.number(size - 1));
  Value low = s.make<math::FloorOp>(place);
  result.highWeight = s.sub(place, low);
  result.lowWeight = s.sub(s.number(1), result.highWeight);
  result.low = clampedIndex(s, low, extent);
  result.high = clampedIndex(s, s.add(low, s.number(1)), extent);
  return result;
}

Value RoiAlign::body(OpBuilder &b, Location loc, Value image, Value rois,
                     Value batch, Value sum) const {
  Scalars s(b, loc, x.dtype);
  Sample row = sample(s, rois, true), column = sample(s, rois, false);
  Neighbours y = neighbours(s, row.place, x.dim(2));
  Neighbours z = neighbours(s, column.place, x.dim(3));
  Value isInside = both(s, y.isInside, z.isInside);
  Value exists = both(s, row.exists, column.exists);
  Value channel = linalg::IndexOp::create(b, loc, 1);
  auto weighted = [&](Value yAt, Value yWeight, Value zAt, Value zWeight) {
    Value pixel = tensor::ExtractOp::create(
        b, loc, image, ValueRange{batch, channel, yAt, zAt});
    Value product = s.mul(s.mul(yWeight, zWeight), pixel);
    return s.select(isInside, product, s.number(0));
  };
  Value terms[] = {weighted(y.low, y.lowWeight, z.low, z.lowWeight),
                   weighted(y.low, y.lowWeight, z.high, z.highWeight),
                   weighted(y.high, y.highWeight, z.low, z.lowWeight),
                   weighted(y.high, y.highWeight, z.high, z.highWeight)};
  Value result;
  if (isMax) {
    Value largest = s.max(s.max(terms[0], terms[1]), s.max(terms[2], terms[3]));
    Value isFirst = both(s, s.equal(loopNumber(s, 4), s.number(0)),
                         s.equal(loopNumber(s, 5), s.number(0)));
    result = s.select(isFirst, largest, s.max(sum, largest));
  } else {
    Value four = s.add(s.add(terms[0], terms[1]), s.add(terms[2], terms[3]));
    Value count = s.max(s.mul(row.count, column.count), s.number(1));
    result = s.add(sum, s.div(four, count));
  }
  return s.select(exists, result, sum);
}

LogicalResult memplan::onnx::buildRoiAlign(NodeBuilder &n) {
  if (failed(checkRegions(n, 4)))
    return failure();
  ImportedTensor &x = n.input(0), &rois = n.input(1), &batches = n.input(2);
  StringRef mode = n.stringAttr("mode", "avg");
  StringRef coordinates =
      n.opset >= 16
          ? n.stringAttr("coordinate_transformation_mode", "half_pixel")
          : StringRef("output_half_pixel");
  if ((mode != "avg" && mode != "max") ||
      (coordinates != "half_pixel" && coordinates != "output_half_pixel"))
    return n.invalid() << "attributes 'mode' = " << quoted(mode)
                       << ", 'coordinate_transformation_mode' = "
                       << quoted(coordinates)
                       << "; avg or max and half_pixel or output_half_pixel "
                          "are accepted";
  RoiAlign align{x,
                 n.intAttr("output_height", 1),
                 n.intAttr("output_width", 1),
                 n.intAttr("sampling_ratio", 0),
                 {0, 0},
                 n.floatAttr("spatial_scale", 1),
                 coordinates == "half_pixel",
                 mode == "max"};
  constexpr int64_t kMost = 1 << 16;
  if (align.height < 1 || align.width < 1 || align.ratio < 0 ||
      align.height > kMost || align.width > kMost || align.ratio > kMost ||
      !batches.dtype.isInteger() ||
      batches.shape() != ArrayRef<int64_t>(rois.dim(0)))
    return n.invalid() << "output " << align.height << "x" << align.width
                       << ", sampling_ratio " << align.ratio << " and "
                       << n.inputText(2) << " do not fit";
  // A region as large as the image has so many pixels a bin.
  int64_t output[] = {align.height, align.width};
  for (int i = 0; i < 2; ++i)
    align.samples[i] = align.ratio
                           ? align.ratio
                           : (x.dim(2 + i) + output[i] - 1) / output[i] + 1;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  if (rois.dim(0) == 0)
    return n.result(
        empty(n, {0, x.dim(1), output[0], output[1]}, x.type.getElementType()),
        x.dtype);
  inputs.push_back(n.value(2));
  maps.push_back(AffineMap::get(6, 0, n.b.getAffineDimExpr(0)));
  addLoopExtents(n, align.samples, inputs, maps);
  Value image = n.value(0), regions = n.value(1);
  SmallVector<int64_t> shape = {rois.dim(0), x.dim(1), output[0], output[1]};
  Value init = filled(n, shape, n.b.getFloatAttr(x.type.getElementType(), 0));
  Value y = accumulate(
      n, inputs, maps, init, 2,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars whole(b, loc, DType::i64());
        Value batch = castScalar(b, loc, args[0], batches.dtype, DType::i64());
        batch = whole.max(whole.integer(0),
                          whole.min(batch, whole.integer(x.dim(0) - 1)));
        batch = arith::IndexCastOp::create(b, loc, b.getIndexType(), batch);
        return align.body(b, loc, image, regions, batch, args.back());
      });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// MaxRoiPool
//===----------------------------------------------------------------------===//

static Value roundHalfAway(const Scalars &s, Value x) {
  return s.make<math::RoundOp>(x);
}

/// Whether pixel `loop` of the image belongs to a bin of the region.
static Value isInBin(const Scalars &s, Value rois, bool isRow, int64_t pooled,
                     double scale) {
  int64_t column = isRow ? 2 : 1;
  auto corner = [&](int64_t at) {
    return roundHalfAway(s, s.mul(regionEntry(s, rois, at), s.number(scale)));
  };
  Value start = corner(column);
  Value length =
      s.max(s.add(s.sub(corner(column + 2), start), s.number(1)), s.number(1));
  Value bin = s.div(length, s.number(static_cast<double>(pooled)));
  Value number = loopNumber(s, isRow ? 2 : 3);
  Value begin = s.add(s.make<math::FloorOp>(s.mul(number, bin)), start);
  Value end = s.add(ceilOf(s, s.mul(s.add(number, s.number(1)), bin)), start);
  Value pixel = loopNumber(s, isRow ? 4 : 5);
  return both(s, s.lessOrEqual(begin, pixel), s.less(pixel, end));
}

/// The largest pixel of each bin, 0 for an empty one. Bins are data: each
/// output looks at all pixels.
LogicalResult memplan::onnx::buildMaxRoiPool(NodeBuilder &n) {
  if (failed(checkRegions(n, 5)))
    return failure();
  ImportedTensor &x = n.input(0), &rois = n.input(1);
  auto pooled = n.intsAttr("pooled_shape");
  double scale = n.floatAttr("spatial_scale", 1);
  if (!pooled || pooled->size() != 2 || (*pooled)[0] < 1 || (*pooled)[1] < 1)
    return n.invalid() << "needs the attribute 'pooled_shape' of two positive "
                          "numbers";
  SmallVector<int64_t> shape = {rois.dim(0), x.dim(1), (*pooled)[0],
                                (*pooled)[1]};
  auto count = checkedProduct(shape);
  if (!count || *count == 0)
    return n.invalid() << "the result has no elements, or too many";
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  addLoopExtents(n, x.shape().drop_front(2), inputs, maps);
  Value image = n.value(0), regions = n.value(1);
  Type element = x.type.getElementType();
  APFloat lowest = APFloat::getInf(cast<FloatType>(element).getFloatSemantics(),
                                   /*Negative=*/true);
  Value y = accumulate(
      n, inputs, maps, filled(n, shape, n.b.getFloatAttr(element, lowest)), 2,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype);
        Value inBin = both(s, isInBin(s, regions, true, shape[2], scale),
                           isInBin(s, regions, false, shape[3], scale));
        Value batch = clampedIndex(s, regionEntry(s, regions, 0), x.dim(0));
        Value pixel = tensor::ExtractOp::create(
            b, loc, image,
            ValueRange{batch, linalg::IndexOp::create(b, loc, 1),
                       linalg::IndexOp::create(b, loc, 4),
                       linalg::IndexOp::create(b, loc, 5)});
        return s.select(inBin, s.max(args.back(), pixel), args.back());
      });
  y = mapElements(
      n, y, n.b.getMultiDimIdentityMap(4), shape, element,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype);
        Value none =
            arith::ConstantOp::create(b, loc, b.getFloatAttr(element, lowest));
        return s.select(s.equal(args[0], none), s.number(0), args[0]);
      });
  return n.result(y, x.dtype);
}
