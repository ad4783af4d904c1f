//===- LoopNest.h - Iteration spaces with linear accesses -------*- C++ -*-===//
//
// A kernel's threads walk an iteration space in which every access is linear.
// Fewer dims make shorter kernels: extents of 1 go, dims that all accesses walk
// alike merge, and the dim that the result is contiguous in comes last, so that
// neighbouring threads touch neighbouring elements.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_LOOPNEST_H
#define MEMPLAN_LIB_TARGET_CUDA_LOOPNEST_H

#include "Emitter.h"
#include "mlir/IR/AffineMap.h"

namespace memplan {

/// Element offset of an access: constant + sum of coefficient * dim.
struct LinearAccess {
  llvm::SmallVector<int64_t> coefficients;
  int64_t constant = 0;
};

/// `map` composed with strides; nullopt if it is not linear.
std::optional<LinearAccess> linearize(mlir::AffineMap map,
                                      llvm::ArrayRef<int64_t> strides);

struct LoopNest {
  llvm::SmallVector<int64_t> extents;
  /// One per access, one entry per dim.
  llvm::SmallVector<llvm::SmallVector<int64_t>> coefficients;
  /// The dim of the original nest; -1 for merged ones.
  llvm::SmallVector<int64_t> origin;

  LoopNest(llvm::ArrayRef<int64_t> extents,
           llvm::ArrayRef<LinearAccess> accesses);

  /// Only these dims of the nest, in this order.
  LoopNest select(llvm::ArrayRef<unsigned> dims) const;

  /// Drops, orders (by the coefficients of access `lead`) and merges; dims in
  /// `pinned` (of the original nest) stay by themselves.
  void simplify(unsigned lead, llvm::ArrayRef<int64_t> pinned = {});

  int64_t getNumPoints() const;
  /// Whether points and all offsets are in [0, 2^31).
  bool isNarrow() const;
  unsigned getNumDims() const { return extents.size(); }

private:
  void removeDim(unsigned dim);
};

/// Emits index arithmetic of one nest into a kernel.
class IndexText {
public:
  /// `prefix` begins the names of the nest's dims.
  IndexText(KernelText &kernel, const LoopNest &nest, bool narrow,
            llvm::StringRef prefix)
      : kernel(kernel), nest(nest), narrow(narrow), prefix(prefix.str()) {}

  llvm::StringRef type() const { return narrow ? "unsigned" : "int64_t"; }

  /// Statements that split the number `index` into the dims. The innermost dim
  /// counts steps of `step` elements. Without `allRead`, what follows may use
  /// fewer than all dims.
  void decode(llvm::StringRef index, int64_t step = 1,
              llvm::StringRef indent = "  ", bool allRead = true);
  /// The offset of access number `access`, whose pointer is `name`; "" for 0.
  std::string offset(unsigned access, llvm::StringRef name) const;
  /// The value of a dim of the original nest.
  std::string dimOf(int64_t origin) const;
  llvm::ArrayRef<std::string> getDims() const { return dims; }
  void setDims(llvm::ArrayRef<std::string> names) {
    dims.assign(names.begin(), names.end());
  }

private:
  KernelText &kernel;
  const LoopNest &nest;
  bool narrow;
  std::string prefix;
  llvm::SmallVector<std::string> dims;
  int64_t step = 1;
};

/// "a + b" of non-empty terms; "0" if there is none.
std::string sum(llvm::ArrayRef<std::string> terms);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_LOOPNEST_H
