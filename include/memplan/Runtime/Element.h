//===- Element.h - element types and small vectors --------------*- C++ -*-===//

#ifndef MEMPLAN_RUNTIME_ELEMENT_H
#define MEMPLAN_RUNTIME_ELEMENT_H

#include "memplan/Runtime/Platform.h"

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace memplan::rt {

/// The type that sums and products of T are kept in: 32-bit float for the
/// narrow floating-point types, 32-bit for the narrow integers, else T.
template <class T>
struct AccumOfImpl {
  using type = T;
};
template <>
struct AccumOfImpl<int8_t> {
  using type = int32_t;
};
template <>
struct AccumOfImpl<uint8_t> {
  using type = int32_t;
};
template <>
struct AccumOfImpl<int16_t> {
  using type = int32_t;
};
template <>
struct AccumOfImpl<uint16_t> {
  using type = int32_t;
};

#ifdef __CUDACC__
using Half = __half;
using BFloat16 = __nv_bfloat16;
template <>
struct AccumOfImpl<Half> {
  using type = float;
};
template <>
struct AccumOfImpl<BFloat16> {
  using type = float;
};
#endif

template <class T>
using AccumOf = typename AccumOfImpl<T>::type;

/// N elements that are loaded and stored at once: N * sizeof(T) bytes, at most
/// 16, a power of two, and aligned to as many.
template <class T, int N>
struct alignas(N * sizeof(T)) Vec {
  static_assert(N * sizeof(T) <= 16 && (N & (N - 1)) == 0,
                "a vector access has at most 16 bytes");
  T lanes[N];

  __host__ __device__ T &operator[](int i) { return lanes[i]; }
  __host__ __device__ const T &operator[](int i) const { return lanes[i]; }
};

/// True if `pointer` may be read and written as Vec<T, N>.
template <class T, int N>
__host__ __device__ bool isAlignedFor(const T *pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(Vec<T, N>) == 0;
}

/// The N elements at `pointer`, which must be aligned for Vec<T, N>.
template <int N, class T>
__host__ __device__ __forceinline__ Vec<T, N> loadVec(const T *pointer) {
  return *reinterpret_cast<const Vec<T, N> *>(pointer);
}
template <int N, class T>
__host__ __device__ __forceinline__ void storeVec(T *pointer,
                                                  const Vec<T, N> &value) {
  *reinterpret_cast<Vec<T, N> *>(pointer) = value;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_ELEMENT_H
