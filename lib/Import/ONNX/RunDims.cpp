//===- RunDims.cpp - Dims whose extent the run tells ----------------------===//

#include "RunDims.h"

#include "ControlFlow.h"
#include "RunDimRules.h"
#include "RunShapes.h"
#include "TensorOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
using Rule = LogicalResult (*)(NodeBuilder &, BuildFn);
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

LogicalResult memplan::onnx::onlyRunDimsOf(NodeBuilder &n,
                                           ArrayRef<unsigned> which) {
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.hasInput(i) && !n.input(i).runDims.empty() &&
        !llvm::is_contained(which, i))
      return n.unsupported()
             << n.inputText(i)
             << " has an extent that only the run tells; one that is known at "
                "import is accepted";
  return success();
}

LogicalResult memplan::onnx::isFixedDim(NodeBuilder &n, unsigned i, int64_t dim,
                                        StringRef why) {
  if (!n.input(i).runExtent(dim))
    return success();
  return n.unsupported() << n.inputText(i) << " " << why << " dim " << dim
                         << ", whose extent only the run tells";
}

Value memplan::onnx::scalarExtent(NodeBuilder &n, int64_t extent) {
  auto type = RankedTensorType::get({}, n.b.getI64Type());
  return arith::ConstantOp::create(n.b, n.loc,
                                   DenseElementsAttr::get(type, extent));
}

Value memplan::onnx::computeExtent(
    NodeBuilder &n, ValueRange extents,
    function_ref<Value(const Scalars &, ValueRange)> f) {
  SmallVector<AffineMap> maps(extents.size(), n.b.getMultiDimIdentityMap(0));
  return mapElements(n, extents, maps, {}, n.b.getI64Type(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       return f(Scalars(b, loc, DType::i64()), args);
                     });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Inputs broadcast against each other. A dim of the run is one of all inputs,
/// but for those of extent 1.
static LogicalResult broadcastRule(NodeBuilder &n, BuildFn build) {
  int64_t rank = 0;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.hasInput(i))
      rank = std::max(rank, n.input(i).rank());
  SmallVector<Value> extents(rank);
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.hasInput(i))
      for (const RunDim &entry : n.input(i).runDims)
        extents[rank - n.input(i).rank() + entry.dim] = entry.extent;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      continue;
    ImportedTensor &x = n.input(i);
    for (int64_t dim = 0; dim < x.rank(); ++dim) {
      Value extent = extents[rank - x.rank() + dim];
      if (extent && x.runExtent(dim) != extent &&
          (x.dim(dim) != 1 || x.runExtent(dim)))
        return n.unsupported()
               << n.inputText(i) << " meets another tensor in dim " << dim
               << ", one of them with an extent that only the run tells; "
                  "tensors of one origin, or an extent of 1, are accepted";
    }
  }
  if (failed(build(n)))
    return failure();
  for (int64_t dim = 0; dim < rank; ++dim)
    if (extents[dim])
      n.setRunDim(0, dim, extents[dim]);
  return success();
}

static LogicalResult identityRule(NodeBuilder &n, BuildFn build) {
  return build(n);
}

static LogicalResult transposeRule(NodeBuilder &n, BuildFn build) {
  if (failed(build(n)))
    return failure();
  ImportedTensor &x = n.input(0);
  auto given = n.intsAttr("perm");
  for (const RunDim &entry : x.runDims) {
    int64_t to = x.rank() - 1 - entry.dim;
    if (given)
      to = llvm::find(*given, entry.dim) - given->begin();
    n.setRunDim(0, to, entry.extent);
  }
  return success();
}

/// How many elements dims have; no more than a tensor whose size was checked.
static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

static LogicalResult refuseShape(NodeBuilder &n, int64_t dim) {
  return n.unsupported()
         << n.inputText(0u) << " takes the shape "
         << shapeText(n.getResults().front().shape()) << ", in which its dim "
         << dim
         << " is not apart, whose extent only the run tells; one that an entry "
            "-1 or 0 alone stands for is accepted";
}

