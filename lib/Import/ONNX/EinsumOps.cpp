//===- EinsumOps.cpp - Einsum ---------------------------------------------===//
//
// Operands are combined two at a time, from the left. A pair of float operands
// that shares a summed label is a matrix product, anything else a generic.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// A tensor whose dims have labels, each once.
struct Labelled {
  Value tensor;
  std::string labels;
};

class Einsum {
public:
  explicit Einsum(NodeBuilder &n) : n(n), dtype(n.input(0).dtype) {}
  LogicalResult build();

private:
  LogicalResult parse(StringRef equation);
  FailureOr<std::string> expand(StringRef term, int64_t rank);
  LogicalResult bindExtents(unsigned i, StringRef labels);
  Labelled read(unsigned i);
  Labelled contract(ArrayRef<Labelled> operands, StringRef result);
  std::optional<Labelled> multiply(Labelled a, Labelled b, StringRef result);
  Labelled arrange(Labelled x, StringRef labels);
  SmallVector<int64_t> shapeOf(StringRef labels) const {
    SmallVector<int64_t> shape;
    for (char label : labels)
      shape.push_back(extents.lookup(label));
    return shape;
  }
  int64_t sizeOf(StringRef labels) const {
    return checkedProduct(shapeOf(labels)).value_or(-1);
  }

  NodeBuilder &n;
  DType dtype;
  SmallVector<std::string> terms;
  std::string output;
  llvm::DenseMap<char, int64_t> extents;
  int64_t ellipsisRank = 0;
};
} // namespace

/// Dims of an ellipsis get the labels '0', '1', ..., the last dim '0'.
FailureOr<std::string> Einsum::expand(StringRef term, int64_t rank) {
  auto [before, after] = term.split("...");
  bool hasEllipsis = term.contains("...");
  std::string labels = before.str();
  if (hasEllipsis) {
    int64_t covered =
        rank < 0 ? ellipsisRank
                 : rank - static_cast<int64_t>(before.size() + after.size());
    for (int64_t i = covered - 1; i >= 0; --i)
      labels += static_cast<char>('0' + i);
    if (covered < 0 || covered > 10)
      return n.invalid() << "the term " << quoted(term)
                         << " of the equation does not fit rank " << rank;
    ellipsisRank = std::max(ellipsisRank, covered);
    labels += after.str();
  }
  if (!llvm::all_of((before + after).str(), llvm::isAlpha))
    return n.invalid() << "the term " << quoted(term)
                       << " of the equation has something other than letters "
                          "and one ellipsis";
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
    return n.invalid() << "the term " << quoted(term)
                       << " of the equation does not fit rank " << rank;
  return labels;
}

LogicalResult Einsum::bindExtents(unsigned i, StringRef labels) {
  for (auto [label, extent] : llvm::zip(labels, n.input(i).shape())) {
    int64_t &known = extents.try_emplace(label, 1).first->second;
    if (known != 1 && extent != 1 && extent != known)
      return n.invalid() << "label '" << std::string(1, label)
                         << "' of the equation has extents " << known << " and "
                         << extent;
    if (extent != 1)
      known = extent;
  }
  return success();
}

LogicalResult Einsum::parse(StringRef equation) {
  std::string text;
  for (char c : equation)
    if (c != ' ')
      text += c;
  bool isExplicit = StringRef(text).contains("->");
  auto [inputs, result] = StringRef(text).split("->");
  SmallVector<StringRef> parts;
  inputs.split(parts, ',');
  if (parts.size() != n.numInputs())
    return n.invalid() << "the equation " << quoted(equation) << " has "
                       << parts.size() << " terms for " << n.numInputs()
                       << " inputs";
  for (auto [i, part] : llvm::enumerate(parts)) {
    FailureOr<std::string> labels = expand(part, n.input(i).rank());
    if (failed(labels) || failed(bindExtents(i, *labels)))
      return failure();
    terms.push_back(*labels);
  }
  if (isExplicit) {
    FailureOr<std::string> labels = expand(result, -1);
    if (failed(labels))
      return failure();
    output = *labels;
  } else {
    // Ellipsis first, then labels that stand once, in order.
    for (int64_t i = ellipsisRank - 1; i >= 0; --i)
      output += static_cast<char>('0' + i);
    std::string all = llvm::join(terms, ""), once;
    for (char label : all)
      if (llvm::isAlpha(label) && llvm::count(all, label) == 1)
        once += label;
    llvm::sort(once);
    output += once;
  }
  for (char label : output)
    if (!extents.count(label) || llvm::count(output, label) != 1)
      return n.invalid() << "the output of the equation " << quoted(equation)
                         << " has a label that no input has, or one twice";
  return success();
}

