//===- Products.cpp - Matrix products and convolutions --------------------===//

#include "Products.h"

#include "ControlFlow.h"
#include "Quantize.h"
#include "Scalars.h"
#include "Window.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// Whether all elements are known to be 0.
static bool isZero(const ImportedTensor &tensor) {
  auto splat = dyn_cast_or_null<IntegerAttr>(splatOf(tensor));
  return splat && splat.getValue().isZero();
}

Factor memplan::onnx::readFactor(NodeBuilder &n, unsigned i, int64_t axis) {
  ImportedTensor &tensor = n.input(i);
  Factor plain{&tensor};
  if (!tensor.quantized || tensor.dtype != DType::f32() || tensor.constant)
    return plain;
  ImportedTensor::Quantized &made = *tensor.quantized;
  bool isByte = made.elements->type.getElementType().isInteger(8);
  if (!isByte || made.scale->dtype != DType::f32() ||
      (made.axis != -1 && made.axis != axis))
    return plain;
  Factor factor{made.elements, made.zero, made.scale};
  if (factor.zero && isZero(*factor.zero))
    factor.zero = nullptr;
  return factor;
}

std::pair<Factor, Factor> memplan::onnx::readFactors(NodeBuilder &n,
                                                     int64_t axisA,
                                                     int64_t axisB,
                                                     int64_t depth) {
  Factor a = readFactor(n, 0, axisA), b = readFactor(n, 1, axisB);
  // Differences from a zero point are of 9 bits.
  constexpr int64_t kMostSummed = INT32_MAX / (255 * 255);
  if (a.isInteger() && b.isInteger() && depth > kMostSummed)
    a = Factor{&n.input(0)};
  return {a, b};
}

Factor memplan::onnx::quantizeByRange(NodeBuilder &n, ImportedTensor &x) {
  DynamicRange range = reduceRange(n, x);
  Value quantized = quantizeToRange(n, x, range);
  return {keepValue(n, quantized, DType::u8(), x.name),
          keepValue(n, range.zero, DType::u8(), x.name),
          keepValue(n, range.scale, DType::f32(), x.name)};
}

LogicalResult memplan::onnx::checkZeroPoint(NodeBuilder &n, unsigned operand,
                                            unsigned zero) {
  if (!n.hasInput(zero) || n.input(zero).dtype == n.input(operand).dtype)
    return success();
  return n.invalid() << n.inputText(zero) << " is the zero point of "
                     << n.inputText(operand) << "; their types must agree";
}

Value memplan::onnx::scaleSum(OpBuilder &b, Location loc, Value sum,
                              ArrayRef<Value> scales) {
  Value scaled = sum;
  if (sum.getType().isInteger())
    scaled = arith::SIToFPOp::create(b, loc, b.getF32Type(), sum);
  // One factor: the scales first, as runtimes do.
  Value factor;
  for (Value scale : scales)
    factor = factor ? arith::MulFOp::create(b, loc, factor, scale).getResult()
                    : scale;
  return factor ? arith::MulFOp::create(b, loc, scaled, factor).getResult()
                : scaled;
}

namespace {
/// An operand of a product and, where it has one, its zero point.
struct Read {
  Value value;
  AffineMap map;
  Value zero;
  AffineMap zeroMap;
};

/// Calls the epilogue's end with what it wants, from the block's arguments.
class Epilogue {
public:
  Epilogue(NodeBuilder &n, ProductEnd end) : extras(n), end(end) {}

  ElementwiseOperands extras;

  Value operator()(OpBuilder &b, Location loc, ValueRange args) const {
    SmallVector<Value> scalars = extras.scalars(b, loc, args.drop_front());
    return end(b, loc, args[0], scalars);
  }

private:
  ProductEnd end;
};

/// The shape of a matrix product, in the loops (batch..., m, n, k).
struct ProductShape {
  SmallVector<int64_t> lhs, rhs; ///< At least matrices.
  SmallVector<int64_t> batch;
  int64_t m, n, k;
  bool transA, transB;

  unsigned numBatch() const { return batch.size(); }
  SmallVector<int64_t> output() const {
    SmallVector<int64_t> shape(batch);
    shape.append({m, n});
    return shape;
  }
};
} // namespace

