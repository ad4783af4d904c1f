//===- RunDimValues.cpp - Rules that look at extents ----------------------===//
//
// Those of operators whose result depends on how large the extents are, or that
// must not see what lies beyond them.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "Places.h"
#include "RunDimRules.h"
#include "TensorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Records an extent, or that it is the one recorded already.
static LogicalResult setExtent(NodeBuilder &n, unsigned result, int64_t dim,
                               Value extent) {
  ImportedTensor &made = n.getResults()[result];
  if (Value before = made.runExtent(dim)) {
    if (before == extent)
      return success();
    return n.unsupported() << "dim " << dim << " of " << quoted(made.name)
                           << " has two extents that only the run tells; "
                              "tensors that share one are accepted";
  }
  n.setRunDim(result, dim, extent);
  return success();
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

/// `y` with the elements of `x` from place `begin` of dim `axis` on.
static Value place(NodeBuilder &n, Value y, Value x, Value begin,
                   int64_t axis) {
  auto type = cast<RankedTensorType>(y.getType());
  int64_t rank = type.getRank();
  int64_t bound = cast<RankedTensorType>(x.getType()).getDimSize(axis);
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, n.context())};
  return mapElements(
      n, {y, begin}, maps, type.getShape(), type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        Scalars s(b, loc, DType::i64());
        SmallVector<Value> at;
        for (int64_t i = 0; i < rank; ++i)
          at.push_back(linalg::IndexOp::create(b, loc, i));
        Value here =
            arith::IndexCastOp::create(b, loc, b.getI64Type(), at[axis]);
        Value from = s.sub(here, args[1]);
        Value safe = s.max(s.integer(0), s.min(from, s.integer(bound - 1)));
        at[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), safe);
        Value element = tensor::ExtractOp::create(b, loc, x, at);
        return s.select(s.lessOrEqual(s.integer(0), from), element, args[0]);
      });
}

static bool isSameExtent(Value a, Value b) {
  DenseElementsAttr x, y;
  return a == b || (matchPattern(a, m_Constant(&x)) &&
                    matchPattern(b, m_Constant(&y)) && x == y);
}

/// The sum of two extents: one that is there already, if so, for tensors share
/// an extent only if it is the same value.
static Value sumOf(NodeBuilder &n, Value a, Value b) {
  for (Operation *user : a.getUsers()) {
    auto before = dyn_cast<linalg::GenericOp>(user);
    if (!before || before->getBlock() != n.b.getInsertionBlock() ||
        before.getNumDpsInputs() != 2 || before.getInputs()[0] != a ||
        !isSameExtent(before.getInputs()[1], b))
      continue;
    auto sum = dyn_cast<arith::AddIOp>(before.getBody()->front());
    if (sum && sum.getLhs() == before.getBody()->getArgument(0) &&
        sum.getRhs() == before.getBody()->getArgument(1) &&
        sum->getNextNode() == before.getBody()->getTerminator())
      return before.getResult(0);
  }
  return computeExtent(n, {a, b}, [](const Scalars &s, ValueRange args) {
    return s.add(args[0], args[1]);
  });
}

/// Along a dim of the run each part begins where the one before ends.
LogicalResult memplan::onnx::concatRule(NodeBuilder &n, BuildFn build) {
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), n.input(0).rank());
  if (failed(axis) || failed(build(n)))
    return failure();
  ImportedTensor &y = n.getResults().front();
  if (y.aliasOf)
    return success();
  bool isAlong = false;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    isAlong |= bool(n.input(i).runExtent(*axis));
    for (int64_t dim = 0; dim < y.rank(); ++dim) {
      Value extent = n.input(i).runExtent(dim);
      if (dim == *axis)
        continue;
      if (extent != n.input(0).runExtent(dim))
        return n.unsupported()
               << n.inputText(0u) << " and " << n.inputText(i)
               << " may differ in the extent of dim " << dim
               << ", which only the run tells; tensors that share it are "
                  "accepted";
      if (extent && failed(setExtent(n, 0, dim, extent)))
        return failure();
    }
  }
  if (!isAlong)
    return success();
  Value begin = scalarExtent(n, 0);
  unsigned first = 0;
  while (first < n.numInputs() && n.input(first).numElements() == 0)
    ++first;
  auto zero = cast<TypedAttr>(n.b.getZeroAttr(y.type.getElementType()));
  Value joined = filled(n, y.shape(), zero);
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    ImportedTensor &x = n.input(i);
    if (x.numElements() == 0)
      continue;
    // Later parts overwrite what is beyond the extents of earlier ones.
    joined = place(n, joined, n.value(i), begin, *axis);
    Value extent = x.runExtent(*axis);
    if (!extent)
      extent = scalarExtent(n, x.dim(*axis));
    begin = i == first ? extent : sumOf(n, begin, extent);
  }
  y.value = joined;
  n.setRunDim(0, *axis, begin);
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// What `reduction` does not see.
static TypedAttr neutral(NodeBuilder &n, StringRef reduction, DType dtype) {
  Type type = dtype.type(n.context());
  bool isMax = reduction == "ReduceMax" || reduction == "ArgMax";
  bool isMin = reduction == "ReduceMin" || reduction == "ArgMin";
  if (auto floatType = dyn_cast<FloatType>(type)) {
    if (isMax || isMin)
      return n.b.getFloatAttr(
          type, APFloat::getInf(floatType.getFloatSemantics(), isMax));
    return n.b.getFloatAttr(type, reduction == "ReduceProd" ? 1.0 : 0.0);
  }
  unsigned bits = dtype.bits();
  APInt value(bits, reduction == "ReduceProd");
  if (isMax || isMin) {
    if (dtype.isSigned())
      value = isMax ? APInt::getSignedMinValue(bits)
                    : APInt::getSignedMaxValue(bits);
    else
      value = isMax ? APInt::getMinValue(bits) : APInt::getMaxValue(bits);
  }
  return n.b.getIntegerAttr(type, value);
}

