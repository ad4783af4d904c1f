//===- ScatterOps.cpp - Writes at computed places -------------------------===//

#include "Indices.h"
#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// The `combine` region for attribute 'reduction', or null after an error.
static FailureOr<std::function<Value(OpBuilder &, Location, ValueRange)>>
readReduction(NodeBuilder &n, DType dtype) {
  StringRef reduction =
      n.opset >= 16 ? n.stringAttr("reduction", "none") : StringRef("none");
  static constexpr StringRef kKnown[] = {"none", "add", "mul", "max", "min"};
  if (!llvm::is_contained(kKnown, reduction) ||
      (n.opset < 18 && (reduction == "max" || reduction == "min")))
    return n.invalid() << "attribute 'reduction' is " << quoted(reduction)
                       << "; none, add, mul and, from opset 18 on, max and "
                          "min are accepted";
  if (dtype.isBool() && reduction != "none")
    return n.unsupported() << "attribute 'reduction' is " << quoted(reduction)
                           << " for bool; none is accepted";
  std::string kind = reduction.str();
  return std::function<Value(OpBuilder &, Location, ValueRange)>(
      [kind, dtype](OpBuilder &b, Location loc, ValueRange args) -> Value {
        Scalars s(b, loc, dtype);
        if (kind == "add")
          return s.add(args[0], args[1]);
        if (kind == "mul")
          return s.mul(args[0], args[1]);
        if (kind == "max")
          return s.max(args[0], args[1]);
        if (kind == "min")
          return s.min(args[0], args[1]);
        return args[1];
      });
}

/// out[..., indices[p], ...] = updates[p] along one axis.
static LogicalResult buildScatterElements(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1), &updates = n.input(2);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis) || failed(n.sameTypes({0, 2})))
    return failure();
  auto combine = readReduction(n, x.dtype);
  if (failed(combine))
    return failure();
  bool fits = indices.dtype.isInteger() && indices.rank() == x.rank() &&
              indices.shape() == updates.shape();
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = i == *axis || indices.dim(i) <= x.dim(i);
  if (!fits)
    return n.invalid() << n.inputText(1) << " and " << n.inputText(2)
                       << " do not fit " << n.inputText(0u);
  if (updates.numElements() == 0)
    return n.aliasResult(0, x);
  if (failed(checkKnownIndices(n, 1, x.dim(*axis))))
    return failure();
  SmallVector<int64_t> loops;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != *axis)
      loops.push_back(i);
  auto op =
      ScatterOp::create(n.b, n.loc, n.value(0), n.value(2), n.value(1),
                        empty(n, x.shape(), x.type.getElementType()), *axis,
                        loops, n.b.getMultiDimIdentityMap(x.rank()), *combine);
  return n.result(op.getResult(), x.dtype);
}

/// Each row of the indices names a slice of the data.
static LogicalResult buildScatterND(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1), &updates = n.input(2);
  if (failed(n.sameTypes({0, 2})))
    return failure();
  auto combine = readReduction(n, x.dtype);
  if (failed(combine))
    return failure();
  if (!indices.dtype.isInteger() || indices.rank() < 1 || x.rank() < 1)
    return n.invalid() << n.inputText(1)
                       << " holds the indices; integers of rank 1 and up are "
                          "accepted";
  int64_t width = indices.dim(indices.rank() - 1);
  SmallVector<int64_t> shape(indices.shape().drop_back());
  if (width < 1 || width > x.rank())
    return n.invalid() << n.inputText(1) << " does not index "
                       << n.inputText(0u);
  llvm::append_range(shape, x.shape().drop_front(width));
  if (updates.shape() != ArrayRef<int64_t>(shape))
    return n.invalid() << n.inputText(2) << " has to have shape "
                       << shapeText(shape) << " for " << n.inputText(1);
  if (updates.numElements() == 0)
    return n.aliasResult(0, x);
  // Column j of the indices goes with axis j of the data: views.
  int64_t count = *checkedProduct(indices.shape().drop_back());
  Value table = reshape(n, n.value(1), {count, width});
  Value rows = reshape(n, n.value(2), [&] {
    SmallVector<int64_t> flat = {count};
    llvm::append_range(flat, x.shape().drop_front(width));
    return flat;
  }());
  SmallVector<Value> columns;
  SmallVector<int64_t> axes, loops;
  SmallVector<AffineMap> maps;
  int64_t numLoops = 1 + x.rank() - width;
  Type indexType = indices.type.getElementType();
  for (int64_t j = 0; j < width; ++j) {
    auto type = RankedTensorType::get({count}, indexType);
    auto entries = [&](ArrayRef<int64_t> list) {
      return getAsIndexOpFoldResult(n.context(), list);
    };
    columns.push_back(
        tensor::ExtractSliceOp::create(n.b, n.loc, type, table, entries({0, j}),
                                       entries({count, 1}), entries({1, 1})));
    axes.push_back(j);
    maps.push_back(AffineMap::get(numLoops, 0, n.b.getAffineDimExpr(0)));
  }
  for (int64_t i = 1; i < numLoops; ++i)
    loops.push_back(i);
  auto op = ScatterOp::create(n.b, n.loc, n.value(0), rows, columns,
                              empty(n, x.shape(), x.type.getElementType()),
                              axes, loops, maps, *combine);
  return n.result(op.getResult(), x.dtype);
}

