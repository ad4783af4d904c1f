//===- ChoiceOps.cpp - NonZero, Compress, Unique --------------------------===//
//
// How many elements the result has, the run tells: its type has the most that
// there can be.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "OpTable.h"
#include "Prefix.h"
#include "Sort.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Sums of ones are of 32 bits.
static constexpr int64_t kMostElements = int64_t(1) << 30;

static LogicalResult checkSize(NodeBuilder &n, ImportedTensor &x) {
  if (x.numElements() <= kMostElements)
    return success();
  return n.unsupported() << n.inputText(x) << " has more than 2^30 elements";
}

//===----------------------------------------------------------------------===//
// NonZero
//===----------------------------------------------------------------------===//

static LogicalResult buildNonZero(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t count = x.numElements();
  SmallVector<int64_t> shape = {x.rank(), count};
  if (failed(checkSize(n, x)))
    return failure();
  if (x.rank() == 0)
    return n.unsupported() << n.inputText(0u)
                           << " is a scalar, which has no dims to index";
  if (count == 0)
    return n.result(empty(n, shape, n.b.getI64Type()), DType::i64());
  Value flat = reshape(n, n.value(0), count);
  Choice choice = choose(n, count, count, [&](const Places &p, Value place) {
    Scalars s(p.b, p.loc, x.dtype);
    return s.notEqual(p.read(flat, place), s.integer(0));
  });
  SmallVector<int64_t> steps(x.rank(), 1);
  for (int64_t i = x.rank() - 2; i >= 0; --i)
    steps[i] = steps[i + 1] * x.dim(i + 1);
  Value y = mapChosen(
      n, choice, shape, 1, n.b.getI64Type(), [&](const Places &p, Value place) {
        Value coordinate = p.integer(0);
        for (int64_t i = 0; i < x.rank(); ++i) {
          Value own = p.remainder(p.quotient(place, steps[i]), x.dim(i));
          coordinate =
              p.select(p.equal(p.loop(0), p.integer(i)), own, coordinate);
        }
        return coordinate;
      });
  n.setRunDim(0, 1, choice.count);
  return n.result(y, DType::i64());
}

//===----------------------------------------------------------------------===//
// Compress
//===----------------------------------------------------------------------===//

/// The elements of `x` along `axis` at places that `place` computes.
static Value takeAlong(NodeBuilder &n, Value x, ArrayRef<int64_t> shape,
                       int64_t axis, Value table) {
  Type type = cast<RankedTensorType>(x.getType()).getElementType();
  AffineMap map = AffineMap::get(shape.size(), 0, n.b.getAffineDimExpr(axis));
  return mapElements(n, table, map, shape, type,
                     [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                       Places p(b, loc);
                       SmallVector<Value> at = p.indices(shape.size());
                       at[axis] = p.index(args[0]);
                       return tensor::ExtractOp::create(b, loc, x, at);
                     });
}

static Value takeChosen(NodeBuilder &n, Value x, ArrayRef<int64_t> shape,
                        int64_t axis, const Choice &choice) {
  Type type = cast<RankedTensorType>(x.getType()).getElementType();
  return mapChosen(n, choice, shape, axis, type,
                   [&](const Places &p, Value place) -> Value {
                     SmallVector<Value> at = p.indices(shape.size());
                     at[axis] = p.index(place);
                     return tensor::ExtractOp::create(p.b, p.loc, x, at);
                   });
}

