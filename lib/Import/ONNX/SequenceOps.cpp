//===- SequenceOps.cpp - Sequences and optionals --------------------------===//
//
// They exist at import only: which tensor an operator puts where, or takes from
// where, is known then, and the function computes with the tensors alone.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Longer ones come from no model, but from a mistake.
static constexpr size_t kLongestSequence = 10000;

static LogicalResult isSequence(NodeBuilder &n, unsigned i) {
  if (n.input(i).form == Form::Sequence)
    return success();
  return n.invalid() << n.inputText(i) << "; a sequence is accepted";
}

static LogicalResult isTensor(NodeBuilder &n, unsigned i) {
  if (n.input(i).form == Form::Tensor)
    return success();
  return n.invalid() << n.inputText(i) << "; a tensor is accepted";
}

static LogicalResult isFixedTensor(NodeBuilder &n, unsigned i) {
  if (failed(isTensor(n, i)))
    return failure();
  if (n.input(i).runDims.empty())
    return success();
  return n.unsupported() << n.inputText(i)
                         << " has an extent that only the run tells; one that "
                            "is known at import is accepted";
}

static LogicalResult makeSequence(NodeBuilder &n,
                                  ArrayRef<ImportedTensor *> elements) {
  for (ImportedTensor *element : elements)
    if (element->isList() || element->dtype != elements.front()->dtype)
      return n.invalid() << n.inputText(*element) << " goes into a sequence of "
                         << typeText(*elements.front())
                         << "; tensors of one element type are accepted";
  if (elements.size() > kLongestSequence)
    return n.unsupported() << "makes a sequence of " << elements.size()
                           << " tensors; at most " << kLongestSequence
                           << " are accepted";
  return n.listResult(0, Form::Sequence, elements);
}

//===----------------------------------------------------------------------===//
// Making and changing sequences
//===----------------------------------------------------------------------===//

static LogicalResult buildSequenceEmpty(NodeBuilder &n) {
  n.ignoreAttr("dtype"); // elements tell theirs
  return n.listResult(0, Form::Sequence, {});
}

static LogicalResult buildSequenceConstruct(NodeBuilder &n) {
  SmallVector<ImportedTensor *> elements;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      return n.invalid() << "input " << i << " is left out";
    elements.push_back(&n.input(i));
  }
  return makeSequence(n, elements);
}

/// A position in [-count, limit), counted from the end if negative.
static FailureOr<int64_t> readPosition(NodeBuilder &n, unsigned i,
                                       int64_t count, int64_t limit) {
  if (failed(isTensor(n, i)))
    return failure();
  FailureOr<int64_t> position = n.scalarInt(i, "the position");
  if (failed(position))
    return failure();
  if (*position < -count || *position >= limit)
    return n.invalid() << "position " << *position << " is outside [" << -count
                       << ", " << limit - 1 << "] of a sequence of " << count;
  return *position < 0 ? *position + count : *position;
}

static LogicalResult buildSequenceInsert(NodeBuilder &n) {
  if (failed(isSequence(n, 0)) || failed(isTensor(n, 1)))
    return failure();
  SmallVector<ImportedTensor *> elements(n.input(0).elements.begin(),
                                         n.input(0).elements.end());
  int64_t count = elements.size(), at = count;
  if (n.hasInput(2)) {
    FailureOr<int64_t> position = readPosition(n, 2, count, count + 1);
    if (failed(position))
      return failure();
    at = *position;
  }
  elements.insert(elements.begin() + at, &n.input(1));
  return makeSequence(n, elements);
}

static LogicalResult buildSequenceErase(NodeBuilder &n) {
  if (failed(isSequence(n, 0)))
    return failure();
  SmallVector<ImportedTensor *> elements(n.input(0).elements.begin(),
                                         n.input(0).elements.end());
  int64_t count = elements.size(), at = count - 1;
  if (count == 0)
    return n.invalid() << n.inputText(0u) << " has nothing to erase";
  if (n.hasInput(1)) {
    FailureOr<int64_t> position = readPosition(n, 1, count, count);
    if (failed(position))
      return failure();
    at = *position;
  }
  elements.erase(elements.begin() + at);
  return makeSequence(n, elements);
}

static LogicalResult buildSequenceAt(NodeBuilder &n) {
  if (failed(isSequence(n, 0)))
    return failure();
  int64_t count = n.input(0).elements.size();
  FailureOr<int64_t> position = readPosition(n, 1, count, count);
  if (failed(position))
    return failure();
  return n.aliasResult(0, *n.input(0).elements[*position]);
}

template <typename T>
static LogicalResult scalarResult(NodeBuilder &n, T value, DType dtype) {
  auto type = RankedTensorType::get({}, dtype.type(n.context()));
  return n.constantResult(DenseElementsAttr::get(type, value), dtype);
}

static LogicalResult buildSequenceLength(NodeBuilder &n) {
  if (failed(isSequence(n, 0)))
    return failure();
  return scalarResult<int64_t>(n, n.input(0).elements.size(), DType::i64());
}

