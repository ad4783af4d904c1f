//===- SolverTest.cpp - Solvers, bound and checker ------------------------===//

#include "memplan/Solver/Solver.h"
#include "memplan/Solver/Checker.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <chrono>
#include <random>

using namespace memplan::solver;

namespace {

Buffer make(int64_t lower, int64_t upper, int64_t size, int64_t alignment = 1) {
  Buffer buffer;
  buffer.lower = lower;
  buffer.upper = upper;
  buffer.size = size;
  buffer.alignment = alignment;
  return buffer;
}

Solution solve(const Problem &problem) {
  Outcome outcome = createHeuristicSolver()->solve(problem);
  EXPECT_TRUE(outcome) << outcome.error;
  EXPECT_EQ(checkSolution(problem, *outcome.solution), "");
  return *outcome.solution;
}

/// Max live bytes by looking at each point, for small times.
int64_t boundByHand(const Problem &problem) {
  int64_t bound = 0;
  for (int64_t t = 0; t < 64; ++t) {
    int64_t live = 0;
    for (const Buffer &buffer : problem.buffers)
      if (buffer.lower <= t && t < buffer.upper)
        live += buffer.size;
    bound = std::max(bound, live);
  }
  for (const Buffer &buffer : problem.buffers)
    bound = std::max(bound, buffer.size);
  return bound;
}

TEST(Solver, Empty) {
  Solution solution = solve({});
  EXPECT_EQ(solution.height, 0);
  EXPECT_EQ(solution.lowerBound, 0);
  EXPECT_EQ(solution.status, Status::Optimal);
}

TEST(Solver, TouchingLifetimesShare) {
  Solution solution = solve({{make(0, 1, 10), make(1, 2, 10)}});
  EXPECT_EQ(solution.height, 10);
  EXPECT_EQ(solution.offsets[0], solution.offsets[1]);
}

TEST(Solver, AlignmentCountsInTheBound) {
  // Either order takes 100 aligned to 64 = 128 for the lower one, and 100 more.
  Solution solution = solve({{make(0, 2, 100, 64), make(1, 3, 100, 64)}});
  EXPECT_EQ(solution.height, 228);
  EXPECT_EQ(solution.lowerBound, 228);
  EXPECT_EQ(solution.status, Status::Optimal);
}

TEST(Solver, BoundWithMixedAlignmentsStaysTrue) {
  // The odd one fits behind: 3 bytes at 0, 4 at 4 (gcd 1, so the bound is 7).
  Problem problem = {{make(0, 1, 3, 1), make(0, 1, 4, 4)}};
  Solution solution = solve(problem);
  EXPECT_EQ(solution.lowerBound, 7);
  EXPECT_EQ(solution.height, 7) << "4 bytes at 0, 3 at 4";
}

TEST(Solver, ZeroSizeAndZeroLength) {
  // No bytes, or no time: share with nobody, yet lie inside.
  Solution solution =
      solve({{make(0, 4, 0), make(2, 2, 50), make(0, 4, 30), make(1, 3, 0)}});
  EXPECT_EQ(solution.height, 50);
  EXPECT_EQ(solution.lowerBound, 50);
}

TEST(Solver, GapBeforeTheFirstIsFound) {
  // The fixed buffer leaves [0, 8) free below it.
  Problem problem = {{make(0, 2, 8), make(0, 2, 8)}};
  problem.buffers[0].fixedOffset = 8;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.offsets[1], 0);
  EXPECT_EQ(solution.height, 16);
}

TEST(Solver, FixedBuffersMayNotCollide) {
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}};
  problem.buffers[0].fixedOffset = 0;
  problem.buffers[1].fixedOffset = 4;
  Outcome outcome = createHeuristicSolver()->solve(problem);
  EXPECT_FALSE(outcome);
  EXPECT_EQ(outcome.error, "buffers 0 and 1 live at once and are fixed at "
                           "overlapping offsets");
}

