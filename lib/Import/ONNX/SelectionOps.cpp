//===- SelectionOps.cpp - Parts, joins and repetitions of tensors ---------===//

#include "Indices.h"
#include "OpTable.h"
#include "Scalars.h"
#include "Slices.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static SmallVector<OpFoldResult> attrs(NodeBuilder &n,
                                       ArrayRef<int64_t> values) {
  return getAsIndexOpFoldResult(n.context(), values);
}

Value memplan::onnx::extractSlice(NodeBuilder &n, Value source,
                                  ArrayRef<int64_t> offsets,
                                  ArrayRef<int64_t> sizes,
                                  ArrayRef<int64_t> strides) {
  if (llvm::is_contained(sizes, 0))
    return empty(n, sizes,
                 cast<RankedTensorType>(source.getType()).getElementType());
  return tensor::ExtractSliceOp::create(n.b, n.loc, source, attrs(n, offsets),
                                        attrs(n, sizes), attrs(n, strides));
}

Value memplan::onnx::insertSlice(NodeBuilder &n, Value source, Value into,
                                 ArrayRef<int64_t> offsets) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> ones(type.getRank(), 1);
  return tensor::InsertSliceOp::create(
      n.b, n.loc, source, into, attrs(n, offsets), attrs(n, type.getShape()),
      attrs(n, ones));
}

static Value indexConstant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

//===----------------------------------------------------------------------===//
// Concat and Split
//===----------------------------------------------------------------------===//

static LogicalResult buildConcat(NodeBuilder &n) {
  if (!n.hasAttr("axis") && n.opset >= 4)
    return n.invalid() << "has no attribute 'axis'";
  ImportedTensor &first = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 1), first.rank());
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(first.shape());
  shape[*axis] = 0;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      return n.invalid() << "input " << i << " is left out";
    ImportedTensor &x = n.input(i);
    bool fits = x.rank() == first.rank();
    for (int64_t dim = 0; fits && dim < x.rank(); ++dim)
      fits = dim == *axis || x.dim(dim) == first.dim(dim);
    auto sum = fits ? checkedAdd(shape[*axis], x.dim(*axis)) : std::nullopt;
    if (!sum)
      return n.invalid() << n.inputText(0u) << " and " << n.inputText(i)
                         << " cannot be joined along axis " << *axis;
    shape[*axis] = *sum;
    if (failed(n.sameTypes({0, i})))
      return failure();
  }
  if (n.numInputs() == 1)
    return n.aliasResult(0, first);
  Value result = empty(n, shape, first.type.getElementType());
  SmallVector<int64_t> offsets(first.rank(), 0);
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (n.input(i).numElements() == 0)
      continue;
    result = insertSlice(n, n.value(i), result, offsets);
    offsets[*axis] += n.input(i).dim(*axis);
  }
  return n.result(result, first.dtype);
}

/// The extents of the parts: given, or equal ones (the last may be smaller
/// from opset 18 on).
static FailureOr<SmallVector<int64_t>> readParts(NodeBuilder &n,
                                                 int64_t extent) {
  std::optional<SmallVector<int64_t>> given;
  if (n.opset < 13 && !n.hasInput(1)) {
    given = n.intsAttr("split");
  } else if (n.hasInput(1)) {
    if (n.opset < 13 && n.hasAttr("split"))
      return n.invalid() << "has both an input and an attribute 'split'";
    FailureOr<SmallVector<int64_t>> input = n.ints(1, "the list of extents");
    if (failed(input))
      return failure();
    given = *input;
  }
  int64_t count = n.numOutputs();
  if (n.opset >= 18 && n.hasAttr("num_outputs")) {
    if (given)
      return n.invalid() << "has both extents and attribute 'num_outputs'";
    if (n.intAttr("num_outputs", 0) != count)
      return n.invalid() << "attribute 'num_outputs' is "
                         << n.intAttr("num_outputs", 0) << ", but it has "
                         << count << " outputs";
  }
  if (given) {
    int64_t sum = 0;
    for (int64_t part : *given) {
      auto next = part < 0 ? std::nullopt : checkedAdd(sum, part);
      if (!next)
        return n.invalid() << "the extent " << part << " of a part is negative "
                           << "or too large";
      sum = *next;
    }
    if (static_cast<int64_t>(given->size()) != count || sum != extent)
      return n.invalid() << "parts of extents " << shapeText(*given)
                         << " do not make up " << count << " outputs of extent "
                         << extent;
    return *given;
  }
  int64_t part = (extent + count - 1) / count;
  if (n.opset < 18 && extent % count != 0)
    return n.invalid() << "extent " << extent << " does not split into "
                       << count << " equal parts";
  SmallVector<int64_t> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(std::clamp<int64_t>(extent - i * part, 0, part));
  return parts;
}

