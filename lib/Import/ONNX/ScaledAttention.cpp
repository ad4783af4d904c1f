//===- ScaledAttention.cpp - softmax(q k' + masks) v ----------------------===//

#include "ScaledAttention.h"

#include "Slices.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

HeadTensor memplan::onnx::splitHeads(NodeBuilder &n, Value value,
                                     int64_t heads) {
  auto type = cast<RankedTensorType>(value.getType());
  HeadTensor result;
  result.batch = type.getDimSize(0);
  result.length = type.getDimSize(1);
  result.heads = heads;
  result.size = type.getDimSize(2) / heads;
  result.isLengthFirst = true;
  result.value =
      reshape(n, value, {result.batch, result.length, heads, result.size});
  return result;
}

HeadTensor memplan::onnx::headTensor(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  HeadTensor result;
  result.value = value;
  result.batch = type.getDimSize(0);
  result.heads = type.getDimSize(1);
  result.length = type.getDimSize(2);
  result.size = type.getDimSize(3);
  return result;
}

Value memplan::onnx::inOrder(NodeBuilder &n, const HeadTensor &tensor) {
  if (!tensor.isLengthFirst)
    return tensor.value;
  return transpose(n, tensor.value, {0, 2, 1, 3});
}

HeadTensor memplan::onnx::appendHeads(NodeBuilder &n, Value past,
                                      const HeadTensor &next) {
  auto type = cast<RankedTensorType>(past.getType());
  int64_t before = type.getDimSize(2);
  Value added = inOrder(n, next);
  if (before == 0)
    return headTensor(added);
  if (next.length == 0)
    return headTensor(past);
  Value all =
      empty(n, {next.batch, next.heads, before + next.length, next.size},
            type.getElementType());
  if (type.getNumElements() != 0) {
    all = insertSlice(n, past, all, {0, 0, 0, 0});
    all = insertSlice(n, added, all, {0, 0, before, 0});
  }
  return headTensor(all);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

ScaledAttention::ScaledAttention(NodeBuilder &n, DType dtype, HeadTensor q,
                                 HeadTensor k, HeadTensor v)
    : n(n), dtype(dtype), wide(dtype.bits() < 32 ? DType::f32() : dtype), q(q),
      k(k), v(v) {}

SmallVector<int64_t> ScaledAttention::groupedShape() const {
  if (!isGrouped())
    return shape();
  return {q.batch, k.heads, q.heads / k.heads, q.length, k.length};
}

void ScaledAttention::addSoftCap(double limit) {
  steps.push_back({{}, {}, [=](const Scalars &s, Value score, ValueRange) {
                     Value cap = s.number(limit);
                     return s.mul(cap, s.make<math::TanhOp>(s.div(score, cap)));
                   }});
}

LogicalResult ScaledAttention::addMask(ImportedTensor &mask) {
  SmallVector<int64_t> full = shape();
  if (!mask.dtype.isFloat() && !mask.dtype.isBool())
    return n.unsupported() << "the mask " << n.inputText(mask)
                           << " is neither of a floating-point type nor bool";
  // A shorter last dim leaves the keys after it out.
  bool isShort = mask.rank() > 0 && mask.shape().back() < k.length;
  SmallVector<int64_t> padded(mask.shape());
  if (isShort)
    padded.back() = k.length;
  auto fits = broadcastShapes({ArrayRef<int64_t>(padded), full});
  if (!fits || *fits != full)
    return n.invalid() << "the mask " << n.inputText(mask)
                       << " does not broadcast to " << shapeText(full);
  Value value = n.value(mask);
  if (isShort) {
    Scalars s(n.b, n.loc, mask.dtype);
    TypedAttr out =
        mask.dtype.isBool()
            ? TypedAttr(n.b.getBoolAttr(false))
            : n.b.getFloatAttr(
                  s.type(),
                  APFloat::getInf(cast<FloatType>(s.type()).getFloatSemantics(),
                                  /*Negative=*/true));
    Value all = filled(n, padded, out);
    if (mask.numElements() != 0)
      all = insertSlice(n, value, all, SmallVector<int64_t>(mask.rank(), 0));
    value = all;
  }
  addMask(value, mask.dtype);
  return success();
}

void ScaledAttention::addMask(Value mask, DType maskType) {
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<int64_t> view(4 - type.getRank(), 1);
  llvm::append_range(view, type.getShape());
  // One for all heads, or one a head: cut like the heads themselves.
  if (isGrouped()) {
    bool isPerHead = view[1] != 1;
    view.insert(view.begin() + 2, isPerHead ? q.heads / k.heads : 1);
    if (isPerHead)
      view[1] = k.heads;
  }
  BroadcastRead read = broadcastTo(n, reshape(n, mask, view), groupedShape());
  steps.push_back(
      {{read.tensor},
       {read.map},
       [this, maskType](const Scalars &s, Value score, ValueRange operands) {
         if (maskType.isBool())
           return hide(s, operands[0], score);
         if (maskType.isInteger()) {
           Scalars i(s.b, s.loc, maskType);
           return hide(s, i.less(i.integer(0), operands[0]), score);
         }
         Value bias = castScalar(s.b, s.loc, operands[0], maskType, wide);
         return s.select(s.equal(bias, s.lowest()), s.lowest(),
                         s.add(score, bias));
       }});
}

Value ScaledAttention::positions(int64_t count) {
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(0, count));
  return constantTensor<int64_t>(n, count, numbers, n.b.getI64Type());
}

