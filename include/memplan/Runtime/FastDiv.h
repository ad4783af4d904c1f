//===- FastDiv.h - division by a number known at launch ---------*- C++ -*-===//
//
// GPUs have no integer division; compilers turn one by a constant into a
// multiplication and a shift. This does the same for a divisor that is known
// when a kernel is launched. (Granlund and Montgomery, Division by Invariant
// Integers using Multiplication, PLDI 1994, section 4, for dividends of 31
// bits, which is what makes the multiplier fit 32.)
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_FASTDIV_H
#define MEMPLAN_RUNTIME_FASTDIV_H

#include "memplan/Runtime/Platform.h"

#include <cstdint>

namespace memplan::rt {

/// Divides n in [0, 2^31) by a divisor in [1, 2^31).
class FastDiv {
public:
  __host__ __device__ FastDiv() : FastDiv(1) {}

  // With l = ceil(log2 d) and m = floor(2^(31+l) / d) + 1, the error
  // e = m*d - 2^(31+l) is in (0, d], so n*m / 2^(31+l) exceeds n/d by less than
  // 1/d and has the same floor. And m < 2^32, since 2^l is d or at most 2d - 2.
  __host__ __device__ explicit FastDiv(uint32_t divisor) : divisor(divisor) {
    while ((uint64_t(1) << log2) < divisor)
      ++log2;
    multiplier =
        static_cast<uint32_t>((uint64_t(1) << (31 + log2)) / divisor + 1);
  }

  __host__ __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
    return static_cast<uint32_t>((uint64_t(n) * multiplier) >> 31 >> log2);
  }

  /// The quotient, and the remainder through `remainder`.
  __host__ __device__ __forceinline__ uint32_t
  divide(uint32_t n, uint32_t &remainder) const {
    uint32_t q = quotient(n);
    remainder = n - q * divisor;
    return q;
  }

  uint32_t divisor = 1;

private:
  uint32_t multiplier = 0;
  uint32_t log2 = 0;
};

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_FASTDIV_H