static LogicalResult buildSplit(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  FailureOr<SmallVector<int64_t>> parts = readParts(n, x.dim(*axis));
  if (failed(parts))
    return failure();
  if (parts->size() == 1)
    return n.aliasResult(0, x);
  SmallVector<int64_t> offsets(x.rank(), 0), sizes(x.shape()),
      strides(x.rank(), 1);
  for (auto [i, part] : llvm::enumerate(*parts)) {
    sizes[*axis] = part;
    if (n.wantsOutput(i) &&
        failed(n.result(i, extractSlice(n, n.value(0), offsets, sizes, strides),
                        x.dtype)))
      return failure();
    offsets[*axis] += part;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

namespace {
struct SliceLists {
  SmallVector<int64_t> starts, ends, axes, steps;
};
} // namespace

/// The lists are attributes before opset 10, inputs since.
static FailureOr<SliceLists> readSlice(NodeBuilder &n) {
  SliceLists lists;
  bool hasAxes = false;
  if (n.opset < 10) {
    auto starts = n.intsAttr("starts"), ends = n.intsAttr("ends"),
         axes = n.intsAttr("axes");
    if (!starts || !ends)
      return n.invalid() << "needs attributes 'starts' and 'ends'";
    lists.starts = *starts;
    lists.ends = *ends;
    if ((hasAxes = axes.has_value()))
      lists.axes = *axes;
  } else {
    SmallVector<int64_t> *targets[] = {&lists.starts, &lists.ends, &lists.axes,
                                       &lists.steps};
    static constexpr const char *kNames[] = {"starts", "ends", "axes", "steps"};
    for (unsigned i = 1; i <= 4; ++i) {
      if (!n.hasInput(i))
        continue;
      FailureOr<SmallVector<int64_t>> values = n.ints(i, kNames[i - 1]);
      if (failed(values))
        return failure();
      *targets[i - 1] = *values;
    }
    hasAxes = n.hasInput(3);
  }
  size_t count = lists.starts.size();
  if (!hasAxes)
    lists.axes = llvm::to_vector(llvm::seq<int64_t>(count));
  if (lists.steps.empty())
    lists.steps.assign(count, 1);
  if (lists.ends.size() != count || lists.axes.size() != count ||
      lists.steps.size() != count)
    return n.invalid() << "starts, ends, axes and steps differ in length";
  return lists;
}

/// Where a slice of a dim begins and how many elements it takes, after the
/// clamping that the operator's definition prescribes.
static std::pair<int64_t, int64_t> clampSlice(int64_t extent, int64_t start,
                                              int64_t end, int64_t step) {
  auto wrap = [&](int64_t at) { return at < 0 ? at + extent : at; };
  if (step > 0) {
    start = std::clamp<int64_t>(wrap(start), 0, extent);
    end = std::clamp<int64_t>(wrap(end), 0, extent);
    int64_t room = end - start;
    return {start, room > 0 ? (room - 1) / step + 1 : 0};
  }
  if (extent == 0)
    return {0, 0};
  start = std::clamp<int64_t>(wrap(start), 0, extent - 1);
  // An end before the first element stays there: it cannot be wrapped again.
  end = std::clamp<int64_t>(wrap(end), -1, extent - 1);
  int64_t room = start - end;
  return {start, room > 0 ? (room - 1) / -step + 1 : 0};
}

static LogicalResult buildSlice(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<SliceLists> lists = readSlice(n);
  if (failed(lists))
    return failure();
  FailureOr<SmallVector<int64_t>> axes = n.axes(lists->axes, x.rank());
  if (failed(axes))
    return failure();
  SmallVector<int64_t> offsets(x.rank(), 0), sizes(x.shape()),
      strides(x.rank(), 1);
  bool isBackward = false;
  for (auto [axis, start, end, step] :
       llvm::zip(*axes, lists->starts, lists->ends, lists->steps)) {
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return n.invalid() << "step " << step << " along axis " << axis;
    std::tie(offsets[axis], sizes[axis]) =
        clampSlice(x.dim(axis), start, end, step);
    // A lone element is taken by any step.
    strides[axis] = sizes[axis] <= 1 ? 1 : step;
    isBackward |= strides[axis] < 0;
  }
  if (ArrayRef<int64_t>(sizes) == x.shape() && !isBackward)
    return n.aliasResult(0, x);
  if (!isBackward || llvm::is_contained(sizes, 0))
    return n.result(extractSlice(n, n.value(0), offsets, sizes, strides),
                    x.dtype);
  Value result = gatherElements(
      n, n.value(0), sizes, [&](OpBuilder &b, Location loc, ValueRange loops) {
        SmallVector<Value> index;
        for (auto [loop, offset, stride] : llvm::zip(loops, offsets, strides)) {
          Value at = loop;
          if (stride != 1)
            at = arith::MulIOp::create(b, loc, at,
                                       indexConstant(b, loc, stride));
          if (offset != 0)
            at = arith::AddIOp::create(b, loc, at,
                                       indexConstant(b, loc, offset));
          index.push_back(at);
        }
        return index;
      });
  return n.result(result, x.dtype);
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

Value memplan::onnx::safeIndex(OpBuilder &b, Location loc, Value index,
                               DType dtype, int64_t extent) {
  Scalars s(b, loc, DType::i64());
  Value wide = castScalar(b, loc, index, dtype, DType::i64());
  Value wrapped = s.select(s.less(wide, s.integer(0)),
                           s.add(wide, s.integer(extent)), wide);
  Value clamped = s.max(s.integer(0), s.min(wrapped, s.integer(extent - 1)));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), clamped);
}

LogicalResult memplan::onnx::checkKnownIndices(NodeBuilder &n, unsigned i,
                                               int64_t extent) {
  if (!n.input(i).isKnown() || n.input(i).numElements() > 4096)
    return success();
  FailureOr<SmallVector<int64_t>> known = n.ints(i, "indices");
  if (failed(known))
    return failure();
  for (int64_t index : *known)
    if (index < -extent || index >= extent)
      return n.invalid() << "index " << index << " is outside [" << -extent
                         << ", " << extent - 1 << "]";
  return success();
}

static LogicalResult checkIndices(NodeBuilder &n, int64_t extent) {
  if (!n.input(1).dtype.isInteger())
    return n.invalid() << n.inputText(1)
                       << " holds the indices; integers are accepted";
  if (extent == 0 && n.input(1).numElements() != 0)
    return n.invalid() << "gathers from a dim of extent 0 of "
                       << n.inputText(0u);
  return checkKnownIndices(n, 1, extent);
}

static LogicalResult buildGather(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis) || failed(checkIndices(n, x.dim(*axis))))
    return failure();
  SmallVector<int64_t> shape(x.shape().take_front(*axis));
  llvm::append_range(shape, indices.shape());
  llvm::append_range(shape, x.shape().drop_front(*axis + 1));

  // One known index: a slice, which costs nothing.
  if (indices.isKnown() && indices.numElements() == 1) {
    FailureOr<SmallVector<int64_t>> index = n.ints(1, "indices");
    if (failed(index))
      return failure();
    SmallVector<int64_t> offsets(x.rank(), 0), sizes(x.shape()),
        strides(x.rank(), 1);
    offsets[*axis] =
        index->front() < 0 ? index->front() + x.dim(*axis) : index->front();
    sizes[*axis] = 1;
    Value slice = extractSlice(n, n.value(0), offsets, sizes, strides);
    return n.result(reshape(n, slice, shape), x.dtype);
  }

  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < indices.rank(); ++i)
    exprs.push_back(n.b.getAffineDimExpr(*axis + i));
  ElementwiseOperands operands(n);
  operands.add(indices, indices.shape(),
               AffineMap::get(shape.size(), 0, exprs, n.context()));
  Value source = n.value(0);
  Value result = operands.build(
      shape, x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < x.rank(); ++dim) {
          if (dim == *axis)
            at.push_back(
                safeIndex(b, loc, args[0], indices.dtype, x.dim(*axis)));
          else
            at.push_back(linalg::IndexOp::create(
                b, loc, dim < *axis ? dim : dim - 1 + indices.rank()));
        }
        return tensor::ExtractOp::create(b, loc, source, at).getResult();
      });
  return n.result(result, x.dtype);
}