//===----------------------------------------------------------------------===//
// Splitting and joining
//===----------------------------------------------------------------------===//

/// The extents of the parts, and whether each drops the dim that is split.
static FailureOr<SmallVector<int64_t>> readParts(NodeBuilder &n, int64_t extent,
                                                 bool &drops) {
  drops = !n.hasInput(1) && n.intAttr("keepdims", 1) == 0;
  if (n.hasInput(1))
    n.ignoreAttr("keepdims");
  SmallVector<int64_t> parts;
  if (n.hasInput(1) && failed(isTensor(n, 1)))
    return failure();
  if (n.hasInput(1) && n.input(1).rank() == 1) {
    auto given = n.ints(1, "the list of extents");
    if (failed(given))
      return failure();
    parts = *given;
    int64_t sum = 0;
    for (int64_t part : parts) {
      auto next = part < 0 ? std::nullopt : checkedAdd(sum, part);
      if (!next)
        return n.invalid() << "the extent " << part << " of a part";
      sum = *next;
    }
    if (sum != extent)
      return n.invalid() << "parts of extents " << shapeText(parts)
                         << " do not make up " << extent;
    return parts;
  }
  int64_t part = 1;
  if (n.hasInput(1)) {
    auto given = n.scalarInt(1, "the extent");
    if (failed(given))
      return failure();
    part = *given;
  }
  if (part < 1)
    return n.invalid() << "the extent of a part is " << part;
  if (extent / part >= static_cast<int64_t>(kLongestSequence))
    return n.unsupported() << "splits extent " << extent << " into parts of "
                           << part << "; at most " << kLongestSequence
                           << " parts are accepted";
  for (int64_t at = 0; at < extent; at += part)
    parts.push_back(std::min(part, extent - at));
  return parts;
}

static LogicalResult buildSplitToSequence(NodeBuilder &n) {
  if (failed(isFixedTensor(n, 0)))
    return failure();
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> axis = n.axis(n.intAttr("axis", 0), x.rank());
  if (failed(axis))
    return failure();
  bool drops = false;
  auto parts = readParts(n, x.dim(*axis), drops);
  if (failed(parts))
    return failure();
  SmallVector<int64_t> offsets(x.rank(), 0), sizes(x.shape()),
      ones(x.rank(), 1);
  auto entries = [&](ArrayRef<int64_t> list) {
    return getAsIndexOpFoldResult(n.context(), list);
  };
  Value source = n.value(0);
  SmallVector<ImportedTensor *> elements;
  for (int64_t part : *parts) {
    sizes[*axis] = part;
    Value element;
    if (drops)
      element = extractRow(n, source, n.b.getIndexAttr(offsets[*axis]), *axis);
    else if (llvm::is_contained(sizes, 0))
      element = empty(n, sizes, x.type.getElementType());
    else
      element = tensor::ExtractSliceOp::create(
          n.b, n.loc, source, entries(offsets), entries(sizes), entries(ones));
    elements.push_back(keepValue(n, element, x.dtype, x.name));
    offsets[*axis] += part;
  }
  return makeSequence(n, elements);
}

static LogicalResult buildConcatFromSequence(NodeBuilder &n) {
  if (failed(isSequence(n, 0)))
    return failure();
  ArrayRef<ImportedTensor *> elements = n.input(0).elements;
  bool isNew = n.intAttr("new_axis", 0) != 0;
  if (elements.empty())
    return n.invalid() << n.inputText(0u) << " has nothing to join";
  if (!n.hasAttr("axis"))
    return n.invalid() << "has no attribute 'axis'";
  ImportedTensor &first = *elements.front();
  FailureOr<int64_t> axis =
      n.axis(n.intAttr("axis", 0), first.rank() + (isNew ? 1 : 0));
  if (failed(axis))
    return failure();
  auto shapeOf = [&](ImportedTensor &element) {
    SmallVector<int64_t> shape(element.shape());
    if (isNew)
      shape.insert(shape.begin() + *axis, 1);
    return shape;
  };
  SmallVector<int64_t> shape = shapeOf(first);
  shape[*axis] = 0;
  for (ImportedTensor *element : elements) {
    if (failed(n.checkStatic(*element)))
      return failure();
    SmallVector<int64_t> own = shapeOf(*element);
    bool fits = own.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
      fits = static_cast<int64_t>(i) == *axis || own[i] == shape[i];
    auto sum = fits ? checkedAdd(shape[*axis], own[*axis]) : std::nullopt;
    if (!sum)
      return n.invalid() << n.inputText(first) << " and "
                         << n.inputText(*element)
                         << " cannot be joined along axis " << *axis;
    shape[*axis] = *sum;
  }
  Value joined = empty(n, shape, first.type.getElementType());
  SmallVector<int64_t> offsets(shape.size(), 0), ones(shape.size(), 1);
  auto entries = [&](ArrayRef<int64_t> list) {
    return getAsIndexOpFoldResult(n.context(), list);
  };
  for (ImportedTensor *element : elements) {
    if (element->numElements() == 0)
      continue;
    SmallVector<int64_t> own = shapeOf(*element);
    joined = tensor::InsertSliceOp::create(
        n.b, n.loc, reshape(n, n.value(*element), own), joined,
        entries(offsets), entries(own), entries(ones));
    offsets[*axis] += own[*axis];
  }
  return n.result(joined, first.dtype);
}