/// Takes diagonals of labels that stand twice, and drops stretched dims.
Labelled Einsum::read(unsigned i) {
  ImportedTensor &x = n.input(i);
  std::string kept, distinct;
  SmallVector<int64_t> shape;
  for (auto [label, extent] : llvm::zip(terms[i], x.shape())) {
    if (extent == 1 && extents.lookup(label) != 1)
      continue;
    kept += label;
    shape.push_back(extent);
    if (!StringRef(distinct).contains(label))
      distinct += label;
  }
  Value tensor = reshape(n, n.value(i), shape);
  if (kept == distinct)
    return {tensor, kept};
  SmallVector<AffineExpr> exprs;
  for (char label : kept)
    exprs.push_back(n.b.getAffineDimExpr(StringRef(distinct).find(label)));
  AffineMap map = AffineMap::get(distinct.size(), 0, exprs, n.context());
  return {mapElements(
              n, tensor, map, shapeOf(distinct), x.type.getElementType(),
              [](OpBuilder &, Location, ValueRange args) { return args[0]; }),
          distinct};
}

/// The dims of `x` in the order of `labels`.
Labelled Einsum::arrange(Labelled x, StringRef labels) {
  SmallVector<int64_t> order;
  for (char label : labels)
    order.push_back(x.labels.find(label));
  return {transpose(n, x.tensor, order), labels.str()};
}

/// The sum of products over all labels that `result` does not have.
Labelled Einsum::contract(ArrayRef<Labelled> operands, StringRef result) {
  std::string loops = result.str();
  for (const Labelled &operand : operands)
    for (char label : operand.labels)
      if (!StringRef(loops).contains(label))
        loops += label;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Labelled &operand : operands) {
    SmallVector<AffineExpr> exprs;
    for (char label : operand.labels)
      exprs.push_back(n.b.getAffineDimExpr(StringRef(loops).find(label)));
    inputs.push_back(operand.tensor);
    maps.push_back(AffineMap::get(loops.size(), 0, exprs, n.context()));
  }
  auto product = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, dtype);
    Value all = args[0];
    for (Value factor : args.take_front(inputs.size()).drop_front())
      all = s.mul(all, factor);
    return all;
  };
  Type element = dtype.type(n.context());
  if (loops.size() == result.size())
    return {mapElements(n, inputs, maps, shapeOf(result), element, product),
            result.str()};
  Value zeros =
      filled(n, shapeOf(result), cast<TypedAttr>(n.b.getZeroAttr(element)));
  return {accumulate(n, inputs, maps, zeros, loops.size() - result.size(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       return Scalars(b, loc, dtype)
                           .add(args.back(), product(b, loc, args));
                     }),
          result.str()};
}