/// result[i][j] = data[indices[i][j]][j] for axis 0, and so on.
static LogicalResult buildGatherElements(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis) || failed(checkIndices(n, x.dim(*axis))))
    return failure();
  bool fits = indices.rank() == x.rank();
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = i == *axis || indices.dim(i) <= x.dim(i);
  if (!fits)
    return n.invalid() << n.inputText(1) << " does not fit " << n.inputText(0u);
  ElementwiseOperands operands(n);
  operands.add(indices, indices.shape(),
               n.b.getMultiDimIdentityMap(indices.rank()));
  Value source = n.value(0);
  Value result = operands.build(
      indices.shape(), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < x.rank(); ++dim)
          at.push_back(
              dim == *axis
                  ? safeIndex(b, loc, args[0], indices.dtype, x.dim(dim))
                  : linalg::IndexOp::create(b, loc, dim).getResult());
        return tensor::ExtractOp::create(b, loc, source, at).getResult();
      });
  return n.result(result, x.dtype);
}

//===----------------------------------------------------------------------===//
// Repetition
//===----------------------------------------------------------------------===//

static LogicalResult buildExpand(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<SmallVector<int64_t>> wanted = n.ints(1, "the shape");
  if (failed(wanted))
    return failure();
  auto shape = broadcastShapes({x.shape(), ArrayRef<int64_t>(*wanted)});
  if (!shape || !checkedProduct(*shape))
    return n.invalid() << n.inputText(0u)
                       << " does not broadcast with the shape "
                       << shapeText(*wanted);
  if (ArrayRef<int64_t>(*shape) == x.shape())
    return n.aliasResult(0, x);
  if (*checkedProduct(*shape) == x.numElements())
    return n.result(reshape(n, n.value(0), *shape), x.dtype);
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, *shape);
  return n.result(operands.build(*shape, x.type.getElementType(),
                                 [](OpBuilder &, Location, ValueRange args) {
                                   return args[0];
                                 }),
                  x.dtype);
}

