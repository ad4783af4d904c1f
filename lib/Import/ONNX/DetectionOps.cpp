//===- DetectionOps.cpp - NonMaxSuppression -------------------------------===//
//
// A loop over the boxes to select: each iteration takes the best box that is
// left, of all batches and classes at once, and drops those that overlap it. A
// box keeps its score as long as it is left, and -inf afterwards.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "ControlFlow.h"
#include "OpTable.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
class SuppressionBuilder {
public:
  explicit SuppressionBuilder(NodeBuilder &n)
      : n(n), boxes(n.input(0)), scores(n.input(1)) {}
  LogicalResult build();

private:
  LogicalResult read();
  Value corners();
  Value candidates();
  Value best(Value left, Value positions);
  Value drop(Value left, Value taken, Value corners);
  /// The number in a scalar input, or `otherwise`.
  Value threshold(const Scalars &s, unsigned input, double otherwise);

  NodeBuilder &n;
  ImportedTensor &boxes, &scores;
  bool isCentered = false;
  int64_t rows = 0, count = 0; // batches times classes, and boxes
  int64_t most = 0;
  bool isMostKnown = true;
};
} // namespace

LogicalResult SuppressionBuilder::read() {
  int64_t center = n.intAttr("center_point_box", 0);
  if (center != 0 && center != 1)
    return n.invalid() << "attribute 'center_point_box' is " << center
                       << "; 0 and 1 are accepted";
  isCentered = center == 1;
  if (boxes.dtype != DType::f32() || scores.dtype != DType::f32() ||
      boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 ||
      boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(2))
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << " do not fit: boxes of shape batch x boxes x 4 and "
                          "scores of shape batch x classes x boxes, of float, "
                          "are accepted";
  rows = scores.dim(0) * scores.dim(1);
  count = boxes.dim(1);
  for (unsigned i = 2; i < 5; ++i) {
    if (!n.hasInput(i))
      continue;
    DType wanted = i == 2 ? DType::i64() : DType::f32();
    if (n.input(i).numElements() != 1 || n.input(i).dtype != wanted)
      return n.invalid() << n.inputText(i) << "; one " << dtypeName(wanted)
                         << " is accepted";
  }
  if (!n.hasInput(2))
    return success(); // none
  isMostKnown = n.input(2).isKnown();
  most = count;
  if (isMostKnown) {
    FailureOr<int64_t> given = n.scalarInt(2, "the number of boxes");
    if (failed(given))
      return failure();
    most = std::clamp<int64_t>(*given, 0, count);
  }
  auto all = checkedMul(rows, most);
  if (!all || *all > (int64_t(1) << 30))
    return n.unsupported() << "up to " << most << " boxes for each of " << rows
                           << " batches and classes";
  return success();
}

/// Lower and upper corner of each box, in both dims.
Value SuppressionBuilder::corners() {
  Value source = n.value(0);
  return mapElements(
      n, {}, {}, boxes.shape(), n.b.getF32Type(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Places p(b, loc);
        Scalars s(b, loc, DType::f32());
        // Entries i and i + 2 belong to one dim.
        Value entry = p.loop(2), dim = p.remainder(entry, 2);
        Value isUpper = p.lessOrEqual(p.integer(2), entry);
        auto element = [&](Value at) {
          return p.read(source, {p.loop(0), p.loop(1), at});
        };
        Value first = element(dim), second = element(p.add(dim, p.integer(2)));
        if (isCentered) {
          Value half = s.mul(second, s.number(0.5));
          return s.select(isUpper, s.add(first, half), s.sub(first, half));
        }
        return s.select(isUpper, s.max(first, second), s.min(first, second));
      });
}

Value SuppressionBuilder::threshold(const Scalars &s, unsigned input,
                                    double otherwise) {
  if (!n.hasInput(input))
    return s.number(otherwise);
  ImportedTensor &tensor = n.input(input);
  if (auto known = dyn_cast_or_null<FloatAttr>(knownElement(tensor)))
    return arith::ConstantOp::create(s.b, s.loc, known);
  Places p(s.b, s.loc);
  return p.read(n.value(tensor),
                SmallVector<Value>(tensor.rank(), p.integer(0)));
}

/// The scores that exceed the threshold.
Value SuppressionBuilder::candidates() {
  if (n.hasInput(4))
    (void)n.value(4); // made outside of the body
  ElementwiseOperands operands(n);
  operands.add(scores, {rows, count}, n.b.getMultiDimIdentityMap(2));
  return operands.build(
      {rows, count}, n.b.getF32Type(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::f32());
        Value least = n.hasInput(4) ? threshold(s, 4, 0) : s.lowest();
        return s.select(s.less(least, args[0]), args[0], s.lowest());
      });
}