/// A dim of the run is what entry -1 or 0 stands for; an extent that is given
/// would only be right by chance. What is before it has as many elements as it
/// had; dims that follow it may be merged into it.
static LogicalResult reshapeRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, 0)) || failed(build(n)))
    return failure();
  ImportedTensor &x = n.input(0);
  ArrayRef<int64_t> shape = n.getResults().front().shape();
  SmallVector<int64_t> wanted = *n.ints(1, "the shape");
  bool zeroCopies = n.opset < 14 || n.intAttr("allowzero", 0) == 0;
  for (const RunDim &entry : x.runDims) {
    int64_t dim = entry.dim, found = -1, inner = 1;
    int64_t after = product(x.shape().drop_front(dim + 1));
    for (int64_t i = 0; i < static_cast<int64_t>(wanted.size()); ++i) {
      bool isOpen = wanted[i] == -1;
      bool isCopy = wanted[i] == 0 && zeroCopies && i == dim;
      int64_t rest = product(shape.drop_front(i + 1));
      if (!(isOpen || isCopy) ||
          product(shape.take_front(i)) != product(x.shape().take_front(dim)) ||
          rest == 0 || after % rest != 0)
        continue;
      // Merged with dims that follow it, its extent counts their elements.
      found = i;
      inner = after / rest;
    }
    if (found < 0 || (inner != 1 && x.runDims.size() != 1) ||
        n.getResults().front().runExtent(found))
      return refuseShape(n, dim);
    Value extent = entry.extent;
    if (inner != 1)
      extent = computeExtent(n, extent, [&](const Scalars &s, ValueRange args) {
        return s.mul(args[0], s.integer(inner));
      });
    n.setRunDim(0, found, extent);
  }
  return success();
}

/// Alone in its half, but for extents of 1.
static LogicalResult flattenRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, 0)) || failed(build(n)))
    return failure();
  ImportedTensor &x = n.input(0);
  int64_t axis = n.intAttr("axis", 1);
  axis = axis < 0 ? axis + x.rank() : axis;
  for (const RunDim &entry : x.runDims) {
    bool isInner = entry.dim >= axis;
    ArrayRef<int64_t> half =
        isInner ? x.shape().drop_front(axis) : x.shape().take_front(axis);
    int64_t place = isInner ? entry.dim - axis : entry.dim;
    if (product(half.take_front(place)) != 1 ||
        product(half.drop_front(place + 1)) != 1 ||
        n.getResults().front().runExtent(isInner))
      return refuseShape(n, entry.dim);
    n.setRunDim(0, isInner, entry.extent);
  }
  return success();
}

/// The axes of Squeeze and Unsqueeze, which their builders have checked.
static SmallVector<int64_t> readAxes(NodeBuilder &n, int64_t rank) {
  SmallVector<int64_t> axes;
  if (n.opset < 13)
    axes = n.intsAttr("axes").value_or(axes);
  else if (n.hasInput(1))
    axes = *n.ints(1, "the list of axes");
  for (int64_t &axis : axes)
    axis = axis < 0 ? axis + rank : axis;
  return axes;
}

static LogicalResult unsqueezeRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, 0)) || failed(build(n)))
    return failure();
  ImportedTensor &y = n.getResults().front();
  SmallVector<int64_t> axes = readAxes(n, y.rank());
  int64_t from = 0;
  for (int64_t i = 0; i < y.rank() && !y.aliasOf; ++i)
    if (!llvm::is_contained(axes, i))
      if (Value extent = n.input(0).runExtent(from++))
        n.setRunDim(0, i, extent);
  return success();
}

static LogicalResult squeezeRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, 0)) || failed(build(n)))
    return failure();
  ImportedTensor &x = n.input(0);
  SmallVector<int64_t> axes = readAxes(n, x.rank());
  int64_t to = 0;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool drops = axes.empty() ? x.dim(i) == 1 : llvm::is_contained(axes, i);
    Value extent = x.runExtent(i);
    if (drops && extent)
      return n.unsupported() << n.inputText(0u) << " has no dim " << i
                             << " to squeeze: only the run tells its extent";
    if (!drops && extent && !n.getResults().front().aliasOf)
      n.setRunDim(0, to, extent);
    to += !drops;
  }
  return success();
}

/// Lets the builder see indices (input 1) that are not negative: those that are
/// count from the extent's end, not from that of the bound.
static void countFromExtent(NodeBuilder &n, Value extent) {
  ImportedTensor &indices = n.input(1);
  if (!extent || !indices.dtype.isSigned())
    return;
  int64_t rank = indices.rank();
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(rank),
                      AffineMap::get(rank, 0, n.context())};
  Value counted = mapElements(
      n, {n.value(1), extent}, maps, indices.shape(),
      indices.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, DType::i64());
        Value index = castScalar(b, loc, args[0], indices.dtype, s.dtype);
        Value wrapped =
            s.select(s.less(index, s.integer(0)), s.add(index, args[1]), index);
        Value safe = s.max(s.integer(0), wrapped);
        return castScalar(b, loc, safe, s.dtype, indices.dtype);
      });
  n.replaceInput(1, *keepValue(n, counted, indices.dtype, indices.name));
}

