//===- GatherOps.cpp - Rearranging by indices -----------------------------===//

#include "Indices.h"
#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value loopIndex(OpBuilder &b, Location loc, int64_t dim) {
  return linalg::IndexOp::create(b, loc, dim);
}

//===----------------------------------------------------------------------===//
// GatherND
//===----------------------------------------------------------------------===//

static LogicalResult buildGatherND(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  int64_t batch = n.opset >= 12 ? n.intAttr("batch_dims", 0) : 0;
  if (!indices.dtype.isInteger() || indices.rank() < 1 || x.rank() < 1)
    return n.invalid() << n.inputText(1)
                       << " holds the indices; integers of rank 1 and up are "
                          "accepted";
  int64_t width = indices.dim(indices.rank() - 1);
  if (batch < 0 || batch >= indices.rank() || batch + width > x.rank() ||
      width < 1 ||
      x.shape().take_front(batch) != indices.shape().take_front(batch))
    return n.invalid() << n.inputText(1) << " does not index "
                       << n.inputText(0u) << " with batch_dims=" << batch;
  SmallVector<int64_t> shape(indices.shape().drop_back());
  int64_t numPoints = static_cast<int64_t>(shape.size());
  llvm::append_range(shape, x.shape().drop_front(batch + width));
  auto count = checkedProduct(shape);
  if (!count)
    return n.invalid() << "the result has too many elements";
  if (*count == 0)
    return n.result(empty(n, shape, x.type.getElementType()), x.dtype);
  for (int64_t i = 0; i < width; ++i)
    if (x.dim(batch + i) == 0)
      return n.invalid() << "gathers from a dim of extent 0 of "
                         << n.inputText(0u);
  Value source = n.value(0), places = n.value(1);
  Value y = mapElements(
      n, {}, {}, shape, x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        SmallVector<Value> at;
        for (int64_t i = 0; i < batch; ++i)
          at.push_back(loopIndex(b, loc, i));
        for (int64_t j = 0; j < width; ++j) {
          SmallVector<Value> entry;
          for (int64_t i = 0; i < numPoints; ++i)
            entry.push_back(loopIndex(b, loc, i));
          entry.push_back(arith::ConstantIndexOp::create(b, loc, j));
          Value index = tensor::ExtractOp::create(b, loc, places, entry);
          at.push_back(
              safeIndex(b, loc, index, indices.dtype, x.dim(batch + j)));
        }
        for (size_t i = numPoints; i < shape.size(); ++i)
          at.push_back(loopIndex(b, loc, i));
        return tensor::ExtractOp::create(b, loc, source, at).getResult();
      });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// ReverseSequence
//===----------------------------------------------------------------------===//

/// The first `length` elements of each sequence, in reverse.
static LogicalResult buildReverseSequence(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &lengths = n.input(1);
  FailureOr<int64_t> batch = n.axis(n.intAttr("batch_axis", 1), x.rank());
  FailureOr<int64_t> time = n.axis(n.intAttr("time_axis", 0), x.rank());
  if (failed(batch) || failed(time))
    return failure();
  if (*batch == *time || !lengths.dtype.isInteger() ||
      lengths.shape() != ArrayRef<int64_t>(x.dim(*batch)))
    return n.invalid() << n.inputText(1) << " does not hold the lengths of "
                       << n.inputText(0u) << " with batch_axis=" << *batch
                       << ", time_axis=" << *time;
  if (x.numElements() == 0)
    return n.aliasResult(0, x);
  ElementwiseOperands operands(n);
  operands.add(lengths, lengths.shape(),
               AffineMap::get(x.rank(), 0, n.b.getAffineDimExpr(*batch)));
  Value source = n.value(0);
  Value y = operands.build(
      x.shape(), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value length = castScalar(b, loc, args[0], lengths.dtype, s.dtype);
        length = s.max(s.integer(0), s.min(length, s.integer(x.dim(*time))));
        Value step = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                                loopIndex(b, loc, *time));
        Value mirrored = s.sub(s.sub(length, s.integer(1)), step);
        Value from = s.select(s.less(step, length), mirrored, step);
        SmallVector<Value> at;
        for (int64_t i = 0; i < x.rank(); ++i)
          at.push_back(loopIndex(b, loc, i));
        at[*time] = arith::IndexCastOp::create(b, loc, b.getIndexType(), from);
        return tensor::ExtractOp::create(b, loc, source, at).getResult();
      });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// CenterCropPad
