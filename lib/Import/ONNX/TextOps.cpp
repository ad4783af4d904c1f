//===- TextOps.cpp - Counts of n-grams ------------------------------------===//

#include "OpTable.h"
#include "Places.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// How many comparisons a body may have, and elements a table.
static constexpr int64_t kMostCompared = 1024, kLargestTable = 1 << 22;

namespace {
class TfIdfBuilder {
public:
  explicit TfIdfBuilder(NodeBuilder &n) : n(n), x(n.input(0)) {}
  LogicalResult build();

private:
  struct Gram {
    SmallVector<int64_t> items;
    int64_t column;
  };
  LogicalResult read();
  LogicalResult readPool();
  Value count();
  Value collect(Value counts);

  NodeBuilder &n;
  ImportedTensor &x;
  int64_t shortest = 0, longest = 0, skips = 0, columns = 0;
  StringRef mode;
  SmallVector<float> weights;
  std::vector<Gram> grams;
};
} // namespace

LogicalResult TfIdfBuilder::read() {
  if (n.hasAttr("pool_strings") || !x.dtype.isInteger())
    return n.unsupported() << n.inputText(0u)
                           << " or 'pool_strings': integers and 'pool_int64s' "
                              "are accepted";
  shortest = n.intAttr("min_gram_length", 0);
  longest = n.intAttr("max_gram_length", 0);
  skips = n.intAttr("max_skip_count", -1);
  mode = n.stringAttr("mode", "");
  weights = n.floatsAttr("weights").value_or(weights);
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; TF, IDF and TFIDF are accepted";
  if (shortest < 1 || longest < shortest || skips < 0)
    return n.invalid() << "n-grams of lengths " << shortest << " to " << longest
                       << " with " << skips << " skips";
  if (x.rank() < 1 || x.rank() > 2)
    return n.invalid() << n.inputText(0u) << "; rank 1 and 2 are accepted";
  auto compared = checkedAdd(skips, 1);
  compared = compared ? checkedMul(*compared, longest) : std::nullopt;
  if (!compared || *compared > kMostCompared)
    return n.unsupported() << "n-grams of length " << longest << " with "
                           << skips << " skips; at most " << kMostCompared
                           << " comparisons for each place are accepted";
  return readPool();
}

/// The pool has all 1-grams, then all 2-grams, and so on; 'ngram_counts' says
/// where each kind begins.
LogicalResult TfIdfBuilder::readPool() {
  auto pool = n.intsAttr("pool_int64s"), starts = n.intsAttr("ngram_counts"),
       indexes = n.intsAttr("ngram_indexes");
  if (!pool || !starts || !indexes || indexes->empty())
    return n.invalid() << "needs attributes 'pool_int64s', 'ngram_counts' and "
                          "'ngram_indexes'";
  for (int64_t index : *indexes) {
    if (index < 0 || index >= kLargestTable)
      return n.invalid() << "attribute 'ngram_indexes' has entry " << index;
    columns = std::max(columns, index + 1);
  }
  size_t number = 0;
  int64_t total = pool->size();
  for (auto [i, start] : llvm::enumerate(*starts)) {
    int64_t length = i + 1;
    int64_t end = i + 1 < starts->size() ? (*starts)[i + 1] : total;
    if (start < 0 || end < start || end > total || (end - start) % length != 0)
      return n.invalid() << "attribute 'ngram_counts' has entry " << start
                         << ", which does not fit a pool of " << total;
    for (int64_t at = start; at < end; at += length, ++number) {
      if (number >= indexes->size())
        return n.invalid() << "attribute 'ngram_indexes' has fewer entries "
                              "than the pool has n-grams";
      if (length >= shortest && length <= longest)
        grams.push_back({SmallVector<int64_t>(pool->begin() + at,
                                              pool->begin() + at + length),
                         (*indexes)[number]});
    }
  }
  // Of equal n-grams the last one counts.
  llvm::stable_sort(grams, [](const Gram &a, const Gram &b) {
    return a.items.size() != b.items.size() ? a.items.size() < b.items.size()
                                            : a.items < b.items;
  });
  std::vector<Gram> distinct;
  for (Gram &gram : grams) {
    if (!distinct.empty() && distinct.back().items == gram.items)
      distinct.pop_back();
    distinct.push_back(gram);
  }
  grams = std::move(distinct);
  if (static_cast<int64_t>(grams.size()) * longest > kLargestTable)
    return n.unsupported() << "the pool is too large";
  if (!weights.empty() && static_cast<int64_t>(weights.size()) < columns)
    return n.invalid() << "attribute 'weights' has " << weights.size()
                       << " entries for " << columns << " columns";
  return success();
}

