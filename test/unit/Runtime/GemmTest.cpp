//===- GemmTest.cpp - matrix products against plain loops -----------------===//

#include "memplan/Runtime/Gemm.h"
#include "memplan/Runtime/Memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace memplan::rt;

namespace {

/// Device memory of small integers, so that sums are exact in any order.
class Matrix {
public:
  Matrix(int64_t count, std::mt19937 &random) : count(count) {
    EXPECT_EQ(deviceAllocate("m", size_t(count) * sizeof(float),
                             reinterpret_cast<void **>(&data)),
              MEMPLAN_OK);
    for (int64_t i = 0; i < count; ++i)
      data[i] = float(int(random() % 9) - 4);
  }
  ~Matrix() { deviceFree(data); }
  Matrix(const Matrix &) = delete;
  std::vector<float> copy() const { return {data, data + count}; }
  float &operator[](int64_t i) { return data[i]; }
  float *get() { return data; }

private:
  int64_t count;
  float *data = nullptr;
};

double activate(GemmEpilogue epilogue, double x) {
  switch (epilogue) {
  case GemmEpilogue::Relu:
  case GemmEpilogue::BiasRelu:
    return x < 0 ? 0 : x;
  case GemmEpilogue::Gelu:
  case GemmEpilogue::BiasGelu:
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  default:
    return x;
  }
}

bool biased(GemmEpilogue e) {
  return e == GemmEpilogue::Bias || e == GemmEpilogue::BiasRelu ||
         e == GemmEpilogue::BiasGelu;
}

void check(const GemmShape &s, GemmEpilogue epilogue, float alpha, float beta,
           bool usesC, std::mt19937 &random) {
  SCOPED_TRACE(testing::Message()
               << "m " << s.m << " n " << s.n << " k " << s.k << " transA "
               << s.transA << " transB " << s.transB << " batch " << s.batch
               << " epilogue " << int(epilogue) << " C " << usesC);
  auto extent = [&](int64_t rows, int64_t ld, int64_t stride) {
    return rows * ld + (s.batch - 1) * stride + 1;
  };
  Matrix a(extent(s.transA ? s.k : s.m, s.lda, s.strideA), random);
  Matrix b(extent(s.transB ? s.n : s.k, s.ldb, s.strideB), random);
  Matrix c(usesC ? extent(s.m, s.ldc, s.strideC) : 1, random);
  Matrix d(extent(s.m, s.ldd, s.strideD), random);
  Matrix bias(s.n + 1, random);

  std::vector<float> expected = d.copy(); // what lies between the rows stays
  for (int64_t z = 0; z < s.batch; ++z)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < s.k; ++p)
          sum += double(a[z * s.strideA +
                          (s.transA ? p * s.lda + i : i * s.lda + p)]) *
                 double(b[z * s.strideB +
                          (s.transB ? j * s.ldb + p : p * s.ldb + j)]);
        sum *= alpha;
        if (usesC)
          sum += double(beta) * double(c[z * s.strideC + i * s.ldc + j]);
        if (biased(epilogue))
          sum += double(bias[j]);
        expected[size_t(z * s.strideD + i * s.ldd + j)] =
            float(activate(epilogue, sum));
      }

  GemmContext context;
  ASSERT_EQ(context.create(), MEMPLAN_OK);
  Gemm<float> gemm;
  ASSERT_EQ(gemm.create(context, "g", s, epilogue, usesC), MEMPLAN_OK)
      << memplan_last_error();
  const HostCounters before = hostCounters();
  ASSERT_EQ(gemm.run(nullptr, a.get(), b.get(), d.get(),
                     biased(epilogue) ? bias.get() : nullptr, alpha,
                     usesC ? c.get() : nullptr, usesC ? beta : 0),
            MEMPLAN_OK)
      << memplan_last_error();
  EXPECT_EQ(hostCounters().allocations, before.allocations);
  EXPECT_EQ(hostCounters().launches, before.launches + 1);
  const bool exact =
      epilogue != GemmEpilogue::Gelu && epilogue != GemmEpilogue::BiasGelu;
  for (size_t i = 0; i < expected.size(); ++i)
    if (exact)
      ASSERT_EQ(d[int64_t(i)], expected[i]) << i;
    else
      ASSERT_NEAR(d[int64_t(i)], expected[i],
                  1e-5 * (1 + std::fabs(expected[i])))
          << i;
  gemm.destroy();
  context.destroy();
}

