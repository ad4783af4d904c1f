//===- ConvPool.h - pooling in a convolution's epilogue ---------*- C++ -*-===//
//
// Windows that don't overlap can be reduced where their elements are computed:
// the tensor before pooling is never stored, nothing is computed twice. The
// kernel walks output positions window by window, the elements of a window in
// order, so that a window's elements are in one thread or in neighbouring ones.
// A pool says how many there are and how they are combined.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONVPOOL_H
#define MEMPLAN_RUNTIME_CONVPOOL_H

#include "memplan/Runtime/Reduce.h"

namespace memplan::rt {

/// Each position is a result.
struct NoPool {
  static constexpr int kArea = 1;
};

/// The greatest of Area elements, a power of two. NaN wins.
template <int Area>
struct MaxPool {
  static constexpr int kArea = Area;
  using Op = MaxOp;
  template <class T>
  __device__ static T finish(T value) {
    return value;
  }
};

/// Their average.
template <int Area>
struct AveragePool {
  static constexpr int kArea = Area;
  using Op = SumOp;
  template <class T>
  __device__ static T finish(T value) {
    return value / T(Area);
  }
};

/// Reduces windows over a run of neighbouring positions in each thread, and
/// over neighbouring threads where a window is longer than a run. A window's
/// result is then at its first position. Pairs first, then pairs of pairs, so
/// that results don't depend on the run's length. Called by whole warps.
template <class Pool, int Run, class T>
__device__ __forceinline__ void reduceWindows(T (&values)[Run]) {
  using Op = typename Pool::Op;
  constexpr int kInThread = Pool::kArea < Run ? Pool::kArea : Run;
  MEMPLAN_UNROLL
  for (int step = 1; step < kInThread; step *= 2) {
    MEMPLAN_UNROLL
    for (int j = 0; j < Run; j += 2 * step)
      values[j] = Op::combine(values[j], values[j + step]);
  }
  MEMPLAN_UNROLL
  for (int lanes = 1; lanes < Pool::kArea / kInThread; lanes *= 2)
    values[0] = Op::combine(values[0],
                            T(__shfl_xor_sync(0xffffffffu, values[0], lanes)));
  MEMPLAN_UNROLL
  for (int j = 0; j < Run; j += kInThread)
    values[j] = Pool::finish(values[j]);
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVPOOL_H