static LogicalResult buildTile(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<SmallVector<int64_t>> repeats = n.ints(1, "the list of repeats");
  if (failed(repeats))
    return failure();
  if (n.opset < 6) {
    // One number, of one axis.
    FailureOr<int64_t> given = n.scalarInt(2, "the axis");
    if (failed(given))
      return failure();
    if (repeats->size() != 1)
      return n.invalid() << repeats->size() << " repeats of one axis";
    FailureOr<int64_t> axis = n.axis(*given, x.rank());
    if (failed(axis))
      return failure();
    int64_t count = repeats->front();
    repeats->assign(x.rank(), 1);
    (*repeats)[*axis] = count;
  }
  if (static_cast<int64_t>(repeats->size()) != x.rank())
    return n.invalid() << repeats->size() << " repeats for " << n.inputText(0u);
  // Every dim d becomes (repeats, d), of which only the second is read.
  SmallVector<int64_t> split, shape;
  SmallVector<AffineExpr> exprs;
  for (auto [i, repeat] : llvm::enumerate(*repeats)) {
    auto extent = checkedMul(repeat, x.dim(i));
    if (repeat < 0 || !extent)
      return n.invalid() << repeat << " repeats of dim " << i;
    exprs.push_back(n.b.getAffineDimExpr(2 * i + 1));
    split.append({repeat, x.dim(i)});
    shape.push_back(*extent);
  }
  if (ArrayRef<int64_t>(shape) == x.shape())
    return n.aliasResult(0, x);
  if (!checkedProduct(split))
    return n.invalid() << "the result has too many elements";
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(),
               AffineMap::get(split.size(), 0, exprs, n.context()));
  Value tiled = operands.build(
      split, x.type.getElementType(),
      [](OpBuilder &, Location, ValueRange args) { return args[0]; });
  return n.result(reshape(n, tiled, shape), x.dtype);
}