GemmShape dense(int64_t m, int64_t n, int64_t k, bool transA, bool transB,
                int64_t batch = 1) {
  GemmShape s;
  s.m = m, s.n = n, s.k = k, s.transA = transA, s.transB = transB;
  s.lda = transA ? m : k, s.ldb = transB ? k : n, s.ldd = n, s.ldc = n;
  s.batch = batch;
  s.strideA = m * k, s.strideB = k * n, s.strideD = m * n, s.strideC = m * n;
  return s;
}

constexpr GemmEpilogue kEpilogues[] = {
    GemmEpilogue::None, GemmEpilogue::Relu,     GemmEpilogue::Gelu,
    GemmEpilogue::Bias, GemmEpilogue::BiasRelu, GemmEpilogue::BiasGelu};

TEST(Gemm, AllTranspositionsAndEpilogues) {
  std::mt19937 random(1);
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (GemmEpilogue epilogue : kEpilogues)
        check(dense(37, 70, 29, transA, transB), epilogue, 1, 0, false, random);
}

TEST(Gemm, SizesAroundTheTiles) {
  std::mt19937 random(2);
  for (int64_t m : {1, 4, 5, 63, 64, 65, 130})
    for (int64_t n : {1, 8, 9, 64, 65})
      for (int64_t k : {1, 127, 128, 129, 300})
        check(dense(m, n, k, false, false), GemmEpilogue::None, 1, 0, false,
              random);
}

TEST(Gemm, AlphaBetaAndC) {
  std::mt19937 random(3);
  for (float alpha : {1.0f, -2.0f, 0.5f, 0.0f})
    for (float beta : {1.0f, -0.5f})
      for (GemmEpilogue epilogue : kEpilogues)
        check(dense(20, 33, 17, false, true, 2), epilogue, alpha, beta, true,
              random);
}

TEST(Gemm, RandomStridesAndBatches) {
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    auto upTo = [&](int most) { return int64_t(random() % unsigned(most)); };
    GemmShape s = dense(1 + upTo(40), 1 + upTo(40), 1 + upTo(40), upTo(2),
                        upTo(2), 1 + upTo(4));
    s.lda += upTo(5), s.ldb += upTo(5), s.ldd += upTo(5), s.ldc += upTo(5);
    s.strideA = upTo(3) ? (s.transA ? s.k : s.m) * s.lda + upTo(9) : 0;
    s.strideB = upTo(3) ? (s.transB ? s.n : s.k) * s.ldb + upTo(9) : 0;
    s.strideC = upTo(3) ? s.m * s.ldc + upTo(9) : 0;
    s.strideD = s.m * s.ldd + upTo(9);
    check(s, kEpilogues[upTo(6)], 1, 2, upTo(2), random);
  }
}

// D[m, head, n]: the heads of an attention layer lie within each other's rows.
TEST(Gemm, InterleavedBatch) {
  std::mt19937 random(5);
  GemmShape s = dense(10, 8, 6, false, false, 3);
  s.ldd = 3 * 8, s.strideD = 8;
  check(s, GemmEpilogue::None, 1, 0, false, random);
}

TEST(Gemm, EmptySums) {
  std::mt19937 random(6);
  for (GemmEpilogue epilogue : kEpilogues) {
    check(dense(5, 140, 0, false, false, 2), epilogue, 1, 0, false, random);
    check(dense(5, 140, 0, false, false, 2), epilogue, 1, 3, true, random);
  }
}

