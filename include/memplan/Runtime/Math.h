//===- Math.h - scalar functions under one name -----------------*- C++ -*-===//
//
// Named after the operations of MLIR's math and arith dialects, and meaning
// what those mean: math.exp is expOf, arith.maximumf is maximumOf (NaN wins),
// arith.maxnumf is maxnumOf (NaN loses). For float and double; overloads, not
// templates, so that nothing is converted unseen. Those for the types of 16
// bits compute in float and round once.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_MATH_H
#define MEMPLAN_RUNTIME_MATH_H

#include "memplan/Runtime/Float16.h"
#include "memplan/Runtime/Platform.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace memplan::rt {

#define MEMPLAN_MATH __host__ __device__ __forceinline__

/// The same bits as another type of the same size.
template <typename To, typename From>
MEMPLAN_MATH To bitcastOf(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bitcast changes no size");
  To y;
  memcpy(&y, &x, sizeof(y));
  return y;
}

// One-argument functions that the C library has under the same name.
#define MEMPLAN_UNARY16(NAME)                                                  \
  MEMPLAN_MATH Half NAME##Of(Half x) { return Half(NAME##Of(float(x))); }      \
  MEMPLAN_MATH BFloat16 NAME##Of(BFloat16 x) {                                 \
    return BFloat16(NAME##Of(float(x)));                                       \
  }
#define MEMPLAN_UNARY(NAME)                                                    \
  MEMPLAN_MATH float NAME##Of(float x) { return ::NAME##f(x); }                \
  MEMPLAN_MATH double NAME##Of(double x) { return ::NAME(x); }                 \
  MEMPLAN_UNARY16(NAME)
MEMPLAN_UNARY(acos)
MEMPLAN_UNARY(acosh)
MEMPLAN_UNARY(asin)
MEMPLAN_UNARY(asinh)
MEMPLAN_UNARY(atan)
MEMPLAN_UNARY(atanh)
MEMPLAN_UNARY(cbrt)
MEMPLAN_UNARY(ceil)
MEMPLAN_UNARY(cos)
MEMPLAN_UNARY(cosh)
MEMPLAN_UNARY(erf)
MEMPLAN_UNARY(erfc)
MEMPLAN_UNARY(exp)
MEMPLAN_UNARY(exp2)
MEMPLAN_UNARY(expm1)
MEMPLAN_UNARY(floor)
MEMPLAN_UNARY(log)
MEMPLAN_UNARY(log10)
MEMPLAN_UNARY(log1p)
MEMPLAN_UNARY(log2)
MEMPLAN_UNARY(sin)
MEMPLAN_UNARY(sinh)
MEMPLAN_UNARY(sqrt)
MEMPLAN_UNARY(tan)
MEMPLAN_UNARY(tanh)
MEMPLAN_UNARY(trunc)
#undef MEMPLAN_UNARY

// The host's are those of its rounding mode, which is to nearest, ties to even.
MEMPLAN_MATH float roundevenOf(float x) { return ::rintf(x); }
MEMPLAN_MATH double roundevenOf(double x) { return ::rint(x); }
MEMPLAN_MATH float roundOf(float x) { return ::roundf(x); }
MEMPLAN_MATH double roundOf(double x) { return ::round(x); }
MEMPLAN_UNARY16(roundeven)
MEMPLAN_UNARY16(round)

MEMPLAN_MATH float absfOf(float x) { return ::fabsf(x); }
MEMPLAN_MATH double absfOf(double x) { return ::fabs(x); }
MEMPLAN_UNARY16(absf)
MEMPLAN_MATH int32_t absiOf(int32_t x) { return x < 0 ? 0 - x : x; }
MEMPLAN_MATH int64_t absiOf(int64_t x) { return x < 0 ? 0 - x : x; }

MEMPLAN_MATH float rsqrtOf(float x) {
#ifdef __CUDA_ARCH__
  return ::rsqrtf(x);
#else
  return 1.0f / ::sqrtf(x);
#endif
}
MEMPLAN_MATH double rsqrtOf(double x) {
#ifdef __CUDA_ARCH__
  return ::rsqrt(x);
#else
  return 1.0 / ::sqrt(x);
#endif
}
MEMPLAN_UNARY16(rsqrt)
#undef MEMPLAN_UNARY16

MEMPLAN_MATH float powfOf(float x, float y) { return ::powf(x, y); }
MEMPLAN_MATH double powfOf(double x, double y) { return ::pow(x, y); }
MEMPLAN_MATH float atan2Of(float y, float x) { return ::atan2f(y, x); }
MEMPLAN_MATH double atan2Of(double y, double x) { return ::atan2(y, x); }
MEMPLAN_MATH float copysignOf(float x, float y) { return ::copysignf(x, y); }
MEMPLAN_MATH double copysignOf(double x, double y) { return ::copysign(x, y); }
MEMPLAN_MATH float remfOf(float x, float y) { return ::fmodf(x, y); }
MEMPLAN_MATH double remfOf(double x, double y) { return ::fmod(x, y); }
#define MEMPLAN_BINARY16(NAME)                                                 \
  MEMPLAN_MATH Half NAME##Of(Half x, Half y) {                                 \
    return Half(NAME##Of(float(x), float(y)));                                 \
  }                                                                            \
  MEMPLAN_MATH BFloat16 NAME##Of(BFloat16 x, BFloat16 y) {                     \
    return BFloat16(NAME##Of(float(x), float(y)));                             \
  }
