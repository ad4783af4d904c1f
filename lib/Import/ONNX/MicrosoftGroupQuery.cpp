//===- MicrosoftGroupQuery.cpp - GroupQueryAttention, RotaryEmbedding -----===//

#include "Indices.h"
#include "OpTable.h"
#include "Rotary.h"
#include "Slices.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value toI64(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

/// The two tables, of half of `rotary.size` columns.
static LogicalResult readTables(NodeBuilder &n, Rotary &rotary,
                                unsigned cosines, unsigned sines) {
  ImportedTensor &table = n.input(cosines);
  if (table.rank() != 2 || n.input(sines).shape() != table.shape() ||
      table.dim(0) < 1 || failed(n.sameTypes({0, cosines, sines})))
    return n.invalid() << n.inputText(cosines) << " and " << n.inputText(sines)
                       << " are tables of angles; two of shape (positions, "
                          "entries) are accepted";
  rotary.cosines = n.value(cosines);
  rotary.sines = n.value(sines);
  return success();
}

/// The row of the tables from a tensor (batch, length), or (1): the first.
static void usePositions(NodeBuilder &n, Rotary &rotary, unsigned i,
                         int64_t rows) {
  ImportedTensor &positions = n.input(i);
  Value tensor = n.value(i);
  bool isFirst = positions.numElements() == 1 && positions.rank() == 1;
  DType dtype = positions.dtype;
  bool isShared = !isFirst && positions.dim(0) == 1;
  rotary.position = [=](OpBuilder &b, Location loc, Value batch, Value length) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    if (!isFirst) {
      Value at = tensor::ExtractOp::create(
          b, loc, tensor, ValueRange{isShared ? zero : batch, length});
      return safeIndex(b, loc, at, dtype, rows);
    }
    Value first =
        castScalar(b, loc, tensor::ExtractOp::create(b, loc, tensor, zero),
                   dtype, DType::i64());
    Scalars s(b, loc, DType::i64());
    return safeIndex(b, loc, s.add(first, toI64(b, loc, length)), DType::i64(),
                     rows);
  };
}

