//===- Reduce.h - over a warp, over a block ---------------------*- C++ -*-===//
//
// Every thread of the warp or block calls these and gets the result, the same
// bits in each. The order of combination depends on the block's size alone.
// Kernels that use them are launched with launchWithBarriers.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_REDUCE_H
#define MEMPLAN_RUNTIME_REDUCE_H

#include "memplan/Runtime/Element.h"
#include "memplan/Runtime/Math.h"

namespace memplan::rt {

// NaN wins in MaxOp and MinOp, as in arith.maximumf.
struct SumOp {
  template <class T>
  __host__ __device__ static T identity() {
    return T(0);
  }
  template <class T>
  __host__ __device__ static T combine(T a, T b) {
    return a + b;
  }
};
struct ProdOp {
  template <class T>
  __host__ __device__ static T identity() {
    return T(1);
  }
  template <class T>
  __host__ __device__ static T combine(T a, T b) {
    return a * b;
  }
};
struct MaxOp {
  template <class T>
  __host__ __device__ static constexpr T identity() {
    return Limits<T>::lowest();
  }
  template <class T>
  __host__ __device__ static T combine(T a, T b) {
    return maximumOf(a, b);
  }
};
struct MinOp {
  template <class T>
  __host__ __device__ static constexpr T identity() {
    return Limits<T>::highest();
  }
  template <class T>
  __host__ __device__ static T combine(T a, T b) {
    return minimumOf(a, b);
  }
};

/// The calling thread's number within its block, and the block's size.
__device__ __forceinline__ unsigned threadInBlock() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ __forceinline__ unsigned threadsInBlock() {
  return blockDim.x * blockDim.y * blockDim.z;
}

/// Combines `value` over the warp's threads. The last warp may be short.
template <class Op, class T>
__device__ __forceinline__ T warpReduce(T value) {
  constexpr unsigned kAll = 0xffffffffu;
  const unsigned thread = threadInBlock();
  const unsigned lane = thread % kWarpSize;
  const unsigned lanes = threadsInBlock() - (thread - lane);
  MEMPLAN_UNROLL
  for (int step = kWarpSize / 2; step > 0; step /= 2) {
    T other = __shfl_xor_sync(kAll, value, step);
    if ((lane ^ step) < lanes)
      value = Op::combine(value, other);
  }
  // In a short warp only lane 0 is sure to have met all others; and with NaNs
  // of several kinds it decides which one it is.
  return __shfl_sync(kAll, value, 0);
}

/// Combines `value` over the block's threads. May be called again at once.
template <class Op, class T>
__device__ T blockReduce(T value) {
  __shared__ T ofWarp[1024 / kWarpSize];
  const unsigned thread = threadInBlock();
  const unsigned warps = ceilDiv(threadsInBlock(), unsigned(kWarpSize));
  value = warpReduce<Op>(value);
  if (warps == 1)
    return value;
  if (thread % kWarpSize == 0)
    ofWarp[thread / kWarpSize] = value;
  __syncthreads();
  // Each thread combines the few warps' results itself: no second barrier
  // before they can be read, and the same order everywhere.
  T result = ofWarp[0];
  for (unsigned warp = 1; warp < warps; ++warp)
    result = Op::combine(result, ofWarp[warp]);
  __syncthreads(); // or the next call would overwrite what is still being read
  return result;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_REDUCE_H
