//===- SolverTest.cpp - The solvers on chosen problems --------------------===//

#include "memplan/Solver/Solver.h"
#include "../../../lib/Solver/SectionSearch.h"
#include "Make.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Instances.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace memplan::solver;
using namespace memplan::solver::test;

namespace {

Solution solve(const Problem &problem) {
  Outcome outcome = createSolver()->solve(problem);
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
  Solution solution = solve({{make(0, 1, 10), make(1, 2, 10)}, {}});
  EXPECT_EQ(solution.height, 10);
  EXPECT_EQ(solution.offsets[0], solution.offsets[1]);
}

TEST(Solver, AlignmentCountsInTheBound) {
  // Either order takes 100 aligned to 64 = 128 for the lower one, and 100 more.
  Solution solution = solve({{make(0, 2, 100, 64), make(1, 3, 100, 64)}, {}});
  EXPECT_EQ(solution.height, 228);
  EXPECT_EQ(solution.lowerBound, 228);
  EXPECT_EQ(solution.status, Status::Optimal);
}

TEST(Solver, BoundWithMixedAlignmentsStaysTrue) {
  // The odd one fits behind: 3 bytes at 0, 4 at 4 (gcd 1, so the bound is 7).
  Problem problem = {{make(0, 1, 3, 1), make(0, 1, 4, 4)}, {}};
  Solution solution = solve(problem);
  EXPECT_EQ(solution.lowerBound, 7);
  EXPECT_EQ(solution.height, 7) << "4 bytes at 0, 3 at 4";
}

TEST(Solver, ZeroSizeAndZeroLength) {
  // No bytes, or no time: share with nobody, yet lie inside.
  Solution solution = solve(
      {{make(0, 4, 0), make(2, 2, 50), make(0, 4, 30), make(1, 3, 0)}, {}});
  EXPECT_EQ(solution.height, 50);
  EXPECT_EQ(solution.lowerBound, 50);
}

TEST(Solver, GapBeforeTheFirstIsFound) {
  // The fixed buffer leaves [0, 8) free below it.
  Problem problem = {{make(0, 2, 8), make(0, 2, 8)}, {}};
  problem.buffers[0].fixedOffset = 8;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.offsets[1], 0);
  EXPECT_EQ(solution.height, 16);
}

TEST(Solver, FixedBuffersThatCollide) {
  Problem problem = {
      {fixedAt(0, make(0, 2, 8)), fixedAt(4, make(1, 3, 8)), make(5, 6, 4)},
      {}};
  Solution solution = solve(problem);
  EXPECT_EQ(solution.status, Status::Infeasible);
  EXPECT_TRUE(solution.offsets.empty());
}

TEST(Solver, MalformedProblemsAreErrors) {
  Outcome outcome = createSolver()->solve({{make(2, 1, 1)}, {}});
  EXPECT_FALSE(outcome);
  EXPECT_EQ(outcome.error,
            "buffer 0 has lifetime [2, 1), expected lower <= upper");
}

TEST(Solver, Capacity) {
  // 8 + 8 at time 1.
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}, 16};
  EXPECT_EQ(solve(problem).height, 16);
  problem.capacity = 15;
  EXPECT_EQ(solve(problem).status, Status::Infeasible);
}

TEST(Solver, LargeSizes) {
  constexpr int64_t large = int64_t(1) << 62;
  Solution solution =
      solve({{make(0, 2, large - 1), make(1, 3, large - 1)}, {}});
  EXPECT_EQ(solution.height, INT64_MAX - 1) << "2^63 - 2";
  EXPECT_FALSE(
      createSolver()->solve({{make(0, 2, large), make(5, 6, large)}, {}}))
      << "2^63 if placed one on the other";
  solution = solve({{make(INT64_MIN, INT64_MAX, 3), make(0, 1, 4)}, {}});
  EXPECT_EQ(solution.height, 7);
}

TEST(Solver, PreferredOffsetsWhereTheyCostNothing) {
  // 10 bytes are in use at time 0 and 4 at time 5: the late one may lie
  // anywhere up to 6.
  Problem problem = {{make(0, 1, 10), make(5, 6, 4)}, {}};
  problem.buffers[1].preferredOffset = 6;
  EXPECT_EQ(solve(problem).offsets, (std::vector<int64_t>{0, 6}));
  problem.buffers[1].preferredOffset = 7;
  EXPECT_EQ(solve(problem).height, 10) << "would end at 11";
  problem.buffers[1] = make(5, 6, 4, 4);
  problem.buffers[1].preferredOffset = 6;
  EXPECT_EQ(solve(problem).height, 10) << "6 is not a multiple of 4";
}

