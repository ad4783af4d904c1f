//===- FuseStructured.cpp - memplan-fuse ----------------------------------===//

#include "ElementwiseFusion.h"
#include "FuseIntoConv.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace memplan {
#define GEN_PASS_DEF_FUSESTRUCTURED
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// An elementwise op: parallel loops, one result written through the identity,
/// whose previous contents and loop indices the body does not use.
bool isElementwise(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() && op.getNumDpsInits() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         op.getRegionOutputArgs().front().use_empty() &&
         op.getBody()->getOps<linalg::IndexOp>().empty();
}

/// Scalar code can move into an isolated region when all it takes from outside
/// are constants (cloned) and every op has no effect and no region.
bool canMoveBody(Block &body) {
  for (Operation &op : body) {
    if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op))
      return false;
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &body &&
          !matchPattern(operand, m_Constant()))
        return false;
  }
  return true;
}

/// Clones `body` (but not its terminator) at the rewriter's position with its
/// arguments mapped by `mapping`; returns the value that the terminator yields.
Value cloneBody(OpBuilder &builder, Block &body, IRMapping &mapping) {
  auto cloneConstant = [&](Value value) {
    if (!mapping.contains(value) && value.getParentBlock() != &body)
      mapping.map(value, builder.clone(*value.getDefiningOp())->getResult(0));
  };
  for (Operation &op : body.without_terminator()) {
    llvm::for_each(op.getOperands(), cloneConstant);
    builder.clone(op, mapping);
  }
  Value yielded = body.getTerminator()->getOperand(0);
  cloneConstant(yielded);
  return mapping.lookup(yielded);
}

/// Gives the destination of `consumer`, which is about to go, to the producer
/// whose destination `init` is; unless it is that producer's own result.
void takeInit(OpOperand &init, linalg::GenericOp consumer) {
  Value destination = consumer.getDpsInits().front();
  if (destination.getDefiningOp() != init.getOwner())
    init.set(destination);
}

/// Moves an elementwise op into the epilogue of a producer of one of its
/// inputs. Of several such producers it takes the last one, so that no other
/// op's inputs have to live longer than they did.
struct FuseIntoEpilogue : public OpRewritePattern<linalg::GenericOp> {
  FuseIntoEpilogue(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(linalg::GenericOp consumer,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(consumer) || !canMoveBody(*consumer.getBody()))
      return failure();
    // Whatever feeds the consumer comes first: as an operand of the epilogue it
    // would need a buffer.
    for (OpOperand *input : consumer.getDpsInputOperands())
      if (linalg::areElementwiseOpsFusable(input) &&
          shouldInlineProducer(input))
        return failure();
    EpilogueOpInterface producer;
    for (OpOperand *input : consumer.getDpsInputOperands()) {
      auto candidate = input->get().getDefiningOp<EpilogueOpInterface>();
      if (candidate && canFuse(candidate, consumer) &&
          (!producer || producer->isBeforeInBlock(candidate)))
        producer = candidate;
    }
    if (!producer)
      return failure();
    fuse(producer, consumer, rewriter);
    ++count;
    return success();
  }

private:
  static bool canFuse(EpilogueOpInterface producer,
                      linalg::GenericOp consumer) {
    Value result = producer->getResult(0);
    Type from = getElementTypeOrSelf(result),
         to = getElementTypeOrSelf(consumer.getResult(0));
    if (!producer.yieldsOutput() ||
        producer->getBlock() != consumer->getBlock() ||
        (from != to && !producer.canYield(to)) ||
        !isOnlyUsedBy(result, consumer) ||
        !isFusedBodySmall(producer, consumer))
      return false;
    for (OpOperand *input : consumer.getDpsInputOperands()) {
      AffineMap map = consumer.getMatchingIndexingMap(input);
      if (input->get() == result ? !map.isIdentity()
                                 : !producer.canAddEpilogueOperand(map))
        return false;
    }
    return true;
  }