static LogicalResult buildRotaryEmbedding(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &positions = n.input(1);
  if (failed(n.floatInput(0)))
    return failure();
  Rotary rotary;
  if (failed(readTables(n, rotary, 2, 3)))
    return failure();
  int64_t columns = n.input(2).dim(1), heads = n.intAttr("num_heads", 0);
  rotary.size = n.intAttr("rotary_embedding_dim", 0);
  rotary.isInterleaved = n.intAttr("interleaved", 0) != 0;
  rotary.scale = n.floatAttr("scale", 1);
  if (n.intAttr("is_packed_batching", 0) != 0)
    return n.unsupported() << "attribute 'is_packed_batching' is not 0, which "
                              "is what is accepted";
  if (rotary.size == 0)
    rotary.size = 2 * columns;
  HeadTensor parts;
  if (x.rank() == 4) {
    parts = headTensor(n.value(0));
  } else if (x.rank() == 3) {
    if (heads == 0)
      heads = x.dim(2) / std::max<int64_t>(rotary.size, 1);
    if (heads < 1 || x.dim(2) % heads != 0)
      return n.invalid() << n.inputText(0u) << " does not split into " << heads
                         << " heads";
    parts = splitHeads(n, n.value(0), heads);
  } else {
    return n.invalid() << n.inputText(0u) << ": rank 3 or 4 is accepted";
  }
  if (rotary.size < 0 || rotary.size % 2 != 0 || rotary.size > parts.size ||
      rotary.size != 2 * columns)
    return n.invalid() << n.inputText(2) << " has " << columns
                       << " columns for " << rotary.size
                       << " rotated entries of heads of " << parts.size;
  bool isFirst = positions.shape() == ArrayRef<int64_t>(1);
  bool fits = positions.rank() == 2 && positions.dim(0) == parts.batch &&
              positions.dim(1) == parts.length;
  if (!positions.dtype.isInteger() || !(isFirst || fits))
    return n.invalid() << n.inputText(1) << " has the positions: one, or "
                       << parts.batch << "x" << parts.length
                       << " integers are accepted";
  usePositions(n, rotary, 1, n.input(2).dim(0));
  Value y = rotary.apply(n, parts, x.dtype).value;
  return n.result(reshape(n, y, x.shape()), x.dtype);
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

namespace {
/// Attention with a cache that is filled to a length of its own in each sample,
/// which the run tells.
class GroupQueryAttention {
public:
  explicit GroupQueryAttention(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  enum Input {
    Query,
    Key,
    Values,
    PastKey,
    PastValue,
    Lengths,
    Total,
    Cosines,
    Sines,
    PositionIds,
    Bias,
    Sink
  };

  LogicalResult readParts();
  LogicalResult readCache();
  LogicalResult rotate();
  /// The number of keys before those of this call, in a kernel.
  Value pastLength(OpBuilder &b, Location loc, Value batch) const;
  HeadTensor fillCache(const HeadTensor &next, unsigned past);
  FailureOr<Value> attend();

  NodeBuilder &n;
  DType dtype;
  HeadTensor q, k, v;
  Value lastPositions; ///< (batch): of the new tokens.
  int64_t total = 0;   ///< Length of the filled cache.
  bool isPrompt = false;
};
} // namespace

LogicalResult GroupQueryAttention::readParts() {
  ImportedTensor &x = n.input(Query);
  dtype = x.dtype;
  int64_t heads = n.intAttr("num_heads", 0),
          keyHeads = n.intAttr("kv_num_heads", 0);
  bool isPacked = !n.hasInput(Key);
  int64_t parts = isPacked ? heads + 2 * keyHeads : heads;
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0 || x.rank() != 3 ||
      x.dim(2) % parts != 0)
    return n.invalid() << n.inputText(Query) << " does not split into " << heads
                       << " heads of queries and " << keyHeads << " of keys";
  if (isPacked != !n.hasInput(Values))
    return n.invalid() << "has keys or values, but not both";
  if (!isPacked) {
    if (failed(n.sameTypes({Query, Key, Values})))
      return failure();
    int64_t width = x.dim(2) / heads * keyHeads;
    for (unsigned i : {Key, Values})
      if (n.input(i).rank() != 3 ||
          n.input(i).shape().take_front(2) != x.shape().take_front(2) ||
          n.input(i).dim(2) != width)
        return n.invalid() << n.inputText(i) << " does not fit "
                           << n.inputText(Query) << " with " << keyHeads
                           << " heads";
    q = splitHeads(n, n.value(Query), heads);
    k = splitHeads(n, n.value(Key), keyHeads);
    v = splitHeads(n, n.value(Values), keyHeads);
    return success();
  }
  int64_t size = x.dim(2) / parts;
  HeadTensor all = splitHeads(n, n.value(Query), parts);
  auto part = [&](int64_t begin, int64_t count) {
    HeadTensor result = all;
    result.heads = count;
    result.value =
        extractSlice(n, all.value, {0, 0, begin, 0},
                     {all.batch, all.length, count, size}, {1, 1, 1, 1});
    return result;
  };
  q = part(0, heads);
  k = part(heads, keyHeads);
  v = part(heads + keyHeads, keyHeads);
  return success();
}

LogicalResult GroupQueryAttention::readCache() {
  ImportedTensor &lengths = n.input(Lengths);
  FailureOr<int64_t> stated = n.scalarInt(Total, "total_sequence_length");
  if (failed(stated))
    return failure();
  if (!lengths.dtype.isInteger() || lengths.numElements() != q.batch ||
      lengths.rank() > 2)
    return n.invalid() << n.inputText(Lengths) << " has the last position of "
                       << "each sample: " << q.batch
                       << " integers are accepted";
  if (n.hasInput(PastKey) != n.hasInput(PastValue))
    return n.invalid() << "has one past state; none, or that of keys and that "
                          "of values, are accepted";
  lastPositions = reshape(n, n.value(Lengths), q.batch);
  total = *stated;
  isPrompt = total == q.length;
  for (unsigned i : {PastKey, PastValue}) {
    if (!n.hasInput(i))
      continue;
    ImportedTensor &past = n.input(i);
    if (past.dtype != dtype || past.rank() != 4 || past.dim(0) != k.batch ||
        past.dim(1) != k.heads || past.dim(3) != k.size ||
        past.dim(2) != n.input(PastKey).dim(2))
      return n.invalid() << n.inputText(i) << " is a past state; " << k.batch
                         << "x" << k.heads << "x?x" << k.size << " is accepted";
    total = std::max(total, past.dim(2));
  }
  if (*stated < q.length)
    return n.invalid() << "total_sequence_length is " << *stated << " for "
                       << q.length << " new tokens";
  return success();
}

Value GroupQueryAttention::pastLength(OpBuilder &b, Location loc,
                                      Value batch) const {
  Scalars s(b, loc, DType::i64());
  if (isPrompt)
    return s.integer(0);
  Value last = castScalar(
      b, loc, tensor::ExtractOp::create(b, loc, lastPositions, batch),
      n.input(Lengths).dtype, DType::i64());
  return s.max(s.integer(0), s.add(last, s.integer(1 - q.length)));
}

LogicalResult GroupQueryAttention::rotate() {
  bool isInterleaved = n.intAttr("rotary_interleaved", 0) != 0;
  if (n.intAttr("do_rotary", 0) == 0)
    return success();
  if (!n.hasInput(Cosines) || !n.hasInput(Sines))
    return n.invalid() << "has no tables of angles, which attribute "
                          "'do_rotary' needs";
  Rotary rotary;
  rotary.isInterleaved = isInterleaved;
  if (failed(readTables(n, rotary, Cosines, Sines)))
    return failure();
  int64_t rows = n.input(Cosines).dim(0);
  rotary.size = 2 * n.input(Cosines).dim(1);
  if (rotary.size > q.size)
    return n.invalid() << n.inputText(Cosines) << " has too many columns for "
                       << "heads of " << q.size;
  if (n.hasInput(PositionIds)) {
    ImportedTensor &ids = n.input(PositionIds);
    if (!ids.dtype.isInteger() || ids.rank() != 2 ||
        (ids.dim(0) != q.batch && ids.dim(0) != 1) || ids.dim(1) != q.length)
      return n.invalid() << n.inputText(PositionIds) << ": " << q.batch << "x"
                         << q.length << " integers are accepted";
    usePositions(n, rotary, PositionIds, rows);
  } else {
    rotary.position = [this, rows](OpBuilder &b, Location loc, Value batch,
                                   Value length) {
      Scalars s(b, loc, DType::i64());
      Value position = s.add(toI64(b, loc, length), pastLength(b, loc, batch));
      return safeIndex(b, loc, position, DType::i64(), rows);
    };
  }
  q = rotary.apply(n, q, dtype);
  k = rotary.apply(n, k, dtype);
  return success();
}

/// The past up to its length, then the new entries, then zeros.
HeadTensor GroupQueryAttention::fillCache(const HeadTensor &next,
                                          unsigned past) {
  bool hasPast = n.hasInput(past) && n.input(past).numElements() != 0;
  if (isPrompt && total == q.length)
    return headTensor(inOrder(n, next));
  int64_t pastExtent = hasPast ? n.input(past).dim(2) : 0;
  Value old = hasPast ? n.value(past) : Value();
  Type element = dtype.type(n.context());
  Value all = mapElements(
      n, {}, {}, {next.batch, next.heads, total, next.size}, element,
      [&](OpBuilder &b, Location loc, ValueRange) {
        Scalars s(b, loc, DType::i64()), x(b, loc, dtype);
        SmallVector<Value> at;
        for (int64_t i = 0; i < 4; ++i)
          at.push_back(linalg::IndexOp::create(b, loc, i));
        Value place = toI64(b, loc, at[2]);
        Value before = pastLength(b, loc, at[0]);
        auto entry = [&](Value tensor, Value position, int64_t extent,
                         bool isLengthFirst) -> Value {
          SmallVector<Value> indices = at;
          indices[2] = safeIndex(b, loc, position, DType::i64(), extent);
          if (isLengthFirst)
            std::swap(indices[1], indices[2]);
          return tensor::ExtractOp::create(b, loc, tensor, indices);
        };
        Value isOld = s.less(place, before);
        Value offset = s.sub(place, before);
        Value kept = x.number(0);
        if (hasPast)
          kept = x.select(isOld, entry(old, place, pastExtent, false), kept);
        Value added = entry(next.value, s.max(s.integer(0), offset),
                            next.length, next.isLengthFirst);
        Value isNew = s.less(offset, s.integer(next.length));
        isNew = s.make<arith::AndIOp>(isNew, s.lessOrEqual(before, place));
        return x.select(isNew, added, kept);
      });
  return headTensor(all);
}

FailureOr<Value> GroupQueryAttention::attend() {
  ScaledAttention attention(n, dtype, q, k, v);
  float scale = n.floatAttr("scale", 0), cap = n.floatAttr("softcap", 0);
  attention.scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size));
  if (cap > 0)
    attention.addSoftCap(cap);
  ScaledAttention::Window window;
  window.right = 0;
  int64_t reach = n.intAttr("local_window_size", -1);
  if (reach > 0)
    window.left = reach - 1;
  if (!isPrompt) {
    window.offsets = lastPositions;
    window.offsetType = n.input(Lengths).dtype;
    window.offset = 1 - q.length;
  }
  attention.addWindow(window);
  if (n.hasInput(Bias)) {
    if (failed(n.floatInput(Bias)) || failed(attention.addMask(n.input(Bias))))
      return failure();
  }
  Value y = attention.weigh(attention.probabilities(attention.product(), 0),
                            /*isLengthFirst=*/true);
  return reshape(n, y, {q.batch, q.length, q.heads * v.size});
}

