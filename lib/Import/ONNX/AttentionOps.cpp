//===- AttentionOps.cpp - Attention, FlexAttention ------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "ScaledAttention.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static LogicalResult checkHeads(NodeBuilder &n, unsigned i, int64_t heads,
                                StringRef attribute) {
  ImportedTensor &x = n.input(i);
  if (heads >= 1 && x.dim(2) % heads == 0)
    return success();
  return n.invalid() << n.inputText(i) << " has a hidden dim that attribute "
                     << quoted(attribute) << " = " << heads
                     << " does not divide";
}

/// That queries, keys and values belong together.
static LogicalResult checkParts(NodeBuilder &n, const HeadTensor &q,
                                const HeadTensor &k, const HeadTensor &v) {
  if (k.heads < 1 || q.heads % k.heads != 0)
    return n.invalid() << q.heads << " heads of " << n.inputText(0u)
                       << " do not share " << k.heads << " heads of "
                       << n.inputText(1) << " evenly";
  if (q.batch != k.batch || q.batch != v.batch || k.heads != v.heads ||
      k.length != v.length || q.size != k.size)
    return n.invalid() << "queries, keys and values do not fit: "
                       << n.inputText(0u) << ", " << n.inputText(1) << " and "
                       << n.inputText(2);
  return success();
}

static LogicalResult checkPast(NodeBuilder &n, unsigned i,
                               const HeadTensor &x) {
  ImportedTensor &past = n.input(i);
  if (past.rank() == 4 && past.dim(0) == x.batch && past.dim(1) == x.heads &&
      past.dim(3) == x.size)
    return success();
  return n.invalid() << n.inputText(i)
                     << " is a past state; (batch, heads, length, size) = "
                     << x.batch << "x" << x.heads << "x?x" << x.size
                     << " is accepted";
}