static LogicalResult gatherRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  countFromExtent(n, x.runExtent(*axis));
  if (failed(build(n)))
    return failure();
  for (const RunDim &entry : x.runDims) {
    if (entry.dim == *axis)
      continue;
    n.setRunDim(0,
                entry.dim < *axis ? entry.dim : entry.dim + indices.rank() - 1,
                entry.extent);
  }
  for (const RunDim &entry : indices.runDims)
    n.setRunDim(0, *axis + entry.dim, entry.extent);
  return success();
}

static LogicalResult gatherNDRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0), &indices = n.input(1);
  if (failed(isFixedDim(n, 1, indices.rank() - 1, "has index tuples along")) ||
      failed(build(n)))
    return failure();
  int64_t batch = n.opset >= 12 ? n.intAttr("batch_dims", 0) : 0;
  int64_t indexed = batch + indices.dim(indices.rank() - 1);
  for (int64_t i = 0; i < x.rank(); ++i) {
    Value extent = x.runExtent(i);
    if (i < batch && extent != indices.runExtent(i))
      return n.unsupported() << n.inputText(0u) << " and " << n.inputText(1)
                             << " may differ in the extent of dim " << i
                             << ", which only the run tells";
    if (i >= batch && i < indexed &&
        failed(isFixedDim(n, 0, i, "is indexed in")))
      return failure();
    if (i >= indexed && extent)
      n.setRunDim(0, i - indexed + indices.rank() - 1, extent);
  }
  for (const RunDim &entry : indices.runDims)
    n.setRunDim(0, entry.dim, entry.extent);
  return success();
}

static LogicalResult gatherElementsRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  ImportedTensor &indices = n.input(1);
  if (failed(axis))
    return failure();
  countFromExtent(n, x.runExtent(*axis));
  if (failed(build(n)))
    return failure();
  for (const RunDim &entry : indices.runDims)
    n.setRunDim(0, entry.dim, entry.extent);
  return success();
}

/// Row i of the result is row i of the input: the dims along `axis` alone are
/// computed with.
static LogicalResult alongAxis(NodeBuilder &n, BuildFn build, int64_t axis) {
  if (failed(onlyRunDimsOf(n, 0)) ||
      failed(isFixedDim(n, 0, axis, "is computed along")) || failed(build(n)))
    return failure();
  for (const RunDim &entry : n.input(0).runDims)
    for (unsigned i = 0; i < n.numOutputs(); ++i)
      if (!n.getResults()[i].aliasOf)
        n.setRunDim(i, entry.dim, entry.extent);
  return success();
}

template <int64_t Default>
static LogicalResult axisRule(NodeBuilder &n, BuildFn build) {
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", Default), n.input(0).rank());
  if (failed(axis))
    return failure();
  return alongAxis(n, build, *axis);
}

/// Softmax of old opsets takes all dims from the axis on as one.
static LogicalResult softmaxRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", n.opset >= 13 ? -1 : 1), x.rank());
  if (failed(axis))
    return failure();
  for (int64_t i = *axis; n.opset < 13 && i < x.rank(); ++i)
    if (failed(isFixedDim(n, 0, i, "is computed along")))
      return failure();
  return alongAxis(n, build, *axis);
}

/// Samples along dim 0 that know nothing of each other.
static LogicalResult sampleRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, 0)))
    return failure();
  for (int64_t i = 1; i < n.input(0).rank(); ++i)
    if (failed(isFixedDim(n, 0, i, "is computed along")))
      return failure();
  if (failed(build(n)))
    return failure();
  Value extent = n.input(0).runExtent(0);
  if (extent && !n.getResults().front().aliasOf)
    n.setRunDim(0, 0, extent);
  return success();
}

/// Training takes statistics over all samples.
static LogicalResult batchNormRule(NodeBuilder &n, BuildFn build) {
  if (n.opset >= 14 && n.intAttr("training_mode", 0) != 0)
    return onlyRunDimsOf(n, {});
  return sampleRule(n, build);
}

static LogicalResult gemmRule(NodeBuilder &n, BuildFn build) {
  // Neither may the rows be those of A's transpose, nor C have rows of its own.
  bool hasOwnRows =
      n.hasInput(2) && n.input(2).rank() == 2 && n.input(2).dim(0) != 1;
  if ((n.intAttr("transA", 0) != 0 || hasOwnRows) &&
      failed(onlyRunDimsOf(n, {})))
    return failure();
  return sampleRule(n, build);
}