/// Views `operand` (batch..., rows, columns) for a product with the batch dims
/// `batch`: batch dims along which it is broadcast are dropped, and matrix dims
/// of extent 1 that `rowExtent` and `columnExtent` are not. `numDims` is the
/// map's.
static std::pair<Value, AffineMap>
readBatched(NodeBuilder &n, Value operand, ArrayRef<int64_t> shape,
            ArrayRef<int64_t> batch, ArrayRef<int64_t> matrix,
            ArrayRef<unsigned> matrixDims, unsigned numDims) {
  SmallVector<int64_t> kept;
  SmallVector<AffineExpr> exprs;
  int64_t own = static_cast<int64_t>(shape.size()) - 2;
  int64_t offset = static_cast<int64_t>(batch.size()) - own;
  for (int64_t i = 0; i < own; ++i) {
    if (shape[i] != batch[offset + i])
      continue;
    kept.push_back(shape[i]);
    exprs.push_back(n.b.getAffineDimExpr(offset + i));
  }
  for (unsigned i : {0u, 1u}) {
    if (shape[own + i] != matrix[i])
      continue;
    kept.push_back(matrix[i]);
    exprs.push_back(n.b.getAffineDimExpr(matrixDims[i]));
  }
  return {reshape(n, operand, kept),
          AffineMap::get(numDims, 0, exprs, n.context())};
}

/// The shape of a scale or zero point, as that of matrices of one column (of A)
/// or one row (of B): one element, one a row or column, or with batch dims.
static std::optional<SmallVector<int64_t>>
parameterShape(const ImportedTensor &parameter, const ProductShape &shape,
               bool isLhs) {
  if (parameter.numElements() == 1)
    return SmallVector<int64_t>{1, 1};
  int64_t extent = isLhs ? shape.m : shape.n;
  SmallVector<int64_t> own(parameter.shape());
  if (own.size() == 1)
    own.insert(isLhs ? own.end() : own.begin(), 1);
  unsigned rank = own.size();
  int64_t along = own[isLhs ? rank - 2 : rank - 1];
  if (own[isLhs ? rank - 1 : rank - 2] != 1 ||
      (along != extent && along != 1) || rank - 2 > shape.numBatch())
    return std::nullopt;
  for (unsigned i = 0; i + 2 < rank; ++i) {
    int64_t whole = shape.batch[shape.numBatch() - (rank - 2) + i];
    if (own[i] != whole && own[i] != 1)
      return std::nullopt;
  }
  return own;
}

/// A scale or zero point of one operand; the map has `numDims` dims, those of
/// the output first. Null after an error.
static std::pair<Value, AffineMap> readParameter(NodeBuilder &n,
                                                 ImportedTensor &parameter,
                                                 const ProductShape &shape,
                                                 bool isLhs, unsigned numDims) {
  auto own = parameterShape(parameter, shape, isLhs);
  if (!own) {
    n.invalid() << n.inputText(parameter) << " does not fit the "
                << (isLhs ? "first" : "second")
                << " operand; one element, or one a "
                << (isLhs ? "row" : "column") << ", is accepted";
    return {};
  }
  unsigned rows = shape.numBatch(), columns = rows + 1;
  // Extent 1 where the other operand has its dim: never read through it.
  SmallVector<int64_t> matrix = {isLhs ? shape.m : -1, isLhs ? -1 : shape.n};
  if (parameter.numElements() == 1)
    return {reshape(n, n.value(parameter), {}),
            AffineMap::get(numDims, 0, n.context())};
  return readBatched(n, n.value(parameter), *own, shape.batch, matrix,
                     {rows, columns}, numDims);
}

static std::optional<ProductShape> readShape(NodeBuilder &n, ImportedTensor &a,
                                             ImportedTensor &c, bool transA,
                                             bool transB) {
  ProductShape shape;
  shape.transA = transA, shape.transB = transB;
  auto mismatch = [&]() -> std::optional<ProductShape> {
    auto diagnostic = n.invalid() << "shapes do not multiply";
    if (transA || transB)
      diagnostic << " with transA=" << transA << ", transB=" << transB;
    diagnostic << ": " << n.inputText(a) << " and " << n.inputText(c);
    return std::nullopt;
  };
  if (a.rank() == 0 || c.rank() == 0)
    return mismatch();
  shape.lhs.assign(a.shape().begin(), a.shape().end());
  shape.rhs.assign(c.shape().begin(), c.shape().end());
  // 1-D operands get a dim of extent 1 that the result loses.
  if (a.rank() == 1)
    shape.lhs.insert(shape.lhs.begin(), 1);
  if (c.rank() == 1)
    shape.rhs.push_back(1);
  ArrayRef<int64_t> lhs(shape.lhs), rhs(shape.rhs);
  auto batch = broadcastShapes({lhs.drop_back(2), rhs.drop_back(2)});
  shape.m = lhs[lhs.size() - (transA ? 1 : 2)];
  shape.k = lhs[lhs.size() - (transA ? 2 : 1)];
  shape.n = rhs[rhs.size() - (transB ? 2 : 1)];
  if (!batch || rhs[rhs.size() - (transB ? 1 : 2)] != shape.k)
    return mismatch();
  shape.batch = *batch;
  return shape;
}

