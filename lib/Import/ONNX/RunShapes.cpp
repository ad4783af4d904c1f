//===- RunShapes.cpp - Shapes computed from extents of the run ------------===//

#include "RunShapes.h"

#include "ControlFlow.h"
#include "RunDimRules.h"
#include "RunDims.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

using Entries = SmallVector<RunEntry>;

/// A shape has no more.
static constexpr int64_t kMostEntries = 16;

std::optional<Entries> memplan::onnx::readEntries(NodeBuilder &n, unsigned i) {
  if (!n.hasInput(i) || n.input(i).isList())
    return std::nullopt;
  ImportedTensor &x = n.input(i);
  if (x.dtype.isFloat() || x.numElements() > kMostEntries)
    return std::nullopt;
  if (!x.isKnown()) {
    if (x.entries.empty())
      return std::nullopt;
    return Entries(x.entries.begin(), x.entries.end());
  }
  FailureOr<DenseElementsAttr> elements = n.constant(i, "a shape");
  if (failed(elements) || !elements->getElementType().isInteger())
    return std::nullopt;
  Entries entries;
  for (const APInt &value : elements->getValues<APInt>())
    entries.push_back({x.dtype.isBool() ? static_cast<int64_t>(!value.isZero())
                                        : value.getSExtValue(),
                       Value()});
  return entries;
}

bool memplan::onnx::isRunShape(NodeBuilder &n, unsigned i) {
  return n.hasInput(i) && !n.input(i).isList() && !n.input(i).isKnown() &&
         !n.input(i).entries.empty();
}

//===----------------------------------------------------------------------===//
// What is known of results
//===----------------------------------------------------------------------===//

/// What a new extent of the run is at most, if it is one of these operators.
static std::optional<int64_t> boundOf(StringRef op, int64_t a, int64_t b) {
  if (op == "Min")
    return std::min(a, b);
  if (op == "Max")
    return std::max(a, b);
  if (a < 0 || b < 0)
    return std::nullopt;
  if (op == "Add")
    return checkedAdd(a, b);
  if (op == "Mul")
    return checkedMul(a, b);
  return std::nullopt;
}

/// Scalars of two inputs; `value` is the result.
static std::optional<Entries> combine(StringRef op, const Entries &a,
                                      const Entries &b, Value extent) {
  if (a.size() != 1 || b.size() != 1)
    return std::nullopt;
  RunEntry x = a[0], y = b[0];
  auto isKnown = [](const RunEntry &entry, int64_t value) {
    return !entry.extent && entry.bound == value;
  };
  int64_t neutral = op == "Mul" || op == "Div" ? 1 : 0;
  if (op == "Mul" || op == "Add" || op == "Sub" || op == "Div") {
    if (isKnown(y, neutral))
      return Entries{x};
    if (isKnown(x, neutral) && (op == "Mul" || op == "Add"))
      return Entries{y};
  }
  // The subtrahend or divisor is known: the result is no larger.
  if (!y.extent && x.bound >= 0) {
    if (op == "Sub" && y.bound > 0)
      return Entries{{std::max<int64_t>(0, x.bound - y.bound), extent}};
    if (op == "Div" && y.bound > 0)
      return Entries{{x.bound / y.bound, extent}};
  }
  std::optional<int64_t> bound = boundOf(op, x.bound, y.bound);
  if (!bound || *bound < 0)
    return std::nullopt;
  return Entries{{*bound, extent}};
}

static std::optional<Entries> reduceEntries(StringRef op, const Entries &all,
                                            Value extent) {
  int64_t bound = all[0].bound;
  for (const RunEntry &entry : all)
    bound = op == "ReduceMin" ? std::min(bound, entry.bound)
                              : std::max(bound, entry.bound);
  if (bound < 0)
    return std::nullopt;
  return Entries{{bound, extent}};
}

/// Extents are not negative, and differ from what is.
static std::optional<Entries> compare(const Entries &a, const Entries &b) {
  Entries result;
  size_t count = std::max(a.size(), b.size());
  if ((a.size() != 1 && a.size() != count) ||
      (b.size() != 1 && b.size() != count))
    return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const RunEntry &x = a[a.size() == 1 ? 0 : i], &y = b[b.size() == 1 ? 0 : i];
    if (!x.extent && !y.extent)
      result.push_back({x.bound == y.bound, Value()});
    else if (x.extent == y.extent)
      result.push_back({1, Value()});
    else if ((!x.extent && x.bound < 0) || (!y.extent && y.bound < 0))
      result.push_back({0, Value()});
    else
      return std::nullopt;
  }
  return result;
}