/// The type of `softmax_precision`.
static FailureOr<std::optional<DType>> readPrecision(NodeBuilder &n) {
  if (!n.hasAttr("softmax_precision"))
    return std::optional<DType>();
  int64_t code = n.intAttr("softmax_precision", 1);
  std::optional<DType> type = DType::fromCode(code);
  if (!type || !type->isFloat())
    return n.invalid() << "attribute 'softmax_precision' is " << dtypeName(code)
                       << "; float16, bfloat16, float and double are accepted";
  return type;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
class AttentionBuilder {
public:
  explicit AttentionBuilder(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  enum Input { Q, K, V, Mask, PastKey, PastValue, KeyLengths };
  enum Output { Y, PresentKey, PresentValue, Scores };

  LogicalResult readHeads();
  LogicalResult readPast();
  LogicalResult readLengths();
  FailureOr<ScaledAttention::Window> readWindow();
  LogicalResult setPresent(unsigned output, unsigned input,
                           const HeadTensor &tensor);
  LogicalResult setResults(ScaledAttention &attention, unsigned afterCap);

  NodeBuilder &n;
  HeadTensor q, k, v;
  bool is3D = false;
  int64_t pastLength = 0;
};
} // namespace

LogicalResult AttentionBuilder::readHeads() {
  int64_t rank = n.input(Q).rank();
  is3D = rank == 3;
  for (unsigned i : {Q, K, V})
    if (n.input(i).rank() != rank || (rank != 3 && rank != 4))
      return n.invalid() << n.inputText(i)
                         << ": queries, keys and values of rank 3, or all of "
                            "rank 4, are accepted";
  int64_t heads = n.intAttr("q_num_heads", 0),
          keyHeads = n.intAttr("kv_num_heads", 0);
  if (is3D) {
    if (failed(checkHeads(n, Q, heads, "q_num_heads")) ||
        failed(checkHeads(n, K, keyHeads, "kv_num_heads")) ||
        failed(checkHeads(n, V, keyHeads, "kv_num_heads")))
      return failure();
    q = splitHeads(n, n.value(Q), heads);
    k = splitHeads(n, n.value(K), keyHeads);
    v = splitHeads(n, n.value(V), keyHeads);
  } else {
    q = headTensor(n.value(Q));
    k = headTensor(n.value(K));
    v = headTensor(n.value(V));
    if ((heads && heads != q.heads) || (keyHeads && keyHeads != k.heads))
      return n.invalid() << "attributes 'q_num_heads' and 'kv_num_heads' "
                            "contradict the shapes of "
                         << n.inputText(0u) << " and " << n.inputText(1);
  }
  return checkParts(n, q, k, v);
}

LogicalResult AttentionBuilder::readPast() {
  if (n.hasInput(PastKey) != n.hasInput(PastValue))
    return n.invalid() << "has one past state; none, or that of keys and that "
                          "of values, are accepted";
  if (!n.hasInput(PastKey))
    return success();
  if (failed(checkPast(n, PastKey, k)) || failed(checkPast(n, PastValue, v)))
    return failure();
  pastLength = n.input(PastKey).dim(2);
  if (n.input(PastValue).dim(2) != pastLength)
    return n.invalid() << n.inputText(PastKey) << " and "
                       << n.inputText(PastValue) << " differ in length";
  k = appendHeads(n, n.value(PastKey), k);
  v = appendHeads(n, n.value(PastValue), v);
  return success();
}

LogicalResult AttentionBuilder::readLengths() {
  if (!n.hasInput(KeyLengths))
    return success();
  if (n.hasInput(PastKey))
    return n.invalid() << "has both a past state and 'nonpad_kv_seqlen'";
  ImportedTensor &lengths = n.input(KeyLengths);
  if (lengths.dtype.isInteger() &&
      lengths.shape() == ArrayRef<int64_t>(q.batch))
    return success();
  return n.invalid() << n.inputText(KeyLengths)
                     << " has a number of keys for each sample: " << q.batch
                     << " integers are accepted";
}

FailureOr<ScaledAttention::Window> AttentionBuilder::readWindow() {
  ScaledAttention::Window window;
  auto side = [&](StringRef name,
                  std::optional<int64_t> &bound) -> LogicalResult {
    int64_t size = n.opset >= 25 ? n.intAttr(name, -1) : -1;
    if (size < -1)
      return n.invalid() << "attribute " << quoted(name) << " is " << size
                         << "; -1 and up is accepted";
    if (size >= 0)
      bound = size;
    return success();
  };
  if (failed(side("left_window_size", window.left)) ||
      failed(side("right_window_size", window.right)))
    return failure();
  if (n.intAttr("is_causal", 0) != 0)
    window.right = 0;
  window.offset = pastLength;
  if (n.hasInput(KeyLengths)) {
    window.offsets = n.value(KeyLengths);
    window.offsetType = n.input(KeyLengths).dtype;
    window.offset = -q.length;
  }
  return window;
}

LogicalResult AttentionBuilder::setPresent(unsigned output, unsigned input,
                                           const HeadTensor &tensor) {
  if (!n.wantsOutput(output))
    return success();
  if (!is3D && !n.hasInput(PastKey))
    return n.aliasResult(output, n.input(input));
  return n.result(output, inOrder(n, tensor), n.input(input).dtype);
}

LogicalResult AttentionBuilder::setResults(ScaledAttention &attention,
                                           unsigned afterCap) {
  DType dtype = n.input(Q).dtype;
  int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return n.invalid() << "attribute 'qk_matmul_output_mode' is " << mode
                       << "; 0 to 3 are accepted";
  unsigned taken = 0; // steps that the wanted scores have
  if (n.wantsOutput(Scores) && mode < 3)
    taken = mode == 0 ? 0 : mode == 1 ? afterCap : attention.numSteps();
  Value scores = attention.adjust(attention.product(), 0, taken);
  Value probabilities = attention.probabilities(scores, taken);
  Value y = attention.weigh(probabilities, is3D);
  if (is3D)
    y = reshape(n, y, {q.batch, q.length, q.heads * v.size});
  if (failed(n.result(Y, y, dtype)) || failed(setPresent(PresentKey, K, k)) ||
      failed(setPresent(PresentValue, V, v)))
    return failure();
  return n.result(
      Scores, attention.ungrouped(mode == 3 ? probabilities : scores), dtype);
}

LogicalResult AttentionBuilder::build() {
  if (failed(n.floatInput(Q)) || failed(n.sameTypes({Q, K, PastKey})) ||
      failed(n.sameTypes({Q, V, PastValue})) || failed(readHeads()) ||
      failed(readPast()) || failed(readLengths()))
    return failure();
  ScaledAttention attention(n, n.input(Q).dtype, q, k, v);
  auto precision = readPrecision(n);
  auto window = readWindow();
  if (failed(precision) || failed(window))
    return failure();
  attention.precision = *precision;
  attention.scale = n.hasAttr("scale")
                        ? n.floatAttr("scale", 1)
                        : 1 / std::sqrt(static_cast<double>(q.size));
  if (float cap = n.floatAttr("softcap", 0); cap > 0)
    attention.addSoftCap(cap);
  unsigned afterCap = attention.numSteps();
  if (n.hasInput(Mask) && failed(attention.addMask(n.input(Mask))))
    return failure();
  attention.addWindow(*window);
  if (n.hasInput(KeyLengths))
    attention.addKeyLengths(n.value(KeyLengths), n.input(KeyLengths).dtype);
  return setResults(attention, afterCap);
}

static LogicalResult buildAttention(NodeBuilder &n) {
  return AttentionBuilder(n).build();
}

//===----------------------------------------------------------------------===//
// FlexAttention
//===----------------------------------------------------------------------===//

/// Runs the graph `name` of the node on scores or probabilities, in the type
/// `computed`, if the node has it.
static FailureOr<Value> runModifier(NodeBuilder &n, StringRef name, Value value,
                                    DType dtype, DType computed) {
  if (!n.hasAttr(name))
    return value;
  const Graph *graph = n.graphAttr(name);
  if (!graph || failed(checkCounts(n, name, *graph, 1, 1)))
    return failure();
  auto type = cast<RankedTensorType>(value.getType());
  auto cast = [&](Value x, DType from, DType to) {
    if (from == to)
      return x;
    return mapElements(n, x, n.b.getMultiDimIdentityMap(type.getRank()),
                       type.getShape(), to.type(n.context()),
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         return castScalar(b, loc, args[0], from, to);
                       });
  };
  ImportedTensor *input = keepValue(n, cast(value, dtype, computed), computed,
                                    givenInputs(*graph).front()->name);
  auto outputs = n.importGraph(name, *graph, input);
  if (failed(outputs))
    return failure();
  ImportedTensor &output = *outputs->front();
  if (output.dtype != computed || output.shape() != type.getShape())
    return n.invalid() << "the graph " << quoted(name) << " gives "
                       << typeText(output.dtype, output.shape()) << " for "
                       << typeText(computed, type.getShape())
                       << "; the same type and shape are accepted";
  return cast(n.value(output), computed, dtype);
}

