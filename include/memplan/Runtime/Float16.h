//===- Float16.h - numbers of 16 bits ---------------------------*- C++ -*-===//
//
// Half (IEEE binary16) and BFloat16, the same types on GPU and host: 16 bits of
// storage that convert explicitly. Arithmetic is done in float and rounded
// after each operation, which for + - * / and sqrt gives what arithmetic in 16
// bits does, since float has more than twice the digits (Figueroa, "When is
// double rounding innocuous?", 1995). On the GPU conversions are instructions;
// on the host they are spelled out, to nearest with ties to even, subnormal
// numbers, infinities and NaN included.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_FLOAT16_H
#define MEMPLAN_RUNTIME_FLOAT16_H

#include "memplan/Runtime/Platform.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace memplan::rt {

#define MEMPLAN_FLOAT __host__ __device__ __forceinline__

namespace detail {

template <class To, class From>
MEMPLAN_FLOAT To sameBits(From x) {
  static_assert(sizeof(To) == sizeof(From), "the same number of bits");
  To y;
  memcpy(&y, &x, sizeof(y));
  return y;
}

/// A number as the nearest float, but for one that isn't a float itself: as the
/// neighbour with an odd last digit. Rounded to a narrower type then, it gives
/// what rounding the number once does.
MEMPLAN_FLOAT float toOddFloat(float x) { return x; }
MEMPLAN_FLOAT float toOddFloat(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x)
    return nearest;
  auto bits = sameBits<uint32_t>(nearest);
  const bool isLarger = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return sameBits<float>((bits - isLarger) | 1);
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
MEMPLAN_FLOAT float toOddFloat(T x) {
  if (sizeof(T) < 8)
    return toOddFloat(static_cast<double>(x));
  // 53 digits for the double, the last one odd.
  const bool isNegative = x < T(0);
  uint64_t size =
      isNegative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  if (size >> 53 != 0)
    size = size >> 11 << 11 | uint64_t((size & 0x7ff) != 0) << 11;
  const double wide = static_cast<double>(size);
  return toOddFloat(isNegative ? -wide : wide);
}

/// `value` >> `shift`, to nearest with ties to even; 0 < shift < 32.
MEMPLAN_FLOAT uint32_t shiftToNearest(uint32_t value, int shift) {
  const uint32_t kept = value >> shift, rest = value & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

MEMPLAN_FLOAT uint16_t halfBits(float x) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(x));
#else
  const auto bits = sameBits<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) // NaN: stays one, whatever digits are lost
    return uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000) // 2^16 and more
    return uint16_t(sign | 0x7c00);
  const int exponent = int(magnitude >> 23);
  if (exponent >= 113) // 2^-14, the least normal number, and more
    return uint16_t(sign | (shiftToNearest(magnitude, 13) - (112u << 10)));
  if (exponent < 102) // rounds to zero even from above
    return uint16_t(sign);
  const uint32_t digits = (magnitude & 0x7fffff) | 0x800000;
  return uint16_t(sign | shiftToNearest(digits, 126 - exponent));
#endif
}

MEMPLAN_FLOAT float halfValue(uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  const uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 0x1f, digits = bits & 0x3ff;
  if (exponent == 0x1f)
    return sameBits<float>(sign | 0x7f800000 | digits << 13);
  if (exponent != 0)
    return sameBits<float>(sign | (exponent + 112) << 23 | digits << 13);
  const float size = static_cast<float>(digits) * 0x1p-24f;
  return sameBits<float>(sign | sameBits<uint32_t>(size));
#endif
}

MEMPLAN_FLOAT uint16_t brainBits(float x) {
#ifdef __CUDA_ARCH__
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
#else
  const auto bits = sameBits<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t(shiftToNearest(bits, 16));
#endif
}

MEMPLAN_FLOAT float brainValue(uint16_t bits) {
  return sameBits<float>(uint32_t(bits) << 16);
}

} // namespace detail

/// A type of 16 bits: its conversions, and the operators in terms of them.
#define MEMPLAN_FLOAT16(TYPE, TO_BITS, TO_FLOAT)                               \
  struct alignas(2) TYPE {                                                     \
    uint16_t bits;                                                             \
    TYPE() = default;                                                          \
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>     \
    MEMPLAN_FLOAT explicit TYPE(T x)                                           \
        : bits(detail::TO_BITS(detail::toOddFloat(x))) {}                      \
    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>     \
    MEMPLAN_FLOAT explicit operator T() const {                                \
      return static_cast<T>(detail::TO_FLOAT(bits));                           \
    }                                                                          \
    __host__ __device__ static constexpr TYPE fromBits(uint16_t bits) {        \
      return TYPE(bits, 0);                                                    \
    }                                                                          \
                                                                               \
  private:                                                                     \
    __host__ __device__ constexpr TYPE(uint16_t bits, int) : bits(bits) {}     \
  };                                                                           \
  MEMPLAN_FLOAT TYPE operator+(TYPE x, TYPE y) {                               \
    return TYPE(float(x) + float(y));                                          \
  }                                                                            \
  MEMPLAN_FLOAT TYPE operator-(TYPE x, TYPE y) {                               \
    return TYPE(float(x) - float(y));                                          \
  }                                                                            \
  MEMPLAN_FLOAT TYPE operator*(TYPE x, TYPE y) {                               \
    return TYPE(float(x) * float(y));                                          \
  }                                                                            \
  MEMPLAN_FLOAT TYPE operator/(TYPE x, TYPE y) {                               \
    return TYPE(float(x) / float(y));                                          \
  }                                                                            \
  MEMPLAN_FLOAT TYPE operator-(TYPE x) {                                       \
    return TYPE::fromBits(uint16_t(x.bits ^ 0x8000));                          \
  }                                                                            \
  MEMPLAN_FLOAT TYPE &operator+=(TYPE &x, TYPE y) { return x = x + y; }        \
  MEMPLAN_FLOAT TYPE &operator-=(TYPE &x, TYPE y) { return x = x - y; }        \
  MEMPLAN_FLOAT TYPE &operator*=(TYPE &x, TYPE y) { return x = x * y; }        \
  MEMPLAN_FLOAT TYPE &operator/=(TYPE &x, TYPE y) { return x = x / y; }        \
  MEMPLAN_FLOAT bool operator==(TYPE x, TYPE y) {                              \
    return float(x) == float(y);                                               \
  }                                                                            \
  MEMPLAN_FLOAT bool operator!=(TYPE x, TYPE y) {                              \
    return float(x) != float(y);                                               \
  }                                                                            \
  MEMPLAN_FLOAT bool operator<(TYPE x, TYPE y) { return float(x) < float(y); } \
  MEMPLAN_FLOAT bool operator>(TYPE x, TYPE y) { return float(x) > float(y); } \
  MEMPLAN_FLOAT bool operator<=(TYPE x, TYPE y) {                              \
    return float(x) <= float(y);                                               \
  }                                                                            \
  MEMPLAN_FLOAT bool operator>=(TYPE x, TYPE y) { return float(x) >= float(y); }

MEMPLAN_FLOAT16(Half, halfBits, halfValue)
MEMPLAN_FLOAT16(BFloat16, brainBits, brainValue)
#undef MEMPLAN_FLOAT16
#undef MEMPLAN_FLOAT

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_FLOAT16_H