static std::optional<Entries> select(const Entries &conditions,
                                     const Entries &a, const Entries &b) {
  Entries result;
  for (auto [i, condition] : llvm::enumerate(conditions)) {
    const Entries &from = condition.bound ? a : b;
    if (condition.extent || (from.size() != 1 && i >= from.size()))
      return std::nullopt;
    result.push_back(from[from.size() == 1 ? 0 : i]);
  }
  return result;
}

static std::optional<Entries> gatherEntries(NodeBuilder &n,
                                            const Entries &data) {
  auto places = readEntries(n, 1);
  if (n.input(0).rank() != 1 || !places || n.intAttr("axis", 0) > 0)
    return std::nullopt;
  Entries result;
  int64_t count = data.size();
  for (const RunEntry &place : *places) {
    int64_t at = place.bound < 0 ? place.bound + count : place.bound;
    if (place.extent || at < 0 || at >= count)
      return std::nullopt;
    result.push_back(data[at]);
  }
  return result;
}

static std::optional<Entries> sliceEntries(NodeBuilder &n,
                                           const Entries &data) {
  if (n.opset < 10 || n.input(0).rank() != 1)
    return std::nullopt;
  auto starts = readEntries(n, 1), ends = readEntries(n, 2),
       steps = readEntries(n, 4);
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1 ||
      (*starts)[0].extent || (*ends)[0].extent ||
      (n.hasInput(4) && (!steps || steps->size() != 1 || (*steps)[0].extent ||
                         (*steps)[0].bound != 1)))
    return std::nullopt;
  int64_t count = data.size();
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  int64_t start = clamp((*starts)[0].bound), end = clamp((*ends)[0].bound);
  Entries result;
  for (int64_t i = start; i < end; ++i)
    result.push_back(data[i]);
  return result;
}

static std::optional<Entries> shapeEntries(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  auto [start, end] = shapeRange(n);
  Entries result;
  for (int64_t i = start; i < end; ++i)
    result.push_back({x.dim(i), x.runExtent(i)});
  return result;
}

static std::optional<Entries> joinEntries(NodeBuilder &n) {
  Entries result;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    auto part = readEntries(n, i);
    if (!part || n.input(i).rank() != 1 || !n.input(i).runDims.empty())
      return std::nullopt;
    result.append(*part);
  }
  return result;
}

/// `value`: one element of the result, as an extent.
static std::optional<Entries> computeEntries(NodeBuilder &n, StringRef op,
                                             Value extent) {
  if (op == "Shape")
    return shapeEntries(n);
  if (op == "Size")
    return Entries{{n.input(0).numElements(), extent}};
  if (op == "Concat")
    return joinEntries(n);
  auto first = readEntries(n, 0);
  if (!first || first->empty())
    return std::nullopt;
  if (op == "Gather")
    return gatherEntries(n, *first);
  if (op == "Slice")
    return sliceEntries(n, *first);
  if ((op == "ReduceMin" || op == "ReduceMax") && extent)
    return reduceEntries(op, *first, extent);
  if (llvm::StringSwitch<bool>(op)
          .Cases({"Cast", "Flatten", "Identity", "Reshape", "Squeeze",
                  "Unsqueeze"},
                 true)
          .Default(false))
    return first;
  auto second = readEntries(n, 1);
  if (!second || second->empty())
    return std::nullopt;
  if (op == "Equal")
    return compare(*first, *second);
  if (op == "Where") {
    auto third = readEntries(n, 2);
    return third && !third->empty() ? select(*first, *second, *third)
                                    : std::nullopt;
  }
  if (n.numInputs() == 2 && extent)
    return combine(op, *first, *second, extent);
  return std::nullopt;
}

