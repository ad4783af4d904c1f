//===- PostTransform.cpp - From scores to probabilities -------------------===//

#include "PostTransform.h"

#include "Places.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

FailureOr<PostTransform> memplan::onnx::readPostTransform(NodeBuilder &n,
                                                          bool isNumber) {
  static constexpr StringRef kNames[] = {"NONE", "SOFTMAX", "LOGISTIC",
                                         "SOFTMAX_ZERO", "PROBIT"};
  StringRef name;
  if (isNumber) {
    int64_t number = n.intAttr("post_transform", 0);
    name = number >= 0 && number < 5 ? kNames[number] : "unknown";
  } else {
    name = n.stringAttr("post_transform", "NONE");
  }
  if (name == kNames[0])
    return PostTransform::None;
  if (name == kNames[1])
    return PostTransform::Softmax;
  if (name == kNames[2])
    return PostTransform::Logistic;
  return n.unsupported() << "attribute 'post_transform' is " << quoted(name)
                         << "; NONE, SOFTMAX and LOGISTIC are accepted";
}

Value memplan::onnx::postTransform(NodeBuilder &n, Value scores, DType dtype,
                                   PostTransform how) {
  auto type = cast<RankedTensorType>(scores.getType());
  AffineMap identity = n.b.getMultiDimIdentityMap(2);
  if (how == PostTransform::None || type.getNumElements() == 0)
    return scores;
  if (how == PostTransform::Logistic)
    return mapElements(n, scores, identity, type.getShape(),
                       type.getElementType(),
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         Scalars s(b, loc, dtype);
                         Value power = s.make<math::ExpOp>(s.negate(args[0]));
                         return s.div(s.number(1), s.add(s.number(1), power));
                       });
  auto element = [](OpBuilder &, Location, ValueRange args) { return args[0]; };
  auto power = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, dtype);
    return s.make<math::ExpOp>(s.sub(args[0], args[1]));
  };
  RegionBuilder stages[] = {element, power};
  Combiner combiners[] = {Combiner::Max, Combiner::Sum};
  auto reduce = [&](size_t count) {
    return reduceRows(
        n, scores, 1, type.getElementType(),
        ArrayRef(combiners).take_front(count),
        ArrayRef(stages).take_front(count),
        [](OpBuilder &, Location, ValueRange args) { return args.back(); });
  };
  AffineMap row = AffineMap::get(2, 0, n.b.getAffineDimExpr(0));
  return mapElements(
      n, {scores, reduce(1), reduce(2)}, {identity, row, row}, type.getShape(),
      type.getElementType(), [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype);
        return s.div(s.make<math::ExpOp>(s.sub(args[0], args[1])), args[2]);
      });
}

FailureOr<SmallVector<int64_t>> memplan::onnx::readClassLabels(NodeBuilder &n,
                                                               StringRef name) {
  n.ignoreAttr("classlabels_strings");
  auto labels = n.intsAttr(name);
  if (!labels || labels->empty())
    return n.unsupported() << "has no attribute " << quoted(name)
                           << "; labels that are integers are accepted";
  if (labels->size() < 3)
    return n.unsupported() << "attribute " << quoted(name) << " has "
                           << labels->size()
                           << " entries; 3 and more are accepted";
  return *labels;
}

LogicalResult memplan::onnx::classify(NodeBuilder &n, Value scores,
                                      ArrayRef<int64_t> labels,
                                      PostTransform how) {
  auto type = cast<RankedTensorType>(scores.getType());
  int64_t rows = type.getDimSize(0), count = type.getDimSize(1);
  Value table = constantTensor<int64_t>(n, count, labels, n.b.getI64Type());
  // Of equal scores the first counts.
  Value best = accumulate(
      n, scores, n.b.getMultiDimIdentityMap(2),
      filled(n, rows, n.b.getI64IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars s(b, loc, DType::f32());
        Value highest = p.read(scores, {p.loop(0), args[1]});
        return p.select(s.less(highest, args[0]), p.loop(1), args[1]);
      });
  Value chosen = mapElements(n, best, n.b.getMultiDimIdentityMap(1), rows,
                             n.b.getI64Type(),
                             [&](OpBuilder &b, Location loc, ValueRange args) {
                               return Places(b, loc).read(table, args[0]);
                             });
  if (failed(n.result(0, chosen, DType::i64())))
    return failure();
  return n.result(1, postTransform(n, scores, DType::f32(), how), DType::f32());
}
