//===- SchedulePropertyTest.cpp - Random problems -------------------------===//

#include "Reference.h"

#include "gtest/gtest.h"

using namespace memplan;
using namespace memplan::schedule;

namespace {

/// What holds of every result.
void expectSound(const Problem &problem, const Result &result) {
  EXPECT_EQ(computeReferencePeak(problem, result.order), result.peakAfter);
  EXPECT_LE(result.peakAfter, result.peakBefore);
  EXPECT_LE(result.lowerBound, result.peakAfter);
  if (result.peakAfter == result.peakBefore) {
    for (size_t i = 0; i < result.order.size(); ++i)
      EXPECT_EQ(result.order[i], static_cast<int>(i));
  }
}

Shape makeSmallShape(SplitMix64 &random) {
  Shape shape;
  shape.numNodes = static_cast<int>(random.between(1, 8));
  shape.maxPredecessors = static_cast<int>(random.between(1, 3));
  shape.reach = static_cast<int>(random.between(2, 8));
  shape.maxBytes = random.chance(30) ? 2 : 20;
  shape.overwritePercent = static_cast<int>(random.below(101));
  shape.aliasPercent = static_cast<int>(random.below(60));
  shape.liveOutPercent = static_cast<int>(random.below(40));
  shape.liveInPercent = static_cast<int>(random.below(40));
  shape.workspacePercent = static_cast<int>(random.below(40));
  return shape;
}

// Up to 8 nodes: the smallest of all orders, with and without each rule.
TEST(SchedulePropertyTest, SmallestOfAllOrders) {
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    SplitMix64 random(seed);
    Problem problem = makeRandomProblem(random, makeSmallShape(random));
    ASSERT_EQ(checkProblem(problem), "") << print(problem);
    int64_t smallest = findSmallestPeak(problem);
    EXPECT_LE(computeNodeBound(problem), smallest);
    for (int rules = 0; rules < 4; ++rules) {
      Options options;
      options.rules.cut = rules & 1;
      options.rules.commit = rules & 2;
      Result result = solve(problem, options);
      expectSound(problem, result);
      EXPECT_EQ(result.peakAfter, smallest);
      EXPECT_TRUE(result.isProved());
      ASSERT_FALSE(HasFailure())
          << "seed " << seed << " rules " << rules << "\n"
          << print(problem);
    }
  }
}

// Every DAG of four nodes, with every choice of sizes 0 to 2.
TEST(SchedulePropertyTest, AllGraphsOfFourNodes) {
  const int pairs[6][2] = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
  for (int edges = 0; edges < 64; ++edges)
    for (int sizes = 0; sizes < 81; ++sizes)
      for (int overwrites = 0; overwrites < 2; ++overwrites) {
        Problem problem;
        for (int i = 0, rest = sizes; i < 4; ++i, rest /= 3) {
          problem.storages.push_back({rest % 3});
          problem.nodes.push_back({{}, {i}, 0, {}});
        }
        for (int i = 0; i < 6; ++i)
          if (edges >> i & 1) {
            auto [from, to] = pairs[i];
            problem.nodes[to].predecessors.push_back(from);
            problem.nodes[to].touches.push_back(from);
            if (overwrites)
              problem.nodes[to].overwrites.push_back({from, to});
          }
        ASSERT_EQ(checkProblem(problem), "");
        Result result = solve(problem);
        expectSound(problem, result);
        EXPECT_EQ(result.peakAfter, findSmallestPeak(problem));
        EXPECT_TRUE(result.isProved());
        ASSERT_FALSE(HasFailure()) << print(problem);
      }
}

// Without effort to finish, what is claimed still holds.
TEST(SchedulePropertyTest, BoundHoldsWhenInterrupted) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SplitMix64 random(seed + 10'000);
    Problem problem = makeRandomProblem(random, makeSmallShape(random));
    int64_t smallest = findSmallestPeak(problem);
    for (int64_t effort : {0, 30, 100, 300, 1000}) {
      Options options;
      options.effort = effort;
      Result result = solve(problem, options);
      expectSound(problem, result);
      EXPECT_LE(result.lowerBound, smallest);
      ASSERT_FALSE(HasFailure())
          << "seed " << seed << " effort " << effort << "\n"
          << print(problem);
    }
  }
}

TEST(SchedulePropertyTest, NeverWorseUpTo60Nodes) {
  int improved = 0, proved = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SplitMix64 random(seed + 20'000);
    Shape shape = makeSmallShape(random);
    shape.numNodes = static_cast<int>(random.between(2, 60));
    shape.reach = static_cast<int>(random.between(3, 60));
    shape.maxBytes = 1000;
    shape.aliasPercent /= 4;
    Problem problem = makeRandomProblem(random, shape);
    Options options;
    options.effort = 1'000'000;
    Result result = solve(problem, options);
    expectSound(problem, result);
    Result again = solve(problem, options);
    EXPECT_EQ(result.order, again.order);
    EXPECT_EQ(result.steps, again.steps);
    improved += result.peakAfter < result.peakBefore;
    proved += result.isProved();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << print(problem);
  }
  RecordProperty("improved", improved);
  RecordProperty("proved", proved);
  std::cout << improved << " improved, " << proved << " proved of 1000\n";
  EXPECT_GT(improved, 500);
  EXPECT_GT(proved, 850);
}

TEST(SchedulePropertyTest, TwentyThousandNodes) {
  for (int reach : {3, 40, 20'000}) {
    SplitMix64 random(7);
    Shape shape;
    shape.numNodes = 20'000;
    shape.reach = reach;
    shape.maxBytes = 1'000'000;
    shape.aliasPercent = 0;
    shape.liveInPercent = 0;
    shape.liveOutPercent = 0;
    Problem problem = makeRandomProblem(random, shape);
    Result result = solve(problem);
    expectSound(problem, result);
    std::cout << "reach " << reach << ": " << result.peakBefore << " -> "
              << result.peakAfter << ", bound " << result.lowerBound << ", "
              << result.pieces << " pieces, " << result.steps << " steps\n";
  }
}

} // namespace