/// The input with what lies beyond the extents replaced by `beyond`.
static Value masked(NodeBuilder &n, ImportedTensor &x, TypedAttr beyond) {
  int64_t rank = x.rank();
  SmallVector<Value> inputs = {n.value(x)};
  SmallVector<AffineMap> maps = {n.b.getMultiDimIdentityMap(rank)};
  for (const RunDim &entry : x.runDims) {
    inputs.push_back(entry.extent);
    maps.push_back(AffineMap::get(rank, 0, n.context()));
  }
  return mapElements(n, inputs, maps, x.shape(), x.type.getElementType(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, DType::i64());
                       Value result = args[0];
                       Value other = arith::ConstantOp::create(b, loc, beyond);
                       for (auto [entry, extent] :
                            llvm::zip(x.runDims, args.drop_front())) {
                         Value here = arith::IndexCastOp::create(
                             b, loc, b.getI64Type(),
                             linalg::IndexOp::create(b, loc, entry.dim));
                         result = s.select(s.less(here, extent), result, other);
                       }
                       return result;
                     });
}

/// What lies beyond is made neutral; dims that are not reduced stay the run's.
static LogicalResult reduce(NodeBuilder &n, BuildFn build,
                            ArrayRef<int64_t> axes) {
  ImportedTensor &x = n.input(0);
  auto isReduced = [&](int64_t dim) {
    return axes.empty() || llvm::is_contained(axes, dim);
  };
  SmallVector<RunDim> dims(x.runDims.begin(), x.runDims.end());
  bool hidesAny = false;
  for (const RunDim &entry : dims)
    hidesAny |= isReduced(entry.dim);
  if (hidesAny)
    n.replaceInput(0,
                   *keepValue(n, masked(n, x, neutral(n, n.opName(), x.dtype)),
                              x.dtype, x.name));
  if (failed(build(n)))
    return failure();
  bool keeps = n.intAttr("keepdims", 1) != 0;
  for (const RunDim &entry : dims) {
    int64_t to = 0;
    for (int64_t i = 0; i < entry.dim; ++i)
      to += keeps || !isReduced(i);
    if (!isReduced(entry.dim) && !n.getResults().front().aliasOf)
      n.setRunDim(0, to, entry.extent);
  }
  return success();
}

LogicalResult memplan::onnx::reduceRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  if (failed(onlyRunDimsOf(n, 0)))
    return failure();
  int64_t since = n.opName() == "ReduceSum" ? 13 : 18;
  SmallVector<int64_t> axes;
  if (n.opset < since) {
    axes = n.intsAttr("axes").value_or(axes);
  } else if (n.hasInput(1)) {
    auto given = n.ints(1, "the list of axes");
    if (failed(given))
      return failure();
    axes = *given;
  }
  if (axes.empty() && n.opset >= since &&
      n.intAttr("noop_with_empty_axes", 0) != 0)
    return n.unsupported() << n.inputText(0u) << " with noop_with_empty_axes";
  FailureOr<SmallVector<int64_t>> dims = n.axes(axes, x.rank());
  if (failed(dims))
    return failure();
  return reduce(n, build, *dims);
}

/// Reductions that need the number of elements, or have no neutral one.
LogicalResult memplan::onnx::reduceOthersRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  LogicalResult done = reduceRule(n, build);
  if (succeeded(done) &&
      n.getResults().front().runDims.size() != x.runDims.size())
    return n.unsupported() << "reduces " << n.inputText(x)
                           << " along an axis whose extent only the run tells";
  return done;
}

