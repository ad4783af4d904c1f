//===- FuseIntoConv.cpp - Patterns that move ops into convolutions --------===//

#include "FuseIntoConv.h"

#include "ElementwiseFusion.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace memplan;

/// Whether a region yields its only argument.
static bool isIdentity(Region &region) {
  Block &block = region.front();
  return block.getNumArguments() == 1 && block.getOperations().size() == 1 &&
         block.getTerminator()->getOperand(0) == block.getArgument(0);
}

namespace {

/// Pools the result of a convolution where it is computed. Only windows that
/// don't overlap, so that nothing is computed twice; and not after one input
/// channel a group, where sums are short and the kernel for them doesn't pool.
class FuseWindowIntoConv : public OpRewritePattern<ReduceWindowOp> {
public:
  FuseWindowIntoConv(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(ReduceWindowOp window,
                                PatternRewriter &rewriter) const override {
    auto conv = window.getInput().getDefiningOp<ConvOp>();
    if (!conv || conv.getPool() || conv.hasWideTypes() ||
        conv->getBlock() != window->getBlock() ||
        !isOnlyUsedBy(conv.getResult(), window) ||
        llvm::is_contained(window.getExtras(), conv.getResult()) ||
        !isIdentity(window.getMap()) || !canPool(window) ||
        cast<ShapedType>(conv.getFilter().getType()).getDimSize(1) == 1)
      return failure();
    auto pool = window.getKind() == WindowKind::Max ? WindowKind::Max
                                                    : WindowKind::Average;
    rewriter.modifyOpInPlace(conv, [&] {
      conv.setPool(pool);
      conv.setPoolWindow(window.getWindow().drop_front(2));
      Value init = window.getInit();
      if (Operation *made = init.getDefiningOp())
        if (made->getBlock() == conv->getBlock() && conv->isBeforeInBlock(made))
          rewriter.moveOpBefore(made, conv);
      conv.getInitMutable().assign(init);
      conv.getResult().setType(cast<RankedTensorType>(init.getType()));
      conv->setLoc(rewriter.getFusedLoc({conv->getLoc(), window->getLoc()}));
    });
    Value result = conv.getResult();
    if (!isIdentity(window.getEpilogue()))
      result = applyEpilogue(window, result, rewriter);
    rewriter.replaceOp(window, result);
    ++count;
    return success();
  }

private:
  /// What comes after the pool, as an op of its own: as many launches as
  /// before, the second on as many bytes.
  static Value applyEpilogue(ReduceWindowOp window, Value pooled,
                             PatternRewriter &rewriter) {
    SmallVector<Value> inputs = {pooled};
    llvm::append_range(inputs, window.getExtras());
    AffineMap identity = rewriter.getMultiDimIdentityMap(
        cast<ShapedType>(pooled.getType()).getRank());
    SmallVector<AffineMap> maps = {identity};
    llvm::append_range(maps,
                       window.getExtraMaps().getAsValueRange<AffineMapAttr>());
    maps.push_back(identity);
    SmallVector<utils::IteratorType> loops(identity.getNumDims(),
                                           utils::IteratorType::parallel);
    auto body = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
      Block &epilogue = window.getEpilogue().front();
      IRMapping mapping;
      mapping.map(epilogue.getArguments(), arguments.drop_back());
      for (Operation &op : epilogue.without_terminator())
        builder.clone(op, mapping);
      Value yielded = epilogue.getTerminator()->getOperand(0);
      linalg::YieldOp::create(builder, loc, mapping.lookup(yielded));
    };
    rewriter.setInsertionPoint(window);
    return linalg::GenericOp::create(rewriter, window.getLoc(),
                                     pooled.getType(), inputs, window.getInit(),
                                     maps, loops, body)
        .getResult(0);
  }

  /// Whether a convolution's kernel has such windows, whole ones only.
  static bool canPool(ReduceWindowOp window) {
    auto input = cast<ShapedType>(window.getInput().getType());
    auto output = cast<ShapedType>(window.getInit().getType());
    Operation *init = window.getInit().getDefiningOp();
    if (window.getKind() == WindowKind::Sum || !input.hasStaticShape() ||
        !output.hasStaticShape() || !isa_and_nonnull<tensor::EmptyOp>(init) ||
        input.getElementType() != output.getElementType() ||
        window.getEpilogue().getArgument(0).getType() !=
            output.getElementType())
      return false;
    int64_t area = 1;
    for (int64_t dim = 0; dim < input.getRank(); ++dim) {
      int64_t extent = window.getWindow()[dim];
      if (!llvm::isPowerOf2_64(extent) || extent > ConvOp::kMostPooled ||
          extent != window.getStrides()[dim] ||
          (extent > 1 && window.getDilations()[dim] != 1) ||
          window.getPadsBegin()[dim] != 0 || (dim < 2 && extent != 1) ||
          output.getDimSize(dim) != input.getDimSize(dim) / extent)
        return false;
      area *= extent;
    }
    return area > 1 && area <= ConvOp::kMostPooled;
  }