/// As a batched matrix product, if the two share a label that is summed.
std::optional<Labelled> Einsum::multiply(Labelled a, Labelled b,
                                         StringRef result) {
  std::string batch, rows, columns, inner;
  for (char label : a.labels) {
    bool isShared = StringRef(b.labels).contains(label);
    if (!result.contains(label) && !isShared)
      return std::nullopt; // summed by itself first
    (result.contains(label) ? (isShared ? batch : rows) : inner) += label;
  }
  for (char label : b.labels) {
    if (StringRef(a.labels).contains(label))
      continue;
    if (!result.contains(label))
      return std::nullopt;
    columns += label;
  }
  if (inner.empty() || !dtype.isFloat())
    return std::nullopt;
  auto grouped = [&](Labelled x, const std::string &first,
                     const std::string &second) {
    x = arrange(x, batch + first + second);
    SmallVector<int64_t> shape = shapeOf(batch);
    shape.append({sizeOf(first), sizeOf(second)});
    return reshape(n, x.tensor, shape);
  };
  Value lhs = grouped(a, rows, inner), rhs = grouped(b, inner, columns);
  unsigned numBatch = batch.size(), numLoops = numBatch + 3;
  auto map = [&](unsigned x, unsigned y) {
    SmallVector<AffineExpr> exprs;
    for (unsigned i = 0; i < numBatch; ++i)
      exprs.push_back(n.b.getAffineDimExpr(i));
    exprs.push_back(n.b.getAffineDimExpr(numBatch + x));
    exprs.push_back(n.b.getAffineDimExpr(numBatch + y));
    return AffineMap::get(numLoops, 0, exprs, n.context());
  };
  SmallVector<int64_t> shape = shapeOf(batch);
  shape.append({sizeOf(rows), sizeOf(columns)});
  Type element = dtype.type(n.context());
  auto op = MatMulOp::create(
      n.b, n.loc, lhs, rhs, ValueRange(), empty(n, shape, element),
      {map(0, 2), map(2, 1), map(0, 1)}, {},
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        return fromAccumulator(builder, loc, args[0], element);
      });
  std::string made = batch + rows + columns;
  return arrange({reshape(n, op.getResult(), shapeOf(made)), made}, result);
}

LogicalResult Einsum::build() {
  for (unsigned i = 1; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      return n.invalid() << "input " << i << " is left out";
    if (failed(n.sameTypes({0, i})))
      return failure();
  }
  if (dtype.isBool())
    return n.invalid() << n.inputText(0u) << "; numbers are accepted";
  if (!n.hasAttr("equation"))
    return n.invalid() << "needs the attribute 'equation'";
  if (failed(parse(n.stringAttr("equation", ""))))
    return failure();
  if (sizeOf(output) < 0)
    return n.invalid() << "the result has too many elements";
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (n.input(i).numElements() == 0)
      return n.unsupported() << n.inputText(i) << " has no elements";
  Labelled result = read(0);
  if (n.numInputs() == 1)
    result = contract(result, output);
  for (unsigned i = 1; i < n.numInputs(); ++i) {
    // What the output or a later operand still needs.
    std::string later = output;
    for (unsigned j = i + 1; j < n.numInputs(); ++j)
      later += terms[j];
    bool isLast = i + 1 == n.numInputs();
    Labelled operand = read(i);
    auto reduced = [&](Labelled x, StringRef other) {
      std::string labels;
      for (char label : x.labels)
        if (StringRef(later).contains(label) || other.contains(label))
          labels += label;
      return labels == x.labels ? x : contract(x, labels);
    };
    result = reduced(result, operand.labels);
    operand = reduced(operand, result.labels);
    std::string wanted = output;
    if (!isLast) {
      wanted.clear();
      for (char label : result.labels + operand.labels)
        if (StringRef(later).contains(label) &&
            !StringRef(wanted).contains(label))
          wanted += label;
    } else {
      // Labels of the output that were stretched in all operands read so far.
      std::string there;
      for (char label : output)
        if (StringRef(result.labels + operand.labels).contains(label))
          there += label;
      wanted = there;
    }
    auto product = multiply(result, operand, wanted);
    result = product ? *product : contract({result, operand}, wanted);
  }
  // A label of extent 1 in every operand is still a dim.
  return n.result(reshape(n, result.tensor, shapeOf(output)), dtype);
}

static LogicalResult buildEinsum(NodeBuilder &n) { return Einsum(n).build(); }

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> einsumOps() {
  static const OpEntry kOps[] = {
      {"Einsum", 12, kNewestOpset, 1, kVariadic, 1, buildEinsum},
  };
  return kOps;
}
} // namespace memplan::onnx