TEST(Solver, MalformedProblems) {
  auto errorOf = [](Buffer buffer) { return checkProblem({{buffer}}); };
  EXPECT_EQ(errorOf(make(2, 1, 1)),
            "buffer 0 has lifetime [2, 1), expected lower <= upper");
  EXPECT_EQ(errorOf(make(0, 1, -1)), "buffer 0 has negative size -1");
  EXPECT_EQ(errorOf(make(0, 1, 1, 0)),
            "buffer 0 has alignment 0, expected at least 1");
  Buffer fixed = make(0, 1, 1, 16);
  fixed.fixedOffset = 8;
  EXPECT_EQ(errorOf(fixed), "buffer 0 is fixed at offset 8, expected a "
                            "non-negative multiple of 16");
  EXPECT_EQ(errorOf(make(0, 1, INT64_MAX, 2)),
            "the sizes up to buffer 0 do not fit 63 bits");
  fixed.fixedOffset = INT64_MAX / 16 * 16;
  EXPECT_NE(errorOf(fixed), "");
}

TEST(Solver, NoReuseGivesEachItsOwn) {
  Problem problem = {{make(0, 1, 10, 8), make(5, 6, 10, 8), make(8, 9, 1, 8)}};
  Outcome outcome = createNoReuseSolver()->solve(problem);
  ASSERT_TRUE(outcome) << outcome.error;
  // 10 aligned to 8 is 16.
  EXPECT_EQ(outcome.solution->offsets, (std::vector<int64_t>{0, 16, 32}));
  EXPECT_EQ(outcome.solution->height, 33);
  EXPECT_EQ(checkSolution(problem, *outcome.solution), "");
}

TEST(Solver, RandomProblemsAreSolvedAndBoundIsTrue) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Problem problem;
    for (unsigned i = 0, e = 1 + random() % 40; i < e; ++i) {
      int64_t lower = random() % 60;
      problem.buffers.push_back(
          make(lower, lower + random() % 4, random() % 100));
    }
    SCOPED_TRACE("seed " + std::to_string(seed));
    Solution solution = solve(problem);
    EXPECT_EQ(solution.lowerBound, boundByHand(problem));
    // Deterministic.
    EXPECT_EQ(solution.offsets, solve(problem).offsets);
  }
}

TEST(Solver, TenThousandBuffersInSteps) {
  std::mt19937 random(7);
  Problem problem;
  for (unsigned i = 0; i < 10000; ++i) {
    int64_t lower = random() % 10000;
    problem.buffers.push_back(
        make(lower, lower + 1 + random() % 200, 1 + random() % 100000, 256));
  }
  auto start = std::chrono::steady_clock::now();
  solve(problem);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
}

//===----------------------------------------------------------------------===//
// Checker
//===----------------------------------------------------------------------===//

TEST(Checker, FindsEachFault) {
  Problem problem = {{make(0, 2, 8, 8), make(1, 3, 8, 8)}};
  Solution good = {{0, 8}, 16, 16, Status::Optimal};
  EXPECT_EQ(checkSolution(problem, good), "");
  Solution bad = good;
  bad.offsets.pop_back();
  EXPECT_EQ(checkSolution(problem, bad), "1 offsets for 2 buffers");
  bad = good;
  bad.offsets = {0, 4};
  bad.height = 12;
  EXPECT_EQ(checkSolution(problem, bad),
            "buffer 1 at 4 of size 8 in [1, 3) is not aligned to 8");
  bad = good;
  bad.offsets = {0, -8};
  EXPECT_NE(checkSolution(problem, bad).find("is not a range of bytes"),
            std::string::npos);
  bad = {{0, 0}, 8, 8, Status::Optimal};
  EXPECT_EQ(checkSolution(problem, bad),
            "buffer 1 at 0 of size 8 in [1, 3) overlaps buffer 0 at 0 of size "
            "8 in [0, 2)");
  bad = good;
  bad.height = 20;
  EXPECT_EQ(checkSolution(problem, bad),
            "height is 20, but the largest end is 16");
  bad = good;
  bad.lowerBound = 17;
  EXPECT_EQ(checkSolution(problem, bad),
            "lower bound 17 is above the height 16");
  bad = good;
  bad.lowerBound = 8;
  EXPECT_EQ(checkSolution(problem, bad),
            "called optimal at height 16 with lower bound 8");
  problem.buffers[0].fixedOffset = 8;
  EXPECT_EQ(checkSolution(problem, good),
            "buffer 0 at 0 of size 8 in [0, 2) is fixed at 8");
}

} // namespace
