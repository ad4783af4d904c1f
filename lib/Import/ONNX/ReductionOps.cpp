//===- ReductionOps.cpp - Reduce* -----------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
struct Axes {
  SmallVector<int64_t> dims;
  SmallVector<int64_t> shape; // of the result
};
} // namespace

/// Axes are an attribute, then an input from opset `inputSince` on. Nothing
/// given means all, or with noop_with_empty_axes none: each element is then a
/// row of its own, which what comes before and after the sum still applies to.
static FailureOr<Axes> readAxes(NodeBuilder &n, int64_t inputSince) {
  ImportedTensor &x = n.input(0);
  SmallVector<int64_t> given;
  bool isNoop = false;
  if (n.opset < inputSince) {
    given = n.intsAttr("axes").value_or(SmallVector<int64_t>());
  } else {
    isNoop = n.intAttr("noop_with_empty_axes", 0) != 0;
    if (n.hasInput(1)) {
      FailureOr<SmallVector<int64_t>> input = n.ints(1, "the list of axes");
      if (failed(input))
        return failure();
      given = *input;
    }
  }
  FailureOr<SmallVector<int64_t>> dims = n.axes(given, x.rank());
  if (failed(dims))
    return failure();
  Axes axes;
  axes.dims = *dims;
  if (axes.dims.empty() && !isNoop)
    axes.dims = llvm::to_vector(llvm::seq<int64_t>(x.rank()));
  llvm::sort(axes.dims);
  bool keeps = n.intAttr("keepdims", 1) != 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!llvm::is_contained(axes.dims, i))
      axes.shape.push_back(x.dim(i));
    else if (keeps)
      axes.shape.push_back(1);
  }
  return axes;
}

using StageFn = function_ref<Value(const Scalars &, Value)>;

/// finish(combine over the row of stage(x))
static LogicalResult buildReduce(
    NodeBuilder &n, int64_t inputSince, Combiner combiner, StageFn stage,
    function_ref<Value(const Scalars &, Value, int64_t rowLength)> finish) {
  FailureOr<Axes> axes = readAxes(n, inputSince);
  if (failed(axes))
    return failure();
  ImportedTensor &x = n.input(0);
  bool isExtreme = combiner == Combiner::Max || combiner == Combiner::Min;
  std::optional<DType> ordered = isExtreme ? orderedType(x.dtype) : x.dtype;
  if (!ordered || (x.dtype.isBool() && !isExtreme))
    return n.unsupported() << n.inputText(0u)
                           << "; floats and integers are accepted, unsigned "
                              "ones of 64 bits only where nothing is compared";
  int64_t length = 1;
  for (int64_t dim : axes->dims)
    length *= x.dim(dim);
  // Narrow floats are summed as float.
  DType wide =
      x.dtype.isFloat() && x.dtype.bits() < 32 ? DType::f32() : *ordered;
  Type element = x.type.getElementType();
  Value reduced = reduceRows(
      n, n.value(0), axes->dims, element, combiner,
      RegionBuilder([&](OpBuilder &b, Location loc, ValueRange args) {
        return stage(Scalars(b, loc, wide),
                     castScalar(b, loc, args[0], x.dtype, wide));
      }),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        Value result = finish(s, args[1], length);
        // Not "is not 0": the least int64 of no elements is no bool.
        if (x.dtype.isBool())
          return s.less(s.integer(0), result);
        return castScalar(b, loc, result, wide, x.dtype);
      });
  return n.result(reshape(n, reduced, axes->shape), x.dtype);
}

static Value self(const Scalars &, Value x) { return x; }
static Value square(const Scalars &s, Value x) { return s.mul(x, x); }
static Value absolute(const Scalars &s, Value x) { return s.abs(x); }
static Value plain(const Scalars &, Value x, int64_t) { return x; }

template <Combiner combiner, int64_t inputSince>
static LogicalResult buildPlain(NodeBuilder &n) {
  return buildReduce(n, inputSince, combiner, self, plain);
}

static LogicalResult buildReduceMean(NodeBuilder &n) {
  return buildReduce(n, 18, Combiner::Sum, self,
                     [](const Scalars &s, Value x, int64_t length) {
                       return s.div(x, s.integer(length));
                     });
}

static LogicalResult buildReduceL1(NodeBuilder &n) {
  return buildReduce(n, 18, Combiner::Sum, absolute, plain);
}