void memplan::onnx::trackEntries(NodeBuilder &n, StringRef op) {
  if (n.getResults().size() != 1)
    return;
  ImportedTensor &made = n.getResults().front();
  if (made.aliasOf || made.isList() || !made.value || !made.runDims.empty() ||
      (made.dtype != DType::i64() && made.dtype != DType::i32() &&
       !made.dtype.isBool()) ||
      made.numElements() == 0 || made.numElements() > kMostEntries)
    return;
  bool mayTrack = op == "Shape" || op == "Size";
  for (unsigned i = 0; i < n.numInputs(); ++i)
    mayTrack |= isRunShape(n, i);
  if (!mayTrack)
    return;
  Value extent;
  if (made.numElements() == 1 && made.dtype == DType::i64())
    extent = reshape(n, made.value, {});
  auto entries = computeEntries(n, op, extent);
  if (!entries || static_cast<int64_t>(entries->size()) != made.numElements())
    return;
  if (llvm::any_of(*entries, [](auto &entry) { return bool(entry.extent); })) {
    made.entries.assign(entries->begin(), entries->end());
    return;
  }
  // What picks only what is known is itself known.
  unsigned bits = made.type.getElementTypeBitWidth();
  SmallVector<APInt> values;
  for (const RunEntry &entry : *entries)
    values.push_back(APInt(64, entry.bound, /*isSigned=*/true).trunc(bits));
  made.constant = DenseElementsAttr::get(made.type, values);
  made.value = {};
}

//===----------------------------------------------------------------------===//
// Operators that take such shapes
//===----------------------------------------------------------------------===//

static ImportedTensor *constantShape(NodeBuilder &n, unsigned i,
                                     ArrayRef<int64_t> shape) {
  ImportedTensor tensor;
  tensor.name = n.input(i).name;
  tensor.dtype = DType::i64();
  tensor.type = RankedTensorType::get(shape.size(), n.b.getI64Type());
  tensor.constant = DenseElementsAttr::get(tensor.type, shape);
  return n.keep(std::move(tensor));
}

static SmallVector<int64_t> boundsOf(const Entries &entries) {
  SmallVector<int64_t> bounds;
  for (const RunEntry &entry : entries)
    bounds.push_back(entry.bound);
  return bounds;
}

/// A constant would be evaluated further, and cut at its bound.
static LogicalResult constantOfRunShape(NodeBuilder &n, BuildFn build) {
  Entries entries = *readEntries(n, 0);
  n.replaceInput(0, *constantShape(n, 0, boundsOf(entries)));
  if (failed(build(n)))
    return failure();
  ImportedTensor &made = n.getResults().front();
  auto value = *made.constant.value_begin<TypedAttr>();
  made.value = filled(n, made.shape(), value);
  made.constant = {};
  for (auto [dim, entry] : llvm::enumerate(entries))
    if (entry.extent)
      n.setRunDim(0, dim, entry.extent);
  return success();
}

static LogicalResult expandToRunShape(NodeBuilder &n, BuildFn build) {
  Entries entries = *readEntries(n, 1);
  ImportedTensor &x = n.input(0);
  int64_t rank = std::max<int64_t>(entries.size(), x.rank());
  SmallVector<Value> extents(rank);
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t at = dim - (rank - static_cast<int64_t>(entries.size())),
            own = dim - (rank - x.rank());
    Value given = at >= 0 ? entries[at].extent : Value();
    Value had = own >= 0 ? x.runExtent(own) : Value();
    bool isStretched = own < 0 || (x.dim(own) == 1 && !had);
    bool isLeft = at < 0 || (!given && entries[at].bound == 1);
    if ((given || had) && given != had && !(given && isStretched) &&
        !(had && isLeft))
      return n.unsupported()
             << n.inputText(0u) << " meets the shape " << n.inputText(1)
             << " in dim " << dim
             << ", one of them with an extent that only the run tells; the "
                "same, or an extent of 1, is accepted";
    extents[dim] = given ? given : had;
  }
  n.replaceInput(1, *constantShape(n, 1, boundsOf(entries)));
  if (failed(build(n)))
    return failure();
  ImportedTensor &made = n.getResults().front();
  made.runDims.clear();
  for (int64_t dim = 0; dim < rank; ++dim)
    if (extents[dim] && !made.aliasOf)
      n.setRunDim(0, dim, extents[dim]);
  return success();
}