static LogicalResult buildFlexAttention(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  for (unsigned i : {0u, 1u, 2u})
    if (n.input(i).rank() != 4)
      return n.invalid() << n.inputText(i) << ": rank 4 is accepted";
  HeadTensor q = headTensor(n.value(0)), k = headTensor(n.value(1)),
             v = headTensor(n.value(2));
  auto precision = readPrecision(n);
  if (failed(precision) || failed(checkParts(n, q, k, v)))
    return failure();
  DType dtype = n.input(0).dtype;
  DType wide = dtype.bits() < 32 ? DType::f32() : dtype;
  ScaledAttention attention(n, dtype, q, k, v);
  attention.precision = *precision;
  attention.scale = n.hasAttr("scale")
                        ? n.floatAttr("scale", 1)
                        : 1 / std::sqrt(static_cast<double>(q.size));
  DType computed = precision->value_or(wide);
  Value scores = attention.product();
  auto form = cast<RankedTensorType>(scores.getType()).getShape();
  FailureOr<Value> modified =
      runModifier(n, "score_mod", attention.ungrouped(scores), dtype, computed);
  if (failed(modified))
    return failure();
  Value shares = attention.probabilities(reshape(n, *modified, form), 0);
  modified =
      runModifier(n, "prob_mod", attention.ungrouped(shares), dtype, computed);
  if (failed(modified))
    return failure();
  return n.result(attention.weigh(reshape(n, *modified, form), false), dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> attentionOps() {
  static const OpEntry kOps[] = {
      {"Attention", 23, 23, 3, 6, 4, buildAttention},
      {"Attention", 24, kNewestOpset, 3, 7, 4, buildAttention},
      {"FlexAttention", 1, kNewestOpset, 3, 3, 1, buildFlexAttention,
       "ai.onnx.preview"},
  };
  return kOps;
}
} // namespace memplan::onnx
