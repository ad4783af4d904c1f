//===- LayoutOps.cpp - The same elements in another shape or order --------===//

#include "OpTable.h"
#include "Random.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static LogicalResult reshapeResult(NodeBuilder &n, ArrayRef<int64_t> shape) {
  ImportedTensor &x = n.input(0);
  if (x.shape() == shape)
    return n.aliasResult(0, x);
  return n.result(reshape(n, n.value(0), shape), x.dtype);
}

/// 0 keeps the input's extent (unless allowzero), one -1 takes what is left.
static LogicalResult buildReshape(NodeBuilder &n) {
  FailureOr<SmallVector<int64_t>> wanted =
      n.opset < 5 ? n.intsAttr("shape").value_or(SmallVector<int64_t>())
                  : n.ints(1, "the shape");
  if (failed(wanted))
    return failure();
  if (n.opset >= 5 && n.input(1).rank() != 1)
    return n.invalid() << n.inputText(1)
                       << " is the shape; a tensor of rank 1 is accepted";
  ImportedTensor &x = n.input(0);
  bool allowZero = n.opset >= 14 && n.intAttr("allowzero", 0) != 0;
  SmallVector<int64_t> shape;
  std::optional<size_t> open;
  auto refuse = [&]() {
    return n.invalid() << n.inputText(0u) << " cannot take the shape "
                       << shapeText(*wanted);
  };
  for (auto [i, extent] : llvm::enumerate(*wanted)) {
    if (extent == 0 && !allowZero) {
      if (static_cast<int64_t>(i) >= x.rank())
        return refuse() << ": entry " << i << " is 0, but the input has no dim "
                        << i;
      shape.push_back(x.dim(i));
    } else if (extent == -1) {
      if (open)
        return refuse() << ": it has two entries -1";
      open = i;
      shape.push_back(1);
    } else if (extent < 0) {
      return refuse() << ": entry " << i << " is negative";
    } else {
      shape.push_back(extent);
    }
  }
  auto known = checkedProduct(shape);
  if (!known)
    return refuse();
  if (open) {
    if (*known == 0 || x.numElements() % *known != 0)
      return refuse() << ": no extent fits the entry -1";
    shape[*open] = x.numElements() / *known;
  } else if (*known != x.numElements()) {
    return refuse() << ": it has " << *known << " elements, not "
                    << x.numElements();
  }
  return reshapeResult(n, shape);
}

static LogicalResult buildFlatten(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t axis = n.intAttr("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return n.invalid() << "axis " << axis << " is outside [" << -x.rank()
                       << ", " << x.rank() << "]";
  if (axis < 0)
    axis += x.rank();
  auto outer = checkedProduct(x.shape().take_front(axis));
  auto inner = checkedProduct(x.shape().drop_front(axis));
  if (!outer || !inner)
    return n.invalid() << n.inputText(0u) << " has too many elements";
  return reshapeResult(n, {*outer, *inner});
}

/// The axes of Squeeze and Unsqueeze: an attribute before opset 13, an input
/// since. nullopt when left out.
static FailureOr<std::optional<SmallVector<int64_t>>> readAxes(NodeBuilder &n) {
  using Result = std::optional<SmallVector<int64_t>>;
  if (n.opset < 13)
    return Result(n.intsAttr("axes"));
  if (!n.hasInput(1))
    return Result();
  FailureOr<SmallVector<int64_t>> axes = n.ints(1, "the list of axes");
  if (failed(axes))
    return failure();
  return Result(*axes);
}

static LogicalResult buildSqueeze(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  auto given = readAxes(n);
  if (failed(given))
    return failure();
  SmallVector<int64_t> dropped, shape;
  if (*given) {
    FailureOr<SmallVector<int64_t>> axes = n.axes(**given, x.rank());
    if (failed(axes))
      return failure();
    dropped = *axes;
    for (int64_t axis : dropped)
      if (x.dim(axis) != 1)
        return n.invalid() << n.inputText(0u) << " has extent " << x.dim(axis)
                           << " in dim " << axis << "; 1 can be squeezed";
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    if (*given ? !llvm::is_contained(dropped, i) : x.dim(i) != 1)
      shape.push_back(x.dim(i));
  return reshapeResult(n, shape);
}

static LogicalResult buildUnsqueeze(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  auto given = readAxes(n);
  if (failed(given))
    return failure();
  if (!*given)
    return n.invalid() << "has no axes";
  int64_t rank = x.rank() + static_cast<int64_t>((*given)->size());
  FailureOr<SmallVector<int64_t>> axes = n.axes(**given, rank);
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape;
  ArrayRef<int64_t> rest = x.shape();
  for (int64_t i = 0; i < rank; ++i) {
    if (llvm::is_contained(*axes, i)) {
      shape.push_back(1);
      continue;
    }
    shape.push_back(rest.front());
    rest = rest.drop_front();
  }
  return reshapeResult(n, shape);
}

static LogicalResult buildTranspose(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(x.rank())));
  if (auto given = n.intsAttr("perm")) {
    SmallVector<int64_t> sorted(*given);
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(x.rank())))
      return n.invalid() << "attribute 'perm' is not a permutation of the dims "
                            "of "
                         << n.inputText(0u);
    permutation = *given;
  }
  if (llvm::is_sorted(permutation))
    return n.aliasResult(0, x);
  return n.result(transpose(n, n.value(0), permutation), x.dtype);
}

