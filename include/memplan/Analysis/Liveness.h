//===- Liveness.h - Lifetimes of the buffers of a function ------*- C++ -*-===//

#ifndef MEMPLAN_ANALYSIS_LIVENESS_H
#define MEMPLAN_ANALYSIS_LIVENESS_H

#include "memplan/Analysis/BufferFlow.h"
#include "memplan/Analysis/ProgramPoints.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <vector>

namespace memplan {

/// A range of a buffer's bytes, counted from its start, and when it lives.
struct LivePart {
  int64_t offset;
  int64_t bytes;
  int64_t lower;
  int64_t upper;
};

/// A static `memref.alloc` whose whole life lies inside the function.
struct LiveBuffer {
  mlir::memref::AllocOp alloc;
  /// Size of its contents, not rounded up.
  int64_t bytes;
  /// What the alloc itself asks for, in bytes; 1 if it asks for nothing.
  int64_t alignment;
  /// Half-open, in `ProgramPoints`: from the first to past the last access,
  /// extended over the loops that the accesses are in and the alloc is not.
  /// Never empty: an alloc that nobody touches lives at its own point.
  int64_t lower;
  int64_t upper;
  BufferFlow flow;
  /// In ascending order, if the bytes don't all live as long as the buffer. An
  /// access counts for all bytes from the first to the last that it may touch;
  /// bytes that nobody touches are in no part.
  std::vector<LivePart> parts;
};

/// An alloc that must stay as it is.
struct LeftAlone {
  mlir::Operation *alloc;
  std::string reason;
  /// Where the reason stands; null if it is the alloc itself.
  mlir::Operation *where = nullptr;
};

/// The lifetimes of all buffers of one function.
class BufferLiveness {
public:
  BufferLiveness(mlir::FunctionOpInterface function,
                 BufferFlowAnalysis &flowAnalysis);

  /// In program order.
  llvm::ArrayRef<LiveBuffer> getBuffers() const { return buffers; }
  llvm::ArrayRef<LeftAlone> getLeftAlone() const { return leftAlone; }
  const ProgramPoints &getPoints() const { return points; }

private:
  void leave(mlir::Operation *alloc, std::string reason,
             mlir::Operation *where = nullptr) {
    leftAlone.push_back({alloc, std::move(reason), where});
  }
  void addAlloc(mlir::memref::AllocOp alloc, BufferFlow flow);
  std::pair<int64_t, int64_t>
  computeLifetime(const LiveBuffer &buffer,
                  llvm::ArrayRef<BufferAccess> accesses) const;
  void computeParts(LiveBuffer &buffer) const;
  void leaveFreedTogether(llvm::ArrayRef<BufferFlow> others);

  ProgramPoints points;
  std::vector<LiveBuffer> buffers;
  std::vector<LeftAlone> leftAlone;
  /// Of each region with branches back to earlier or the same blocks: the
  /// stretches of points that such a branch repeats.
  llvm::DenseMap<mlir::Region *, llvm::SmallVector<std::pair<int64_t, int64_t>>>
      blockLoops;
};

/// The bytes that a memref of static shape and identity layout takes: elements
/// of whole bytes, laid out without gaps. None for other types and on overflow.
std::optional<int64_t> getDenseBytes(mlir::MemRefType type,
                                     mlir::Operation *scope);

/// A name for a buffer in diagnostics and reports: the first name in its
/// location, else "buffer".
std::string getBufferName(mlir::Location location);

} // namespace memplan

#endif // MEMPLAN_ANALYSIS_LIVENESS_H
