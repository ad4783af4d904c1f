//===- SortOps.cpp - TopK -------------------------------------------------===//
//
// Short rows are ranked by counting what comes before each element, which is
// quadratic in the row but two kernels; long ones go through a bitonic network
// on positions, a kernel a stage. Either way the order is total: equal elements
// stay in theirs, and a NaN counts as larger than any number.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "RunDimRules.h"
#include "RunShapes.h"
#include "Scalars.h"
#include "Sort.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static constexpr int64_t kLongestCounted = 1024;

namespace {
struct Ranking {
  NodeBuilder &n;
  Value source;
  DType dtype;
  int64_t axis;
  bool isLargest;

  RankedTensorType type() const {
    return cast<RankedTensorType>(source.getType());
  }
  int64_t rank() const { return type().getRank(); }

  Value larger(const Scalars &s, Value a, Value b) const {
    Value result = s.less(b, a);
    if (!dtype.isFloat())
      return result;
    Value alone = s.make<arith::AndIOp>(s.notEqual(a, a), s.equal(b, b));
    return s.make<arith::OrIOp>(result, alone);
  }
  /// Whether element a at place i comes before element b at place j.
  Value comesBefore(OpBuilder &builder, Location loc, Value a, Value i, Value b,
                    Value j) const {
    Scalars s(builder, loc, dtype);
    Value first = isLargest ? larger(s, a, b) : larger(s, b, a);
    Value second = isLargest ? larger(s, b, a) : larger(s, a, b);
    Value earlier =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, i, j);
    return s.select(
        first, first,
        s.make<arith::AndIOp>(earlier, negated(builder, loc, second)));
  }
  static Value negated(OpBuilder &b, Location loc, Value condition) {
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    return arith::XOrIOp::create(b, loc, condition, yes);
  }
  SmallVector<int64_t> shapeWith(int64_t extent) const {
    SmallVector<int64_t> shape(type().getShape());
    shape[axis] = extent;
    return shape;
  }
  SmallVector<Value> placeAt(OpBuilder &b, Location loc, Value position) const {
    SmallVector<Value> at;
    for (int64_t i = 0; i < rank(); ++i)
      at.push_back(linalg::IndexOp::create(b, loc, i));
    at[axis] = position;
    return at;
  }
  Value element(OpBuilder &b, Location loc, Value source,
                Value position) const {
    return tensor::ExtractOp::create(b, loc, source, placeAt(b, loc, position));
  }

  Value places(int64_t k) const {
    return type().getDimSize(axis) <= kLongestCounted ? byCounting(k)
                                                      : byNetwork(k);
  }
  Value byCounting(int64_t k) const;
  Value byNetwork(int64_t k) const;
  Value stage(Value permutation, int64_t size, int64_t block,
              int64_t distance) const;
};
} // namespace

/// Positions (int64) of the first k elements of each row.
Value Ranking::byCounting(int64_t k) const {
  AffineMap own = AffineMap::getMultiDimIdentityMap(rank() + 1, n.context())
                      .getMajorSubMap(rank());
  SmallVector<AffineExpr> exprs(own.getResults());
  exprs[axis] = n.b.getAffineDimExpr(rank());
  AffineMap other = AffineMap::get(rank() + 1, 0, exprs, n.context());
  Value ranks = accumulate(
      n, {source, source}, {own, other},
      filled(n, type().getShape(), n.b.getI32IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value i = linalg::IndexOp::create(b, loc, axis);
        Value j = linalg::IndexOp::create(b, loc, rank());
        Value isBefore = comesBefore(b, loc, args[1], j, args[0], i);
        Value one = arith::ExtUIOp::create(b, loc, b.getI32Type(), isBefore);
        return arith::AddIOp::create(b, loc, args[2], one).getResult();
      });
  return accumulate(
      n, ranks, other, filled(n, shapeWith(k), n.b.getI64IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value wanted = arith::IndexCastOp::create(
            b, loc, b.getI32Type(), linalg::IndexOp::create(b, loc, axis));
        Value place = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, rank()));
        Value isIt = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           args[0], wanted);
        return arith::SelectOp::create(b, loc, isIt, place, args[1])
            .getResult();
      });
}