/// The first box of the highest score in each row; -1 if none is left.
Value SuppressionBuilder::best(Value left, Value positions) {
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(2),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(1)),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(0))};
  auto highest = [](OpBuilder &, Location, ValueRange args) { return args[0]; };
  auto place = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, DType::f32()), at(b, loc, DType::i64());
    return at.select(s.equal(args[0], args[2]), args[1], at.integer(count));
  };
  RegionBuilder stages[] = {highest, place};
  auto op = RowwiseOp::create(
      n.b, n.loc, {left, positions}, empty(n, rows, n.b.getI64Type()), 1,
      {Combiner::Max, Combiner::Min}, maps, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::f32()), at(b, loc, DType::i64());
        return at.select(s.less(s.lowest(), args[2]), args[3], at.integer(-1));
      });
  return op.getResult();
}

/// The scores without the taken boxes and those that overlap them.
Value SuppressionBuilder::drop(Value left, Value taken, Value corners) {
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(2),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(0))};
  int64_t classes = scores.dim(1);
  return mapElements(
      n, {left, taken}, maps, {rows, count}, n.b.getF32Type(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars s(b, loc, DType::f32());
        Value batch = p.quotient(p.loop(0), classes);
        Value other = p.clamp(args[1], count), zero = s.number(0);
        auto corner = [&](Value box, int64_t entry) {
          return p.read(corners, {batch, box, p.integer(entry)});
        };
        Value areas[2], overlap;
        for (int64_t dim = 0; dim < 2; ++dim) {
          Value low[2], high[2];
          for (int64_t i = 0; i < 2; ++i) {
            Value box = i ? other : p.loop(1);
            low[i] = corner(box, dim);
            high[i] = corner(box, dim + 2);
            Value extent = s.sub(high[i], low[i]);
            areas[i] = dim ? s.mul(areas[i], extent) : extent;
          }
          Value shared = s.max(
              zero, s.sub(s.min(high[0], high[1]), s.max(low[0], low[1])));
          overlap = dim ? s.mul(overlap, shared) : shared;
        }
        Value whole = s.sub(s.add(areas[0], areas[1]), overlap);
        Value isAny = p.both(s.less(zero, overlap), s.less(zero, whole));
        Value ratio = s.div(overlap, s.select(isAny, whole, s.number(1)));
        Value isClose = p.both(isAny, s.less(threshold(s, 3, 0), ratio));
        Value isOwn = p.equal(p.loop(1), args[1]);
        Value goes = p.both(p.make<arith::OrIOp>(isClose, isOwn),
                            p.lessOrEqual(p.integer(0), args[1]));
        return s.select(goes, s.lowest(), args[0]);
      });
}

LogicalResult SuppressionBuilder::build() {
  if (failed(read()))
    return failure();
  if (most == 0 || rows == 0)
    return n.result(empty(n, {0, 3}, n.b.getI64Type()), DType::i64());
  for (unsigned i = 2; i < 5; ++i)
    if (n.hasInput(i))
      (void)n.value(i); // made outside of the loop
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value trips = arith::ConstantIndexOp::create(n.b, n.loc, most);
  if (!isMostKnown) {
    Value given = arith::IndexCastOp::create(n.b, n.loc, n.b.getIndexType(),
                                             readScalar(n, n.input(2)));
    trips = arith::MaxSIOp::create(
        n.b, n.loc, zero, arith::MinSIOp::create(n.b, n.loc, given, trips));
  }
  Value positions = mapElements(n, {}, {}, count, n.b.getI64Type(),
                                [](OpBuilder &b, Location loc, ValueRange) {
                                  return Places(b, loc).loop(0);
                                });
  Value places = corners();
  Value inits[] = {candidates(),
                   filled(n, {most, rows}, n.b.getI64IntegerAttr(-1))};
  auto loop = scf::ForOp::create(n.b, n.loc, zero, trips, one, inits);
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(loop.getBody());
    Value left = loop.getRegionIterArg(0), taken = loop.getRegionIterArg(1);
    Value now = best(left, positions);
    Value rest = drop(left, now, places);
    taken = insertRow(n, now, taken, loop.getInductionVar());
    scf::YieldOp::create(n.b, n.loc, ValueRange{rest, taken});
  }
  Value taken = loop.getResult(1);
  int64_t classes = scores.dim(1), bound = rows * most;
  auto boxAt = [&](const Places &p, Value place) {
    return p.read(taken, {p.remainder(place, most), p.quotient(place, most)});
  };
  Choice choice = choose(n, bound, bound, [&](const Places &p, Value place) {
    return p.lessOrEqual(p.integer(0), boxAt(p, place));
  });
  Value y = mapChosen(n, choice, {bound, 3}, 0, n.b.getI64Type(),
                      [&](const Places &p, Value place) {
                        Value row = p.quotient(place, most), entry = p.loop(1);
                        Value result = boxAt(p, place);
                        result = p.select(p.equal(entry, p.integer(1)),
                                          p.remainder(row, classes), result);
                        return p.select(p.equal(entry, p.integer(0)),
                                        p.quotient(row, classes), result);
                      });
  n.setRunDim(0, 0, choice.count);
  return n.result(y, DType::i64());
}

static LogicalResult buildNonMaxSuppression(NodeBuilder &n) {
  return SuppressionBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> detectionOps() {
  static const OpEntry kOps[] = {
      {"NonMaxSuppression", 10, kNewestOpset, 2, 5, 1, buildNonMaxSuppression},
  };
  return kOps;
}
} // namespace memplan::onnx