//===----------------------------------------------------------------------===//
// SequenceMap
//===----------------------------------------------------------------------===//

static LogicalResult mapElementwise(NodeBuilder &n, const Graph &body) {
  size_t length = n.input(0).elements.size();
  std::vector<SmallVector<ImportedTensor *>> outputs(n.numOutputs());
  for (size_t number = 0; number < length; ++number) {
    SmallVector<ImportedTensor *> inputs;
    for (unsigned i = 0; i < n.numInputs(); ++i) {
      ImportedTensor &input = n.input(i);
      inputs.push_back(input.form == Form::Sequence ? input.elements[number]
                                                    : &input);
    }
    n.budget().countNode(); // of a body without nodes too
    auto made = n.importAnyGraph("body", body, inputs,
                                 " (element " + Twine(number) + ")");
    if (failed(made))
      return failure();
    for (auto [list, output] : llvm::zip_equal(outputs, *made)) {
      if (output->isList())
        return n.invalid() << "its body makes " << n.inputText(*output)
                           << "; a tensor is accepted";
      list.push_back(output);
    }
  }
  for (auto [i, list] : llvm::enumerate(outputs))
    if (failed(n.listResult(i, Form::Sequence, list)))
      return failure();
  return success();
}

/// The body is built once for each element.
static LogicalResult buildSequenceMap(NodeBuilder &n) {
  const Graph *body = n.graphAttr("body");
  if (!body || failed(isSequence(n, 0)) ||
      failed(checkCounts(n, "body", *body, n.numInputs(), n.numOutputs())))
    return failure();
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (!n.hasInput(i) ||
        (n.input(i).form == Form::Sequence &&
         n.input(i).elements.size() != n.input(0).elements.size()))
      return n.invalid() << "input " << i
                         << " is neither a tensor nor a sequence as long as "
                            "the first";
  ++n.budget().unrolling;
  LogicalResult done = mapElementwise(n, *body);
  --n.budget().unrolling;
  return done;
}

//===----------------------------------------------------------------------===//
// Optionals
//===----------------------------------------------------------------------===//

static LogicalResult buildOptional(NodeBuilder &n) {
  n.ignoreAttr("type"); // what is in it tells its own
  SmallVector<ImportedTensor *> elements;
  if (n.hasInput(0))
    elements.push_back(&n.input(0));
  return n.listResult(0, Form::Optional, elements);
}

static LogicalResult buildOptionalHasElement(NodeBuilder &n) {
  bool has = n.hasInput(0) && (n.input(0).form != Form::Optional ||
                               !n.input(0).elements.empty());
  return scalarResult<bool>(n, has, DType::boolean());
}

static LogicalResult buildOptionalGetElement(NodeBuilder &n) {
  if (n.input(0).form != Form::Optional)
    return n.aliasResult(0, n.input(0));
  if (n.input(0).elements.empty())
    return n.invalid() << n.inputText(0u) << ", which the node reads";
  return n.aliasResult(0, *n.input(0).elements.front());
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> sequenceOps() {
  static const OpEntry kOps[] = {
      {"ConcatFromSequence", 11, kNewestOpset, 1, 1, 1, buildConcatFromSequence,
       "", true},
      {"Optional", 15, kNewestOpset, 0, 1, 1, buildOptional, "", true},
      {"OptionalGetElement", 15, kNewestOpset, 1, 1, 1, buildOptionalGetElement,
       "", true},
      {"OptionalHasElement", 15, kNewestOpset, 0, 1, 1, buildOptionalHasElement,
       "", true},
      {"SequenceAt", 11, kNewestOpset, 2, 2, 1, buildSequenceAt, "", true},
      {"SequenceConstruct", 11, kNewestOpset, 1, kVariadic, 1,
       buildSequenceConstruct, "", true},
      {"SequenceEmpty", 11, kNewestOpset, 0, 0, 1, buildSequenceEmpty, "",
       true},
      {"SequenceErase", 11, kNewestOpset, 1, 2, 1, buildSequenceErase, "",
       true},
      {"SequenceInsert", 11, kNewestOpset, 2, 3, 1, buildSequenceInsert, "",
       true},
      {"SequenceLength", 11, kNewestOpset, 1, 1, 1, buildSequenceLength, "",
       true},
      {"SequenceMap", 17, kNewestOpset, 1, kVariadic, kVariadic,
       buildSequenceMap, "", true},
      {"SplitToSequence", 11, kNewestOpset, 1, 2, 1, buildSplitToSequence, "",
       true},
  };
  return kOps;
}
} // namespace memplan::onnx
