//===- ReduceTest.cpp - reductions, scalar functions, divisions -----------===//

#include "memplan/Runtime/Reduce.h"
#include "memplan/Runtime/FastDiv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace memplan::rt;

namespace {

template <class Op, class T, bool kWholeBlock>
__global__ void reduceKernel(const T *in, T *out, T *again) {
  const unsigned t = threadInBlock();
  out[t] = kWholeBlock ? blockReduce<Op>(in[t]) : warpReduce<Op>(in[t]);
  if (kWholeBlock) // at once, to show that calls don't disturb each other
    again[t] = blockReduce<Op>(T(in[t] + in[t]));
}

template <class Op, class T, class Combine>
void checkReduce(dim3 block, T start, Combine combine) {
  const unsigned threads = block.x * block.y * block.z;
  std::vector<T> in(threads), warp(threads), whole(threads), again(threads);
  // Small integers: sums and products of them are exact in any order.
  for (unsigned i = 0; i < threads; ++i)
    in[i] = T(1 + (i * 7 + 3) % 11 % 2);
  in[threads / 2] = T(-2);
  ASSERT_EQ(launchWithBarriers("warp", reduceKernel<Op, T, false>, dim3(1),
                               block, nullptr, in.data(), warp.data(),
                               again.data()),
            MEMPLAN_OK);
  ASSERT_EQ(launchWithBarriers("block", reduceKernel<Op, T, true>, dim3(1),
                               block, nullptr, in.data(), whole.data(),
                               again.data()),
            MEMPLAN_OK);
  T all = start, twice = start;
  for (unsigned first = 0; first < threads; first += 32) {
    T mine = start;
    for (unsigned i = first; i < threads && i < first + 32; ++i)
      mine = combine(mine, in[i]), twice = combine(twice, T(in[i] + in[i]));
    for (unsigned i = first; i < threads && i < first + 32; ++i)
      EXPECT_EQ(warp[i], mine) << i << " of " << threads;
    all = combine(all, mine);
  }
  EXPECT_EQ(whole, std::vector<T>(threads, all));
  EXPECT_EQ(again, std::vector<T>(threads, twice));
}

TEST(Reduce, AllOperationsOverWholeAndShortWarps) {
  for (dim3 block : {dim3(1), dim3(3), dim3(32), dim3(33), dim3(100), dim3(256),
                     dim3(8, 4, 3), dim3(1024)}) {
    checkReduce<SumOp, float>(block, 0.0f,
                              [](float a, float b) { return a + b; });
    checkReduce<MaxOp, float>(block, -INFINITY,
                              [](float a, float b) { return a > b ? a : b; });
    checkReduce<MinOp, float>(block, INFINITY,
                              [](float a, float b) { return a < b ? a : b; });
    checkReduce<SumOp, int64_t>(block, int64_t(0),
                                [](int64_t a, int64_t b) { return a + b; });
    checkReduce<MaxOp, int32_t>(
        block, INT32_MIN, [](int32_t a, int32_t b) { return a > b ? a : b; });
  }
  // Up to 2^200 and its negative: exact in double, whatever the order.
  checkReduce<ProdOp, double>(dim3(100), 1.0,
                              [](double a, double b) { return a * b; });
}

TEST(Reduce, NaNWins) {
  std::vector<float> in(64, 1.0f), out(64), again(64);
  in[37] = NAN;
  ASSERT_EQ(launchWithBarriers("max", reduceKernel<MaxOp, float, true>, dim3(1),
                               dim3(64), nullptr, in.data(), out.data(),
                               again.data()),
            MEMPLAN_OK);
  for (float v : out)
    EXPECT_TRUE(std::isnan(v));
}

TEST(Math, MaximumAndMaxnumDifferOnNaN) {
  EXPECT_TRUE(isnanOf(maximumOf(1.0f, float(NAN))));
  EXPECT_TRUE(isnanOf(maximumOf(float(NAN), 1.0f)));
  EXPECT_TRUE(isnanOf(minimumOf(1.0, double(NAN))));
  EXPECT_EQ(maxnumOf(1.0f, float(NAN)), 1.0f);
  EXPECT_EQ(minnumOf(float(NAN), 1.0f), 1.0f);
  EXPECT_EQ(maximumOf(-3.0f, 2.0f), 2.0f);
  EXPECT_EQ(minimumOf(-3.0f, 2.0f), -3.0f);
}

TEST(Math, KnownValues) {
  EXPECT_FLOAT_EQ(expOf(1.0f), 2.71828183f);
  EXPECT_FLOAT_EQ(erfOf(0.5f), 0.52049988f);
  EXPECT_FLOAT_EQ(tanhOf(1.0f), 0.76159416f);
  EXPECT_FLOAT_EQ(rsqrtOf(4.0f), 0.5f);
  EXPECT_EQ(roundevenOf(2.5f), 2.0f); // ties to even
  EXPECT_EQ(roundOf(2.5f), 3.0f);     // ties away from zero
  EXPECT_EQ(fpowiOf(2.0f, -3), 0.125f);
  EXPECT_EQ(fpowiOf(3.0, 5), 243.0);
  EXPECT_EQ(fpowiOf(0.0f, 0), 1.0f);
  EXPECT_TRUE(isinfOf(-INFINITY));
  EXPECT_FALSE(isfiniteOf(float(NAN)));
}

template <class T>
void checkLimits() {
  EXPECT_EQ(Limits<T>::lowest(), std::numeric_limits<T>::min());
  EXPECT_EQ(Limits<T>::highest(), std::numeric_limits<T>::max());
}

TEST(Limits, AreThoseOfTheType) {
  checkLimits<bool>();
  checkLimits<int8_t>();
  checkLimits<uint8_t>();
  checkLimits<int16_t>();
  checkLimits<uint16_t>();
  checkLimits<int32_t>();
  checkLimits<uint32_t>();
  checkLimits<int64_t>();
  checkLimits<uint64_t>();
  EXPECT_EQ(Limits<float>::lowest(), -INFINITY);
}

TEST(FastDiv, DividesAsDivisionDoes) {
  std::mt19937 random(20240607);
  std::vector<uint32_t> divisors = {1, 2, 3, 5, 7, 49, 147, 641, 65535, 65537};
  for (int bit = 2; bit < 31; ++bit)
    for (int by : {-1, 0, 1})
      divisors.push_back((1u << bit) + unsigned(by));
  divisors.push_back(0x7fffffff);
  for (int i = 0; i < 500; ++i)
    divisors.push_back(1 + random() % 0x7fffffffu);
  for (uint32_t d : divisors) {
    const FastDiv fast(d);
    std::vector<uint32_t> dividends = {0,
                                       1,
                                       d - 1,
                                       d,
                                       0x7fffffffu,
                                       0x7fffffffu / d * d,
                                       0x7fffffffu / d * d - 1};
    for (int i = 0; i < 100; ++i)
      dividends.push_back(random() & 0x7fffffffu);
    for (uint32_t n : dividends) {
      uint32_t remainder = 0;
      ASSERT_EQ(fast.divide(n, remainder), n / d) << n << " / " << d;
      ASSERT_EQ(remainder, n % d) << n << " / " << d;
    }
  }
}

} // namespace