//===----------------------------------------------------------------------===//

static LogicalResult buildCenterCropPad(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<SmallVector<int64_t>> wanted = n.ints(1, "the shape");
  if (failed(wanted))
    return failure();
  SmallVector<int64_t> which = llvm::to_vector(llvm::seq<int64_t>(x.rank()));
  if (auto given = n.intsAttr("axes")) {
    FailureOr<SmallVector<int64_t>> wrapped = n.axes(*given, x.rank());
    if (failed(wrapped))
      return failure();
    which = *wrapped;
  }
  if (wanted->size() != which.size())
    return n.invalid() << "the shape has " << wanted->size() << " entries for "
                       << which.size() << " axes";
  SmallVector<int64_t> shape(x.shape()), begin(x.rank(), 0), at(x.rank(), 0),
      kept(x.shape()), ones(x.rank(), 1);
  for (auto [axis, extent] : llvm::zip(which, *wanted)) {
    if (extent < 0)
      return n.invalid() << "extent " << extent << " of axis " << axis;
    shape[axis] = extent;
    kept[axis] = std::min(extent, x.dim(axis));
    if (extent < x.dim(axis))
      begin[axis] = (x.dim(axis) - extent) / 2;
    else
      at[axis] = (extent - x.dim(axis)) / 2;
  }
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  if (ArrayRef<int64_t>(shape) == x.shape())
    return n.aliasResult(0, x);
  auto entries = [&](ArrayRef<int64_t> list) {
    return getAsIndexOpFoldResult(n.context(), list);
  };
  auto keptType = RankedTensorType::get(kept, x.type.getElementType());
  Value y = n.value(0);
  if (ArrayRef<int64_t>(kept) != x.shape())
    y = tensor::ExtractSliceOp::create(n.b, n.loc, keptType, y, entries(begin),
                                       entries(kept), entries(ones));
  if (kept != shape) {
    Value zeros = filled(
        n, shape, cast<TypedAttr>(n.b.getZeroAttr(x.type.getElementType())));
    y = tensor::InsertSliceOp::create(n.b, n.loc, y, zeros, entries(at),
                                      entries(kept), entries(ones));
  }
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// BitCast, SwiGLU, Det
//===----------------------------------------------------------------------===//

/// The same bits, fewer than 8, as another type that has a byte for them.
static Value castCode(OpBuilder &b, Location loc, Value x, DType from,
                      DType to) {
  bool isFromFloat = from.numbers() == DType::Float,
       isToFloat = to.numbers() == DType::Float;
  Type code = b.getIntegerType(from.bits());
  if (isFromFloat)
    x = arith::ExtUIOp::create(b, loc, b.getI8Type(),
                               arith::BitcastOp::create(b, loc, code, x));
  if (isToFloat)
    return arith::BitcastOp::create(b, loc, to.type(b.getContext()),
                                    arith::TruncIOp::create(b, loc, code, x));
  return castScalar(b, loc, x, DType::u8(), to);
}

static LogicalResult buildBitCast(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t code = n.intAttr("to", 0);
  std::optional<DType> to = DType::fromCode(code);
  if (!to)
    return n.unsupported() << "attribute 'to' is " << dtypeName(code) << "; "
                           << kAcceptedTypes;
  // A bool is a byte.
  auto bitsOf = [](DType dtype) { return dtype.isBool() ? 8 : dtype.bits(); };
  if (bitsOf(*to) != bitsOf(x.dtype))
    return n.unsupported() << "attribute 'to' is " << dtypeName(code) << ", "
                           << n.inputText(0u)
                           << " has elements of another size";
  Type from = x.type.getElementType(), type = to->type(n.context());
  bool isPacked = to->isPacked(); // and so is x
  if (from == type && !isPacked)
    return n.result(n.value(0), *to);
  // A bool's byte is 0 or 1.
  bool isBool = to->isBool() || x.dtype.isBool();
  Value y = mapElements(
      n, n.value(0), n.b.getMultiDimIdentityMap(x.rank()), x.shape(), type,
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        if (isPacked)
          return castCode(b, loc, args[0], x.dtype, *to);
        if (isBool)
          return castScalar(b, loc, args[0], x.dtype, *to);
        return arith::BitcastOp::create(b, loc, type, args[0]).getResult();
      });
  return n.result(y, *to);
}