/// A slice of each sample is replaced; as it has no gaps, each element knows
/// whether it is in it, and reads its update.
static LogicalResult buildTensorScatter(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &updates = n.input(1);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -2), x.rank());
  StringRef mode = n.stringAttr("mode", "linear");
  if (failed(axis) || failed(n.sameTypes({0, 1})))
    return failure();
  bool isCircular = mode == "circular";
  if (!isCircular && mode != "linear")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; linear and circular are accepted";
  bool fits = updates.rank() == x.rank() && *axis > 0;
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = i == *axis ? updates.dim(i) <= x.dim(i) : updates.dim(i) == x.dim(i);
  bool hasIndices = n.hasInput(2);
  fits &= !hasIndices || (n.input(2).dtype.isInteger() &&
                          n.input(2).shape() == ArrayRef<int64_t>(x.dim(0)));
  if (!fits)
    return n.invalid() << n.inputText(1) << " does not fit " << n.inputText(0u)
                       << " along axis " << *axis;
  if (updates.numElements() == 0)
    return n.aliasResult(0, x);
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(), n.b.getMultiDimIdentityMap(x.rank()));
  if (hasIndices)
    operands.add(n.input(2), n.input(2).shape(),
                 AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(0)));
  Value source = n.value(1);
  int64_t extent = x.dim(*axis), length = updates.dim(*axis);
  Value y = operands.build(
      x.shape(), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value begin =
            hasIndices ? castScalar(b, loc, args[1], n.input(2).dtype, s.dtype)
                       : s.integer(0);
        Value place = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, *axis));
        Value from = s.sub(place, begin);
        if (isCircular) {
          Value rest = s.make<arith::RemSIOp>(from, s.integer(extent));
          from = s.select(s.less(rest, s.integer(0)),
                          s.add(rest, s.integer(extent)), rest);
        }
        Value isInside = s.make<arith::AndIOp>(
            s.lessOrEqual(s.integer(0), from), s.less(from, s.integer(length)));
        Value safe = s.max(s.integer(0), s.min(from, s.integer(length - 1)));
        SmallVector<Value> at;
        for (int64_t i = 0; i < x.rank(); ++i)
          at.push_back(linalg::IndexOp::create(b, loc, i));
        at[*axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), safe);
        Value update = tensor::ExtractOp::create(b, loc, source, at);
        return s.select(isInside, update, args[0]);
      });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// MaxUnpool
//===----------------------------------------------------------------------===//