/// How often each n-gram is in each row: loops over rows, n-grams and places.
Value TfIdfBuilder::count() {
  int64_t rows = x.rank() == 2 ? x.dim(0) : 1, length = x.dim(x.rank() - 1);
  int64_t numGrams = grams.size();
  SmallVector<int64_t> items, lengths;
  for (const Gram &gram : grams) {
    lengths.push_back(gram.items.size());
    llvm::append_range(items, gram.items);
    items.append(longest - gram.items.size(), 0);
  }
  Value pool =
      constantTensor<int64_t>(n, {numGrams, longest}, items, n.b.getI64Type());
  Value lengthTable =
      constantTensor<int64_t>(n, numGrams, lengths, n.b.getI64Type());
  Value source = reshape(n, n.value(0), {rows, length});
  auto dim = [&](unsigned i) { return n.b.getAffineDimExpr(i); };
  AffineMap maps[] = {AffineMap::get(3, 0, {dim(0), dim(2)}, n.context()),
                      AffineMap::get(3, 0, dim(1))};
  return accumulate(
      n, {source, lengthTable}, maps,
      filled(n, {rows, numGrams}, n.b.getI32IntegerAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Value sum = args[2];
        for (int64_t step = 1; step <= skips + 1; ++step) {
          Value isIt = p.less(p.integer(0), args[1]);
          // Skips tell single items nothing new.
          if (step > 1)
            isIt = p.less(p.integer(1), args[1]);
          for (int64_t k = 0; k < longest; ++k) {
            Value at = p.add(p.loop(2), p.integer(k * step));
            Value item = p.read(source, {p.loop(0), p.clamp(at, length)});
            Value wanted = p.read(pool, {p.loop(1), p.integer(k)});
            Value same = p.both(
                p.less(at, p.integer(length)),
                p.equal(castScalar(b, loc, item, x.dtype, p.dtype), wanted));
            Value isPast = p.lessOrEqual(args[1], p.integer(k));
            isIt = p.both(isIt, p.make<arith::OrIOp>(isPast, same));
          }
          Value one = arith::ExtUIOp::create(b, loc, b.getI32Type(), isIt);
          sum = arith::AddIOp::create(b, loc, sum, one);
        }
        return sum;
      });
}

/// A column for each index that an n-gram has; several n-grams may share one.
Value TfIdfBuilder::collect(Value counts) {
  int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
  std::vector<SmallVector<int64_t, 1>> of(columns);
  size_t most = 1;
  for (auto [i, gram] : llvm::enumerate(grams)) {
    of[gram.column].push_back(i);
    most = std::max(most, of[gram.column].size());
  }
  SmallVector<int64_t> table;
  for (auto &list : of) {
    table.append(list.begin(), list.end());
    table.append(most - list.size(), -1);
  }
  int64_t width = most;
  Value places =
      constantTensor<int64_t>(n, {columns, width}, table, n.b.getI64Type());
  Value scale;
  if (mode != "TF" && !weights.empty())
    scale = constantTensor<float>(
        n, columns, ArrayRef(weights).take_front(columns), n.b.getF32Type());
  auto dim = [&](unsigned i) { return n.b.getAffineDimExpr(i); };
  AffineMap maps[] = {AffineMap::get(3, 0, {dim(1), dim(2)}, n.context())};
  Value sums = accumulate(
      n, places, maps, filled(n, {rows, columns}, n.b.getF32FloatAttr(0)), 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars s(b, loc, DType::f32());
        Value found =
            p.read(counts, {p.loop(0), p.clamp(args[0], grams.size())});
        Value number = arith::SIToFPOp::create(b, loc, s.type(), found);
        Value isAny = p.lessOrEqual(p.integer(0), args[0]);
        return s.add(args[1], s.select(isAny, number, s.number(0)));
      });
  if (mode == "TF" || (mode == "TFIDF" && !scale))
    return sums;
  SmallVector<Value> inputs = {sums};
  SmallVector<AffineMap> reads = {n.b.getMultiDimIdentityMap(2)};
  if (scale) {
    inputs.push_back(scale);
    reads.push_back(AffineMap::get(2, 0, dim(1)));
  }
  return mapElements(n, inputs, reads, {rows, columns}, n.b.getF32Type(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, DType::f32());
                       Value y = args[0];
                       if (mode == "IDF")
                         y = s.select(s.less(s.number(0), y), s.number(1),
                                      s.number(0));
                       return scale ? s.mul(y, args[1]) : y;
                     });
}

LogicalResult TfIdfBuilder::build() {
  if (failed(read()))
    return failure();
  SmallVector<int64_t> shape(x.shape().drop_back());
  shape.push_back(columns);
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  if (grams.empty() || x.numElements() == 0)
    return n.result(filled(n, shape, n.b.getF32FloatAttr(0)), DType::f32());
  return n.result(reshape(n, collect(count()), shape), DType::f32());
}

static LogicalResult buildTfIdf(NodeBuilder &n) {
  return TfIdfBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> textOps() {
  static const OpEntry kOps[] = {
      {"TfIdfVectorizer", 9, kNewestOpset, 1, 1, 1, buildTfIdf},
  };
  return kOps;
}
} // namespace memplan::onnx