/// a * sigmoid(alpha * a) * b
static LogicalResult buildSwiGLU(NodeBuilder &n) {
  ImportedTensor &a = n.input(0);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1})))
    return failure();
  double alpha = n.floatAttr("alpha", 1);
  if (a.shape() != n.input(1).shape())
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << " differ in shape";
  Value y = broadcastElementwise(
      n, {&a, &n.input(1)}, a.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, a.dtype);
        Value power =
            s.make<math::ExpOp>(s.negate(s.mul(s.number(alpha), args[0])));
        Value sigmoid = s.div(s.number(1), s.add(s.number(1), power));
        return s.mul(s.mul(args[0], sigmoid), args[1]);
      });
  return n.result(y, a.dtype);
}

/// Larger matrices have bodies that nobody could read or compile.
static constexpr int64_t kLargestMatrix = 8;

/// Gaussian elimination with row exchanges, all of it in one thread's
/// registers.
static Value determinant(const Scalars &s, SmallVector<SmallVector<Value>> m) {
  int64_t size = static_cast<int64_t>(m.size());
  Value result = s.number(1);
  for (int64_t column = 0; column < size; ++column) {
    // The largest element of the column comes up by exchanging rows in pairs;
    // each exchange changes the sign.
    for (int64_t row = column + 1; row < size; ++row) {
      Value swaps = s.less(s.abs(m[column][column]), s.abs(m[row][column]));
      for (int64_t i = column; i < size; ++i) {
        Value above = m[column][i], below = m[row][i];
        m[column][i] = s.select(swaps, below, above);
        m[row][i] = s.select(swaps, above, below);
      }
      result = s.select(swaps, s.negate(result), result);
    }
    Value pivot = m[column][column];
    result = s.mul(result, pivot);
    if (column + 1 == size)
      break;
    Value isZero = s.equal(pivot, s.number(0));
    Value divisor = s.select(isZero, s.number(1), pivot);
    for (int64_t row = column + 1; row < size; ++row) {
      Value factor = s.div(m[row][column], divisor);
      for (int64_t i = column + 1; i < size; ++i)
        m[row][i] = s.sub(m[row][i], s.mul(factor, m[column][i]));
    }
  }
  return result;
}

static LogicalResult buildDet(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)))
    return failure();
  int64_t batch = x.rank() - 2;
  if (batch < 0 || x.dim(batch) != x.dim(batch + 1))
    return n.invalid() << n.inputText(0u) << " holds no square matrices";
  int64_t size = x.dim(batch);
  if (size < 1 || size > kLargestMatrix)
    return n.unsupported() << n.inputText(0u) << " holds matrices of " << size
                           << " rows; 1 to " << kLargestMatrix
                           << " are accepted";
  Value source = n.value(0);
  Value y = mapElements(
      n, {}, {}, x.shape().drop_back(2), x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Scalars s(b, loc, x.dtype);
        SmallVector<SmallVector<Value>> matrix(size);
        for (int64_t row = 0; row < size; ++row)
          for (int64_t column = 0; column < size; ++column) {
            SmallVector<Value> at;
            for (int64_t i = 0; i < batch; ++i)
              at.push_back(loopIndex(b, loc, i));
            at.push_back(arith::ConstantIndexOp::create(b, loc, row));
            at.push_back(arith::ConstantIndexOp::create(b, loc, column));
            matrix[row].push_back(
                tensor::ExtractOp::create(b, loc, source, at));
          }
        return determinant(s, matrix);
      });
  return n.result(y, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> gatherOps() {
  static const OpEntry kOps[] = {
      {"BitCast", 26, kNewestOpset, 1, 1, 1, buildBitCast},
      {"CenterCropPad", 18, kNewestOpset, 2, 2, 1, buildCenterCropPad},
      {"Det", 11, kNewestOpset, 1, 1, 1, buildDet},
      {"GatherND", 11, kNewestOpset, 2, 2, 1, buildGatherND},
      {"GatherND", 1, kNewestOpset, 2, 2, 1, buildGatherND, "com.microsoft"},
      {"ReverseSequence", 10, kNewestOpset, 2, 2, 1, buildReverseSequence},
      {"SwiGLU", 28, kNewestOpset, 2, 2, 1, buildSwiGLU},
  };
  return kOps;
}
} // namespace memplan::onnx
