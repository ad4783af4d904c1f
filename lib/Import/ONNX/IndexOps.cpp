//===- IndexOps.cpp - Where the largest element is ------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "Window.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// ArgMax and ArgMin
//===----------------------------------------------------------------------===//

/// The row's extreme value, then the least (or greatest) position that has it.
/// Positions are an operand, since a row's body does not know its own.
static LogicalResult buildArg(NodeBuilder &n, bool isMax) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  bool keeps = n.intAttr("keepdims", 1) != 0;
  bool isLast = n.opset >= 12 && n.intAttr("select_last_index", 0) != 0;
  if (!x.dtype.isFloat() && !x.dtype.isSigned())
    return n.unsupported() << n.inputText(0u)
                           << "; floats and signed integers are accepted";
  int64_t extent = x.dim(*axis);
  if (extent == 0)
    return n.invalid() << n.inputText(0u) << " has no element along axis "
                       << *axis;
  DType position = DType::i64();
  Value positions = mapElements(
      n, {}, {}, extent, n.b.getI64Type(),
      [](OpBuilder &b, Location loc, ValueRange) -> Value {
        return arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                          linalg::IndexOp::create(b, loc, 0));
      });
  SmallVector<int64_t> reduced, shape(x.shape());
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != *axis) {
      reduced.push_back(x.dim(i));
      exprs.push_back(n.b.getAffineDimExpr(i));
    }
  if (keeps)
    shape[*axis] = 1;
  else
    shape.erase(shape.begin() + *axis);
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(x.rank()),
                      AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(*axis)),
                      AffineMap::get(x.rank(), 0, exprs, n.context())};
  auto extremeStage = [](OpBuilder &, Location, ValueRange args) {
    return args[0];
  };
  auto positionStage = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars element(b, loc, x.dtype), index(b, loc, position);
    return index.select(element.equal(args[0], args[2]), args[1],
                        index.integer(isLast ? -1 : extent));
  };
  RegionBuilder stages[] = {extremeStage, positionStage};
  auto op = RowwiseOp::create(
      n.b, n.loc, {n.value(0), positions}, empty(n, reduced, n.b.getI64Type()),
      *axis,
      {isMax ? Combiner::Max : Combiner::Min,
       isLast ? Combiner::Max : Combiner::Min},
      maps, stages, [&](OpBuilder &b, Location loc, ValueRange args) {
        // A row with a NaN has no element equal to its extreme.
        Scalars s(b, loc, position);
        return s.max(s.integer(0), s.min(args[3], s.integer(extent - 1)));
      });
  return n.result(reshape(n, op.getResult(), shape), position);
}

static LogicalResult buildArgMax(NodeBuilder &n) {
  return buildArg(n, /*isMax=*/true);
}
static LogicalResult buildArgMin(NodeBuilder &n) {
  return buildArg(n, /*isMax=*/false);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> indexOps() {
  static const OpEntry kOps[] = {
      {"ArgMax", 1, kNewestOpset, 1, 1, 1, buildArgMax},
      {"ArgMin", 1, kNewestOpset, 1, 1, 1, buildArgMin},
  };
  return kOps;
}
} // namespace memplan::onnx

//===----------------------------------------------------------------------===//
// The second output of MaxPool
//===----------------------------------------------------------------------===//

/// Windows of more elements than this would make an unreadable kernel.
static constexpr int64_t kMostPositions = 64;

FailureOr<Value> memplan::onnx::buildMaxPoolIndices(NodeBuilder &n,
                                                    const Window &window,
                                                    bool isColumnMajor) {
  ImportedTensor &x = n.input(0);
  int64_t spatial = x.rank() - 2, count = 1;
  for (int64_t extent : window.kernel)
    count = std::min(count * extent, kMostPositions + 1);
  if (count > kMostPositions)
    return n.unsupported() << "the output Indices of a window of "
                           << shapeText(window.kernel) << "; at most "
                           << kMostPositions << " elements are accepted";
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1)};
  shape.append(window.output.begin(), window.output.end());
  // How far a step along each spatial dim moves the index within a channel.
  SmallVector<int64_t> steps(spatial, 1);
  if (isColumnMajor)
    for (int64_t i = 1; i < spatial; ++i)
      steps[i] = steps[i - 1] * x.dim(i + 1);
  else
    for (int64_t i = spatial - 2; i >= 0; --i)
      steps[i] = steps[i + 1] * x.dim(i + 3);
  int64_t plane = 1;
  for (int64_t extent : x.shape().drop_front(2))
    plane *= extent;
  Value source = n.value(0);

  auto body = [&](OpBuilder &b, Location loc, ValueRange) -> Value {
    Scalars s(b, loc, DType::i64()), element(b, loc, x.dtype);
    auto toIndex = [&](Value at) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
    };
    SmallVector<Value> loops;
    for (size_t i = 0; i < shape.size(); ++i)
      loops.push_back(arith::IndexCastOp::create(
          b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, i)));
    Value base = s.mul(s.add(s.mul(loops[0], s.integer(x.dim(1))), loops[1]),
                       s.integer(plane));
    Value best = element.lowest(), bestAt = base;
    Value found = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    for (int64_t position = 0; position < count; ++position) {
      int64_t rest = position;
      SmallVector<int64_t> k(spatial);
      for (int64_t i = spatial - 1; i >= 0; --i) {
        k[i] = rest % window.kernel[i];
        rest /= window.kernel[i];
      }
      Value inside, at = base;
      SmallVector<Value> index = {toIndex(loops[0]), toIndex(loops[1])};
      for (int64_t i = 0; i < spatial; ++i) {
        Value where =
            s.add(s.mul(loops[i + 2], s.integer(window.strides[i])),
                  s.integer(k[i] * window.dilations[i] - window.padsBegin[i]));
        Value last = s.integer(x.dim(i + 2) - 1);
        Value fits = s.make<arith::AndIOp>(s.lessOrEqual(s.integer(0), where),
                                           s.lessOrEqual(where, last));
        inside = inside ? s.make<arith::AndIOp>(inside, fits) : fits;
        Value safe = s.max(s.integer(0), s.min(where, last));
        at = s.add(at, s.mul(safe, s.integer(steps[i])));
        index.push_back(toIndex(safe));
      }
      Value value = tensor::ExtractOp::create(b, loc, source, index);
      // The first of equal elements counts, and any before none.
      Value isFirst = s.make<arith::XOrIOp>(
          found,
          arith::ConstantOp::create(b, loc, b.getBoolAttr(true)).getResult());
      Value better = s.make<arith::OrIOp>(element.less(best, value), isFirst);
      Value takes = s.make<arith::AndIOp>(inside, better);
      best = s.select(takes, value, best);
      bestAt = s.select(takes, at, bestAt);
      found = s.make<arith::OrIOp>(found, inside);
    }
    return bestAt;
  };
  return mapElements(n, {}, {}, shape, n.b.getI64Type(), body);
}