static LogicalResult buildCompress(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &condition = n.input(1);
  if (!condition.dtype.isBool() || condition.rank() != 1)
    return n.invalid() << n.inputText(1)
                       << " is the condition; a vector of bools is accepted";
  SmallVector<int64_t> shape(x.shape());
  int64_t axis = 0;
  if (n.hasAttr("axis")) {
    FailureOr<int64_t> given = n.axis(n.intAttr("axis", 0), x.rank());
    if (failed(given))
      return failure();
    axis = *given;
  } else {
    shape.assign(1, x.numElements());
  }
  int64_t extent = condition.dim(0);
  if (failed(checkSize(n, condition)))
    return failure();
  if (extent > shape[axis])
    return n.invalid() << n.inputText(1) << " is longer than axis " << axis
                       << " of " << n.inputText(0u);
  Value source = reshape(n, n.value(0), shape);
  Type type = x.type.getElementType();
  shape[axis] = extent;
  // Where the condition is known, so is the shape.
  if (condition.isKnown()) {
    FailureOr<DenseElementsAttr> flags = n.constant(1, "the condition");
    if (failed(flags))
      return failure();
    SmallVector<int64_t> places;
    for (auto [i, flag] : llvm::enumerate(flags->getValues<bool>()))
      if (flag)
        places.push_back(i);
    shape[axis] = places.size();
    if (llvm::is_contained(shape, 0))
      return n.result(empty(n, shape, type), x.dtype);
    Value table =
        constantTensor<int64_t>(n, shape[axis], places, n.b.getI64Type());
    return n.result(takeAlong(n, source, shape, axis, table), x.dtype);
  }
  if (llvm::is_contained(shape, 0))
    return n.result(empty(n, shape, type), x.dtype);
  Value flags = n.value(1);
  Choice choice = choose(n, extent, extent, [&](const Places &p, Value place) {
    return p.read(flags, place);
  });
  n.setRunDim(0, axis, choice.count);
  return n.result(takeChosen(n, source, shape, axis, choice), x.dtype);
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

/// Rows are compared in pairs: a byte for each.
static constexpr int64_t kMostRows = 1 << 13;

namespace {
/// The elements (or slices along an axis, as rows) in ascending order, and
/// where each run of equal ones begins in it. Equal ones keep their order.
class UniqueBuilder {
public:
  explicit UniqueBuilder(NodeBuilder &n) : n(n), x(n.input(0)) {}
  LogicalResult build();

private:
  void sortElements();
  void sortRows();
  Value at(const Places &p, Value table, Value place) const {
    Value found = p.read(table, place);
    if (found.getType().isInteger(32))
      found = castScalar(p.b, p.loc, found, *DType::fromCode(6), p.dtype);
    return found;
  }
  /// The number of the run that element `place` is in.
  Value runOf(const Places &p, const Choice &runs, Value place) const {
    return p.sub(at(p, runs.sums, at(p, ranks, place)), p.integer(1));
  }
  Value isBefore(const Scalars &s, Value a, Value b) const;
  LogicalResult setSorted(const Choice &runs);
  LogicalResult setUnsorted(const Choice &runs);
  LogicalResult setResults(const Choice &chosen, Value firsts, Value counts,
                           Value inverse);
  Value mapAll(function_ref<Value(const Places &, Value)> element);

  NodeBuilder &n;
  ImportedTensor &x;
  std::optional<int64_t> axis;
  int64_t count = 0;
  /// Element at each place of the order; place in the order of each element.
  Value order, ranks;
  /// Whether the elements at two places differ.
  std::function<Value(const Places &, Value, Value)> differ;
};
} // namespace

/// A NaN comes last.
Value UniqueBuilder::isBefore(const Scalars &s, Value a, Value b) const {
  Value less = s.less(a, b);
  if (!x.dtype.isFloat())
    return less;
  Value alone = s.make<arith::AndIOp>(s.equal(a, a), s.notEqual(b, b));
  return s.make<arith::OrIOp>(less, alone);
}

Value UniqueBuilder::mapAll(
    function_ref<Value(const Places &, Value)> element) {
  return mapElements(n, {}, {}, count, n.b.getI64Type(),
                     [&](OpBuilder &b, Location loc, ValueRange) {
                       Places p(b, loc);
                       return element(p, p.loop(0));
                     });
}

void UniqueBuilder::sortElements() {
  Value flat = reshape(n, n.value(0), count);
  order = sortedPlaces(n, flat, x.dtype);
  differ = [this, flat](const Places &p, Value i, Value j) {
    Scalars s(p.b, p.loc, x.dtype);
    Value a = p.read(flat, i), b = p.read(flat, j);
    return s.make<arith::OrIOp>(isBefore(s, a, b), isBefore(s, b, a));
  };
  ranks = mapAll([&](const Places &p, Value place) {
    Scalars s(p.b, p.loc, x.dtype);
    Value own = p.read(flat, place);
    return firstPlace(p, count, [&](Value step) {
      Value other = p.read(order, step), element = p.read(flat, other);
      Value same = p.make<arith::XOrIOp>(
          isBefore(s, own, element),
          arith::ConstantOp::create(p.b, p.loc, p.b.getBoolAttr(true))
              .getResult());
      Value earlier = p.both(same, p.less(other, place));
      return p.make<arith::OrIOp>(isBefore(s, element, own), earlier);
    });
  });
}

/// Row by row, the first element in which two differ decides.
void UniqueBuilder::sortRows() {
  SmallVector<int64_t> permutation = {*axis};
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != *axis)
      permutation.push_back(i);
  int64_t width = x.numElements() / count;
  Value rows =
      reshape(n, transpose(n, n.value(0), permutation), {count, width});
  auto dim = [&](unsigned i) { return n.b.getAffineDimExpr(i); };
  AffineMap pair[] = {AffineMap::get(3, 0, {dim(0), dim(2)}, n.context()),
                      AffineMap::get(3, 0, {dim(1), dim(2)}, n.context())};
  DType byte = *DType::fromCode(3), counter = *DType::fromCode(6);
  Value signs = accumulate(
      n, {rows, rows}, pair, filled(n, {count, count}, n.b.getI8IntegerAttr(0)),
      1, [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype), sign(b, loc, byte);
        Value own = sign.select(isBefore(s, args[1], args[0]), sign.integer(1),
                                sign.integer(0));
        own = sign.select(isBefore(s, args[0], args[1]), sign.integer(-1), own);
        return sign.select(sign.equal(args[2], sign.integer(0)), own, args[2]);
      });
  AffineMap square[] = {AffineMap::get(2, 0, {dim(0), dim(1)}, n.context())};
  Value places = accumulate(
      n, signs, square, filled(n, count, n.b.getI32IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars sign(b, loc, byte), sum(b, loc, counter);
        Value isLater = sign.less(sign.integer(0), args[0]);
        Value isTie = p.both(sign.equal(args[0], sign.integer(0)),
                             p.less(p.loop(1), p.loop(0)));
        Value counts = p.make<arith::OrIOp>(isLater, isTie);
        return sum.add(args[1],
                       castScalar(b, loc, counts, DType::boolean(), counter));
      });
  ranks = mapAll(
      [&](const Places &p, Value place) { return at(p, places, place); });
  AffineMap others[] = {AffineMap::get(2, 0, dim(1))};
  order = accumulate(
      n, ranks, others, filled(n, count, n.b.getI64IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        return p.select(p.equal(args[0], p.loop(0)), p.loop(1), args[1]);
      });
  differ = [signs, byte](const Places &p, Value i, Value j) {
    Scalars sign(p.b, p.loc, byte);
    return sign.notEqual(p.read(signs, {i, j}), sign.integer(0));
  };
}