/// Zeros, with each element at the place in the whole output that its index
/// says. Indices come from a MaxPool, so that they stay within their channel,
/// and channels are independent.
static LogicalResult buildMaxUnpool(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  int64_t spatial = x.rank() - 2;
  auto kernel = n.intsAttr("kernel_shape");
  if (spatial < 1 || !kernel ||
      static_cast<int64_t>(kernel->size()) != spatial ||
      indices.shape() != x.shape() || !indices.dtype.isInteger())
    return n.invalid() << n.inputText(0u) << ", " << n.inputText(1)
                       << " and 'kernel_shape' do not fit";
  auto strides =
      n.intsAttr("strides").value_or(SmallVector<int64_t>(spatial, 1));
  auto pads = n.intsAttr("pads").value_or(SmallVector<int64_t>(2 * spatial, 0));
  if (static_cast<int64_t>(strides.size()) != spatial ||
      static_cast<int64_t>(pads.size()) != 2 * spatial)
    return n.invalid() << "attributes 'strides' and 'pads' do not have one and "
                          "two entries per spatial dim";
  auto isOdd = [](int64_t entry) {
    return entry < 0 || entry > (int64_t(1) << 30);
  };
  if (llvm::any_of(*kernel, isOdd) || llvm::any_of(strides, isOdd) ||
      llvm::any_of(pads, isOdd))
    return n.unsupported() << "attributes 'kernel_shape', 'strides' and 'pads' "
                              "have an entry outside [0, 2^30]";
  SmallVector<int64_t> inferred = {x.dim(0), x.dim(1)};
  for (int64_t i = 0; i < spatial; ++i) {
    auto reach = checkedMul(x.dim(i + 2) - 1, strides[i]);
    auto extent =
        reach ? checkedAdd(*reach, (*kernel)[i] - pads[i] - pads[spatial + i])
              : std::nullopt;
    if (!extent || *extent < 1)
      return n.invalid() << "the output has no extent in spatial dim " << i;
    inferred.push_back(*extent);
  }
  SmallVector<int64_t> shape = inferred;
  if (n.hasInput(2)) {
    FailureOr<SmallVector<int64_t>> given = n.ints(2, "the output's shape");
    if (failed(given))
      return failure();
    shape = *given;
  }
  auto count = checkedProduct(shape);
  bool fits = shape.size() == inferred.size() && count;
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = i < 2 ? shape[i] == inferred[i] : shape[i] >= inferred[i];
  if (!fits)
    return n.invalid() << "the output's shape is " << shapeText(shape)
                       << ", but the input fills " << shapeText(inferred);
  if (x.numElements() == 0)
    return n.invalid() << n.inputText(0u) << " is empty";
  // Indices count in the inferred shape, whatever the output's.
  int64_t channels = x.dim(0) * x.dim(1), length = x.numElements() / channels;
  int64_t plane = *checkedProduct(ArrayRef<int64_t>(inferred).drop_front(2));
  SmallVector<int64_t> flat = {channels, length};
  Value within = mapElements(
      n, reshape(n, n.value(1), flat), n.b.getMultiDimIdentityMap(2), flat,
      n.b.getI64Type(), [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value at = castScalar(b, loc, args[0], indices.dtype, s.dtype);
        Value channel = arith::IndexCastOp::create(
            b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, 0));
        Value place = s.sub(at, s.mul(channel, s.integer(plane)));
        // What is in another channel is left out, not counted from the end.
        return s.select(s.less(place, s.integer(0)), s.integer(plane), place);
      });
  auto zero = cast<TypedAttr>(n.b.getZeroAttr(x.type.getElementType()));
  SmallVector<int64_t> planes = {channels, plane};
  auto op = ScatterOp::create(
      n.b, n.loc, filled(n, planes, zero), reshape(n, n.value(0), flat), within,
      empty(n, planes, x.type.getElementType()), 1, 0,
      n.b.getMultiDimIdentityMap(2),
      [](OpBuilder &, Location, ValueRange args) { return args[1]; });
  Value y = reshape(n, op.getResult(), inferred);
  if (shape != inferred) {
    SmallVector<int64_t> zeros(shape.size(), 0), ones(shape.size(), 1);
    auto entries = [&](ArrayRef<int64_t> list) {
      return getAsIndexOpFoldResult(n.context(), list);
    };
    y = tensor::InsertSliceOp::create(n.b, n.loc, y, filled(n, shape, zero),
                                      entries(zeros), entries(inferred),
                                      entries(ones));
  }
  return n.result(y, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> scatterOps() {
  static const OpEntry kOps[] = {
      {"MaxUnpool", 9, kNewestOpset, 2, 3, 1, buildMaxUnpool},
      {"Scatter", 9, 10, 3, 3, 1, buildScatterElements},
      {"Scatter", 11, kNewestOpset, 3, 3, 1, buildScatterElements},
      {"ScatterElements", 11, kNewestOpset, 3, 3, 1, buildScatterElements},
      {"ScatterND", 11, kNewestOpset, 3, 3, 1, buildScatterND},
      {"TensorScatter", 24, kNewestOpset, 2, 3, 1, buildTensorScatter},
  };
  return kOps;
}
} // namespace memplan::onnx