/// Entries that are extents of the input become 0 or -1, which stand for them
/// whatever they are.
LogicalResult memplan::onnx::closeRunShape(NodeBuilder &n) {
  Entries entries = *readEntries(n, 1);
  ImportedTensor &x = n.input(0);
  bool allowZero = n.opset >= 14 && n.intAttr("allowzero", 0) != 0;
  SmallVector<int64_t> shape;
  bool isOpen = llvm::any_of(entries, [](const RunEntry &entry) {
    return !entry.extent && entry.bound == -1;
  });
  for (auto [i, entry] : llvm::enumerate(entries)) {
    if (!entry.extent) {
      shape.push_back(entry.bound);
      continue;
    }
    int64_t dim = i;
    if (!allowZero && dim < x.rank() && x.runExtent(dim) == entry.extent) {
      shape.push_back(0);
      continue;
    }
    bool isOwn = llvm::any_of(x.runDims, [&](const RunDim &own) {
      return own.extent == entry.extent;
    });
    if (!isOwn || isOpen)
      return n.unsupported()
             << "entry " << i << " of the shape " << n.inputText(1)
             << " is an extent that only the run tells; one of the input's own "
                "is accepted";
    shape.push_back(-1);
    isOpen = true;
  }
  n.replaceInput(1, *constantShape(n, 1, shape));
  return success();
}

void memplan::onnx::closeRunEnds(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  auto ends = readEntries(n, 2), axes = readEntries(n, 3);
  if (!ends || (n.hasInput(3) && (!axes || axes->size() != ends->size())))
    return;
  SmallVector<int64_t> closed;
  for (auto [i, end] : llvm::enumerate(*ends)) {
    int64_t axis = axes ? (*axes)[i].bound : static_cast<int64_t>(i);
    if (axis < 0)
      axis += x.rank();
    if (end.extent &&
        (axis < 0 || axis >= x.rank() || x.runExtent(axis) != end.extent))
      return;
    closed.push_back(end.extent ? std::numeric_limits<int64_t>::max()
                                : end.bound);
  }
  n.replaceInput(2, *constantShape(n, 2, closed));
}

static LogicalResult rangeToRunLimit(NodeBuilder &n, BuildFn build) {
  auto start = readEntries(n, 0), delta = readEntries(n, 2);
  RunEntry limit = readEntries(n, 1)->front();
  if (!start || !delta || (*start)[0].extent || (*start)[0].bound != 0 ||
      (*delta)[0].extent || (*delta)[0].bound != 1 ||
      n.input(1).dtype != DType::i64())
    return n.unsupported() << n.inputText(1)
                           << " is a limit that only the run tells; from 0 in "
                              "steps of 1 is accepted";
  ImportedTensor bound = *constantShape(n, 1, limit.bound);
  bound.type = RankedTensorType::get({}, n.b.getI64Type());
  bound.constant = DenseElementsAttr::get(bound.type, limit.bound);
  n.replaceInput(1, *n.keep(bound));
  if (failed(build(n)))
    return failure();
  n.setRunDim(0, 0, limit.extent);
  return success();
}

LogicalResult memplan::onnx::buildOfRunShape(NodeBuilder &n,
                                             const OpEntry &entry) {
  StringRef op = entry.name;
  if (op == "ConstantOfShape")
    return constantOfRunShape(n, entry.build);
  if (op == "Expand")
    return expandToRunShape(n, entry.build);
  return rangeToRunLimit(n, entry.build);
}

bool memplan::onnx::takesRunShape(NodeBuilder &n, const OpEntry &entry) {
  StringRef op = entry.name;
  if (*entry.domain)
    return false;
  return (op == "ConstantOfShape" && isRunShape(n, 0)) ||
         (op == "Range" && isRunShape(n, 1)) ||
         (op == "Expand" && readEntries(n, 1) &&
          (isRunShape(n, 1) || !n.input(0).runDims.empty()));
}

//===----------------------------------------------------------------------===//
// What is known after all
//===----------------------------------------------------------------------===//

DenseElementsAttr
memplan::onnx::cutToExtents(DenseElementsAttr elements,
                            ArrayRef<std::pair<int64_t, int64_t>> extents) {
  auto type = cast<RankedTensorType>(elements.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, extent] : extents)
    shape[dim] = std::clamp<int64_t>(extent, 0, shape[dim]);
  if (ArrayRef<int64_t>(shape) == type.getShape())
    return elements;
  auto cut = RankedTensorType::get(shape, type.getElementType());
  if (elements.isSplat() && cut.getNumElements() != 0)
    return DenseElementsAttr::get(cut, elements.getSplatValue<Attribute>());
  SmallVector<Attribute> kept;
  auto all = elements.getValues<Attribute>();
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
    int64_t rest = i;
    bool isInside = true;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      isInside &= rest % type.getDimSize(dim) < shape[dim];
      rest /= type.getDimSize(dim);
    }
    if (isInside)
      kept.push_back(all[i]);
  }
  return DenseElementsAttr::get(cut, kept);
}