  Pass::Statistic &count;
};

/// A channel shuffle after a grouped convolution (Zhang et al., "ShuffleNet",
/// CVPR 2018): the channels as groups by features of a group, transposed. The
/// convolution stores them there.
class FuseShuffleIntoConv : public OpRewritePattern<tensor::CollapseShapeOp> {
public:
  FuseShuffleIntoConv(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp collapse,
                                PatternRewriter &rewriter) const override {
    auto transpose = collapse.getSrc().getDefiningOp<linalg::GenericOp>();
    auto permutation = transpose ? matchTranspose(transpose) : std::nullopt;
    auto expand = permutation ? transpose.getDpsInputs()
                                    .front()
                                    .getDefiningOp<tensor::ExpandShapeOp>()
                              : tensor::ExpandShapeOp();
    auto conv = expand ? expand.getSrc().getDefiningOp<ConvOp>() : ConvOp();
    if (!conv || !conv.yieldsOutput() || conv.getGroups() < 2 ||
        !isOnlyUsedBy(conv.getResult(), expand) ||
        !isOnlyUsedBy(expand.getResult(), transpose) ||
        !isOnlyUsedBy(transpose.getResult(0), collapse) ||
        expand.getReassociationIndices() !=
            collapse.getReassociationIndices() ||
        !shufflesGroups(expand, *permutation, conv.getGroups()))
      return failure();
    rewriter.modifyOpInPlace(conv, [&] {
      conv.setInterleaved(true);
      conv->setLoc(rewriter.getFusedLoc({conv->getLoc(), transpose->getLoc()}));
    });
    rewriter.replaceOp(collapse, conv.getResult());
    ++count;
    return success();
  }

private:
  /// Whether dim 1 alone is split, into groups and the features of each, which
  /// then change places.
  static bool shufflesGroups(tensor::ExpandShapeOp expand, AffineMap toSource,
                             int64_t groups) {
    RankedTensorType type = expand.getResultType();
    unsigned rank = type.getRank();
    if (expand.getSrcType().getRank() + 1 != rank || rank < 3 ||
        expand.getReassociationIndices()[1].size() != 2 ||
        type.getDimSize(1) != groups)
      return false;
    SmallVector<unsigned> swapped = llvm::to_vector(llvm::seq(0u, rank));
    std::swap(swapped[1], swapped[2]);
    return toSource ==
           AffineMap::getPermutationMap(swapped, expand.getContext());
  }

  Pass::Statistic &count;
};

/// Nearest-neighbour upsampling by powers of two before a convolution: an op
/// that repeats its input's elements along new dims, which are then joined with
/// the old ones. The convolution reads the input in its place.
class FuseUpsamplingIntoConv : public OpRewritePattern<ConvOp> {
public:
  FuseUpsamplingIntoConv(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(ConvOp conv,
                                PatternRewriter &rewriter) const override {
    auto collapse = conv.getInput().getDefiningOp<tensor::CollapseShapeOp>();
    auto repeat = collapse
                      ? collapse.getSrc().getDefiningOp<linalg::GenericOp>()
                      : linalg::GenericOp();
    if (!repeat || conv.getUpsample() || !isOnlyUsedBy(conv.getInput(), conv) ||
        !isOnlyUsedBy(repeat.getResult(0), collapse) ||
        cast<ShapedType>(conv.getFilter().getType()).getDimSize(1) == 1)
      return failure();
    auto factors = matchFactors(repeat, collapse);
    if (!factors)
      return failure();
    rewriter.modifyOpInPlace(conv, [&] {
      conv.getInputMutable().set(repeat.getDpsInputs().front());
      conv.setUpsample(*factors);
      conv->setLoc(rewriter.getFusedLoc({repeat->getLoc(), conv->getLoc()}));
    });
    ++count;
    return success();
  }

private:
  /// The factor of each spatial dim.
  static std::optional<SmallVector<int64_t>>
  matchFactors(linalg::GenericOp repeat, tensor::CollapseShapeOp collapse) {
    if (!repeat.hasPureTensorSemantics() || repeat.getNumDpsInputs() != 1 ||
        repeat.getNumDpsInits() != 1 ||
        repeat.getNumParallelLoops() != repeat.getNumLoops() ||
        repeat.getBody()->getOperations().size() != 1 ||
        repeat.getBody()->getTerminator()->getOperand(0) !=
            repeat.getBody()->getArgument(0) ||
        !repeat.getMatchingIndexingMap(repeat.getDpsInitOperand(0))
             .isIdentity() ||
        !collapse.getSrcType().hasStaticShape())
      return std::nullopt;
    AffineMap read =
        repeat.getMatchingIndexingMap(repeat.getDpsInputOperand(0));
    SmallVector<ReassociationIndices> groups =
        collapse.getReassociationIndices();
    if (read.getNumResults() != groups.size())
      return std::nullopt;
    SmallVector<int64_t> factors;
    for (auto [dim, group] : llvm::enumerate(groups)) {
      auto position = dyn_cast<AffineDimExpr>(read.getResult(dim));
      if (!position || group.size() > (dim < 2 ? 1u : 2u) ||
          static_cast<int64_t>(position.getPosition()) != group.front())
        return std::nullopt;
      if (dim < 2)
        continue;
      int64_t factor = group.size() == 1
                           ? 1
                           : collapse.getSrcType().getDimSize(group.back());
      if (!llvm::isPowerOf2_64(factor) || factor > ConvOp::kMostUpsampled)
        return std::nullopt;
      factors.push_back(factor);
    }
    return factors;
  }

  Pass::Statistic &count;
};

} // namespace

void memplan::populateConvFusionPatterns(RewritePatternSet &patterns,
                                         Pass::Statistic &count) {
  patterns.add<FuseWindowIntoConv, FuseShuffleIntoConv, FuseUpsamplingIntoConv>(
      patterns.getContext(), count);
}
