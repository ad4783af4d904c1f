//===- StructuredOp.h - What the structured ops share -----------*- C++ -*-===//
//
// Verification, effects and bufferization that are the same for every
// structured op of the dialect: inputs are read, one destination is
// overwritten, regions hold scalar code. Private to lib/Dialect.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_DIALECT_STRUCTUREDOP_H
#define MEMPLAN_LIB_DIALECT_STRUCTUREDOP_H

#include "memplan/Dialect/MemPlanDialect.h"

namespace memplan::detail {

/// Shapes agree on tensors or memrefs throughout, static ranks, and a result
/// exists exactly on tensors, of the destination's type.
mlir::LogicalResult verifyOperandsAndResult(mlir::Operation *op);

/// The region takes `argumentTypes` and yields `yielded`.
mlir::LogicalResult verifyRegion(mlir::Operation *op, mlir::Region &region,
                                 llvm::StringRef name,
                                 llvm::ArrayRef<mlir::Type> argumentTypes,
                                 mlir::Type yielded);

/// One map per extra, from the destination's dims to the extra's indices: dims
/// without repetition or constant 0, extents equal (1 for constants).
mlir::LogicalResult verifyExtraMaps(mlir::Operation *op,
                                    mlir::OperandRange extras,
                                    mlir::ArrayAttr maps,
                                    mlir::ShapedType output);

/// The epilogue takes an accumulator (any float or integer type) and the
/// extras' elements and yields the destination's element.
mlir::LogicalResult verifyEpilogue(mlir::Operation *op, mlir::Region &epilogue,
                                   mlir::OperandRange extras,
                                   mlir::ShapedType output);

/// `attribute` has `rank` entries, each at least `least`.
mlir::LogicalResult verifyEntries(mlir::Operation *op, llvm::StringRef name,
                                  llvm::ArrayRef<int64_t> attribute,
                                  int64_t rank, int64_t least);

/// What a window moves over in one dim, in elements.
struct WindowDim {
  int64_t extent, padBegin, padEnd, window, dilation, stride;
};

/// Extents, pads and reach of the window add up to sizes of 64 bits, so that
/// the number of windows can be told.
mlir::LogicalResult verifyWindowDim(mlir::Operation *op, int64_t dim,
                                    const WindowDim &size);

/// The operands of a product: of one type, or one of integers of up to 16 bits.
mlir::LogicalResult verifyFactors(mlir::Operation *op, mlir::ShapedType lhs,
                                  mlir::ShapedType rhs);

/// The zero point of an operand, if it is there, has the operand's type of
/// elements, which are integers of up to 16 bits; so are they if `isUnsigned`.
mlir::LogicalResult verifyZeroPoint(mlir::Operation *op, llvm::StringRef name,
                                    mlir::ShapedType operand, mlir::Value zero,
                                    bool isUnsigned);

/// Appends an extra to the operand range and its map, and an argument to the
/// epilogue.
mlir::BlockArgument addExtra(mlir::MutableOperandRange extras,
                             mlir::ArrayAttr maps,
                             llvm::function_ref<void(mlir::ArrayAttr)> setMaps,
                             mlir::Region &epilogue, mlir::Value operand,
                             mlir::AffineMap map);

/// Whether `input` is an extra that is read through the identity: what computes
/// an output element reads it there and nowhere else.
bool isReadInPlace(mlir::OpOperand &input, mlir::MutableOperandRange extras,
                   mlir::ArrayAttr maps);

/// Whether `map` has the form that `verifyExtraMaps` accepts.
bool isProjectionOrZero(mlir::AffineMap map);

/// A block of scalar code in `region`: arguments of `argumentTypes`, a yield of
/// what `body` returns.
void buildRegion(mlir::OpBuilder &builder, mlir::Location loc,
                 mlir::Region &region, llvm::ArrayRef<mlir::Type> argumentTypes,
                 RegionBuilder body);

/// Element types of shaped values.
llvm::SmallVector<mlir::Type> getElementTypes(mlir::ValueRange values);

/// Reads of all memref inputs, a write of the memref destination.
void getStructuredEffects(
    mlir::DestinationStyleOpInterface op,
    llvm::SmallVectorImpl<
        mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>
        &effects);

/// Rewrites the op on tensors to the same op on memrefs.
mlir::LogicalResult
bufferizeStructuredOp(mlir::DestinationStyleOpInterface op,
                      mlir::RewriterBase &rewriter,
                      const mlir::bufferization::BufferizationOptions &options,
                      mlir::bufferization::BufferizationState &state);

} // namespace memplan::detail

/// Definitions of the interface methods that are the same for every structured
/// op; used once in each op's file.
#define MEMPLAN_STRUCTURED_OP_METHODS(OP)                                      \
  void memplan::OP::getEffects(                                                \
      llvm::SmallVectorImpl<                                                   \
          mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>      \
          &effects) {                                                          \
    detail::getStructuredEffects(                                              \
        llvm::cast<mlir::DestinationStyleOpInterface>(getOperation()),         \
        effects);                                                              \
  }                                                                            \
  bool memplan::OP::bufferizesToMemoryRead(                                    \
      mlir::OpOperand &operand, const mlir::bufferization::AnalysisState &) {  \
    return operand.getOperandNumber() != getInitOperand().getOperandNumber();  \
  }                                                                            \
  bool memplan::OP::bufferizesToMemoryWrite(                                   \
      mlir::OpOperand &operand, const mlir::bufferization::AnalysisState &) {  \
    return operand.getOperandNumber() == getInitOperand().getOperandNumber();  \
  }                                                                            \
  mlir::bufferization::AliasingValueList memplan::OP::getAliasingValues(       \
      mlir::OpOperand &operand, const mlir::bufferization::AnalysisState &) {  \
    if (operand.getOperandNumber() != getInitOperand().getOperandNumber())     \
      return {};                                                               \
    return {{getOperation()->getResult(0),                                     \
             mlir::bufferization::BufferRelation::Equivalent}};                \
  }                                                                            \
  mlir::LogicalResult memplan::OP::bufferize(                                  \
      mlir::RewriterBase &rewriter,                                            \
      const mlir::bufferization::BufferizationOptions &options,                \
      mlir::bufferization::BufferizationState &state) {                        \
    return detail::bufferizeStructuredOp(                                      \
        llvm::cast<mlir::DestinationStyleOpInterface>(getOperation()),         \
        rewriter, options, state);                                             \
  }                                                                            \
  mlir::OpOperand &memplan::OP::getInitOperand() { return getInitMutable(); }

#endif // MEMPLAN_LIB_DIALECT_STRUCTUREDOP_H