LogicalResult memplan::onnx::argRule(NodeBuilder &n, BuildFn build) {
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), n.input(0).rank());
  if (failed(axis))
    return failure();
  // What lies beyond is last, and might be as extreme.
  if (n.opset >= 12 && n.intAttr("select_last_index", 0) != 0 &&
      failed(isFixedDim(n, 0, *axis, "has its last extreme sought along")))
    return failure();
  return reduce(n, build, *axis);
}

//===----------------------------------------------------------------------===//
// Choices among elements of the run
//===----------------------------------------------------------------------===//

/// Lets the builder see input `i` with `beyond` beyond its extents.
static void mask(NodeBuilder &n, unsigned i, TypedAttr beyond) {
  ImportedTensor &x = n.input(i);
  if (!x.runDims.empty())
    n.replaceInput(i, *keepValue(n, masked(n, x, beyond), x.dtype, x.name));
}

static TypedAttr zeroOf(NodeBuilder &n, const ImportedTensor &x) {
  return cast<TypedAttr>(n.b.getZeroAttr(x.type.getElementType()));
}

LogicalResult memplan::onnx::nonZeroRule(NodeBuilder &n, BuildFn build) {
  mask(n, 0, zeroOf(n, n.input(0)));
  return build(n);
}

/// What lies beyond is not chosen; other dims stay the run's.
LogicalResult memplan::onnx::compressRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  if (!n.hasAttr("axis") && x.rank() != 1 && failed(onlyRunDimsOf(n, 1)))
    return failure();
  int64_t given = n.hasAttr("axis") ? n.intAttr("axis", 0) : 0;
  FailureOr<int64_t> axis = n.axis(given, x.rank());
  if (failed(axis))
    return failure();
  ImportedTensor &condition = n.input(1);
  Value extent = x.runExtent(*axis);
  if (extent && extent != condition.runExtent(0))
    return n.unsupported() << n.inputText(0u) << " and " << n.inputText(1)
                           << " may differ in the extent of axis " << *axis
                           << ", which only the run tells";
  mask(n, 1, zeroOf(n, condition));
  if (failed(build(n)))
    return failure();
  for (const RunDim &entry : x.runDims)
    if (entry.dim != *axis)
      n.setRunDim(0, entry.dim, entry.extent);
  return success();
}

/// What lies beyond has no score that anything exceeds.
LogicalResult memplan::onnx::suppressionRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &boxes = n.input(0), &scores = n.input(1);
  if (failed(onlyRunDimsOf(n, {0, 1})))
    return failure();
  if (scores.rank() != 3 || boxes.rank() != 3)
    return onlyRunDimsOf(n, {});
  for (int64_t dim = 0; dim < 3; ++dim)
    if ((dim != 1 && failed(isFixedDim(n, 0, dim, "holds boxes along"))) ||
        (dim != 2 && failed(isFixedDim(n, 1, dim, "holds scores along"))))
      return failure();
  if (boxes.runExtent(1) != scores.runExtent(2))
    return n.unsupported() << n.inputText(0u) << " and " << n.inputText(1)
                           << " may differ in the number of boxes, which only "
                              "the run tells";
  if (!scores.dtype.isFloat())
    return onlyRunDimsOf(n, {});
  mask(n, 1, neutral(n, "ReduceMax", scores.dtype));
  return build(n);
}

/// Where an index lies beyond, it becomes one outside, which moves nothing.
LogicalResult memplan::onnx::scatterRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0), &indices = n.input(1), &updates = n.input(2);
  // Of ScatterND the last dim of the indices is a tuple.
  bool isND = n.opName() == "ScatterND";
  for (int64_t dim = 0; dim < indices.rank() - isND; ++dim)
    if (dim >= updates.rank() ||
        indices.runExtent(dim) != updates.runExtent(dim))
      return n.unsupported()
             << n.inputText(1) << " and " << n.inputText(2)
             << " may differ in the extent of dim " << dim
             << ", which only the run tells; tensors that share it are "
                "accepted";
  if (isND) {
    if (indices.rank() > 0 && failed(isFixedDim(n, 1, indices.rank() - 1,
                                                "has tuples of indices along")))
      return failure();
    int64_t moved = x.rank() - indices.shape().back();
    for (int64_t i = 0; i < moved; ++i)
      if (updates.runExtent(updates.rank() - 1 - i) !=
          x.runExtent(x.rank() - 1 - i))
        return onlyRunDimsOf(n, 1);
  }
  mask(n, 1,
       n.b.getIntegerAttr(indices.type.getElementType(),
                          APInt::getSignedMaxValue(indices.dtype.bits())));
  if (failed(build(n)))
    return failure();
  for (const RunDim &entry : x.runDims)
    if (!n.getResults().front().aliasOf)
      n.setRunDim(0, entry.dim, entry.extent);
  return success();
}

