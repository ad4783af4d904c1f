//===- Float8.h - numbers of 8 and 4 bits -----------------------*- C++ -*-===//
//
// Types to store numbers in, not to compute in: a byte, and explicit
// conversions from and to float. A format is described by its digits; one set
// of functions serves all, on GPU and host alike, so that both give the same
// bits. Conversion from float rounds to nearest with ties to even and does what
// IEEE 754 says on overflow, as far as the format can: infinity if it has one,
// else NaN, else the greatest number. Who wants saturation clamps first.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_FLOAT8_H
#define MEMPLAN_RUNTIME_FLOAT8_H

#include "memplan/Runtime/Float16.h"

namespace memplan::rt {

namespace detail {

/// What the codes with all exponent bits set mean.
enum class Specials {
  Ieee,         ///< Infinities and NaNs.
  OneNaN,       ///< Numbers, but for all digits set: NaN.
  NegativeZero, ///< Numbers; what would be -0 is NaN.
  None          ///< Numbers. There is no NaN: -0 stands for it.
};

template <int DigitBits, int Bias, Specials Kind, int Bits>
struct SmallFormat {
  static constexpr int kDigits = DigitBits, kBias = Bias;
  static constexpr uint32_t kSign = 1u << (Bits - 1), kMagnitude = kSign - 1;
  static constexpr Specials kKind = Kind;
  /// Magnitude codes from this on are no numbers.
  static constexpr uint32_t kEnd = Kind == Specials::Ieee
                                       ? kMagnitude >> DigitBits << DigitBits
                                   : Kind == Specials::OneNaN ? kMagnitude
                                                              : kMagnitude + 1;

  __host__ __device__ static uint32_t nan(uint32_t sign) {
    switch (Kind) {
    case Specials::Ieee:
      return sign | kEnd | 1u << (DigitBits - 1);
    case Specials::OneNaN:
      return sign | kMagnitude;
    case Specials::NegativeZero:
      return kSign;
    case Specials::None:
      return kSign; // -0
    }
    return 0;
  }

  __host__ __device__ static uint8_t bits(float x) {
    const auto wide = sameBits<uint32_t>(x);
    const uint32_t sign = wide >> 31 ? kSign : 0;
    const uint32_t magnitude = wide & 0x7fffffff;
    if (magnitude > 0x7f800000)
      return uint8_t(nan(sign));
    // The exponent in the narrow format; 1 is that of subnormal numbers too.
    const int exponent = int(magnitude >> 23) - 127 + kBias;
    const uint32_t digits = (magnitude & 0x7fffff) | 0x800000;
    const int shift = 23 - kDigits + (exponent < 1 ? 1 - exponent : 0);
    uint32_t code = shift > 24 ? 0 : shiftToNearest(digits, shift);
    if (exponent > 1)
      code += uint32_t(exponent - 1) << kDigits;
    if (code >= kEnd || magnitude == 0x7f800000) {
      if (Kind == Specials::Ieee)
        return uint8_t(sign | kEnd);
      return uint8_t(Kind == Specials::None ? sign | (kEnd - 1) : nan(sign));
    }
    if (Kind == Specials::NegativeZero && code == 0)
      return 0;
    return uint8_t(sign | code);
  }

  __host__ __device__ static float value(uint8_t bits) {
    const uint32_t code = bits & kMagnitude;
    const uint32_t sign = bits & kSign ? 0x80000000u : 0;
    const bool isNaN =
        Kind == Specials::NegativeZero ? bits == kSign : code > kEnd;
    if (isNaN || (Kind == Specials::OneNaN && code == kEnd))
      return sameBits<float>(sign | 0x7fc00000u);
    if (Kind == Specials::Ieee && code == kEnd)
      return sameBits<float>(sign | 0x7f800000u);
    const uint32_t exponent = code >> kDigits;
    const uint32_t digits = code & ((1u << kDigits) - 1);
    // Both are normal floats: the exponents are far from float's ends.
    const uint32_t unit =
        uint32_t(127 - kBias - kDigits + int(exponent == 0 ? 1 : exponent))
        << 23;
    const float size =
        static_cast<float>(exponent == 0 ? digits : digits | 1u << kDigits) *
        sameBits<float>(unit);
    return sameBits<float>(sign | sameBits<uint32_t>(size));
  }
};

/// Powers of two from 2^-127 to 2^127, and NaN.
struct PowerFormat {
  __host__ __device__ static uint8_t bits(float x) {
    const uint32_t magnitude = sameBits<uint32_t>(x) & 0x7fffffff;
    if (magnitude >= 0x7f800000)
      return 0xff;
    // To nearest, ties up. The least power, 2^-127, is a subnormal float.
    if (magnitude < 0x800000)
      return magnitude >= 0x600000;
    return uint8_t((magnitude + 0x400000) >> 23);
  }
  __host__ __device__ static float value(uint8_t bits) {
    if (bits == 0xff)
      return sameBits<float>(0x7fc00000u);
    return sameBits<float>(bits == 0 ? 0x400000u : uint32_t(bits) << 23);
  }
};

template <class Format>
struct Small {
  uint8_t bits;
  Small() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  __host__ __device__ explicit Small(T x) : bits(Format::bits(toOddFloat(x))) {}
  __host__ __device__ explicit Small(Half x) : bits(Format::bits(float(x))) {}
  __host__ __device__ explicit Small(BFloat16 x)
      : bits(Format::bits(float(x))) {}
  template <class T, std::enable_if_t<!std::is_same_v<T, Small>, int> = 0>
  __host__ __device__ explicit operator T() const {
    return T(Format::value(bits));
  }
};

} // namespace detail

using F8E4M3FN =
    detail::Small<detail::SmallFormat<3, 7, detail::Specials::OneNaN, 8>>;
using F8E4M3FNUZ =
    detail::Small<detail::SmallFormat<3, 8, detail::Specials::NegativeZero, 8>>;
using F8E5M2 =
    detail::Small<detail::SmallFormat<2, 15, detail::Specials::Ieee, 8>>;
using F8E5M2FNUZ = detail::Small<
    detail::SmallFormat<2, 16, detail::Specials::NegativeZero, 8>>;
using F4E2M1FN =
    detail::Small<detail::SmallFormat<1, 1, detail::Specials::None, 4>>;
using F8E8M0FNU = detail::Small<detail::PowerFormat>;

/// The code of a 4-bit float, on its way to or from a byte.
struct Bits4 {
  uint8_t bits;
  Bits4() = default;
  template <class T>
  __host__ __device__ explicit Bits4(T byte) : bits(uint8_t(byte) & 0xf) {}
  __host__ __device__ explicit operator uint8_t() const { return bits; }
};

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_FLOAT8_H
