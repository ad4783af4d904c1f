//===- PoolingOps.cpp - Pools and local response normalization ------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "Window.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value first(OpBuilder &, Location, ValueRange args) { return args[0]; }

/// `spatial` with `value` in front for the batch and channel dims.
static SmallVector<int64_t> withLeading(ArrayRef<int64_t> spatial,
                                        int64_t value) {
  SmallVector<int64_t> all = {value, value};
  all.append(spatial.begin(), spatial.end());
  return all;
}

/// The type in which floats of type `dtype` are squared and summed.
static DType wideType(DType dtype) {
  return dtype.bits() < 32 ? DType::f32() : dtype;
}

/// |x|^p, and the p-th root of a sum of those.
static Value powerOf(const Scalars &s, Value x, int64_t p) {
  if (p == 1)
    return s.abs(x);
  if (p == 2)
    return s.mul(x, x);
  return s.make<math::PowFOp>(s.abs(x), s.number(p));
}
static Value rootOf(const Scalars &s, Value x, int64_t p) {
  if (p == 1)
    return x;
  if (p == 2)
    return s.make<math::SqrtOp>(x);
  return s.make<math::PowFOp>(x, s.number(1.0 / p));
}

static FailureOr<Window> readPool(NodeBuilder &n, bool canDilate,
                                  bool canCeil) {
  ImportedTensor &x = n.input(0);
  if (x.rank() < 3)
    return n.invalid() << n.inputText(0u)
                       << " has no spatial dims; rank 3 and up is accepted";
  auto kernel = n.intsAttr("kernel_shape");
  if (!kernel || static_cast<int64_t>(kernel->size()) != x.rank() - 2)
    return n.invalid() << "needs attribute 'kernel_shape' with " << x.rank() - 2
                       << " entries";
  return readWindow(n, x.shape().drop_front(2), *kernel, canDilate, canCeil);
}

static LogicalResult buildPool(NodeBuilder &n, WindowKind kind,
                               const FailureOr<Window> &window,
                               RegionBuilder map = first,
                               RegionBuilder epilogue = first) {
  ImportedTensor &x = n.input(0);
  if (failed(window))
    return failure();
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1)};
  shape.append(window->output.begin(), window->output.end());
  auto op = ReduceWindowOp::create(
      n.b, n.loc, kind, n.value(0), empty(n, shape, x.type.getElementType()),
      withLeading(window->kernel, 1), withLeading(window->strides, 1),
      withLeading(window->dilations, 1), withLeading(window->padsBegin, 0),
      withLeading(window->padsEnd, 0), map, epilogue);
  return n.result(op.getResult(), x.dtype);
}

static LogicalResult buildMaxPool(NodeBuilder &n) {
  DType dtype = n.input(0).dtype;
  std::optional<DType> ordered = orderedType(dtype);
  if (!ordered || dtype.isBool())
    return n.unsupported() << n.inputText(0u)
                           << "; floats and integers of at most 63 value bits "
                              "are accepted";
  FailureOr<Window> window = readPool(n, /*canDilate=*/n.opset >= 10,
                                      /*canCeil=*/n.opset >= 10);
  auto widen = [&](OpBuilder &b, Location loc, ValueRange args) {
    return castScalar(b, loc, args[0], dtype, *ordered);
  };
  auto narrow = [&](OpBuilder &b, Location loc, ValueRange args) {
    return castScalar(b, loc, args[0], *ordered, dtype);
  };
  if (failed(buildPool(n, WindowKind::Max, window, widen, narrow)))
    return failure();
  bool isColumnMajor = n.opset >= 8 && n.intAttr("storage_order", 0) != 0;
  if (!n.wantsOutput(1))
    return success();
  FailureOr<Value> indices = buildMaxPoolIndices(n, *window, isColumnMajor);
  return failed(indices) ? failure() : n.result(1, *indices, DType::i64());
}

static LogicalResult buildAveragePool(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  bool includesPad = n.intAttr("count_include_pad", 0) != 0;
  DType dtype = n.input(0).dtype;
  auto widen = [](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto narrow = [&](OpBuilder &b, Location loc, ValueRange args) {
    return fromAccumulator(b, loc, args[0], dtype.type(b.getContext()));
  };
  return buildPool(
      n, includesPad ? WindowKind::AverageIncludePad : WindowKind::Average,
      readPool(n, /*canDilate=*/n.opset >= 19, /*canCeil=*/n.opset >= 10),
      widen, narrow);
}

static FailureOr<int64_t> readP(NodeBuilder &n) {
  int64_t p = 2;
  if (n.opset >= 2) {
    p = n.intAttr("p", 2);
  } else {
    float stated = n.floatAttr("p", 2);
    p = stated >= 1 && stated <= 64 ? static_cast<int64_t>(stated) : 0;
    if (static_cast<float>(p) != stated)
      return n.unsupported() << "attribute 'p' is " << stated
                             << "; a whole number up to 64 is accepted";
  }
  if (p < 1)
    return n.invalid() << "attribute 'p' is " << p << "; 1 and up is accepted";
  return p;
}

static LogicalResult buildLpPool(NodeBuilder &n) {
  FailureOr<int64_t> p = readP(n);
  if (failed(p) || failed(n.floatInput(0)))
    return failure();
  DType dtype = n.input(0).dtype;
  return buildPool(
      n, WindowKind::Sum,
      readPool(n, /*canDilate=*/n.opset >= 18, /*canCeil=*/n.opset >= 18),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wideType(dtype));
        return powerOf(s, toAccumulator(b, loc, args[0]), *p);
      },
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value root = rootOf(Scalars(b, loc, wideType(dtype)), args[0], *p);
        return fromAccumulator(b, loc, root, dtype.type(b.getContext()));
      });
}