TEST(Solver, LivesAcrossAllTimes) {
  // 2^64 - 1 points, which is no number of 64 bits; 4, 3 and 5 at time 0.
  EXPECT_EQ(buildStrip({{INT64_MIN, INT64_MAX, 1, 1}, {-1, 2, 1, 1}}).length,
            (std::vector<int64_t>{INT64_MAX, 3}));
  Solution solution = solve({{make(INT64_MIN, INT64_MAX, 4),
                              make(INT64_MIN, 1, 3), make(0, INT64_MAX, 5)},
                             {}});
  EXPECT_EQ(solution.height, 12);
  EXPECT_EQ(solution.status, Status::Optimal);
}

TEST(Solver, GroupsOfManyMembers) {
  // Two combs with teeth of one byte at 0, 4, 8, ...: the second lies one byte
  // higher. Their pairs of teeth, 400 million, are not looked at one by one.
  constexpr int64_t teeth = 20'000;
  Problem problem;
  for (int64_t group : {0, 1})
    for (int64_t i = 0; i < teeth; ++i)
      problem.buffers.push_back(inGroup(group, 4 * i, make(0, 1, 1)));
  Solution solution = solve(problem);
  EXPECT_EQ(solution.height, 4 * (teeth - 1) + 2);
  // A table of pairs of parts would have hundreds of millions of entries.
  EXPECT_LT(solution.steps, 100'000'000);
}

TEST(Solver, PreferencesNeedNoEffort) {
  // One of 100 bytes, then 10 bytes at a time: each may lie at 5.
  Problem problem;
  problem.buffers.push_back(make(0, 1, 100));
  for (int64_t i = 1; i < 50'000; ++i) {
    problem.buffers.push_back(make(i, i + 1, 10));
    problem.buffers.back().preferredOffset = 5;
  }
  SolverOptions options;
  options.effort = 0;
  Outcome outcome = createSolver(options)->solve(problem);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(checkSolution(problem, *outcome.solution), "");
  EXPECT_EQ(std::count(outcome.solution->offsets.begin(),
                       outcome.solution->offsets.end(), 5),
            49'999);
  EXPECT_EQ(outcome.solution->height, 100);
  // 50,000 * 50,000 looks would be ten times as many.
  EXPECT_LT(outcome.solution->steps, 250'000'000);
}

TEST(Solver, HeightSinksWithWhatPreferencesMoveDown) {
  // Any placement within 6 will do: a at 0, b above it at the next multiple of
  // 4, which ends at 6. When a has gone to 2, b may go to 0: the height is 4.
  Problem problem = {{make(0, 2, 2), make(0, 1, 2, 4)}, 6};
  problem.buffers[0].preferredOffset = 2;
  problem.buffers[1].preferredOffset = 0;
  Solution solution = solve(problem);
  EXPECT_EQ(solution.offsets, (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(solution.height, 4);
  EXPECT_EQ(solution.status, Status::Optimal);
}

TEST(Solver, MoreEffortIsNeverWorse) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    PerfectPackingOptions options;
    options.count = 100;
    options.duration = 50;
    options.seed = seed;
    Problem problem = makePerfectPacking(options)->problem;
    int64_t height = INT64_MAX, bound = 0;
    for (int64_t effort = 1; effort < 50'000'000; effort *= 7) {
      SolverOptions solverOptions;
      solverOptions.effort = effort;
      Outcome outcome = createSolver(solverOptions)->solve(problem);
      ASSERT_TRUE(outcome);
      EXPECT_LE(outcome.solution->height, height) << "seed " << seed;
      EXPECT_GE(outcome.solution->lowerBound, bound) << "seed " << seed;
      height = outcome.solution->height;
      bound = outcome.solution->lowerBound;
    }
  }
}

TEST(Solver, AnyNumberOfThreadsGivesTheSame) {
  PerfectPackingOptions packing;
  packing.count = 200;
  packing.duration = 50;
  Problem problem = makePerfectPacking(packing)->problem;
  std::optional<Solution> first;
  for (int threads : {1, 2, 5}) {
    SolverOptions options;
    options.threads = threads;
    options.effort = 300'000'000;
    Outcome outcome = createSolver(options)->solve(problem);
    ASSERT_TRUE(outcome);
    if (!first)
      first = outcome.solution;
    EXPECT_EQ(outcome.solution->offsets, first->offsets);
    EXPECT_EQ(outcome.solution->steps, first->steps);
  }
}

TEST(SectionSearch, FloorsTellEqualLivesApart) {
  auto find = [](int64_t upperSize, int64_t upperFloor, int64_t lowerSize,
                 int64_t capacity) {
    Strip::Item upper{0, 1, upperSize, 1}, lower{0, 1, lowerSize, 1};
    upper.floor = upperFloor;
    Strip strip = buildStrip({upper, lower});
    Branching branching;
    branching.rank = {0, 1}; // the upper one comes first where a rule may say
    return SectionSearch(strip, SearchRules()).run(capacity, branching, 1000);
  };
  // Equal sizes: one at 5 and the other at 0 end at 6, one cannot be below.
  EXPECT_EQ(find(1, 5, 1, 6), SearchResult::Found);
  // 2 bytes at 0, 1 byte on them at 2: 3 in all; the other way round it is 5.
  EXPECT_EQ(find(1, 2, 2, 3), SearchResult::Found);
  EXPECT_EQ(find(1, 2, 2, 2), SearchResult::Infeasible);
}

TEST(Solver, LargestHeight) {
  // 2^62 + (2^62 - 1) = 2^63 - 1, the largest number there is.
  constexpr int64_t half = int64_t{1} << 62;
  for (const Problem &problem :
       {Problem{{make(0, 1, half), make(0, 1, half - 1)}, {}},
        Problem{{fixedAt(INT64_MAX - 1, make(0, 1, 1))}, {}},
        Problem{{fixedAt(INT64_MAX, make(0, 1, 0))}, {}}}) {
    Solution solution = solve(problem);
    EXPECT_EQ(solution.height, INT64_MAX);
    EXPECT_EQ(solution.status, Status::Optimal);
  }
}

TEST(Solver, PerfectPackings) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    PerfectPackingOptions options;
    options.count = 20;
    options.seed = seed;
    Solution solution = solve(makePerfectPacking(options)->problem);
    EXPECT_EQ(solution.height, options.height) << "seed " << seed;
    EXPECT_EQ(solution.status, Status::Optimal) << "seed " << seed;
  }
}