  /// Moves the producer no further down than its new operands force it to: the
  /// order of the program is the scheduler's business.
  static void moveAfterOperandsOf(EpilogueOpInterface producer,
                                  linalg::GenericOp consumer,
                                  PatternRewriter &rewriter) {
    Operation *last = producer;
    for (OpOperand &operand : consumer->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      if (!def || def->getBlock() != producer->getBlock() ||
          !last->isBeforeInBlock(def))
        continue;
      if (def->getNumOperands() == 0 && isPure(def))
        rewriter.moveOpBefore(def, producer);
      else
        last = def;
    }
    if (last != producer)
      rewriter.moveOpAfter(producer, last);
  }

  static void fuse(EpilogueOpInterface producer, linalg::GenericOp consumer,
                   PatternRewriter &rewriter) {
    moveAfterOperandsOf(producer, consumer, rewriter);
    rewriter.modifyOpInPlace(producer, [&] {
      Value result = producer->getResult(0);
      Operation *yield = producer.getEpilogueRegion().front().getTerminator();
      IRMapping mapping;
      for (OpOperand *input : consumer.getDpsInputOperands()) {
        Value element = yield->getOperand(0);
        if (input->get() != result)
          element = producer.addEpilogueOperand(
              input->get(), consumer.getMatchingIndexingMap(input));
        mapping.map(consumer.getMatchingBlockArgument(input), element);
      }
      OpBuilder body(yield);
      Value yielded = cloneBody(body, *consumer.getBody(), mapping);
      yield->setOperand(0, yielded);
      takeInit(producer.getInitOperand(), consumer);
      result.setType(consumer.getResult(0).getType());
      producer->setLoc(
          rewriter.getFusedLoc({producer->getLoc(), consumer->getLoc()}));
    });
    rewriter.replaceOp(consumer, producer->getResult(0));
  }

  Pass::Statistic &count;
};

/// Moves an elementwise producer of a window's input into its `map` region.
/// Sound because windows skip positions outside of the input, so that the map
/// never sees padding; a producer read by overlapping windows is recomputed per
/// window, in registers.
struct FuseIntoWindowMap : public OpRewritePattern<ReduceWindowOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReduceWindowOp window,
                                PatternRewriter &rewriter) const override {
    auto producer = window.getInput().getDefiningOp<linalg::GenericOp>();
    if (!producer || !isElementwise(producer) ||
        !canMoveBody(*producer.getBody()) || producer.getNumDpsInputs() != 1 ||
        !producer.getMatchingIndexingMap(producer.getDpsInputOperand(0))
             .isIdentity() ||
        !isOnlyUsedBy(producer.getResult(0), window))
      return failure();
    OpOperand *input = producer.getDpsInputOperand(0);
    // Better done once an element, in the epilogue of what comes before.
    if (input->get().getDefiningOp<EpilogueOpInterface>() &&
        isOnlyUsedBy(input->get(), producer))
      return failure();
    rewriter.modifyOpInPlace(window, [&] {
      Block &map = window.getMap().front();
      BlockArgument element = map.getArgument(0);
      BlockArgument source =
          map.addArgument(producer.getMatchingBlockArgument(input).getType(),
                          input->get().getLoc());
      IRMapping mapping;
      mapping.map(producer.getMatchingBlockArgument(input), source);
      OpBuilder body(&map, map.begin());
      element.replaceAllUsesWith(cloneBody(body, *producer.getBody(), mapping));
      map.eraseArgument(0);
      window.getInputMutable().set(input->get());
      window->setLoc(
          rewriter.getFusedLoc({producer->getLoc(), window->getLoc()}));
    });
    return success();
  }
};

/// Whether `map`'s last result is one of the two matrix dims of an operand:
/// then the operand has unit stride in one matrix dim, as matrix products need.
bool endsInMatrixDim(AffineMap map, unsigned row, unsigned column) {
  auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
  return last && (last.getPosition() == row || last.getPosition() == column);
}

