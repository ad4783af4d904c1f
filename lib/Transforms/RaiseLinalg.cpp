//===- RaiseLinalg.cpp - memplan-raise-linalg -----------------------------===//

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace memplan {
#define GEN_PASS_DEF_RAISELINALG
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// Whether `value` is a tensor filled with zero.
bool isZeroFilled(Value value) {
  auto fill = value.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.getInputs().front(), m_AnyZeroFloat()) ||
                  matchPattern(fill.getInputs().front(), m_Zero()));
}

Value createEmptyLike(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType());
}

/// A contraction with a row, a column and one reduced dim, accumulated onto
/// zeros, is a matrix product that overwrites its destination.
struct RaiseContraction : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  RaiseContraction(MLIRContext *context, Pass::Statistic &count)
      : OpInterfaceRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.hasDynamicShape() ||
        op->getNumResults() != 1 || !linalg::isaContractionOpInterface(op) ||
        !isZeroFilled(op.getDpsInits().front()))
      return failure();
    FailureOr<linalg::ContractionDimensions> dims =
        linalg::inferContractionDims(op);
    if (failed(dims) || dims->m.empty() || dims->n.empty() ||
        dims->k.size() != 1)
      return failure();
    Type element = getElementTypeOrSelf(op.getDpsInits().front());
    for (OpOperand *input : op.getDpsInputOperands())
      if (getElementTypeOrSelf(input->get()) != element)
        return failure();
    if (!isa<FloatType>(element))
      return failure();

    // From the op's loops to (batch..., m, n, k).
    // Of several row or column dims the last is the matrix's; the others are
    // batch dims over which one operand is broadcast.
    SmallVector<unsigned> order(dims->batch.begin(), dims->batch.end());
    unsigned m = dims->m.pop_back_val(), n = dims->n.pop_back_val();
    llvm::append_range(order, dims->m);
    llvm::append_range(order, dims->n);
    order.append({m, n, dims->k.front()});
    if (order.size() != op.getNumLoops())
      return failure();
    SmallVector<AffineExpr> newDim(order.size());
    for (auto [position, loop] : llvm::enumerate(order))
      newDim[loop] = rewriter.getAffineDimExpr(position);
    SmallVector<AffineMap> maps;
    for (AffineMap map : op.getIndexingMapsArray()) {
      map = map.replaceDimsAndSymbols(newDim, {}, order.size(), 0);
      if (!map.isProjectedPermutation())
        return failure();
      maps.push_back(map);
    }
    Location loc = op.getLoc();
    Value init = createEmptyLike(rewriter, loc, op.getDpsInits().front());
    rewriter.replaceOpWithNewOp<MatMulOp>(
        op, op.getDpsInputOperand(0)->get(), op.getDpsInputOperand(1)->get(),
        ValueRange(), init, maps, ArrayRef<AffineMap>(),
        [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
          if (args[0].getType() == element)
            return args[0];
          return arith::TruncFOp::create(b, loc, element, args[0]);
        });
    ++count;
    return success();
  }

private:
  Pass::Statistic &count;
};

/// `linalg.softmax` as one op over rows.
struct RaiseSoftmax : public OpRewritePattern<linalg::SoftmaxOp> {
  RaiseSoftmax(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(linalg::SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    if (!isa<RankedTensorType>(op.getInput().getType()) ||
        !op.getInputOperandType().hasStaticShape())
      return failure();
    int64_t rank = op.getInputOperandRank();
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    auto exponential = [](OpBuilder &b, Location loc,
                          ValueRange args) -> Value {
      Value shifted = arith::SubFOp::create(b, loc, args[0], args[1]);
      return math::ExpOp::create(b, loc, shifted);
    };
    auto element = [](OpBuilder &, Location, ValueRange args) {
      return args[0];
    };
    auto finish = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
      return arith::DivFOp::create(b, loc, exponential(b, loc, args), args[2]);
    };
    rewriter.replaceOpWithNewOp<RowwiseOp>(
        op, op.getInput(),
        createEmptyLike(rewriter, op.getLoc(), op.getOutput()),
        ArrayRef<int64_t>(static_cast<int64_t>(op.getDimension())),
        ArrayRef<Combiner>{Combiner::Max, Combiner::Sum},
        ArrayRef<AffineMap>{identity, identity},
        ArrayRef<RegionBuilder>{element, exponential}, finish);
    ++count;
    return success();
  }

private:
  Pass::Statistic &count;
};

struct RaiseLinalg : public memplan::impl::RaiseLinalgBase<RaiseLinalg> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseContraction, RaiseSoftmax>(&getContext(), numRaised);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