static LogicalResult buildReduceSumSquare(NodeBuilder &n) {
  return buildReduce(n, 18, Combiner::Sum, square, plain);
}

static LogicalResult buildReduceL2(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  return buildReduce(n, 18, Combiner::Sum, square,
                     [](const Scalars &s, Value x, int64_t) {
                       return s.make<math::SqrtOp>(x);
                     });
}

static LogicalResult buildReduceLogSum(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  return buildReduce(n, 18, Combiner::Sum, self,
                     [](const Scalars &s, Value x, int64_t) {
                       return s.make<math::LogOp>(x);
                     });
}

/// max + log(sum of e^(x - max)), which does not overflow.
static LogicalResult buildReduceLogSumExp(NodeBuilder &n) {
  if (failed(n.floatInput(0)))
    return failure();
  FailureOr<Axes> axes = readAxes(n, 18);
  if (failed(axes))
    return failure();
  ImportedTensor &x = n.input(0);
  DType wide = x.dtype.bits() < 32 ? DType::f32() : x.dtype;
  // An infinite maximum would make inf - inf.
  auto shift = [&](const Scalars &s, Value max) {
    return s.select(s.equal(s.abs(max), s.highest()), s.number(0), max);
  };
  auto maxStage = [&](OpBuilder &b, Location loc, ValueRange args) {
    return toAccumulator(b, loc, args[0]);
  };
  auto sumStage = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, wide);
    return s.make<math::ExpOp>(
        s.sub(toAccumulator(b, loc, args[0]), shift(s, args[1])));
  };
  RegionBuilder stages[] = {maxStage, sumStage};
  Value reduced = reduceRows(
      n, n.value(0), axes->dims, x.type.getElementType(),
      {Combiner::Max, Combiner::Sum}, stages,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        Value result = s.add(s.make<math::LogOp>(args[2]), shift(s, args[1]));
        return fromAccumulator(b, loc, result, x.type.getElementType());
      });
  return n.result(reshape(n, reduced, axes->shape), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> reductionOps() {
  static const OpEntry kOps[] = {
      {"ReduceL1", 1, 17, 1, 1, 1, buildReduceL1},
      {"ReduceL1", 18, kNewestOpset, 1, 2, 1, buildReduceL1},
      {"ReduceL2", 1, 17, 1, 1, 1, buildReduceL2},
      {"ReduceL2", 18, kNewestOpset, 1, 2, 1, buildReduceL2},
      {"ReduceLogSum", 1, 17, 1, 1, 1, buildReduceLogSum},
      {"ReduceLogSum", 18, kNewestOpset, 1, 2, 1, buildReduceLogSum},
      {"ReduceLogSumExp", 1, 17, 1, 1, 1, buildReduceLogSumExp},
      {"ReduceLogSumExp", 18, kNewestOpset, 1, 2, 1, buildReduceLogSumExp},
      {"ReduceMax", 1, 17, 1, 1, 1, buildPlain<Combiner::Max, 18>},
      {"ReduceMax", 18, kNewestOpset, 1, 2, 1, buildPlain<Combiner::Max, 18>},
      {"ReduceMean", 1, 17, 1, 1, 1, buildReduceMean},
      {"ReduceMean", 18, kNewestOpset, 1, 2, 1, buildReduceMean},
      {"ReduceMin", 1, 17, 1, 1, 1, buildPlain<Combiner::Min, 18>},
      {"ReduceMin", 18, kNewestOpset, 1, 2, 1, buildPlain<Combiner::Min, 18>},
      {"ReduceProd", 1, 17, 1, 1, 1, buildPlain<Combiner::Prod, 18>},
      {"ReduceProd", 18, kNewestOpset, 1, 2, 1, buildPlain<Combiner::Prod, 18>},
      {"ReduceSum", 1, 12, 1, 1, 1, buildPlain<Combiner::Sum, 13>},
      {"ReduceSum", 13, kNewestOpset, 1, 2, 1, buildPlain<Combiner::Sum, 13>},
      {"ReduceSumSquare", 1, 17, 1, 1, 1, buildReduceSumSquare},
      {"ReduceSumSquare", 18, kNewestOpset, 1, 2, 1, buildReduceSumSquare},
  };
  return kOps;
}
} // namespace memplan::onnx