/// Rows of A, and columns of B.
static LogicalResult matmulRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &a = n.input(0), &b = n.input(1);
  bool hasRows = a.rank() >= 2, hasColumns = b.rank() >= 2;
  for (unsigned i = 0; i < 2; ++i) {
    ImportedTensor &x = n.input(i);
    int64_t free = i == 0 ? x.rank() - 2 : x.rank() - 1;
    if (i == 0 ? !hasRows : !hasColumns)
      free = -1;
    for (int64_t dim = 0; dim < x.rank(); ++dim)
      if (dim != free && failed(isFixedDim(n, i, dim, "is multiplied along")))
        return failure();
  }
  if (failed(build(n)))
    return failure();
  int64_t rank = n.getResults().front().rank();
  if (Value extent = hasRows ? a.runExtent(a.rank() - 2) : Value())
    n.setRunDim(0, rank - 1 - hasColumns, extent);
  if (Value extent = hasColumns ? b.runExtent(b.rank() - 1) : Value())
    n.setRunDim(0, rank - 1, extent);
  return success();
}

/// Regions of interest are taken one by one.
static LogicalResult roiAlignRule(NodeBuilder &n, BuildFn build) {
  if (failed(onlyRunDimsOf(n, {1, 2})) ||
      failed(isFixedDim(n, 1, 1, "holds corners along")))
    return failure();
  Value extent = n.input(1).runExtent(0);
  if (n.input(2).runExtent(0) != extent)
    return n.unsupported() << n.inputText(1) << " and " << n.inputText(2)
                           << " may differ in extent, which only the run tells";
  if (failed(build(n)))
    return failure();
  n.setRunDim(0, 0, extent);
  return success();
}

/// A slice from the start of a dim of the run ends with it.
static LogicalResult sliceRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  if (failed(onlyRunDimsOf(n, 0)) || failed(build(n)))
    return failure();
  ImportedTensor &y = n.getResults().front();
  SmallVector<int64_t> lists[4]; // starts, ends, axes, steps
  for (unsigned i = 0; i < 4; ++i) {
    static constexpr const char *kNames[] = {"starts", "ends", "axes", "steps"};
    if (n.opset < 10)
      lists[i] = i < 3 ? n.intsAttr(kNames[i]).value_or(lists[i]) : lists[i];
    else if (n.hasInput(i + 1))
      lists[i] = *n.ints(i + 1, kNames[i]);
  }
  SmallVector<Value> extents;
  for (int64_t i = 0; i < x.rank(); ++i)
    extents.push_back(x.runExtent(i));
  for (size_t i = 0; i < lists[0].size(); ++i) {
    int64_t axis = lists[2].empty() ? i : lists[2][i];
    axis = axis < 0 ? axis + x.rank() : axis;
    int64_t start = lists[0][i], end = lists[1][i];
    int64_t step = lists[3].empty() ? 1 : lists[3][i];
    if (!extents[axis] || (start == 0 && end >= x.dim(axis) && step == 1))
      continue;
    if (start < 0 || end < 0 || step != 1)
      return n.unsupported()
             << n.inputText(0u) << " is sliced in dim " << axis
             << ", whose extent only the run tells; starts and ends that are "
                "not negative, and steps of 1, are accepted there";
    int64_t last = std::min(end, x.dim(axis));
    extents[axis] =
        computeExtent(n, extents[axis], [&](const Scalars &s, ValueRange args) {
          Value stop = s.min(args[0], s.integer(last));
          return s.max(s.integer(0), s.sub(stop, s.integer(start)));
        });
  }
  for (int64_t i = 0; i < x.rank() && !y.aliasOf; ++i)
    if (extents[i])
      n.setRunDim(0, i, extents[i]);
  return success();
}

/// Only at inference, when the input is the result.
static LogicalResult dropoutRule(NodeBuilder &n, BuildFn build) {
  if (n.wantsOutput(1) || failed(build(n)) || !n.getResults().front().aliasOf)
    return onlyRunDimsOf(n, {});
  return success();
}

static LogicalResult layerNormRule(NodeBuilder &n, BuildFn build) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", -1), x.rank());
  if (failed(axis))
    return failure();
  for (int64_t i = *axis; i < x.rank(); ++i)
    if (failed(isFixedDim(n, 0, i, "is normalized along")))
      return failure();
  return alongAxis(n, build, *axis);
}

