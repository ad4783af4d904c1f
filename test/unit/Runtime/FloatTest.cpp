//===- FloatTest.cpp - numbers of 16 bits and less ------------------------===//
//
// Every code is compared with its value by definition, and every border between
// two neighbours with what rounding to nearest, ties to even, says.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Runtime.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace memplan::rt;

namespace {

/// What a code without a sign stands for if it is a number.
double valueOf(unsigned magnitude, int digits, int bias) {
  const int exponent = int(magnitude >> digits);
  const int fraction = int(magnitude & ((1u << digits) - 1));
  return exponent == 0
             ? std::ldexp(fraction, 1 - bias - digits)
             : std::ldexp(fraction + (1 << digits), exponent - bias - digits);
}

/// Codes from 0 to `last`, the greatest number; rounding beyond gives `beyond`.
template <class T>
void checkFormat(int digits, int bias, unsigned last, unsigned signBit,
                 unsigned beyond, unsigned negativeZero) {
  for (unsigned code = 0; code <= last; ++code) {
    const double value = valueOf(code, digits, bias);
    T made;
    made.bits = decltype(made.bits)(code);
    ASSERT_EQ(double(float(made)), value) << code;
    ASSERT_EQ(T(value).bits, code);
    ASSERT_EQ(T(-value).bits, code == 0 ? negativeZero : code | signBit);
    // The border to the next one, and its neighbours as doubles.
    const double next = valueOf(code + 1, digits, bias);
    const double border = (value + next) / 2;
    const unsigned above = code == last ? beyond : code + 1;
    const unsigned even = code & 1 ? above : code;
    ASSERT_EQ(T(border).bits, even) << code;
    ASSERT_EQ(T(std::nextafter(border, INFINITY)).bits, above) << code;
    ASSERT_EQ(T(std::nextafter(border, 0.0)).bits, code) << code;
    // Neighbours as floats: how kernels compute.
    const auto asFloat = float(border);
    if (double(asFloat) == border) {
      ASSERT_EQ(T(asFloat).bits, even) << code;
      ASSERT_EQ(T(std::nextafterf(asFloat, INFINITY)).bits, above) << code;
      ASSERT_EQ(T(std::nextafterf(asFloat, 0.0f)).bits, code) << code;
    }
  }
}

TEST(Float16, HalfIsIeeeBinary16) {
  checkFormat<Half>(10, 15, 0x7bff, 0x8000, 0x7c00, 0x8000);
  EXPECT_TRUE(std::isinf(float(Half::fromBits(0x7c00))));
  EXPECT_EQ(float(Half::fromBits(0xfc00)), -INFINITY);
  for (unsigned nan = 0x7c01; nan < 0x8000; ++nan)
    ASSERT_TRUE(isnanOf(Half(float(Half::fromBits(uint16_t(nan))))));
}

TEST(Float16, BFloat16IsTheUpperHalfOfFloat) {
  checkFormat<BFloat16>(7, 127, 0x7f7f, 0x8000, 0x7f80, 0x8000);
  EXPECT_EQ(BFloat16(INFINITY).bits, 0x7f80);
  EXPECT_TRUE(isnanOf(BFloat16(NAN)));
}

TEST(Float16, IntegersRoundOnce) {
  EXPECT_EQ(float(Half(2049)), 2048); // a tie, to even
  EXPECT_EQ(float(Half(int64_t(-2051))), -2052);
  EXPECT_EQ(Half(65519).bits, 0x7bff);
  EXPECT_EQ(Half(65520).bits, 0x7c00); // halfway to 2^16: infinity
  // 2^62 + 2^54 is a tie of bfloat16; 1 more, lost in a double, decides.
  const int64_t tie = (int64_t(1) << 62) + (int64_t(1) << 54);
  EXPECT_EQ(BFloat16(tie).bits, 0x5e80);
  EXPECT_EQ(BFloat16(tie + 1).bits, 0x5e81);
  EXPECT_EQ(int(Half(-3.7f)), -3);
  EXPECT_FALSE(bool(Half(-0.0f)));
}

TEST(Float16, ArithmeticRoundsAfterEachOperation) {
  const Half big(60000.0f), two(2.0f);
  EXPECT_TRUE(isinfOf(big * two));
  // 1 + 2^-11 is a tie to 1, so that adding twice adds nothing.
  const Half one(1.0f), tiny(0x1p-11f);
  EXPECT_EQ((one + tiny + tiny).bits, one.bits);
  EXPECT_EQ(maximumOf(one, -one).bits, one.bits);
  EXPECT_EQ(float(sqrtOf(Half(2.0f))), float(Half(std::sqrt(2.0))));
  EXPECT_EQ(float(Limits<Half>::lowest()), -INFINITY);
}

TEST(Float8, FormatsOfEightBits) {
  checkFormat<F8E4M3FN>(3, 7, 0x7e, 0x80, 0x7f, 0x80);
  checkFormat<F8E5M2>(2, 15, 0x7b, 0x80, 0x7c, 0x80);
  // Without -0, of which the code is NaN.
  checkFormat<F8E4M3FNUZ>(3, 8, 0x7f, 0x80, 0x80, 0);
  checkFormat<F8E5M2FNUZ>(2, 16, 0x7f, 0x80, 0x80, 0);
  EXPECT_EQ(float(F8E4M3FN(448.0f)), 448);
  EXPECT_EQ(float(F8E5M2(57344.0f)), 57344);
  EXPECT_EQ(float(F8E4M3FNUZ(240.0f)), 240);
  EXPECT_EQ(float(F8E5M2(INFINITY)), INFINITY);
  EXPECT_TRUE(std::isnan(float(F8E4M3FN(INFINITY))));
  EXPECT_TRUE(std::isnan(float(F8E4M3FNUZ(NAN))));
  EXPECT_TRUE(std::isnan(float(F8E5M2(NAN))));
}

TEST(Float8, FourBitsHaveNumbersOnly) {
  // 0, 0.5, 1, 1.5, 2, 3, 4, 6; beyond is the greatest.
  checkFormat<F4E2M1FN>(1, 1, 7, 8, 7, 8);
  EXPECT_EQ(float(F4E2M1FN(-1e9f)), -6);
  EXPECT_EQ(float(F4E2M1FN(INFINITY)), 6);
}

TEST(Float8, PowersOfTwo) {
  for (unsigned code = 0; code < 255; ++code) {
    F8E8M0FNU power;
    power.bits = uint8_t(code);
    ASSERT_EQ(double(float(power)), std::ldexp(1.0, int(code) - 127));
    ASSERT_EQ(F8E8M0FNU(float(power)).bits, code);
  }
  EXPECT_TRUE(std::isnan(float(F8E8M0FNU(NAN))));
  EXPECT_EQ(float(F8E8M0FNU(1.4f)), 1);
  EXPECT_EQ(float(F8E8M0FNU(1.6f)), 2);
}

} // namespace
