//===- Platform.h - one kernel language for GPU and host --------*- C++ -*-===//
//
// Chooses between CUDA proper and its host stand-in. Both offer the same:
// `__global__`, `__device__`, `__shared__` ..., `threadIdx` and its kin,
// `__syncthreads`, warp shuffles, and in memplan::rt:
//
//   launch(what, kernel, grid, block, stream, arguments...)
//       for kernels without barriers or shuffles (plain loops on the host);
//   launchWithBarriers(...)
//       the same for kernels that use them (fibers on the host).
//
// Both are asynchronous on CUDA, allocate nothing, and take an empty grid to
// mean that there is nothing to do. `what` names the launch in errors.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_PLATFORM_H
#define MEMPLAN_RUNTIME_PLATFORM_H

#ifdef __CUDACC__
#include "memplan/Runtime/PlatformCUDA.h" // IWYU pragma: export
#else
#include "memplan/Runtime/PlatformHost.h" // IWYU pragma: export
#endif

// Loops over register tiles must be unrolled, or the tile lives in memory.
#if defined(__CUDACC__) || defined(__clang__)
#define MEMPLAN_UNROLL _Pragma("unroll")
#else
#define MEMPLAN_UNROLL _Pragma("GCC unroll 16")
#endif

namespace memplan::rt {

inline constexpr int kWarpSize = 32;

/// ceil(a / b) for a >= 0, b > 0, without overflow.
template <class I>
__host__ __device__ constexpr I ceilDiv(I a, I b) {
  return a / b + (a % b != 0);
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_PLATFORM_H