/// Reads a matrix product's operand through the transpose that made it.
struct FoldTransposeOfOperand : public OpRewritePattern<MatMulOp> {
  FoldTransposeOfOperand(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(MatMulOp matmul,
                                PatternRewriter &rewriter) const override {
    unsigned loops = matmul.getNumLoops();
    unsigned m = loops - 3, n = loops - 2, k = loops - 1;
    for (unsigned index : {0u, 1u}) {
      auto transpose =
          matmul->getOperand(index).getDefiningOp<linalg::GenericOp>();
      auto permutation = transpose ? matchTranspose(transpose) : std::nullopt;
      if (!permutation)
        continue;
      AffineMap map = permutation->compose(
          cast<AffineMapAttr>(matmul.getIndexingMaps()[index]).getValue());
      if (!endsInMatrixDim(map, index == 0 ? m : n, k))
        continue;
      SmallVector<Attribute> maps(matmul.getIndexingMaps().getValue());
      maps[index] = AffineMapAttr::get(map);
      rewriter.modifyOpInPlace(matmul, [&] {
        matmul->setOperand(index, transpose.getDpsInputOperand(0)->get());
        matmul.setIndexingMapsAttr(rewriter.getArrayAttr(maps));
      });
      ++count;
      return success();
    }
    return failure();
  }

private:
  Pass::Statistic &count;
};

/// Writes a matrix product's result through the transpose that reads it.
struct FoldTransposeOfResult : public OpRewritePattern<linalg::GenericOp> {
  FoldTransposeOfResult(MLIRContext *context, Pass::Statistic &count)
      : OpRewritePattern(context), count(count) {}

  LogicalResult matchAndRewrite(linalg::GenericOp transpose,
                                PatternRewriter &rewriter) const override {
    auto toSource = matchTranspose(transpose);
    if (!toSource)
      return failure();
    auto matmul =
        transpose.getDpsInputOperand(0)->get().getDefiningOp<MatMulOp>();
    if (!matmul || matmul->getBlock() != transpose->getBlock() ||
        !isOnlyUsedBy(matmul.getResult(), transpose))
      return failure();
    AffineMap output =
        inversePermutation(*toSource).compose(matmul.getOutputMap());
    unsigned loops = matmul.getNumLoops();
    if (!endsInMatrixDim(output, loops - 3, loops - 2))
      return failure();
    SmallVector<Attribute> maps(matmul.getIndexingMaps().getValue());
    maps[2] = AffineMapAttr::get(output);
    SmallVector<AffineMap> extraMaps;
    for (AffineMap map : matmul.getExtraMaps().getAsValueRange<AffineMapAttr>())
      extraMaps.push_back(map.compose(*toSource));
    rewriter.moveOpBefore(matmul, transpose);
    rewriter.modifyOpInPlace(matmul, [&] {
      matmul.setIndexingMapsAttr(rewriter.getArrayAttr(maps));
      matmul.setExtraMapsAttr(rewriter.getAffineMapArrayAttr(extraMaps));
      takeInit(matmul.getInitMutable(), transpose);
      matmul.getResult().setType(
          cast<RankedTensorType>(transpose.getResult(0).getType()));
    });
    rewriter.replaceOp(transpose, matmul.getResult());
    ++count;
    return success();
  }

private:
  Pass::Statistic &count;
};

/// Named elementwise and transposing ops take part as `linalg.generic`.
struct Generalize : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp>(op) || !op.hasPureTensorSemantics() ||
        op.getNumParallelLoops() != op.getNumLoops())
      return failure();
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

struct FuseStructured
    : public memplan::impl::FuseStructuredBase<FuseStructured> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    // First of all, so that which op is fused doesn't hang on which is visited
    // first.
    RewritePatternSet generalize(context);
    generalize.add<Generalize>(context);
    if (failed(applyPatternsGreedily(getOperation(), std::move(generalize))))
      return signalPassFailure();
    RewritePatternSet patterns(context);
    patterns.add<FuseIntoWindowMap>(context);
    patterns.add<FuseIntoEpilogue>(context, numEpilogues);
    patterns.add<FoldTransposeOfOperand, FoldTransposeOfResult>(context,
                                                                numTransposes);
    linalg::populateElementwiseOpsFusionPatterns(patterns,
                                                 shouldInlineProducer);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
    GreedyRewriteConfig config;
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    // Nothing more moves into an epilogue after these, so they come last.
    RewritePatternSet convolutions(context);
    populateConvFusionPatterns(convolutions, numIntoConvolutions);
    if (failed(applyPatternsGreedily(getOperation(), std::move(convolutions))))
      signalPassFailure();
  }
};

} // namespace