static LogicalResult splitRule(NodeBuilder &n, BuildFn build) {
  return axisRule<0>(n, build);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static const llvm::StringMap<Rule> &rules() {
  static const llvm::StringMap<Rule> kRules = [] {
    llvm::StringMap<Rule> map;
    for (const char *name : {"Abs",         "Acos",      "Acosh",
                             "Add",         "And",       "Asin",
                             "Asinh",       "Atan",      "Atanh",
                             "BitCast",     "BitShift",  "BitwiseAnd",
                             "BitwiseNot",  "BitwiseOr", "BitwiseXor",
                             "Cast",        "Ceil",      "Celu",
                             "Clip",        "Cos",       "Cosh",
                             "Div",         "Elu",       "Equal",
                             "Erf",         "Exp",       "Floor",
                             "Gelu",        "Greater",   "GreaterOrEqual",
                             "HardSigmoid", "HardSwish", "IsInf",
                             "IsNaN",       "LeakyRelu", "Less",
                             "LessOrEqual", "Log",       "Max",
                             "Mean",        "Min",       "Mish",
                             "Mod",         "Mul",       "Neg",
                             "Not",         "Or",        "Pow",
                             "Reciprocal",  "Relu",      "Round",
                             "Selu",        "Shrink",    "Sigmoid",
                             "Sign",        "Sin",       "Sinh",
                             "Softplus",    "Softsign",  "Sqrt",
                             "Sub",         "Sum",       "Swish",
                             "Tan",         "Tanh",      "ThresholdedRelu",
                             "Where",       "Xor"})
      map[name] = broadcastRule;
    for (const char *name : {"AveragePool", "Conv", "ConvTranspose",
                             "GlobalAveragePool", "GlobalMaxPool"})
      map[name] = sampleRule;
    map["BatchNormalization"] = batchNormRule;
    for (const char *name : {"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMin",
                             "ReduceProd", "ReduceSum", "ReduceSumSquare"})
      map[name] = reduceRule;
    for (const char *name : {"ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})
      map[name] = reduceOthersRule;
    map["ArgMax"] = map["ArgMin"] = argRule;
    map["Compress"] = compressRule;
    map["Concat"] = concatRule;
    map["Dropout"] = dropoutRule;
    map["Flatten"] = flattenRule;
    map["Reshape"] = reshapeRule;
    map["Gather"] = gatherRule;
    map["GatherElements"] = gatherElementsRule;
    map["GatherND"] = gatherNDRule;
    map["Gemm"] = gemmRule;
    map["Identity"] = identityRule;
    map["LayerNormalization"] = layerNormRule;
    map["LogSoftmax"] = map["Softmax"] = softmaxRule;
    map["MatMul"] = matmulRule;
    map["NonMaxSuppression"] = suppressionRule;
    map["NonZero"] = nonZeroRule;
    map["RMSNormalization"] = layerNormRule;
    map["RoiAlign"] = roiAlignRule;
    map["Scatter"] = map["ScatterElements"] = map["ScatterND"] = scatterRule;
    map["Shape"] = shapeRule;
    map["Size"] = sizeRule;
    map["Slice"] = sliceRule;
    map["Split"] = splitRule;
    map["Squeeze"] = squeezeRule;
    map["TopK"] = topKRule;
    map["Transpose"] = transposeRule;
    map["Unsqueeze"] = unsqueezeRule;
    return map;
  }();
  return kRules;
}

static LogicalResult buildByRule(NodeBuilder &n, const OpEntry &entry) {
  bool hasAny = false;
  if (takesRunShape(n, entry))
    return buildOfRunShape(n, entry);
  if (StringRef(entry.name) == "Reshape" && isRunShape(n, 1) &&
      failed(closeRunShape(n)))
    return failure();
  if (StringRef(entry.name) == "Slice" && isRunShape(n, 2))
    closeRunEnds(n);
  for (unsigned i = 0; i < n.numInputs(); ++i)
    hasAny |=
        n.hasInput(i) && !n.input(i).isList() && !n.input(i).runDims.empty();
  if (!hasAny || entry.takesLists)
    return entry.build(n);
  auto rule = rules().find(entry.name);
  if (*entry.domain || rule == rules().end())
    return onlyRunDimsOf(n, {});
  return rule->second(n, entry.build);
}

LogicalResult memplan::onnx::buildWithRunDims(NodeBuilder &n,
                                              const OpEntry &entry) {
  if (failed(buildByRule(n, entry)))
    return failure();
  if (!*entry.domain)
    trackEntries(n, entry.name);
  return success();
}
