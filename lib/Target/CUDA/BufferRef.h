//===- BufferRef.h - A memref as a place in known memory --------*- C++ -*-===//
//
// Views are resolved when the code is emitted: whatever chain of subviews,
// reshapes and casts a memref went through, it is a base, a byte offset and
// strides, all known numbers. Only the offset may also depend on scalars that
// the emitted host code computes, such as the number of an iteration.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H
#define MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H

#include "CarriedBuffer.h"
#include "memplan/Target/Report/WeightsLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan {

/// `count` rows of `bytes` bytes from `offset`, `stride` bytes from start to
/// start; offsets count from the buffer's first element.
struct ByteRange {
  int64_t offset, bytes, count, stride;
};

/// `scalar * bytes`, a part of an offset.
struct OffsetTerm {
  mlir::Value scalar;
  int64_t bytes;
};

/// What a base is aligned to at least; offsets come on top.
inline constexpr int64_t kBlockBaseAlignment = 256;
inline constexpr int64_t kCallerAlignment = 16;

struct BufferRef {
  /// `Carried`: a pointer variable of the emitted code, see CarriedBuffer.h.
  enum class Base { Arena, Weights, Input, Output, Carried };
  Base base = Base::Arena;
  unsigned number = 0;    ///< Of the input, output or variable.
  int64_t byteOffset = 0; ///< From the base to the first element.
  /// What comes on top of `byteOffset`: each scalar once, no zeros.
  llvm::SmallVector<OffsetTerm, 0> terms;
  int64_t baseAlignment = kBlockBaseAlignment;
  /// The buffer that it is a part of: an argument, a planned buffer or a
  /// weight; null for carried ones. Its own byte offset.
  mlir::Value root;
  int64_t rootOffset = 0;
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> strides; ///< In elements.

  int64_t getElementBytes() const;
  int64_t getNumElements() const;
  /// Whether the elements lie row-major without gaps.
  bool isDense() const;
  /// "f32[2, 3]".
  std::string format() const;
  /// Whether the address of the first element is a multiple of `bytes`,
  /// whatever the scalars are.
  bool isAligned(int64_t bytes) const;
  /// A pointer to elements of this C++ type, in terms of the emitted `Run run`
  /// and of the scalars' names.
  std::string
  pointer(llvm::StringRef type,
          llvm::function_ref<std::string(mlir::Value)> nameOf) const;
  /// Adds scalar * bytes to the offset, known parts of the scalar as numbers.
  /// Fails on overflow.
  bool addToOffset(mlir::Value scalar, int64_t bytes);
  /// The bytes of its elements. If they do not form few enough ranges: the
  /// covering one when `cover`, else none.
  llvm::SmallVector<ByteRange> ranges(bool cover) const;
};

/// Whether both are the same place with the same strides, whatever the scalars.
bool areSamePlace(const BufferRef &a, const BufferRef &b);
/// Whether strides agree in all dims that have any.
bool haveSameStrides(const BufferRef &a, const BufferRef &b);

/// Makes `ref` its element at `indices`. Reports an overflow at `user`.
mlir::LogicalResult moveToElement(BufferRef &ref, mlir::ValueRange indices,
                                  mlir::Operation *user);

/// The memrefs of one function.
class BufferTable {
public:
  BufferTable(mlir::func::FuncOp function, const WeightsLayout &weights)
      : function(function), weights(weights), carried(function, *this) {}

  /// Reports what cannot be resolved at `user`, unless that is null.
  mlir::FailureOr<BufferRef> resolve(mlir::Value value, mlir::Operation *user);

  CarriedBuffers &getCarried() { return carried; }

  /// Whether the op only makes a value that `resolve` looks through.
  static bool isViewLike(mlir::Operation *op);

private:
  mlir::FailureOr<BufferRef> compute(mlir::Value value, mlir::Operation *user);
  mlir::FailureOr<BufferRef> computeArgument(mlir::BlockArgument argument,
                                             mlir::Operation *user);

  mlir::FailureOr<BufferRef> computeCarried(const CarriedBuffer &buffer,
                                            mlir::Operation *user);
  mlir::LogicalResult offsetByView(BufferRef &ref, mlir::Operation *view);

  friend class CarriedBuffers; // which forgets what it assumed

  mlir::func::FuncOp function;
  const WeightsLayout &weights;
  CarriedBuffers carried;
  llvm::DenseMap<mlir::Value, BufferRef> known;
};

/// Whether the argument is an output of the function.
bool isOutputArgument(mlir::BlockArgument argument);
/// Whether the argument is the arena.
bool isArenaArgument(mlir::BlockArgument argument);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_BUFFERREF_H