/// One compare-and-exchange of a bitonic network over `size` positions: places
/// `distance` apart, in blocks of `block` that alternate in direction.
/// Positions past the row's end come last. Without `permutation`, it is 0, 1,
/// ...
Value Ranking::stage(Value permutation, int64_t size, int64_t block,
                     int64_t distance) const {
  int64_t extent = type().getDimSize(axis);
  return mapElements(
      n, {}, {}, shapeWith(size), n.b.getI32Type(),
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Scalars s(b, loc, DType::i64());
        auto toIndex = [&](Value at) -> Value {
          return arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
        };
        Value here = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, axis));
        Value there = s.make<arith::XOrIOp>(here, s.integer(distance));
        auto at = [&](Value place) -> Value {
          if (!permutation)
            return place;
          Value found = element(b, loc, permutation, toIndex(place));
          return arith::ExtSIOp::create(b, loc, b.getI64Type(), found);
        };
        Value p = at(here), q = at(there);
        auto value = [&](Value position) {
          Value safe = s.min(position, s.integer(extent - 1));
          return element(b, loc, source, toIndex(safe));
        };
        Value isFirst = comesBefore(b, loc, value(p), p, value(q), q);
        // Positions past the end only compare by their number.
        Value byNumber = s.less(p, q);
        Value isInside = s.less(s.max(p, q), s.integer(extent));
        isFirst = s.select(isInside, isFirst, byNumber);
        Value isLower = s.less(here, there);
        Value ascends = s.equal(s.make<arith::AndIOp>(here, s.integer(block)),
                                s.integer(0));
        Value wantsFirst = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq, isLower, ascends);
        Value takesOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                               wantsFirst, isFirst);
        return arith::TruncIOp::create(b, loc, b.getI32Type(),
                                       s.select(takesOwn, p, q));
      });
}

Value Ranking::byNetwork(int64_t k) const {
  int64_t size = llvm::PowerOf2Ceil(type().getDimSize(axis));
  Value permutation;
  for (int64_t block = 2; block <= size; block *= 2)
    for (int64_t distance = block / 2; distance > 0; distance /= 2)
      permutation = stage(permutation, size, block, distance);
  return mapElements(n, {}, {}, shapeWith(k), n.b.getI64Type(),
                     [&](OpBuilder &b, Location loc, ValueRange) -> Value {
                       Value at = linalg::IndexOp::create(b, loc, axis);
                       Value found = element(b, loc, permutation, at);
                       return arith::ExtSIOp::create(b, loc, b.getI64Type(),
                                                     found);
                     });
}

Value memplan::onnx::sortedPlaces(NodeBuilder &n, Value x, DType dtype) {
  Ranking ranking{n, x, dtype, 0, /*isLargest=*/false};
  return ranking.places(ranking.type().getDimSize(0));
}

/// Input k as an extent of at most `most`.
static Value readCount(NodeBuilder &n, int64_t most) {
  Value k = reshape(n, n.value(1), {});
  return computeExtent(n, k, [&](const Scalars &s, ValueRange args) {
    return s.max(s.integer(0), s.min(args[0], s.integer(most)));
  });
}

/// A k that only the run tells is at most the extent of the axis.
static LogicalResult buildTopK(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), x.rank());
  if (failed(axis))
    return failure();
  int64_t k;
  bool isOfRun = n.opset >= 10 && !n.input(1).isKnown() &&
                 n.input(1).dtype == DType::i64() &&
                 n.input(1).numElements() == 1;
  if (n.opset < 10) {
    k = n.intAttr("k", -1);
  } else if (isOfRun) {
    k = x.dim(*axis);
    if (auto entries = readEntries(n, 1))
      k = std::min(k, std::max<int64_t>(0, entries->front().bound));
  } else {
    FailureOr<int64_t> given = n.scalarInt(1, "k");
    if (failed(given))
      return failure();
    k = *given;
  }
  bool isLargest = n.opset < 11 || n.intAttr("largest", 1) != 0;
  if (n.opset >= 11)
    n.ignoreAttr("sorted"); // any order will do then; ours is sorted
  if (x.dtype.isBool())
    return n.invalid() << n.inputText(0u) << "; numbers are accepted";
  if (k < 0 || k > x.dim(*axis))
    return n.invalid() << "k is " << k << " for an axis of extent "
                       << x.dim(*axis);
  if (x.dim(*axis) > kLongestSorted)
    return n.unsupported() << n.inputText(0u) << " has rows longer than "
                           << kLongestSorted;
  Ranking ranking{n, n.value(0), x.dtype, *axis, isLargest};
  SmallVector<int64_t> shape = ranking.shapeWith(k);
  if (llvm::is_contained(shape, 0)) {
    if (failed(n.result(0, empty(n, shape, x.type.getElementType()), x.dtype)))
      return failure();
    return n.result(1, empty(n, shape, n.b.getI64Type()), DType::i64());
  }
  Value places = ranking.places(k);
  Value source = n.value(0);
  if (n.wantsOutput(0)) {
    Value values =
        mapElements(n, places, n.b.getMultiDimIdentityMap(x.rank()), shape,
                    x.type.getElementType(),
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      Value at = arith::IndexCastOp::create(
                          b, loc, b.getIndexType(), args[0]);
                      return ranking.element(b, loc, source, at);
                    });
    if (failed(n.result(0, values, x.dtype)))
      return failure();
  }
  if (failed(n.result(1, places, DType::i64())))
    return failure();
  if (!isOfRun)
    return success();
  Value count = readCount(n, k);
  n.setRunDim(0, *axis, count);
  n.setRunDim(1, *axis, count);
  return success();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> sortOps() {
  static const OpEntry kOps[] = {
      {"TopK", 1, 9, 1, 1, 2, buildTopK},
      {"TopK", 10, kNewestOpset, 2, 2, 2, buildTopK},
  };
  return kOps;
}
} // namespace memplan::onnx