void ScaledAttention::addWindow(const Window &window) {
  // All keys are within reach of all queries.
  bool isOpenRight =
      !window.right ||
      (!window.offsets && window.offset + *window.right >= k.length - 1);
  bool isOpenLeft =
      !window.left ||
      (!window.offsets && window.offset + q.length - 1 <= *window.left);
  if ((isOpenRight && isOpenLeft) || q.length == 0 || k.length == 0)
    return;
  AffineExpr batch = dim(0), query = dim(rank() - 2), key = dim(rank() - 1);
  Step step{{positions(q.length), positions(k.length)},
            {scoreMap(query), scoreMap(key)},
            {}};
  if (window.offsets) {
    step.operands.push_back(window.offsets);
    step.maps.push_back(scoreMap(batch));
  }
  step.apply = [=](const Scalars &s, Value score, ValueRange operands) {
    Scalars i(s.b, s.loc, DType::i64());
    Value first = i.integer(window.offset);
    if (window.offsets)
      first = i.add(first, castScalar(s.b, s.loc, operands[2],
                                      window.offsetType, DType::i64()));
    Value ahead = i.sub(operands[1], i.add(operands[0], first));
    Value isSeen;
    if (!isOpenRight)
      isSeen = i.lessOrEqual(ahead, i.integer(*window.right));
    if (!isOpenLeft) {
      Value isNear = i.lessOrEqual(i.integer(-*window.left), ahead);
      isSeen = isSeen ? i.make<arith::AndIOp>(isSeen, isNear) : isNear;
    }
    return s.select(isSeen, score, s.lowest());
  };
  steps.push_back(std::move(step));
}

void ScaledAttention::addKeyLengths(Value ends, DType lengthType,
                                    Value starts) {
  if (k.length == 0)
    return;
  Step step{{ends, positions(k.length)},
            {scoreMap(dim(0)), scoreMap(dim(rank() - 1))},
            {}};
  if (starts) {
    step.operands.push_back(starts);
    step.maps.push_back(scoreMap(dim(0)));
  }
  step.apply = [this, lengthType](const Scalars &s, Value score,
                                  ValueRange operands) {
    Scalars i(s.b, s.loc, DType::i64());
    auto bound = [&](Value x) {
      return castScalar(s.b, s.loc, x, lengthType, DType::i64());
    };
    Value isSeen = i.less(operands[1], bound(operands[0]));
    if (operands.size() > 2)
      isSeen = i.make<arith::AndIOp>(
          isSeen, i.lessOrEqual(bound(operands[2]), operands[1]));
    return hide(s, isSeen, score);
  };
  steps.push_back(std::move(step));
}

Value ScaledAttention::hide(const Scalars &s, Value isSeen, Value score) const {
  Value hidden = filter ? s.add(score, s.number(*filter)) : s.lowest();
  return s.select(isSeen, score, hidden);
}

