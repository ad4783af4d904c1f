//===- Overlap.h - Whether two parts of a buffer meet -----------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_OVERLAP_H
#define MEMPLAN_LIB_TARGET_CUDA_OVERLAP_H

#include "BufferRef.h"

namespace memplan {

/// How two parts of one buffer can lie to each other, whatever values the
/// scalars in their offsets have.
struct Overlap {
  bool canStartTogether; ///< At the same byte.
  bool canBeShifted;     ///< May share bytes, starting at different ones.
};

/// Offsets of both count from one place: the same base, or buffers' starts.
Overlap computeOverlap(const BufferRef &a, int64_t offsetOfA,
                       const BufferRef &b, int64_t offsetOfB);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_OVERLAP_H