//===----------------------------------------------------------------------===//
// Trilu
//===----------------------------------------------------------------------===//

/// Keeps the elements on and above (or below) the k-th diagonal.
static LogicalResult buildTrilu(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (x.rank() < 2)
    return n.invalid() << n.inputText(0u) << "; rank 2 and up is accepted";
  bool isUpper = n.intAttr("upper", 1) != 0;
  int64_t k = 0;
  if (n.hasInput(1)) {
    FailureOr<int64_t> given = n.scalarInt(1, "the diagonal");
    if (failed(given))
      return failure();
    k = std::clamp(*given, -x.dim(x.rank() - 2) - 1, x.dim(x.rank() - 1) + 1);
  }
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(), n.b.getMultiDimIdentityMap(x.rank()));
  Value result = operands.build(
      x.shape(), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        Value row = linalg::IndexOp::create(b, loc, x.rank() - 2);
        Value column = linalg::IndexOp::create(b, loc, x.rank() - 1);
        Value diagonal =
            arith::AddIOp::create(b, loc, row, indexConstant(b, loc, k));
        Value keeps = arith::CmpIOp::create(b, loc,
                                            isUpper ? arith::CmpIPredicate::sge
                                                    : arith::CmpIPredicate::sle,
                                            column, diagonal);
        Scalars s(b, loc, x.dtype);
        return s.select(keeps, args[0], s.integer(0));
      });
  return n.result(result, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> selectionOps() {
  static const OpEntry kOps[] = {
      {"Concat", 1, kNewestOpset, 1, kVariadic, 1, buildConcat},
      {"Expand", 8, kNewestOpset, 2, 2, 1, buildExpand},
      {"Gather", 1, kNewestOpset, 2, 2, 1, buildGather},
      {"GatherElements", 11, kNewestOpset, 2, 2, 1, buildGatherElements},
      {"Slice", 1, 9, 1, 1, 1, buildSlice},
      {"Slice", 10, kNewestOpset, 3, 5, 1, buildSlice},
      {"Split", 1, 1, 1, 2, kVariadic, buildSplit},
      {"Split", 2, 12, 1, 1, kVariadic, buildSplit},
      {"Split", 13, kNewestOpset, 1, 2, kVariadic, buildSplit},
      {"Tile", 1, 5, 3, 3, 1, buildTile},
      {"Tile", 6, kNewestOpset, 2, 2, 1, buildTile},
      {"Trilu", 14, kNewestOpset, 1, 2, 1, buildTrilu},
      {"Trilu", 1, kNewestOpset, 1, 2, 1, buildTrilu, "com.microsoft"},
  };
  return kOps;
}
} // namespace memplan::onnx