Value ScaledAttention::applySteps(const Scalars &s, Value score,
                                  ValueRange operands, unsigned begin,
                                  unsigned end) const {
  for (unsigned at = begin; at < end; ++at) {
    size_t count = steps[at].operands.size();
    score = steps[at].apply(s, score, operands.take_front(count));
    operands = operands.drop_front(count);
  }
  return score;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

AffineMap ScaledAttention::operandMap(const HeadTensor &tensor, bool isQuery,
                                      AffineExpr length, AffineExpr size) {
  SmallVector<AffineExpr> exprs = {dim(0), dim(1)};
  if (isGrouped() && isQuery)
    exprs.push_back(dim(2));
  exprs.insert(tensor.isLengthFirst ? exprs.begin() + 1 : exprs.end(), length);
  exprs.push_back(size);
  return AffineMap::get(rank() + 1, 0, exprs, n.context());
}

Value ScaledAttention::grouped(const HeadTensor &tensor) {
  if (!isGrouped())
    return tensor.value;
  SmallVector<int64_t> view = {tensor.batch, k.heads, q.heads / k.heads};
  view.insert(tensor.isLengthFirst ? view.begin() + 1 : view.end(),
              tensor.length);
  view.push_back(tensor.size);
  return reshape(n, tensor.value, view);
}

Value ScaledAttention::product() {
  Type element = dtype.type(n.context());
  AffineExpr m = dim(rank() - 2), column = dim(rank() - 1), inner = dim(rank());
  AffineMap out = n.b.getMultiDimIdentityMap(rank() + 1).dropResult(rank());
  auto op = MatMulOp::create(
      n.b, n.loc, grouped(q), k.value, ValueRange(),
      empty(n, groupedShape(), element),
      {operandMap(q, true, m, inner), operandMap(k, false, column, inner), out},
      {}, [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        Value score = args[0];
        if (scale != 1)
          score = s.mul(s.number(scale), score);
        return fromAccumulator(b, loc, score, element);
      });
  return op.getResult();
}

Value ScaledAttention::adjust(Value scores, unsigned begin, unsigned end) {
  if (begin == end)
    return scores;
  SmallVector<Value> inputs = {scores};
  SmallVector<AffineMap> maps = {n.b.getMultiDimIdentityMap(rank())};
  for (unsigned at = begin; at < end; ++at) {
    llvm::append_range(inputs, steps[at].operands);
    llvm::append_range(maps, steps[at].maps);
  }
  Type element = dtype.type(n.context());
  return mapElements(n, inputs, maps, groupedShape(), element,
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, wide);
                       Value score =
                           applySteps(s, toAccumulator(b, loc, args[0]),
                                      args.drop_front(), begin, end);
                       return fromAccumulator(b, loc, score, element);
                     });
}

Value ScaledAttention::probabilities(Value scores, unsigned begin) {
  Type element = dtype.type(n.context());
  SmallVector<int64_t> shape = groupedShape();
  if (llvm::is_contained(shape, 0))
    return empty(n, shape, element);
  SmallVector<Value> inputs = {scores};
  SmallVector<AffineMap> maps = {n.b.getMultiDimIdentityMap(rank())};
  for (const Step &step : llvm::drop_begin(steps, begin)) {
    llvm::append_range(inputs, step.operands);
    llvm::append_range(maps, step.maps);
  }
  maps.push_back(n.b.getMultiDimIdentityMap(rank()));
  unsigned numInputs = inputs.size();
  DType rounded = precision.value_or(wide);
  DType computed = rounded.bits() < 32 ? DType::f32() : rounded;
  auto score = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value x = applySteps(Scalars(b, loc, wide), toAccumulator(b, loc, args[0]),
                         args.slice(1, numInputs - 1), begin, steps.size());
    x = castScalar(b, loc, x, wide, rounded);
    return castScalar(b, loc, x, rounded, computed);
  };
  auto exponential = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, computed);
    Value largest = args[numInputs];
    Value isEmpty = s.equal(largest, s.lowest());
    Value shift = s.select(isEmpty, s.number(0), largest);
    return s.make<math::ExpOp>(s.sub(score(b, loc, args), shift));
  };
  RegionBuilder stages[] = {score, exponential};
  auto op = RowwiseOp::create(
      n.b, n.loc, inputs, empty(n, shape, element), rank() - 1,
      {Combiner::Max, Combiner::Sum}, maps, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, computed);
        Value sum = args[numInputs + 1], zero = s.number(0);
        Value share = s.div(exponential(b, loc, args), sum);
        Value p = s.select(s.equal(sum, zero), zero, share);
        p = castScalar(b, loc, p, computed, rounded);
        return castScalar(b, loc, p, rounded, dtype);
      });
  return op.getResult();
}

Value ScaledAttention::weigh(Value probabilities, bool isLengthFirst) {
  Type element = dtype.type(n.context());
  HeadTensor y = q;
  y.size = v.size;
  y.isLengthFirst = isLengthFirst;
  SmallVector<int64_t> shape = {q.batch, q.heads};
  shape.insert(isLengthFirst ? shape.begin() + 1 : shape.end(), q.length);
  shape.push_back(v.size);
  if (k.length == 0)
    return splat(n, shape, n.b.getZeroAttr(element));
  y.value = empty(n, shape, element);
  AffineExpr m = dim(rank() - 2), column = dim(rank() - 1), inner = dim(rank());
  SmallVector<AffineExpr> exprs;
  for (unsigned i = 0; i < rank() - 1; ++i)
    exprs.push_back(dim(i));
  exprs.push_back(inner);
  AffineMap weights = AffineMap::get(rank() + 1, 0, exprs, n.context());
  auto op = MatMulOp::create(
      n.b, n.loc, probabilities, v.value, ValueRange(), grouped(y),
      {weights, operandMap(v, false, inner, column),
       operandMap(y, true, m, column)},
      {}, [&](OpBuilder &b, Location loc, ValueRange args) {
        return fromAccumulator(b, loc, args[0], element);
      });
  return reshape(n, op.getResult(), shape);
}
