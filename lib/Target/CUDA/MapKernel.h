//===- MapKernel.h - One thread an element ----------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_MAPKERNEL_H
#define MEMPLAN_LIB_TARGET_CUDA_MAPKERNEL_H

#include "LoopNest.h"
#include "ScalarCode.h"

namespace memplan {

/// A buffer and how the iteration space walks it.
struct MapOperand {
  std::string name;
  BufferRef ref;
  LinearAccess access;
  bool read = true;
  bool written = false;
};

/// What a block argument of the function stands for: an operand's element, or a
/// literal or a parameter of the kernel.
struct MapArgument {
  int operand = -1;
  std::string literal;
  std::string cast = ""; ///< The type that the operand's element is cast to.
};

/// A scalar of the host code that the kernel gets as a parameter.
struct MapScalar {
  std::string type, name, value;
};

struct MapKernel {
  mlir::Operation *op;
  std::string title; ///< For the launch's comment.
  llvm::SmallVector<int64_t> extents;
  std::vector<MapOperand> operands;
  ScalarFunction function;
  std::vector<MapArgument> arguments;
  std::vector<MapScalar> scalars;
  llvm::SmallVector<unsigned> results; ///< Written operands, in result order.
};

/// The operand's buffer and access; the map's constant part moves into the
/// buffer's offset. Reports a map that is not linear at `op`.
mlir::FailureOr<MapOperand>
makeMapOperand(Emitter &emitter, mlir::Operation *op, mlir::Value value,
               mlir::AffineMap map, llvm::StringRef name);

/// Declares the kernel's parameters for elements and scalars.
void addParameters(KernelText &kernel, const MapKernel &map);

/// Defines the kernel and launches it; nothing for an empty space.
void emitMapKernel(Emitter &emitter, const MapKernel &map);

/// The same for a copy of one memref to another of its shape.
mlir::LogicalResult emitCopyKernel(Emitter &emitter, mlir::Operation *op,
                                   mlir::Value from, mlir::Value to,
                                   llvm::StringRef title);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_MAPKERNEL_H
