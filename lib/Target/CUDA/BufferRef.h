//===- BufferRef.h - A memref as a place in known memory --------*- C++ -*-===//
//
// Views are resolved when the code is emitted: whatever chain of subviews,
// reshapes and casts a memref went through, it is a base, a byte offset and
// strides, all known numbers.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H
#define MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H

#include "memplan/Target/Report/WeightsLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan {

/// `count` rows of `bytes` bytes from `offset`, `stride` bytes from start to
/// start; offsets count from the buffer's first element.
struct ByteRange {
  int64_t offset, bytes, count, stride;
};

struct BufferRef {
  enum class Base { Arena, Weights, Input, Output };
  Base base = Base::Arena;
  unsigned number = 0;    ///< Of the input or output.
  int64_t byteOffset = 0; ///< From the base to the first element.
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> strides; ///< In elements.

  int64_t getElementBytes() const;
  int64_t getNumElements() const;
  /// Whether the elements lie row-major without gaps.
  bool isDense() const;
  /// "f32[2, 3]".
  std::string format() const;
  /// A typed pointer, in terms of the emitted `Run run`.
  std::string pointer(bool writable) const;
  /// The bytes of its elements. If they do not form few enough ranges: the
  /// covering one when `cover`, else none.
  llvm::SmallVector<ByteRange> ranges(bool cover) const;
};

/// The memrefs of one function.
class BufferTable {
public:
  BufferTable(mlir::func::FuncOp function, const WeightsLayout &weights)
      : function(function), weights(weights) {}

  /// Reports what cannot be resolved at `user`.
  mlir::FailureOr<BufferRef> resolve(mlir::Value value, mlir::Operation *user);

  /// Whether the op only makes a value that `resolve` looks through.
  static bool isViewLike(mlir::Operation *op);

private:
  mlir::FailureOr<BufferRef> compute(mlir::Value value, mlir::Operation *user);
  mlir::FailureOr<BufferRef> computeArgument(mlir::BlockArgument argument,
                                             mlir::Operation *user);

  mlir::func::FuncOp function;
  const WeightsLayout &weights;
  llvm::DenseMap<mlir::Value, BufferRef> known;
};

/// Whether the argument is an output of the function.
bool isOutputArgument(mlir::BlockArgument argument);
/// Whether the argument is the arena.
bool isArenaArgument(mlir::BlockArgument argument);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H
