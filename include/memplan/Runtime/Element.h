//===- Element.h - element types and small vectors --------------*- C++ -*-===//

#ifndef MEMPLAN_RUNTIME_ELEMENT_H
#define MEMPLAN_RUNTIME_ELEMENT_H

#include "memplan/Runtime/Float8.h"
#include "memplan/Runtime/Platform.h"

#include <cstdint>

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

template <>
struct AccumOfImpl<Half> {
  using type = float;
};
template <>
struct AccumOfImpl<BFloat16> {
  using type = float;
};

template <class T>
using AccumOf = typename AccumOfImpl<T>::type;

/// The type that products of A and B are summed in: that of the floats, if
/// there is one, else that of the wider integer.
template <class A, class B>
using ProductOf = decltype(AccumOf<A>() * AccumOf<B>());

/// How an operand's element counts in a sum: as it is, or less a zero point
/// that depends on the row, column or feature that it belongs to.
struct AsItIs {
  template <class Accum, class T>
  __device__ __forceinline__ Accum load(T element, int64_t) const {
    return Accum(element);
  }
};
template <class T>
struct LessZeroPoint {
  const T *zero;
  int64_t stride; ///< From one's zero point to the next one's, or 0.

  template <class Accum>
  __device__ __forceinline__ Accum load(T element, int64_t owner) const {
    return Accum(int32_t(element) - int32_t(zero[owner * stride]));
  }
};

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