/// A pool whose window is all spatial dims: a reduction.
static LogicalResult buildGlobalPool(NodeBuilder &n, Combiner combiner,
                                     RegionBuilder map, RegionBuilder finish) {
  if (failed(n.floatInput(0)))
    return failure();
  ImportedTensor &x = n.input(0);
  if (x.rank() < 2)
    return n.invalid() << n.inputText(0u)
                       << " has no channels; rank 2 and up is accepted";
  SmallVector<int64_t> shape = {x.dim(0), x.dim(1)};
  shape.append(x.rank() - 2, 1);
  Value reduced = reduceRows(n, n.value(0),
                             llvm::to_vector(llvm::seq<int64_t>(2, x.rank())),
                             x.type.getElementType(), combiner, map, finish);
  return n.result(reshape(n, reduced, shape), x.dtype);
}

static LogicalResult buildGlobalAveragePool(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t count = 1;
  for (int64_t extent : x.shape().drop_front(std::min<int64_t>(2, x.rank())))
    count *= extent;
  return buildGlobalPool(
      n, Combiner::Sum,
      [](OpBuilder &b, Location loc, ValueRange args) {
        return toAccumulator(b, loc, args[0]);
      },
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value divisor = arith::ConstantOp::create(
            b, loc,
            b.getFloatAttr(args[1].getType(), static_cast<double>(count)));
        Value mean = arith::DivFOp::create(b, loc, args[1], divisor);
        return fromAccumulator(b, loc, mean, x.type.getElementType());
      });
}

static LogicalResult buildGlobalMaxPool(NodeBuilder &n) {
  return buildGlobalPool(
      n, Combiner::Max, first,
      [](OpBuilder &, Location, ValueRange args) { return args[1]; });
}

static LogicalResult buildGlobalLpPool(NodeBuilder &n) {
  FailureOr<int64_t> p = readP(n);
  if (failed(p))
    return failure();
  DType dtype = n.input(0).dtype;
  return buildGlobalPool(
      n, Combiner::Sum,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wideType(dtype));
        return powerOf(s, toAccumulator(b, loc, args[0]), *p);
      },
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value root = rootOf(Scalars(b, loc, wideType(dtype)), args[1], *p);
        return fromAccumulator(b, loc, root, dtype.type(b.getContext()));
      });
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta
static LogicalResult buildLRN(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t size = n.intAttr("size", 0);
  float alpha = n.floatAttr("alpha", 1e-4f), beta = n.floatAttr("beta", 0.75f);
  float bias = n.floatAttr("bias", 1.0f);
  if (failed(n.floatInput(0)))
    return failure();
  if (size < 1)
    return n.invalid() << "needs attribute 'size' of 1 and up";
  if (x.rank() < 2)
    return n.invalid() << n.inputText(0u)
                       << " has no channels; rank 2 and up is accepted";
  SmallVector<int64_t> ones(x.rank(), 1), window(ones), begin(x.rank(), 0),
      end(begin);
  window[1] = size;
  begin[1] = (size - 1) / 2;
  end[1] = size / 2;
  auto op = ReduceWindowOp::create(
      n.b, n.loc, WindowKind::Sum, n.value(0),
      empty(n, x.shape(), x.type.getElementType()), window, ones, ones, begin,
      end,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value wide = toAccumulator(b, loc, args[0]);
        return Scalars(b, loc, wideType(x.dtype)).mul(wide, wide);
      },
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wideType(x.dtype));
        Value base =
            s.add(s.number(bias),
                  s.mul(s.number(alpha / static_cast<float>(size)), args[0]));
        return s.make<math::PowFOp>(base, s.number(beta));
      });
  // The division reads the centre of the window: an operand of the epilogue.
  Value centre =
      op.addEpilogueOperand(n.value(0), n.b.getMultiDimIdentityMap(x.rank()));
  auto yield = cast<YieldOp>(op.getEpilogue().front().getTerminator());
  OpBuilder b(yield);
  Value quotient = arith::DivFOp::create(
      b, n.loc, toAccumulator(b, n.loc, centre), yield.getValue());
  yield.setOperand(
      fromAccumulator(b, n.loc, quotient, x.type.getElementType()));
  return n.result(op.getResult(), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> poolingOps() {
  static const OpEntry kOps[] = {
      {"AveragePool", 1, kNewestOpset, 1, 1, 1, buildAveragePool},
      {"GlobalAveragePool", 1, kNewestOpset, 1, 1, 1, buildGlobalAveragePool},
      {"GlobalLpPool", 1, kNewestOpset, 1, 1, 1, buildGlobalLpPool},
      {"GlobalMaxPool", 1, kNewestOpset, 1, 1, 1, buildGlobalMaxPool},
      {"LpPool", 1, kNewestOpset, 1, 1, 1, buildLpPool},
      {"LRN", 1, kNewestOpset, 1, 1, 1, buildLRN},
      {"MaxPool", 1, 7, 1, 1, 1, buildMaxPool},
      {"MaxPool", 8, kNewestOpset, 1, 1, 2, buildMaxPool},
  };
  return kOps;
}
} // namespace memplan::onnx