MEMPLAN_BINARY16(powf)
MEMPLAN_BINARY16(atan2)
MEMPLAN_BINARY16(copysign)
MEMPLAN_BINARY16(remf)
MEMPLAN_MATH float fmaOf(float x, float y, float z) { return ::fmaf(x, y, z); }
MEMPLAN_MATH double fmaOf(double x, double y, double z) {
  return ::fma(x, y, z);
}
// Products of 16-bit numbers are exact in double, and so are most sums.
MEMPLAN_MATH Half fmaOf(Half x, Half y, Half z) {
  return Half(double(x) * double(y) + double(z));
}
MEMPLAN_MATH BFloat16 fmaOf(BFloat16 x, BFloat16 y, BFloat16 z) {
  return BFloat16(double(x) * double(y) + double(z));
}

/// x to an integer power, by squaring; x^0 is 1 for every x.
template <class T>
__host__ __device__ inline T fpowiOf(T x, int64_t n) {
  uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : uint64_t(n);
  T result = T(1);
  for (T power = x; left != 0; left >>= 1, power *= power)
    if (left & 1)
      result *= power;
  return n < 0 ? T(1) / result : result;
}

MEMPLAN_MATH Half fpowiOf(Half x, int64_t n) {
  return Half(fpowiOf(float(x), n));
}
MEMPLAN_MATH BFloat16 fpowiOf(BFloat16 x, int64_t n) {
  return BFloat16(fpowiOf(float(x), n));
}

MEMPLAN_MATH bool isnanOf(float x) { return x != x; }
MEMPLAN_MATH bool isnanOf(double x) { return x != x; }
MEMPLAN_MATH bool isinfOf(float x) { return ::fabsf(x) == INFINITY; }
MEMPLAN_MATH bool isinfOf(double x) { return ::fabs(x) == double(INFINITY); }
MEMPLAN_MATH bool isfiniteOf(float x) { return ::fabsf(x) < INFINITY; }
MEMPLAN_MATH bool isfiniteOf(double x) { return ::fabs(x) < double(INFINITY); }

#define MEMPLAN_TEST16(NAME)                                                   \
  MEMPLAN_MATH bool NAME##Of(Half x) { return NAME##Of(float(x)); }            \
  MEMPLAN_MATH bool NAME##Of(BFloat16 x) { return NAME##Of(float(x)); }
MEMPLAN_TEST16(isnan)
MEMPLAN_TEST16(isinf)
MEMPLAN_TEST16(isfinite)
#undef MEMPLAN_TEST16

// NaN if either is NaN; integers too, where this is all there is. The sign of a
// zero is not looked at: max(-0, +0) is either.
template <class T>
MEMPLAN_MATH T maximumOf(T x, T y) {
  return x > y || x != x ? x : y;
}
template <class T>
MEMPLAN_MATH T minimumOf(T x, T y) {
  return x < y || x != x ? x : y;
}

// The other one if one is NaN.
MEMPLAN_MATH float maxnumOf(float x, float y) { return ::fmaxf(x, y); }
MEMPLAN_MATH double maxnumOf(double x, double y) { return ::fmax(x, y); }
MEMPLAN_MATH float minnumOf(float x, float y) { return ::fminf(x, y); }
MEMPLAN_MATH double minnumOf(double x, double y) { return ::fmin(x, y); }
MEMPLAN_BINARY16(maxnum)
MEMPLAN_BINARY16(minnum)
#undef MEMPLAN_BINARY16

#undef MEMPLAN_MATH

/// The lowest and the highest value of T: what maxima and minima start from.
/// This form is that of bool and of the signed and unsigned integers.
/// (std::numeric_limits has host functions only.)
template <class T>
struct Limits {
  __host__ __device__ static constexpr T lowest() {
    return T(-1) < T(0) ? T(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0);
  }
  __host__ __device__ static constexpr T highest() {
    return T(-1) < T(0) ? T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1) : T(-1);
  }
};
template <>
struct Limits<float> {
  __host__ __device__ static constexpr float lowest() { return -INFINITY; }
  __host__ __device__ static constexpr float highest() { return INFINITY; }
};
template <>
struct Limits<double> {
  __host__ __device__ static constexpr double lowest() { return -INFINITY; }
  __host__ __device__ static constexpr double highest() { return INFINITY; }
};
template <>
struct Limits<Half> {
  __host__ __device__ static constexpr Half lowest() {
    return Half::fromBits(0xfc00);
  }
  __host__ __device__ static constexpr Half highest() {
    return Half::fromBits(0x7c00);
  }
};
template <>
struct Limits<BFloat16> {
  __host__ __device__ static constexpr BFloat16 lowest() {
    return BFloat16::fromBits(0xff80);
  }
  __host__ __device__ static constexpr BFloat16 highest() {
    return BFloat16::fromBits(0x7f80);
  }
};

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_MATH_H