LogicalResult UniqueBuilder::setResults(const Choice &chosen, Value firsts,
                                        Value counts, Value inverse) {
  SmallVector<int64_t> shape(x.shape());
  if (!axis)
    shape.assign(1, count);
  int64_t along = axis.value_or(0);
  Choice first = chosen;
  first.places = firsts;
  Value y = takeChosen(n, reshape(n, n.value(0), shape), shape, along, first);
  if (failed(n.result(0, y, x.dtype)) ||
      failed(n.result(1, firsts, DType::i64())) ||
      failed(n.result(2, inverse, DType::i64())) ||
      failed(n.result(3, counts, DType::i64())))
    return failure();
  n.setRunDim(0, along, chosen.count);
  for (unsigned i : {1, 3})
    if (n.wantsOutput(i))
      n.setRunDim(i, 0, chosen.count);
  return success();
}

/// How many elements run `run` has.
static Value sizeOfRun(const Places &p, const Choice &runs, Value run,
                       int64_t count) {
  Value total = p.read(runs.count, {});
  Value next = p.add(run, p.integer(1));
  Value end =
      p.select(p.less(next, total), p.read(runs.places, p.clamp(next, count)),
               p.integer(count));
  return p.sub(end, p.read(runs.places, run));
}

LogicalResult UniqueBuilder::setSorted(const Choice &runs) {
  Value firsts = mapChosen(
      n, runs, count, 0, n.b.getI64Type(),
      [&](const Places &p, Value place) { return at(p, order, place); });
  Value counts = mapChosen(n, runs, count, 0, n.b.getI64Type(),
                           [&](const Places &p, Value) {
                             return sizeOfRun(p, runs, p.loop(0), count);
                           });
  Value inverse = mapAll(
      [&](const Places &p, Value place) { return runOf(p, runs, place); });
  return setResults(runs, firsts, counts, inverse);
}

