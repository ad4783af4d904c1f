//===- InstancesTest.cpp - Generated problems -----------------------------===//

#include "memplan/Solver/Instances.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Support/SplitMix64.h"

#include "gtest/gtest.h"

using namespace memplan::solver;

namespace {

TEST(SplitMix64, IsTheKnownSequence) {
  // The first values of the published reference for seed 1234567.
  memplan::SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(SplitMix64, BelowCoversItsRange) {
  memplan::SplitMix64 random(5);
  int64_t counts[6] = {};
  for (int i = 0; i < 6000; ++i)
    ++counts[random.between(10, 15) - 10];
  for (int64_t count : counts)
    EXPECT_NEAR(count, 1000, 150); // five standard deviations of 29
}

/// Whether a cut from edge to edge, between some buffers, splits no buffer.
bool canBeCutThrough(const PerfectPacking &packing,
                     const PerfectPackingOptions &options) {
  const std::vector<Buffer> &buffers = packing.problem.buffers;
  auto splitsNone = [&](auto isSplit) {
    for (size_t i = 0; i < buffers.size(); ++i)
      if (isSplit(buffers[i], packing.solution.offsets[i]))
        return false;
    return true;
  };
  for (size_t k = 0; k < buffers.size(); ++k) {
    int64_t time = buffers[k].upper;
    int64_t address = packing.solution.offsets[k] + buffers[k].size;
    if (time < options.duration && splitsNone([&](const Buffer &b, int64_t) {
          return b.lower < time && time < b.upper;
        }))
      return true;
    if (address < options.height &&
        splitsNone([&](const Buffer &b, int64_t offset) {
          return offset < address && address < offset + b.size;
        }))
      return true;
  }
  return false;
}

TEST(PerfectPacking, FillsTheRectangle) {
  for (int64_t count : {1, 2, 5, 50, 100, 200, 500})
    for (int64_t pinwheels : {0, 50, 100})
      for (uint64_t seed = 0; seed < 10; ++seed) {
        PerfectPackingOptions options;
        options.count = count;
        options.pinwheelPercent = pinwheels;
        options.seed = seed;
        SCOPED_TRACE(std::to_string(count) + " buffers, seed " +
                     std::to_string(seed));
        auto packing = makePerfectPacking(options);
        ASSERT_TRUE(packing);
        const Problem &problem = packing->problem;
        ASSERT_EQ(problem.buffers.size(), static_cast<size_t>(count));
        EXPECT_EQ(checkProblem(problem), "");
        // A placement of that height without overlaps, whose areas sum up to
        // the whole: every byte is in use at every time.
        EXPECT_EQ(checkSolution(problem, packing->solution), "");
        EXPECT_EQ(packing->solution.height, options.height);
        int64_t area = 0;
        for (const Buffer &buffer : problem.buffers) {
          EXPECT_LT(buffer.lower, buffer.upper);
          EXPECT_GT(buffer.size, 0);
          area += buffer.size * (buffer.upper - buffer.lower);
        }
        EXPECT_EQ(area, options.height * options.duration);
        EXPECT_EQ(computeLowerBound(problem), options.height);
      }
}

TEST(PerfectPacking, PinwheelsCannotBeCutThrough) {
  PerfectPackingOptions options;
  options.count = 5;
  options.pinwheelPercent = 100;
  for (options.seed = 0; options.seed < 20; ++options.seed)
    EXPECT_FALSE(canBeCutThrough(*makePerfectPacking(options), options));
  options.pinwheelPercent = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed)
    EXPECT_TRUE(canBeCutThrough(*makePerfectPacking(options), options));
}

TEST(PerfectPacking, CutsLieOnTheGrid) {
  PerfectPackingOptions options;
  options.count = 200;
  options.duration = 120;
  options.timeStep = 6;
  options.height = 4000;
  options.sizeStep = 100;
  auto packing = makePerfectPacking(options);
  ASSERT_TRUE(packing);
  for (size_t i = 0; i < packing->problem.buffers.size(); ++i) {
    EXPECT_EQ(packing->problem.buffers[i].lower % 6, 0);
    EXPECT_EQ(packing->problem.buffers[i].upper % 6, 0);
    EXPECT_EQ(packing->problem.buffers[i].size % 100, 0);
    EXPECT_EQ(packing->solution.offsets[i] % 100, 0);
  }
}

TEST(PerfectPacking, AsManyAsThereAreCells) {
  PerfectPackingOptions options;
  options.duration = 4;
  options.height = 5;
  options.sizeStep = 1;
  options.count = 20;
  EXPECT_TRUE(makePerfectPacking(options)) << "4 * 5 cells";
  options.count = 21;
  EXPECT_FALSE(makePerfectPacking(options));
  options.count = 0;
  EXPECT_FALSE(makePerfectPacking(options));
  options.count = 2;
  options.sizeStep = 2;
  EXPECT_FALSE(makePerfectPacking(options)) << "2 does not divide 5";
}

TEST(PerfectPacking, SeedsDiffer) {
  PerfectPackingOptions options;
  auto first = makePerfectPacking(options);
  auto again = makePerfectPacking(options);
  options.seed = 1;
  auto other = makePerfectPacking(options);
  EXPECT_EQ(first->solution.offsets, again->solution.offsets);
  EXPECT_NE(first->solution.offsets, other->solution.offsets);
}

TEST(HeavyTailed, IsHeavyTailed) {
  HeavyTailedOptions options;
  options.count = 100'000;
  Problem problem = makeHeavyTailed(options);
  ASSERT_EQ(problem.buffers.size(), 100'000u);
  EXPECT_EQ(checkProblem(problem), "");
  // Pareto of exponent 1: one in 2^k is at least 2^k times the minimum.
  int64_t above[3] = {};
  for (const Buffer &buffer : problem.buffers) {
    EXPECT_GE(buffer.size, 64);
    EXPECT_LE(buffer.size, 1 << 24);
    EXPECT_GE(buffer.upper - buffer.lower, 4);
    EXPECT_LE(buffer.upper - buffer.lower, 1 << 16);
    above[0] += buffer.size >= 64 * 2;
    above[1] += buffer.size >= 64 * 16;
    above[2] += buffer.upper - buffer.lower >= 4 * 256;
  }
  EXPECT_NEAR(above[0], 50'000, 800);
  EXPECT_NEAR(above[1], 6'250, 400);
  EXPECT_NEAR(above[2], 390, 100);
}

TEST(ModelTrace, EachOpReadsWhatTheOneBeforeWrote) {
  ModelTraceOptions options;
  options.ops = 500;
  Problem problem = makeModelTrace(options);
  EXPECT_EQ(checkProblem(problem), "");
  // Bit i: a buffer that starts at i lives on at i + 1; `later` counts those
  // that live beyond.
  std::vector<bool> isRead(options.ops + 1);
  int64_t later = 0, workspaces = 0;
  for (const Buffer &buffer : problem.buffers) {
    EXPECT_LE(buffer.upper, options.ops + 1);
    int64_t length = buffer.upper - buffer.lower;
    workspaces += length == 1;
    later += length > 2;
    if (length >= 2)
      isRead[buffer.lower] = true;
  }
  for (int64_t op = 0; op < options.ops; ++op)
    EXPECT_TRUE(isRead[op]) << op;
  // 20 % and 15 % of 500, within five standard deviations.
  EXPECT_NEAR(later, 100, 45);
  EXPECT_NEAR(workspaces, 75, 40);
}

} // namespace
