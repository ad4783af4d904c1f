//===- Choice.cpp - Elements that the run chooses -------------------------===//
//
// Running sums of ones tell how many are chosen up to each place. The j-th one
// is where they exceed j first, which each result finds by bisection: gathers
// alone, so that it takes as long whatever is chosen.
//
//===----------------------------------------------------------------------===//

#include "Choice.h"

#include "Prefix.h"
#include "TensorOps.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

Choice
memplan::onnx::choose(NodeBuilder &n, int64_t extent, int64_t bound,
                      function_ref<Value(const Places &, Value)> isChosen) {
  DType counter = *DType::fromCode(6);
  Value flags =
      mapElements(n, {}, {}, extent, n.b.getI32Type(),
                  [&](OpBuilder &b, Location loc, ValueRange) -> Value {
                    Places p(b, loc);
                    return arith::ExtUIOp::create(b, loc, b.getI32Type(),
                                                  isChosen(p, p.loop(0)));
                  });
  Choice choice;
  choice.bound = bound;
  choice.sums = prefixSums(n, flags, counter, 0);
  auto sumAt = [&](const Places &p, Value place) {
    Value sum = p.read(choice.sums, place);
    return castScalar(p.b, p.loc, sum, counter, p.dtype);
  };
  choice.count = mapElements(n, {}, {}, {}, n.b.getI64Type(),
                             [&](OpBuilder &b, Location loc, ValueRange) {
                               Places p(b, loc);
                               return p.min(sumAt(p, p.integer(extent - 1)),
                                            p.integer(bound));
                             });
  choice.places = mapElements(
      n, {}, {}, bound, n.b.getI64Type(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Places p(b, loc);
        Value number = p.loop(0);
        Value found = firstPlace(p, extent, [&](Value place) {
          return p.lessOrEqual(sumAt(p, place), number);
        });
        return p.select(p.less(found, p.integer(extent)), found, p.integer(0));
      });
  return choice;
}

Value memplan::onnx::mapChosen(
    NodeBuilder &n, const Choice &choice, ArrayRef<int64_t> shape, int64_t dim,
    Type type, function_ref<Value(const Places &, Value)> element) {
  int64_t rank = shape.size();
  AffineMap maps[] = {AffineMap::get(rank, 0, n.b.getAffineDimExpr(dim)),
                      AffineMap::get(rank, 0, n.context())};
  return mapElements(n, {choice.places, choice.count}, maps, shape, type,
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Places p(b, loc);
                       Value zero = arith::ConstantOp::create(
                           b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
                       return p.select(p.less(p.loop(dim), args[1]),
                                       element(p, args[0]), zero);
                     });
}