static LogicalResult buildIdentity(NodeBuilder &n) {
  return n.aliasResult(0, n.input(0));
}

/// Each element is dropped with a probability of `ratio`; the others grow, so
/// that sums stay what they are on average.
static LogicalResult dropAtRandom(NodeBuilder &n, double ratio) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)))
    return failure();
  Value draws =
      uniform(n, x.shape(), randomKey(n, /*isInt=*/true), DType::f32());
  AffineMap identity = n.b.getMultiDimIdentityMap(x.rank());
  auto isKept = [&](OpBuilder &b, Location loc, Value draw) {
    Scalars s(b, loc, DType::f32());
    return s.lessOrEqual(s.number(ratio), draw);
  };
  Value y = mapElements(
      n, {n.value(0), draws}, {identity, identity}, x.shape(),
      x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype);
        Value grown = s.mul(args[0], s.number(1 / (1 - ratio)));
        return s.select(isKept(b, loc, args[1]), grown, s.number(0));
      });
  if (failed(n.result(0, y, x.dtype)) || !n.wantsOutput(1))
    return success();
  Value mask = mapElements(n, draws, identity, x.shape(), n.b.getI1Type(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             return isKept(b, loc, args[0]);
                           });
  return n.result(1, mask, DType::boolean());
}

/// The probability with which training drops an element; 0 at inference.
static FailureOr<double> readRatio(NodeBuilder &n) {
  if (n.opset < 12 || !n.hasInput(2))
    return 0.0;
  FailureOr<DenseElementsAttr> training = n.constant(2, "training_mode");
  if (failed(training))
    return failure();
  if (!n.input(2).dtype.isBool() || training->getNumElements() != 1)
    return n.invalid() << n.inputText(2)
                       << " is training_mode; one bool is accepted";
  if (!*training->value_begin<bool>())
    return 0.0;
  if (!n.hasInput(1))
    return 0.5;
  FailureOr<DenseElementsAttr> given = n.constant(1, "the ratio");
  if (failed(given))
    return failure();
  if (!n.input(1).dtype.isFloat() || given->getNumElements() != 1)
    return n.invalid() << n.inputText(1) << " is the ratio; one float is "
                       << "accepted";
  APFloat value = *given->value_begin<APFloat>();
  double ratio = value.convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return n.invalid() << "the ratio is " << ratio
                       << "; one of [0, 1) is accepted";
  return ratio;
}

/// At inference the input itself; the mask says that nothing was dropped.
static LogicalResult buildDropout(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  n.ignoreAttr(n.opset < 12 ? "ratio" : "seed");
  if (n.opset < 7 && n.intAttr("is_test", 0) == 0)
    return n.unsupported() << "attribute 'is_test' is 0, which is training; 1 "
                              "is accepted";
  FailureOr<double> ratio = readRatio(n);
  if (failed(ratio))
    return failure();
  if (*ratio > 0)
    return dropAtRandom(n, *ratio);
  // Before opset 10 the mask has the input's type.
  DType mask = n.opset < 10 ? x.dtype : DType::boolean();
  if (n.wantsOutput(1)) {
    Type element = mask.type(n.context());
    TypedAttr one = isa<FloatType>(element)
                        ? TypedAttr(n.b.getFloatAttr(element, 1.0))
                        : n.b.getIntegerAttr(element, 1);
    if (failed(n.result(1, splat(n, x.shape(), one), mask)))
      return failure();
  }
  return n.aliasResult(0, x);
}

