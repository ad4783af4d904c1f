//===- MicrosoftAttention.cpp - Attention of com.microsoft ----------------===//
//
// Attention and MultiHeadAttention; GroupQueryAttention has its own file.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "ScaledAttention.h"
#include "Slices.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
class MicrosoftAttention {
public:
  explicit MicrosoftAttention(NodeBuilder &n) : n(n) {}
  LogicalResult buildAttention();
  LogicalResult buildMultiHead();

private:
  LogicalResult readHeads();
  /// Queries, keys and values of inputs 0 and 1 (bias 2) of Attention.
  LogicalResult project();
  LogicalResult readParts();
  LogicalResult readPacked();
  FailureOr<Value> biased(unsigned input, int64_t begin);
  LogicalResult checkPast(unsigned i, const HeadTensor &x);
  /// What all inputs but queries, keys, values and the past say.
  FailureOr<Value> attend(unsigned mask, unsigned bias);
  LogicalResult addMask(ScaledAttention &attention, unsigned i);

  NodeBuilder &n;
  DType dtype;
  int64_t heads = 0, pastLength = 0;
  HeadTensor q, k, v;
};
} // namespace

LogicalResult MicrosoftAttention::readHeads() {
  dtype = n.input(0).dtype;
  heads = n.intAttr("num_heads", 0);
  if (heads < 1)
    return n.invalid() << "attribute 'num_heads' is " << heads
                       << "; 1 and up is accepted";
  for (unsigned i = 0; i < std::min(n.numInputs(), 4u); ++i)
    if (n.hasInput(i) && n.input(i).numElements() == 0)
      return n.invalid() << n.inputText(i) << " has no elements";
  return n.floatInput(0);
}

static Value slicedColumns(NodeBuilder &n, Value x, int64_t begin,
                           int64_t size) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape()),
      ones(type.getRank(), 1);
  offsets.back() = begin;
  sizes.back() = size;
  return extractSlice(n, x, offsets, sizes, ones);
}

LogicalResult MicrosoftAttention::project() {
  ImportedTensor &x = n.input(0), &w = n.input(1);
  if (failed(n.sameTypes({0, 1, 2})))
    return failure();
  if (x.rank() != 3 || w.rank() != 2 || x.dim(2) != w.dim(0))
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << ": (batch, length, hidden) and (hidden, queries + "
                          "keys + values) are accepted";
  int64_t width = w.dim(1);
  SmallVector<int64_t> sizes =
      n.intsAttr("qkv_hidden_sizes")
          .value_or(SmallVector<int64_t>(3, width / 3));
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] < 1 ||
      sizes[2] < 1 || sizes[0] > width || sizes[2] > width ||
      sizes[0] * 2 + sizes[2] != width || sizes[0] % heads != 0 ||
      sizes[2] % heads != 0)
    return n.invalid() << n.inputText(1) << " does not split into queries, "
                       << "keys and values of " << heads << " heads";
  ElementwiseOperands extras(n);
  if (n.hasInput(2)) {
    if (n.input(2).shape() != ArrayRef<int64_t>(width))
      return n.invalid() << n.inputText(2) << " is the bias; shape " << width
                         << " is accepted";
    extras.add(n.input(2), n.input(2).shape(),
               AffineMap::get(2, 0, n.b.getAffineDimExpr(1)));
  }
  AffineExpr m = n.b.getAffineDimExpr(0), column = n.b.getAffineDimExpr(1),
             inner = n.b.getAffineDimExpr(2);
  auto map = [&](AffineExpr x, AffineExpr y) {
    return AffineMap::get(3, 0, {x, y}, n.context());
  };
  Type element = dtype.type(n.context());
  int64_t rows = x.dim(0) * x.dim(1);
  auto op = MatMulOp::create(
      n.b, n.loc, reshape(n, n.value(0), {rows, x.dim(2)}), n.value(1),
      extras.values(), empty(n, {rows, width}, element),
      {map(m, inner), map(inner, column), map(m, column)}, extras.maps(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = fromAccumulator(b, loc, args[0], element);
        auto scalars = extras.scalars(b, loc, args.drop_front());
        if (scalars.empty())
          return sum;
        return Scalars(b, loc, dtype).add(sum, scalars[0]);
      });
  Value all = op.getResult();
  auto part = [&](int64_t begin, int64_t size) {
    Value columns = slicedColumns(n, all, begin, size);
    HeadTensor result;
    result.batch = x.dim(0);
    result.length = x.dim(1);
    result.heads = heads;
    result.size = size / heads;
    result.isLengthFirst = true;
    // Of a slice both dims can be split where they are.
    result.value =
        reshape(n, columns, {result.batch, result.length, heads, result.size});
    return result;
  };
  q = part(0, sizes[0]);
  k = part(sizes[0], sizes[0]);
  v = part(2 * sizes[0], sizes[2]);
  return success();
}