LogicalResult GroupQueryAttention::build() {
  for (unsigned i : {Lengths, Total})
    if (!n.hasInput(i))
      return n.invalid() << "has no input " << i << ", which is required";
  if (failed(n.floatInput(Query)) || failed(readParts()))
    return failure();
  for (StringRef name : {"smooth_softmax", "qk_output"})
    if (n.intAttr(name, 0) > 0)
      return n.unsupported() << "attribute " << quoted(name)
                             << " is not 0, which is what is accepted";
  for (unsigned i = Sink; i < n.numInputs(); ++i)
    if (n.hasInput(i))
      return n.unsupported()
             << n.inputText(i) << " is not supported; leave it out";
  if (q.batch == 0 || q.length == 0 || q.size == 0)
    return n.invalid() << n.inputText(Query) << " has no elements";
  if (failed(readCache()) || failed(rotate()))
    return failure();
  k = fillCache(k, PastKey);
  v = fillCache(v, PastValue);
  FailureOr<Value> y = attend();
  if (failed(y) || failed(n.result(0, *y, dtype)) ||
      failed(n.result(1, k.value, dtype)))
    return failure();
  return n.result(2, v.value, dtype);
}

static LogicalResult buildGroupQueryAttention(NodeBuilder &n) {
  return GroupQueryAttention(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> microsoftGroupQuery() {
  static const OpEntry kOps[] = {
      {"GroupQueryAttention", 1, kNewestOpset, 1, 12, 3,
       buildGroupQueryAttention, "com.microsoft"},
      {"RotaryEmbedding", 1, kNewestOpset, 4, 4, 1, buildRotaryEmbedding,
       "com.microsoft"},
  };
  return kOps;
}
} // namespace memplan::onnx