/// What lies beyond is chosen last: of equals the first come first, and a NaN
/// is the largest. Where there are fewer than k, all are chosen.
LogicalResult memplan::onnx::topKRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), x.rank());
  if (failed(axis) || failed(onlyRunDimsOf(n, 0)))
    return failure();
  Value extent = x.runExtent(*axis);
  if (extent) {
    bool isLargest = n.opset < 11 || n.intAttr("largest", 1) != 0;
    TypedAttr last = neutral(n, isLargest ? "ReduceMax" : "ReduceMin", x.dtype);
    if (auto number = dyn_cast<FloatAttr>(last); number && !isLargest)
      last = n.b.getFloatAttr(
          number.getType(), APFloat::getQNaN(number.getValue().getSemantics()));
    mask(n, 0, last);
  }
  if (failed(build(n)))
    return failure();
  ImportedTensor &values = n.getResults()[0], &places = n.getResults()[1];
  ImportedTensor &made = places.type ? places : values;
  if (extent) {
    Value count = made.runExtent(*axis);
    if (!count)
      count = scalarExtent(n, made.dim(*axis));
    extent = computeExtent(n, {count, extent},
                           [](const Scalars &s, ValueRange args) {
                             return s.min(args[0], args[1]);
                           });
    values.runDims.clear();
    places.runDims.clear();
  }
  for (unsigned result : {0, 1})
    for (const RunDim &entry : x.runDims)
      n.setRunDim(result, entry.dim,
                  entry.dim == *axis ? extent : entry.extent);
  return success();
}

//===----------------------------------------------------------------------===//
// Shape and Size
//===----------------------------------------------------------------------===//

/// The extents as a tensor of the run.
static Value shapeOf(NodeBuilder &n, ImportedTensor &x) {
  auto type = RankedTensorType::get({x.rank()}, n.b.getI64Type());
  SmallVector<AffineMap> maps(x.runDims.size(),
                              AffineMap::get(1, 0, n.context()));
  SmallVector<Value> extents;
  for (const RunDim &entry : x.runDims)
    extents.push_back(entry.extent);
  Value bounds = arith::ConstantOp::create(
      n.b, n.loc, DenseElementsAttr::get(type, x.shape()));
  extents.push_back(bounds);
  maps.push_back(n.b.getMultiDimIdentityMap(1));
  return mapElements(
      n, extents, maps, x.rank(), n.b.getI64Type(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value here = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 0));
        Value result = args.back();
        for (auto [entry, extent] : llvm::zip(x.runDims, args.drop_back()))
          result =
              s.select(s.equal(here, s.integer(entry.dim)), extent, result);
        return result;
      });
}

std::pair<int64_t, int64_t> memplan::onnx::shapeRange(NodeBuilder &n) {
  int64_t rank = n.input(0).rank();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  if (n.opset < 15)
    return {0, rank};
  return {clamp(n.intAttr("start", 0)), clamp(n.intAttr("end", rank))};
}

/// The builder slices the shape, which it takes for its input's.
LogicalResult memplan::onnx::shapeRule(NodeBuilder &n, BuildFn) {
  ImportedTensor &x = n.input(0);
  int64_t rank = x.rank(), start, end;
  std::tie(start, end) = shapeRange(n);
  int64_t count = std::max<int64_t>(0, end - start);
  bool isFixedPart = true;
  for (const RunDim &entry : x.runDims)
    isFixedPart &= entry.dim < start || entry.dim >= end;
  auto type = RankedTensorType::get({count}, n.b.getI64Type());
  if (isFixedPart)
    return n.constantResult(
        DenseElementsAttr::get(type, x.shape().slice(start, count)),
        DType::i64());
  Value all = shapeOf(n, x);
  auto entry = [&](int64_t value) {
    return SmallVector<OpFoldResult>{n.b.getIndexAttr(value)};
  };
  if (count != rank)
    all = tensor::ExtractSliceOp::create(n.b, n.loc, type, all, entry(start),
                                         entry(count), entry(1));
  return n.result(all, DType::i64());
}

LogicalResult memplan::onnx::sizeRule(NodeBuilder &n, BuildFn) {
  ImportedTensor &x = n.input(0);
  SmallVector<Value> extents;
  int64_t rest = 1; // no larger than the tensor, whose size was checked
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (Value extent = x.runExtent(i))
      extents.push_back(extent);
    else
      rest *= x.dim(i);
  }
  Value size =
      computeExtent(n, extents, [&](const Scalars &s, ValueRange args) {
        Value product = s.integer(rest);
        for (Value extent : args)
          product = s.mul(product, extent);
        return product;
      });
  return n.result(size, DType::i64());
}