LogicalResult MicrosoftAttention::checkPast(unsigned i, const HeadTensor &x) {
  ImportedTensor &past = n.input(i);
  if (past.dtype == dtype && past.rank() == 4 && past.dim(0) == x.batch &&
      past.dim(1) == x.heads && past.dim(3) == x.size)
    return success();
  return n.invalid() << n.inputText(i) << " is a past state; " << x.batch << "x"
                     << x.heads << "x?x" << x.size << " is accepted";
}

/// Lengths of the keys, or ends and starts, or an integer for each key.
LogicalResult MicrosoftAttention::addMask(ScaledAttention &attention,
                                          unsigned i) {
  ImportedTensor &mask = n.input(i);
  SmallVector<int64_t> shape = attention.shape();
  int64_t batch = shape[0], queries = shape[2], keys = shape[3];
  attention.filter = n.floatAttr("mask_filter_value", -10000.0f);
  if (!mask.dtype.isInteger())
    return n.unsupported() << "the mask " << n.inputText(i)
                           << " is not of integers, which is what is accepted";
  if (mask.shape() == ArrayRef<int64_t>(batch)) {
    attention.addKeyLengths(n.value(i), mask.dtype);
    return success();
  }
  if (mask.shape() == ArrayRef<int64_t>(2 * batch)) {
    Value ends = extractSlice(n, n.value(i), 0, batch, 1);
    Value starts = extractSlice(n, n.value(i), batch, batch, 1);
    attention.addKeyLengths(ends, mask.dtype, starts);
    return success();
  }
  SmallVector<int64_t> perKey = {batch, keys},
                       perQuery = {batch, queries, keys}, view;
  if (mask.shape() == ArrayRef<int64_t>(perKey))
    view = {batch, 1, 1, keys};
  else if (mask.shape() == ArrayRef<int64_t>(perQuery))
    view = {batch, 1, queries, keys};
  else
    return n.unsupported() << "the mask " << n.inputText(i)
                           << " is accepted with shape " << batch << ", "
                           << 2 * batch << ", " << shapeText(perKey) << " or "
                           << shapeText(perQuery);
  attention.addMask(reshape(n, n.value(i), view), mask.dtype);
  return success();
}

FailureOr<Value> MicrosoftAttention::attend(unsigned mask, unsigned bias) {
  ScaledAttention attention(n, dtype, q, k, v);
  float scale = n.floatAttr("scale", 0);
  attention.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size));
  n.ignoreAttr("mask_filter_value"); // without a mask
  if (n.hasInput(mask) && failed(addMask(attention, mask)))
    return failure();
  if (n.intAttr("unidirectional", 0) != 0) {
    ScaledAttention::Window window;
    window.right = 0;
    window.offset = pastLength;
    attention.addWindow(window);
  }
  if (n.hasInput(bias)) {
    if (failed(n.floatInput(bias)) || failed(attention.addMask(n.input(bias))))
      return failure();
  }
  Value y = attention.weigh(attention.probabilities(attention.product(), 0),
                            /*isLengthFirst=*/true);
  return reshape(n, y, {q.batch, q.length, q.heads * v.size});
}