/// One operand of a matrix product.
static std::optional<Read> readOperand(NodeBuilder &n, const Factor &factor,
                                       const ProductShape &shape, bool isLhs) {
  unsigned m = shape.numBatch(), column = m + 1, k = m + 2, numDims = m + 3;
  SmallVector<unsigned> dims =
      isLhs ? SmallVector<unsigned>{m, k} : SmallVector<unsigned>{k, column};
  if (isLhs ? shape.transA : shape.transB)
    std::swap(dims[0], dims[1]);
  ArrayRef<int64_t> own = isLhs ? shape.lhs : shape.rhs;
  Read read;
  std::tie(read.value, read.map) =
      readBatched(n, n.value(*factor.elements), own, shape.batch,
                  own.take_back(2), dims, numDims);
  if (!factor.zero)
    return read;
  std::tie(read.zero, read.zeroMap) =
      readParameter(n, *factor.zero, shape, isLhs, numDims);
  if (!read.zero)
    return std::nullopt;
  return read;
}

Value memplan::onnx::buildMatrixProduct(NodeBuilder &n, Factor a, Factor c,
                                        DType result, ProductEnd end,
                                        ArrayRef<ImportedTensor *> more,
                                        bool transA, bool transB) {
  auto shape = readShape(n, *a.elements, *c.elements, transA, transB);
  if (!shape)
    return {};
  auto lhs = readOperand(n, a, *shape, /*isLhs=*/true),
       rhs = readOperand(n, c, *shape, /*isLhs=*/false);
  if (!lhs || !rhs)
    return {};
  SmallVector<int64_t> whole = shape->output();
  Epilogue epilogue(n, end);
  for (auto [factor, isLhs] : {std::pair(&a, true), std::pair(&c, false)}) {
    if (!factor->scale)
      continue;
    if (splatOf(*factor->scale)) {
      epilogue.extras.addBroadcast(*factor->scale, whole);
      continue;
    }
    auto [value, map] =
        readParameter(n, *factor->scale, *shape, isLhs, whole.size());
    if (!value)
      return {};
    epilogue.extras.add(value, map);
  }
  for (ImportedTensor *tensor : more) {
    auto fits = broadcastShapes({tensor->shape(), ArrayRef<int64_t>(whole)});
    if (!fits || *fits != whole) {
      n.invalid() << n.inputText(*tensor) << " does not broadcast to "
                  << shapeText(whole);
      return {};
    }
    epilogue.extras.addBroadcast(*tensor, whole);
  }
  unsigned numDims = whole.size() + 1;
  AffineMap outMap = AffineMap::getMultiDimIdentityMap(numDims, n.context())
                         .dropResult(numDims - 1);
  auto op = MatMulOp::create(
      n.b, n.loc, lhs->value, rhs->value, epilogue.extras.values(),
      empty(n, whole, result.type(n.context())), {lhs->map, rhs->map, outMap},
      epilogue.extras.maps(), [&](OpBuilder &b, Location loc, ValueRange args) {
        return epilogue(b, loc, args);
      });
  op.setZeroPoints(lhs->zero, lhs->zeroMap, rhs->zero, rhs->zeroMap);
  op.setUnsignedLhs(a.isInteger() && a.elements->dtype.isUnsigned());
  op.setUnsignedRhs(c.isInteger() && c.elements->dtype.isUnsigned());
  SmallVector<int64_t> shown(shape->batch);
  if (a.elements->rank() != 1)
    shown.push_back(shape->m);
  if (c.elements->rank() != 1)
    shown.push_back(shape->n);
  return reshape(n, op.getResult(), shown);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Reports what does not fit.
static LogicalResult checkConvolution(NodeBuilder &n, ImportedTensor &x,
                                      ImportedTensor &w, int64_t groups) {
  int64_t rank = x.rank();
  if (rank < 3 || rank > 5)
    return n.unsupported() << n.inputText(x) << " has " << rank - 2
                           << " spatial dims; 1 to 3 are accepted";
  if (w.rank() != rank)
    return n.invalid() << n.inputText(x) << " and " << n.inputText(w)
                       << " differ in rank";
  if (groups < 1 || x.dim(1) % groups != 0 || w.dim(0) % groups != 0 ||
      w.dim(1) != x.dim(1) / groups)
    return n.invalid()
           << "with " << groups << " groups, " << n.inputText(x) << " and "
           << n.inputText(w)
           << " do not fit: channels and features must be multiples "
              "of it, and the filter have channels / groups";
  ArrayRef<int64_t> kernel = w.shape().drop_front(2);
  if (auto declared = n.intsAttr("kernel_shape");
      declared && ArrayRef<int64_t>(*declared) != kernel)
    return n.invalid() << "attribute 'kernel_shape' is " << shapeText(*declared)
                       << ", but " << n.inputText(w) << " is the filter";
  return success();
}

/// One element, or one a feature; null after an error.
static Value readPerFeature(NodeBuilder &n, ImportedTensor &tensor,
                            int64_t features) {
  if (tensor.numElements() == 1)
    return reshape(n, n.value(tensor), {});
  if (tensor.shape() == ArrayRef<int64_t>(features))
    return n.value(tensor);
  n.invalid() << n.inputText(tensor)
              << " is not one element, or one for each of " << features
              << " features";
  return {};
}

/// A filter without gaps between its elements: a copy, if it is part of another
/// tensor. Weights are never that, so this is rare.
static Value denseFilter(NodeBuilder &n, ImportedTensor &filter) {
  Value value = n.value(filter), source = value;
  while (Operation *op = source.getDefiningOp()) {
    if (isa<tensor::ExtractSliceOp>(op))
      // Canonicalization would drop linalg.copy.
      return bufferization::AllocTensorOp::create(
          n.b, n.loc, cast<RankedTensorType>(value.getType()), ValueRange(),
          value);
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
            op))
      break;
    source = op->getOperand(0);
  }
  return value;
}

