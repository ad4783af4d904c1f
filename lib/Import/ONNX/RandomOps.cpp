//===- RandomOps.cpp - Random numbers -------------------------------------===//

#include "OpTable.h"
#include "Prefix.h"
#include "Random.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// The generator
//===----------------------------------------------------------------------===//

/// The odd part of 2^64 divided by the golden ratio: places that are neighbours
/// go far apart.
static constexpr uint64_t kStride = 0x9E3779B97F4A7C15u;

/// The finalizer of SplitMix64: each bit of the result depends on all.
static constexpr uint64_t kFactors[2] = {0xBF58476D1CE4E5B9u,
                                         0x94D049BB133111EBu};
static constexpr int64_t kShifts[3] = {30, 27, 31};

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> kShifts[0])) * kFactors[0];
  x = (x ^ (x >> kShifts[1])) * kFactors[1];
  return x ^ (x >> kShifts[2]);
}

static Value mix(const Places &p, Value x) {
  auto fold = [&](Value value, int64_t shift) {
    Value high = p.make<arith::ShRUIOp>(value, p.integer(shift));
    return p.make<arith::XOrIOp>(value, high);
  };
  x = p.mul(fold(x, kShifts[0]), p.integer(static_cast<int64_t>(kFactors[0])));
  x = p.mul(fold(x, kShifts[1]), p.integer(static_cast<int64_t>(kFactors[1])));
  return fold(x, kShifts[2]);
}

uint64_t memplan::onnx::randomKey(NodeBuilder &n, bool isInt) {
  if (n.hasAttr("seed"))
    return mix(isInt ? static_cast<uint64_t>(n.intAttr("seed", 0))
                     : llvm::bit_cast<uint32_t>(n.floatAttr("seed", 0)) +
                           kStride);
  // Which node it is, not what it is called: names change no numbers.
  return mix(kStride * (1 + static_cast<uint64_t>(n.budget().numBuilt)));
}

Value memplan::onnx::uniformScalar(const Places &p, Value place, uint64_t key,
                                   uint64_t stream, DType dtype) {
  uint64_t start = mix(key + stream * kStride);
  Value counter = p.add(p.mul(place, p.integer(static_cast<int64_t>(kStride))),
                        p.integer(static_cast<int64_t>(start)));
  Value bits = mix(p, counter);
  // As many bits as the type's fraction holds, so that 1 is never reached.
  int64_t kept = dtype.bits() == 64 ? 53 : 24;
  Value whole = p.make<arith::ShRUIOp>(bits, p.integer(64 - kept));
  Scalars s(p.b, p.loc, dtype);
  Value number = castScalar(p.b, p.loc, whole, p.dtype, dtype);
  return s.mul(number, s.number(std::ldexp(1.0, -static_cast<int>(kept))));
}

/// The number of the loops' element in row-major order.
static Value placeOf(const Places &p, ArrayRef<int64_t> shape) {
  Value place = p.integer(0);
  for (auto [i, extent] : llvm::enumerate(shape))
    place = p.add(p.mul(place, p.integer(extent)), p.loop(i));
  return place;
}

/// Numbers are drawn in this type.
static DType drawType(DType dtype) {
  return dtype.isFloat() && dtype.bits() == 64 ? dtype : DType::f32();
}

Value memplan::onnx::uniform(NodeBuilder &n, ArrayRef<int64_t> shape,
                             uint64_t key, DType dtype) {
  return mapElements(n, {}, {}, shape, dtype.type(n.context()),
                     [&](OpBuilder &b, Location loc, ValueRange) {
                       Places p(b, loc);
                       return uniformScalar(p, placeOf(p, shape), key, 0,
                                            dtype);
                     });
}

//===----------------------------------------------------------------------===//
// RandomNormal, RandomUniform and their Like forms
//===----------------------------------------------------------------------===//

/// The element type that attribute 'dtype' names.
static FailureOr<DType> readType(NodeBuilder &n, DType otherwise,
                                 bool mayBeInt = false) {
  int64_t code = n.intAttr("dtype", otherwise.code());
  std::optional<DType> dtype = DType::fromCode(code);
  if (!dtype || !(mayBeInt || dtype->isFloat()))
    return n.unsupported() << "attribute 'dtype' is " << dtypeName(code) << "; "
                           << (mayBeInt ? "a number" : "a float")
                           << " type is accepted";
  return *dtype;
}

static FailureOr<SmallVector<int64_t>> readShape(NodeBuilder &n) {
  if (n.numInputs() > 0)
    return SmallVector<int64_t>(n.input(0).shape());
  auto shape = n.intsAttr("shape");
  if (!shape || llvm::any_of(*shape, [](int64_t d) { return d < 0; }) ||
      !checkedProduct(*shape))
    return n.invalid() << "attribute 'shape' is missing or no shape";
  return *shape;
}

/// The form without an input makes floats, the other the input's type, unless
/// 'dtype' says otherwise.
static FailureOr<DType> readOwnType(NodeBuilder &n) {
  DType otherwise = DType::f32();
  if (n.numInputs() > 0 && n.input(0).dtype.isFloat())
    otherwise = n.input(0).dtype;
  return readType(n, otherwise);
}

/// Fills the node's shape with numbers that `draw` makes of their places.
static LogicalResult
drawNumbers(NodeBuilder &n,
            llvm::function_ref<Value(const Places &, Scalars &, Value place,
                                     uint64_t key, DType drawn)>
                draw) {
  uint64_t key = randomKey(n);
  FailureOr<SmallVector<int64_t>> shape = readShape(n);
  FailureOr<DType> dtype = readOwnType(n);
  if (failed(shape) || failed(dtype))
    return failure();
  DType drawn = drawType(*dtype);
  auto body = [&](OpBuilder &b, Location loc, ValueRange) {
    Places p(b, loc);
    Scalars s(b, loc, drawn);
    Value number = draw(p, s, placeOf(p, *shape), key, drawn);
    return castScalar(b, loc, number, drawn, *dtype);
  };
  Value y = mapElements(n, {}, {}, *shape, dtype->type(n.context()), body);
  return n.result(y, *dtype);
}