TEST(Gemm, EmptyResultsAreNoLaunch) {
  GemmContext context;
  for (GemmShape s : {dense(0, 3, 4, false, false), dense(3, 0, 4, true, false),
                      dense(3, 4, 5, false, false, 0)}) {
    Gemm<float> gemm;
    ASSERT_EQ(gemm.create(context, "g", s, GemmEpilogue::None), MEMPLAN_OK);
    const int64_t before = hostCounters().launches;
    EXPECT_EQ(gemm.run(nullptr, nullptr, nullptr, nullptr), MEMPLAN_OK);
    EXPECT_EQ(hostCounters().launches, before);
  }
}

TEST(Gemm, ShapesThatCantBeAreRefused) {
  GemmContext context;
  auto status = [&](GemmShape s) {
    Gemm<float> gemm;
    return gemm.create(context, "node9", s, GemmEpilogue::None);
  };
  GemmShape s = dense(-1, 3, 4, false, false);
  EXPECT_EQ(status(s), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(memplan_last_error(), "node9"), nullptr);
  s = dense(3, 3, int64_t(1) << 31, false, false);
  EXPECT_EQ(status(s), MEMPLAN_ERROR_ARGUMENT);
  s = dense(3, 4, 5, false, false), s.lda = 4;
  EXPECT_EQ(status(s), MEMPLAN_ERROR_ARGUMENT);
  s = dense(3, 4, 5, false, false), s.ldd = 3;
  EXPECT_EQ(status(s), MEMPLAN_ERROR_ARGUMENT);
  s = dense(3, 4, 5, false, false, 2), s.strideD = 11; // 3 * 4 elements each
  EXPECT_EQ(status(s), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(memplan_last_error(), "overlap"), nullptr);
}

TEST(Gemm, WorkspaceMustBeAnnouncedAndAligned) {
  std::mt19937 random(8);
  Matrix a(64, random), b(64, random), d(64, random);
  alignas(256) static char workspace[512];
  GemmContext context;
  Gemm<float> with, without;
  GemmShape s = dense(4, 4, 4, false, false);
  ASSERT_EQ(with.create(context, "node9", s, GemmEpilogue::None, false, 256),
            MEMPLAN_OK);
  ASSERT_EQ(without.create(context, "node9", s, GemmEpilogue::None),
            MEMPLAN_OK);
  auto run = [&](const Gemm<float> &gemm, void *given) {
    return gemm.run(nullptr, a.get(), b.get(), d.get(), nullptr, 1, nullptr, 0,
                    given);
  };
  EXPECT_EQ(run(with, workspace), MEMPLAN_OK);
  EXPECT_EQ(run(without, nullptr), MEMPLAN_OK);
  EXPECT_EQ(run(with, nullptr), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(memplan_last_error(), "node9"), nullptr);
  EXPECT_EQ(run(without, workspace), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_EQ(run(with, workspace + 16), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(memplan_last_error(), "256"), nullptr);
}

TEST(Gemm, OperandsMustBeAnnouncedAndAligned) {
  std::mt19937 random(7);
  Matrix a(64, random), b(64, random), d(64, random);
  GemmContext context;
  Gemm<float> gemm;
  ASSERT_EQ(gemm.create(context, "g", dense(4, 4, 4, false, false),
                        GemmEpilogue::None),
            MEMPLAN_OK);
  float *pa = a.get(), *pb = b.get(), *pd = d.get();
  EXPECT_EQ(gemm.run(nullptr, pa, pb, pd, pb), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_EQ(gemm.run(nullptr, pa, pb, pd, nullptr, 1, pb, 1),
            MEMPLAN_ERROR_ARGUMENT);
  EXPECT_EQ(gemm.run(nullptr, pa + 1, pb, pd), MEMPLAN_ERROR_ARGUMENT);
  EXPECT_NE(std::strstr(memplan_last_error(), "aligned"), nullptr);
}

} // namespace