TEST(Solver, ModelTraces) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ModelTraceOptions options;
    options.alignment = 256;
    options.seed = seed;
    Problem problem = makeModelTrace(options);
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_EQ(solve(problem).offsets, solve(problem).offsets);
  }
}

TEST(Solver, NoReuseGivesEachItsOwn) {
  Problem problem = {{make(0, 1, 10, 8), make(5, 6, 10, 8), make(8, 9, 1, 8)},
                     {}};
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

TEST(Solver, TenThousandBuffersInFewSteps) {
  std::mt19937 random(7);
  Problem problem;
  for (unsigned i = 0; i < 10000; ++i) {
    int64_t lower = random() % 10000;
    problem.buffers.push_back(
        make(lower, lower + 1 + random() % 200, 1 + random() % 100000, 256));
  }
  // About 100 live at once, so 10^6 pairs meet: a hundred looks at each. The
  // first placement always ends; with so little effort nothing follows it.
  SolverOptions options;
  options.effort = 1;
  EXPECT_LT(createSolver(options)->solve(problem).solution->steps, 100'000'000);
}

/// Too many for a search of the whole, and first fit ends far above the bound.
TEST(Solver, PeaksAreRepaired) {
  std::mt19937 random(1);
  Problem problem;
  for (int64_t i = 0; i < 20'000; ++i)
    problem.buffers.push_back(make(i, i + 2, 1 + random() % 1000));
  EXPECT_EQ(solve(problem).status, Status::Optimal);
  // Also around what has a fixed place.
  problem.buffers[9'000].fixedOffset = 0;
  problem.buffers[12'000].fixedOffset = 700;
  Solution solution = solve(problem);
  EXPECT_LE(static_cast<double>(solution.height),
            1.001 * static_cast<double>(computeLowerBound(problem)));
}

/// So many are placed in another order and from hints, which must not cost more
/// than a percent, also where an alignment makes most sizes one.
TEST(Solver, ManyDenseBuffersEndNearTheBound) {
  for (int64_t alignment : {1, 512}) {
    HeavyTailedOptions options;
    options.count = 70'000;
    options.duration = 2'000;
    options.maxLifetime = 1'000;
    options.maxSize = 1'000'000;
    options.alignment = alignment;
    SCOPED_TRACE("alignment " + std::to_string(alignment));
    Problem problem = makeHeavyTailed(options);
    Solution solution = solve(problem);
    EXPECT_LE(static_cast<double>(solution.height),
              1.01 * static_cast<double>(computeLowerBound(problem)));
  }
}

} // namespace
