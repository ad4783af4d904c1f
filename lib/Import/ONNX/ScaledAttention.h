//===- ScaledAttention.h - softmax(q k' + masks) v --------------*- C++ -*-===//
//
// What the operators of attention share: two batched products and the softmax
// between them. The scores exist once: the softmax takes masks and soft caps
// into its own kernel and can overwrite what it reads.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_SCALEDATTENTION_H
#define MEMPLAN_LIB_IMPORT_ONNX_SCALEDATTENTION_H

#include "Scalars.h"
#include "TensorOps.h"

#include <functional>

namespace memplan::onnx {

/// A tensor (batch, heads, length, size), as it lies in memory.
struct HeadTensor {
  mlir::Value value;
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  /// The dims lie as (batch, length, heads, size): heads are cut from a hidden
  /// dim, and products read them where they are.
  bool isLengthFirst = false;
};

/// Cuts the last dim of a tensor (batch, length, heads * size).
HeadTensor splitHeads(NodeBuilder &n, mlir::Value value, int64_t heads);
/// One that lies in order.
HeadTensor headTensor(mlir::Value value);
/// The tensor in order, transposed if need be.
mlir::Value inOrder(NodeBuilder &n, const HeadTensor &tensor);
/// `past` (batch, heads, length, size), then `next` along the length, in order.
HeadTensor appendHeads(NodeBuilder &n, mlir::Value past,
                       const HeadTensor &next);

class ScaledAttention {
public:
  /// Several heads of `q` in a row may share one of `k` and `v`.
  ScaledAttention(NodeBuilder &n, DType dtype, HeadTensor q, HeadTensor k,
                  HeadTensor v);

  /// Of the products, before all else.
  double scale = 1;
  /// The type to which scores are rounded before the softmax, and
  /// probabilities after; by default it computes in the accumulator's.
  std::optional<DType> precision;
  /// If set, what is added to scores that a mask of integers or lengths hide,
  /// instead of -infinity.
  std::optional<double> filter;

  //===--- what happens to scores, in order -------------------------------===//
  // A score that is masked out becomes -infinity; a row of nothing else gives
  // probabilities of 0.
  /// limit * tanh(score / limit)
  void addSoftCap(double limit);
  /// Adds a float tensor, or masks out where a bool one is false; it broadcasts
  /// to (batch, heads, queries, keys), or an error.
  mlir::LogicalResult addMask(ImportedTensor &mask);
  /// The same for a value of known shape that does broadcast; one of integers
  /// hides where it is not positive.
  void addMask(mlir::Value mask, DType dtype);
  /// Which keys a query sees by its position.
  struct Window {
    /// Keys this far before and after the query; none: no bound.
    std::optional<int64_t> left, right;
    /// Position of the first query among the keys; per sample if `offsets`
    /// (batch) is set, which is added.
    int64_t offset = 0;
    mlir::Value offsets;
    DType offsetType;
  };
  void addWindow(const Window &window);
  /// Hides keys from `ends[batch]` on, and those before `starts[batch]`, which
  /// may be null.
  void addKeyLengths(mlir::Value ends, DType dtype, mlir::Value starts = {});

  //===--- the parts ------------------------------------------------------===//
  unsigned numSteps() const { return steps.size(); }
  /// (batch, heads, queries, keys)
  llvm::SmallVector<int64_t> shape() const {
    return {q.batch, q.heads, q.length, k.length};
  }
  /// scale * q k', of the shape (batch, key heads, queries a key head, queries,
  /// keys) or, where those are as many, `shape()`: scores have this form.
  mlir::Value product();
  /// Scores after the steps from `begin` to `end`.
  mlir::Value adjust(mlir::Value scores, unsigned begin, unsigned end);
  /// The softmax of the scores after the steps from `begin` on.
  mlir::Value probabilities(mlir::Value scores, unsigned begin);
  /// (batch, heads, queries, size of values), or with queries before heads.
  mlir::Value weigh(mlir::Value probabilities, bool isLengthFirst);
  /// Scores or probabilities with the shape `shape()`.
  mlir::Value ungrouped(mlir::Value scores) {
    return reshape(n, scores, shape());
  }

private:
  using StepFn = std::function<mlir::Value(const Scalars &, mlir::Value score,
                                           mlir::ValueRange operands)>;
  struct Step {
    llvm::SmallVector<mlir::Value> operands;
    llvm::SmallVector<mlir::AffineMap> maps;
    StepFn apply;
  };

  bool isGrouped() const { return q.heads != k.heads; }
  unsigned rank() const { return isGrouped() ? 5 : 4; }
  mlir::AffineExpr dim(unsigned i) { return n.b.getAffineDimExpr(i); }
  mlir::AffineMap scoreMap(llvm::ArrayRef<mlir::AffineExpr> exprs) {
    return mlir::AffineMap::get(rank(), 0, exprs, n.context());
  }
  llvm::SmallVector<int64_t> groupedShape() const;
  mlir::AffineMap operandMap(const HeadTensor &tensor, bool isQuery,
                             mlir::AffineExpr length, mlir::AffineExpr size);
  /// `q`, or what has its form, with the heads of a group as a dim.
  mlir::Value grouped(const HeadTensor &tensor);
  mlir::Value positions(int64_t count);
  /// The score where `isSeen`.
  mlir::Value hide(const Scalars &s, mlir::Value isSeen,
                   mlir::Value score) const;
  mlir::Value applySteps(const Scalars &s, mlir::Value score,
                         mlir::ValueRange operands, unsigned begin,
                         unsigned end) const;

  NodeBuilder &n;
  const DType dtype;
  const DType wide; ///< In which scores are computed.
  HeadTensor q, k, v;
  std::vector<Step> steps;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_SCALEDATTENTION_H