static LogicalResult buildRandomUniform(NodeBuilder &n) {
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  return drawNumbers(n, [&](const Places &p, Scalars &s, Value place,
                            uint64_t key, DType drawn) {
    Value u = uniformScalar(p, place, key, 0, drawn);
    return s.add(s.mul(u, s.number(high - low)), s.number(low));
  });
}

/// sqrt(-2 ln u) cos(2 pi v) of two uniform numbers is normal.
static LogicalResult buildRandomNormal(NodeBuilder &n) {
  double mean = n.floatAttr("mean", 0), scale = n.floatAttr("scale", 1);
  return drawNumbers(n, [&](const Places &p, Scalars &s, Value place,
                            uint64_t key, DType drawn) {
    // Of (0, 1]: the logarithm of 0 is none.
    Value u = s.sub(s.number(1), uniformScalar(p, place, key, 0, drawn));
    Value v = uniformScalar(p, place, key, 1, drawn);
    Value radius =
        s.make<math::SqrtOp>(s.mul(s.number(-2), s.make<math::LogOp>(u)));
    Value wave = s.make<math::CosOp>(s.mul(s.number(2 * M_PI), v));
    return s.add(s.mul(s.mul(radius, wave), s.number(scale)), s.number(mean));
  });
}

//===----------------------------------------------------------------------===//
// Bernoulli and Multinomial
//===----------------------------------------------------------------------===//

/// 1 with the probability that the input says.
static LogicalResult buildBernoulli(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  uint64_t key = randomKey(n);
  FailureOr<DType> dtype = readType(n, x.dtype, /*mayBeInt=*/true);
  if (failed(n.floatInput(0)) || failed(dtype))
    return failure();
  DType drawn = drawType(x.dtype);
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, x.shape());
  Value y = operands.build(
      x.shape(), dtype->type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Value u = uniformScalar(p, placeOf(p, x.shape()), key, 0, drawn);
        Value chance = castScalar(b, loc, args[0], x.dtype, drawn);
        Value isOne = Scalars(b, loc, drawn).less(u, chance);
        return castScalar(b, loc, isOne, DType::boolean(), *dtype);
      });
  return n.result(y, *dtype);
}

/// Classes by their unnormalized log-probabilities: the first class up to which
/// the probabilities sum to more than a uniform part of the whole.
static LogicalResult buildMultinomial(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t count = n.intAttr("sample_size", 1);
  uint64_t key = randomKey(n);
  FailureOr<DType> dtype = readType(n, *DType::fromCode(6), /*mayBeInt=*/true);
  if (failed(n.floatInput(0)) || failed(dtype))
    return failure();
  if (x.rank() != 2 || x.dim(1) < 1 || count < 0 || !dtype->isInteger() ||
      !checkedMul(x.dim(0), count))
    return n.invalid() << n.inputText(0u) << ", " << count
                       << " samples of type " << dtypeName(*dtype)
                       << "; a row of classes for each batch is accepted";
  DType drawn = drawType(x.dtype);
  int64_t classes = x.dim(1);
  auto wide = [&](OpBuilder &b, Location loc, Value element) {
    return castScalar(b, loc, element, x.dtype, drawn);
  };
  // Relative to the largest, so that none overflows.
  auto widen = [&](OpBuilder &b, Location loc, ValueRange args) {
    return wide(b, loc, args[0]);
  };
  RegionBuilder stage = widen;
  Value largest = reduceRows(
      n, n.value(0), 1, drawn.type(n.context()), Combiner::Max, stage,
      [&](OpBuilder &, Location, ValueRange args) { return args[1]; });
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(2),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(0))};
  Value weights = mapElements(
      n, {n.value(0), largest}, maps, x.shape(), drawn.type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, drawn);
        return s.make<math::ExpOp>(s.sub(wide(b, loc, args[0]), args[1]));
      });
  Value sums = prefixSums(n, weights, drawn, 1);
  SmallVector<int64_t> shape = {x.dim(0), count};
  Value y = mapElements(
      n, {}, {}, shape, dtype->type(n.context()),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Places p(b, loc);
        Scalars s(b, loc, drawn);
        Value row = p.loop(0);
        Value all = p.read(sums, {row, p.integer(classes - 1)});
        Value u = uniformScalar(p, placeOf(p, shape), key, 0, drawn);
        Value part = s.mul(u, all);
        Value found = firstPlace(p, classes, [&](Value place) {
          return s.lessOrEqual(p.read(sums, {row, place}), part);
        });
        return castScalar(b, loc, p.clamp(found, classes), p.dtype, *dtype);
      });
  return n.result(y, *dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> randomOps() {
  static const OpEntry kOps[] = {
      {"Bernoulli", 15, kNewestOpset, 1, 1, 1, buildBernoulli},
      {"Multinomial", 7, kNewestOpset, 1, 1, 1, buildMultinomial},
      {"RandomNormal", 1, kNewestOpset, 0, 0, 1, buildRandomNormal},
      {"RandomNormalLike", 1, kNewestOpset, 1, 1, 1, buildRandomNormal},
      {"RandomUniform", 1, kNewestOpset, 0, 0, 1, buildRandomUniform},
      {"RandomUniformLike", 1, kNewestOpset, 1, 1, 1, buildRandomUniform},
  };
  return kOps;
}
} // namespace memplan::onnx