/// The block extents that DepthToSpace and SpaceToDepth take apart.
static FailureOr<int64_t> readBlocks(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  int64_t size = n.intAttr("blocksize", 0);
  if (size < 1 || size > (1 << 20))
    return n.invalid() << "attribute 'blocksize' is " << size
                       << "; 1 to 2^20 is accepted";
  if (x.rank() != 4)
    return n.unsupported() << n.inputText(0u) << "; rank 4 is accepted";
  return size;
}

static LogicalResult buildDepthToSpace(NodeBuilder &n) {
  FailureOr<int64_t> size = readBlocks(n);
  if (failed(size))
    return failure();
  ImportedTensor &x = n.input(0);
  int64_t s = *size;
  StringRef mode = n.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; DCR and CRD are accepted";
  if (x.dim(1) % (s * s) != 0)
    return n.invalid() << n.inputText(0u) << " has channels that are no "
                       << "multiple of " << s * s;
  int64_t depth = x.dim(1) / (s * s), h = x.dim(2), w = x.dim(3);
  bool isDcr = mode == "DCR";
  Value split = isDcr ? reshape(n, n.value(0), {x.dim(0), s, s, depth, h, w})
                      : reshape(n, n.value(0), {x.dim(0), depth, s, s, h, w});
  Value moved = isDcr ? transpose(n, split, {0, 3, 4, 1, 5, 2})
                      : transpose(n, split, {0, 1, 4, 2, 5, 3});
  return n.result(reshape(n, moved, {x.dim(0), depth, h * s, w * s}), x.dtype);
}

static LogicalResult buildSpaceToDepth(NodeBuilder &n) {
  FailureOr<int64_t> size = readBlocks(n);
  if (failed(size))
    return failure();
  ImportedTensor &x = n.input(0);
  int64_t s = *size;
  StringRef mode = n.opset >= 28 ? n.stringAttr("mode", "DCR") : "DCR";
  if (mode != "DCR" && mode != "CRD")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; DCR and CRD are accepted";
  if (x.dim(2) % s != 0 || x.dim(3) % s != 0)
    return n.invalid() << n.inputText(0u) << " has spatial extents that are no "
                       << "multiples of " << s;
  int64_t h = x.dim(2) / s, w = x.dim(3) / s;
  Value split = reshape(n, n.value(0), {x.dim(0), x.dim(1), h, s, w, s});
  Value moved = mode == "DCR" ? transpose(n, split, {0, 3, 5, 1, 2, 4})
                              : transpose(n, split, {0, 1, 3, 5, 2, 4});
  return n.result(reshape(n, moved, {x.dim(0), x.dim(1) * s * s, h, w}),
                  x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> layoutOps() {
  static const OpEntry kOps[] = {
      {"DepthToSpace", 1, kNewestOpset, 1, 1, 1, buildDepthToSpace},
      {"Dropout", 1, 11, 1, 1, 2, buildDropout},
      {"Dropout", 12, kNewestOpset, 1, 3, 2, buildDropout},
      {"Flatten", 1, kNewestOpset, 1, 1, 1, buildFlatten},
      {"Identity", 1, kNewestOpset, 1, 1, 1, buildIdentity, "", true},
      {"Reshape", 1, 4, 1, 1, 1, buildReshape},
      {"Reshape", 5, kNewestOpset, 2, 2, 1, buildReshape},
      {"SpaceToDepth", 1, kNewestOpset, 1, 1, 1, buildSpaceToDepth},
      {"Squeeze", 1, 12, 1, 1, 1, buildSqueeze},
      {"Squeeze", 13, kNewestOpset, 1, 2, 1, buildSqueeze},
      {"Transpose", 1, kNewestOpset, 1, 1, 1, buildTranspose},
      {"Unsqueeze", 1, 12, 1, 1, 1, buildUnsqueeze},
      {"Unsqueeze", 13, kNewestOpset, 2, 2, 1, buildUnsqueeze},
  };
  return kOps;
}
} // namespace memplan::onnx