/// In the order in which they come first.
LogicalResult UniqueBuilder::setUnsorted(const Choice &runs) {
  auto firstOfRun = [&](const Places &p, Value run) {
    return at(p, order, p.read(runs.places, run));
  };
  Choice firsts = choose(n, count, count, [&](const Places &p, Value place) {
    return p.equal(firstOfRun(p, runOf(p, runs, place)), place);
  });
  Value counts = mapChosen(
      n, firsts, count, 0, n.b.getI64Type(), [&](const Places &p, Value place) {
        return sizeOfRun(p, runs, runOf(p, runs, place), count);
      });
  Value inverse = mapAll([&](const Places &p, Value place) {
    Value first = firstOfRun(p, runOf(p, runs, place));
    return p.sub(at(p, firsts.sums, first), p.integer(1));
  });
  return setResults(firsts, firsts.places, counts, inverse);
}

LogicalResult UniqueBuilder::build() {
  bool isSorted = n.intAttr("sorted", 1) != 0;
  if (n.hasAttr("axis")) {
    FailureOr<int64_t> given = n.axis(n.intAttr("axis", 0), x.rank());
    if (failed(given))
      return failure();
    axis = *given;
  }
  count = axis ? x.dim(*axis) : x.numElements();
  if (x.numElements() == 0)
    return n.unsupported() << n.inputText(0u) << " is empty";
  bool hasRows = axis && x.numElements() != count;
  if (count > (hasRows ? kMostRows : kLongestSorted))
    return n.unsupported() << n.inputText(0u) << " has " << count
                           << (hasRows ? " slices; at most "
                                       : " elements; at most ")
                           << (hasRows ? kMostRows : kLongestSorted)
                           << " are accepted";
  if (hasRows)
    sortRows();
  else
    sortElements();
  Choice runs = choose(n, count, count, [&](const Places &p, Value place) {
    Value before = p.clamp(p.sub(place, p.integer(1)), count);
    Value isNew = differ(p, at(p, order, place), at(p, order, before));
    return p.make<arith::OrIOp>(p.equal(place, p.integer(0)), isNew);
  });
  return isSorted ? setSorted(runs) : setUnsorted(runs);
}

static LogicalResult buildUnique(NodeBuilder &n) {
  return UniqueBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> choiceOps() {
  static const OpEntry kOps[] = {
      {"Compress", 9, kNewestOpset, 2, 2, 1, buildCompress},
      {"NonZero", 9, kNewestOpset, 1, 1, 1, buildNonZero},
      {"Unique", 11, kNewestOpset, 1, 1, 4, buildUnique},
  };
  return kOps;
}
} // namespace memplan::onnx