LogicalResult MicrosoftAttention::buildAttention() {
  if (failed(readHeads()) || failed(project()))
    return failure();
  for (StringRef name : {"do_rotary", "past_present_share_buffer"})
    if (n.intAttr(name, 0) != 0)
      return n.unsupported() << "attribute " << quoted(name)
                             << " is not 0, which is what is accepted";
  n.ignoreAttr("rotary_embedding_dim"); // of do_rotary
  if (n.hasInput(6))
    return n.unsupported() << n.inputText(6)
                           << " is of a shared buffer; leave it out";
  if (n.hasInput(4)) {
    ImportedTensor &past = n.input(4);
    if (past.rank() != 5 || past.dim(0) != 2 || past.dtype != dtype ||
        past.dim(1) != k.batch || past.dim(2) != heads ||
        past.dim(4) != k.size || v.size != k.size)
      return n.invalid() << n.inputText(4) << " is the past state; 2x"
                         << k.batch << "x" << heads << "x?x" << k.size
                         << " is accepted";
    pastLength = past.dim(3);
    k = appendHeads(n, extractRow(n, n.value(4), n.b.getIndexAttr(0)), k);
    v = appendHeads(n, extractRow(n, n.value(4), n.b.getIndexAttr(1)), v);
  }
  FailureOr<Value> y = attend(/*mask=*/3, /*bias=*/5);
  if (failed(y) || failed(n.result(0, *y, dtype)))
    return failure();
  if (!n.wantsOutput(1))
    return success();
  if (v.size != k.size)
    return n.unsupported() << "the output " << quoted(n.outputName(1))
                           << " needs keys and values of one size";
  Value present =
      empty(n, {2, k.batch, heads, k.length, k.size}, dtype.type(n.context()));
  present = insertRow(n, inOrder(n, k), present, n.b.getIndexAttr(0));
  present = insertRow(n, inOrder(n, v), present, n.b.getIndexAttr(1));
  return n.result(1, present, dtype);
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

/// Input `input` plus its part of the bias, which is that of queries, keys and
/// values one after the other.
FailureOr<Value> MicrosoftAttention::biased(unsigned input, int64_t begin) {
  ImportedTensor &x = n.input(input);
  if (!n.hasInput(3))
    return n.value(input);
  ImportedTensor &bias = n.input(3);
  if (failed(n.sameTypes({0, 3})))
    return failure();
  int64_t size = x.dim(2);
  if (bias.rank() != 1 || begin + size > bias.dim(0))
    return n.invalid() << n.inputText(3)
                       << " is too short to be the bias of queries, keys and "
                          "values";
  Value part = extractSlice(n, n.value(3), begin, size, 1);
  AffineMap identity = n.b.getMultiDimIdentityMap(3);
  return mapElements(n, {n.value(input), part},
                     {identity, AffineMap::get(3, 0, n.b.getAffineDimExpr(2))},
                     x.shape(), x.type.getElementType(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       return Scalars(b, loc, dtype).add(args[0], args[1]);
                     });
}

/// (batch, length, heads, 3, size), or queries and (batch, length, heads, 2,
/// size).
LogicalResult MicrosoftAttention::readPacked() {
  if (n.hasInput(3))
    return n.unsupported() << n.inputText(3)
                           << " is a bias of packed inputs; leave it out";
  bool isAll = n.input(0).rank() == 5;
  ImportedTensor &packed = n.input(isAll ? 0 : 1);
  int64_t count = isAll ? 3 : 2;
  if (packed.rank() != 5 || packed.dim(2) != heads || packed.dim(3) != count ||
      n.hasInput(2) || (isAll && n.hasInput(1)))
    return n.invalid() << n.inputText(packed) << ": packed inputs (batch, "
                       << "length, " << heads << ", " << count
                       << ", size) are accepted";
  auto part = [&](int64_t i) {
    HeadTensor result;
    result.batch = packed.dim(0);
    result.length = packed.dim(1);
    result.heads = heads;
    result.size = packed.dim(4);
    result.isLengthFirst = true;
    result.value =
        extractRow(n, n.value(packed), n.b.getIndexAttr(i), /*axis=*/3);
    return result;
  };
  if (isAll)
    q = part(0);
  k = part(count - 2);
  v = part(count - 1);
  return success();
}

LogicalResult MicrosoftAttention::readParts() {
  bool isPacked =
      n.input(0).rank() == 5 || (n.hasInput(1) && n.input(1).rank() == 5);
  if (isPacked && failed(readPacked()))
    return failure();
  if (n.input(0).rank() == 5)
    return success();
  if (n.input(0).rank() != 3 || n.input(0).dim(2) % heads != 0)
    return n.invalid() << n.inputText(0u)
                       << " has the queries: (batch, length, hidden) with a "
                          "hidden dim that the number of heads divides, "
                       << heads << ", is accepted";
  int64_t hidden = n.input(0).dim(2);
  FailureOr<Value> queries = biased(0, 0);
  if (failed(queries))
    return failure();
  q = splitHeads(n, *queries, heads);
  if (isPacked)
    return success();
  if (!n.hasInput(1) || !n.hasInput(2))
    return n.invalid() << "has no keys or no values";
  if (failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &keys = n.input(1), &values = n.input(2);
  if (keys.rank() == 4 && values.rank() == 4) {
    // In order, as a past state.
    if (n.hasInput(3))
      return n.unsupported() << n.inputText(3) << " is a bias of keys of rank "
                             << "4; leave it out";
    k = headTensor(n.value(1));
    v = headTensor(n.value(2));
    return success();
  }
  if (keys.rank() != 3 || values.rank() != 3 || keys.dim(2) % heads != 0 ||
      values.dim(2) % heads != 0)
    return n.invalid() << n.inputText(1) << " and " << n.inputText(2)
                       << " do not split into " << heads << " heads";
  FailureOr<Value> biasedKeys = biased(1, hidden);
  FailureOr<Value> biasedValues = biased(2, hidden + keys.dim(2));
  if (failed(biasedKeys) || failed(biasedValues))
    return failure();
  k = splitHeads(n, *biasedKeys, heads);
  v = splitHeads(n, *biasedValues, heads);
  return success();
}

LogicalResult MicrosoftAttention::buildMultiHead() {
  if (failed(readHeads()) || failed(readParts()))
    return failure();
  for (unsigned i = 8; i < n.numInputs(); ++i)
    if (n.hasInput(i))
      return n.unsupported() << n.inputText(i)
                             << " is of a shared buffer or of beams; leave it "
                                "out";
  if (q.batch != k.batch || q.batch != v.batch || k.heads != heads ||
      v.heads != heads || q.size != k.size || k.length != v.length)
    return n.invalid() << "queries, keys and values do not fit";
  if (n.hasInput(6) != n.hasInput(7))
    return n.invalid() << "has one past state; none, or that of keys and that "
                          "of values, are accepted";
  if (n.hasInput(6)) {
    if (failed(checkPast(6, k)) || failed(checkPast(7, v)))
      return failure();
    pastLength = n.input(6).dim(2);
    if (n.input(7).dim(2) != pastLength)
      return n.invalid() << n.inputText(6) << " and " << n.inputText(7)
                         << " differ in length";
    k = appendHeads(n, n.value(6), k);
    v = appendHeads(n, n.value(7), v);
  }
  FailureOr<Value> y = attend(/*mask=*/4, /*bias=*/5);
  if (failed(y) || failed(n.result(0, *y, dtype)))
    return failure();
  if (n.wantsOutput(1) && failed(n.result(1, inOrder(n, k), dtype)))
    return failure();
  if (n.wantsOutput(2) && failed(n.result(2, inOrder(n, v), dtype)))
    return failure();
  return success();
}

static LogicalResult buildAttention(NodeBuilder &n) {
  return MicrosoftAttention(n).buildAttention();
}
static LogicalResult buildMultiHeadAttention(NodeBuilder &n) {
  return MicrosoftAttention(n).buildMultiHead();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> microsoftAttention() {
  static const OpEntry kOps[] = {
      {"Attention", 1, kNewestOpset, 2, 7, 2, buildAttention, "com.microsoft"},
      {"MultiHeadAttention", 1, kNewestOpset, 1, 10, 3, buildMultiHeadAttention,
       "com.microsoft"},
  };
  return kOps;
}
} // namespace memplan::onnx