Value memplan::onnx::buildConvolution(NodeBuilder &n, Factor x, Factor w,
                                      DType result, ProductEnd end,
                                      ArrayRef<ImportedTensor *> more) {
  ImportedTensor &input = *x.elements, &filter = *w.elements;
  int64_t groups = n.intAttr("group", 1), rank = input.rank();
  if (failed(checkConvolution(n, input, filter, groups)))
    return {};
  FailureOr<Window> window =
      readWindow(n, input.shape().drop_front(2), filter.shape().drop_front(2),
                 /*canDilate=*/true, /*canCeil=*/false);
  if (failed(window))
    return {};
  int64_t features = filter.dim(0);
  Value inputZero, filterZero;
  if (x.zero && !(inputZero = readPerFeature(n, *x.zero, 1)))
    return {};
  if (w.zero && !(filterZero = readPerFeature(n, *w.zero, features)))
    return {};
  SmallVector<int64_t> shape = {input.dim(0), features};
  shape.append(window->output.begin(), window->output.end());
  Epilogue epilogue(n, end);
  SmallVector<ImportedTensor *> extras;
  for (ImportedTensor *scale : {x.scale, w.scale})
    if (scale)
      extras.push_back(scale);
  llvm::append_range(extras, more);
  for (ImportedTensor *extra : extras) {
    if (splatOf(*extra)) {
      epilogue.extras.add(*extra, {}, AffineMap::get(rank, 0, n.context()));
      continue;
    }
    Value value = readPerFeature(n, *extra, features);
    if (!value)
      return {};
    bool isOne = cast<RankedTensorType>(value.getType()).getRank() == 0;
    epilogue.extras.add(
        value, isOne ? AffineMap::get(rank, 0, n.context())
                     : AffineMap::get(rank, 0, n.b.getAffineDimExpr(1)));
  }
  auto op = ConvOp::create(
      n.b, n.loc, n.value(input), denseFilter(n, filter),
      epilogue.extras.values(), empty(n, shape, result.type(n.context())),
      window->strides, window->dilations, window->padsBegin, window->padsEnd,
      groups, epilogue.extras.maps(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        return epilogue(b, loc, args);
      });
  if (inputZero)
    op.getInputZeroMutable().assign(inputZero);
  if (filterZero)
    op.getFilterZeroMutable().assign(filterZero);
  op.setUnsignedInput(x.isInteger() && input.dtype.isUnsigned());
  op.setUnsignedFilter(w.isInteger() && filter.dtype.isUnsigned());
  return op.getResult();
}
