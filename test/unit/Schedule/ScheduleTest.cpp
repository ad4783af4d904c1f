//===- ScheduleTest.cpp - Orders worked out by hand -----------------------===//

#include "memplan/Schedule/Schedule.h"

#include "gtest/gtest.h"

using namespace memplan::schedule;

namespace {

/// A node that makes storage `output` from others.
Node makeNode(std::vector<int> predecessors, std::vector<int> touches,
              std::vector<Overwrite> overwrites = {}) {
  return {std::move(predecessors), std::move(touches), 0,
          std::move(overwrites)};
}

TEST(ScheduleTest, NothingToDo) {
  Result result = solve({});
  EXPECT_EQ(result.peakAfter, 0);
  EXPECT_TRUE(result.isProved());
}

// Two branches that end small: one after the other instead of level by level.
TEST(ScheduleTest, BranchAfterBranch) {
  Problem problem;
  // big0, big1, small0, small1, sum
  problem.storages = {{100}, {100}, {1}, {1}, {1}};
  problem.nodes = {makeNode({}, {0}), makeNode({}, {1}), makeNode({0}, {0, 2}),
                   makeNode({1}, {1, 3}), makeNode({2, 3}, {2, 3, 4})};
  Result result = solve(problem);
  EXPECT_EQ(result.peakBefore, 201); // big0 + big1 + small0
  EXPECT_EQ(result.peakAfter, 102);  // small0 + big1 + small1
  EXPECT_EQ(result.order, (std::vector<int>{0, 2, 1, 3, 4}));
  EXPECT_TRUE(result.isProved());
}

// a (10) is read by an op that can overwrite it and by one that can't: the
// other has to come first.
TEST(ScheduleTest, OverwriteLast) {
  Problem problem;
  // a, b = overwrite(a), c = read(a) of 2 bytes, d = join(b, c)
  problem.storages = {{10}, {10}, {2}, {1}};
  problem.nodes = {makeNode({}, {0}), makeNode({0}, {0, 1}, {{0, 1}}),
                   makeNode({0}, {0, 2}), makeNode({1, 2}, {1, 2, 3})};
  Result result = solve(problem);
  EXPECT_EQ(result.peakBefore, 22); // a + b + c
  EXPECT_EQ(result.peakAfter, 13);  // b + c + d; a + c is 12
  EXPECT_EQ(result.order, (std::vector<int>{0, 2, 1, 3}));
}

// An input that is smaller than the output can't be overwritten.
TEST(ScheduleTest, TooSmallToOverwrite) {
  Problem problem;
  problem.storages = {{4}, {8}};
  problem.nodes = {makeNode({}, {0}), makeNode({0}, {0, 1}, {{0, 1}})};
  EXPECT_EQ(computePeak(problem, {0, 1}), 12);
  problem.storages[0].bytes = 8;
  EXPECT_EQ(computePeak(problem, {0, 1}), 8);
  problem.storages[0].liveOut = true;
  EXPECT_EQ(computePeak(problem, {0, 1}), 16);
}

// One pair a node, the one that saves most.
TEST(ScheduleTest, OnePairANode) {
  Problem problem;
  problem.storages = {{4, true}, {6, true}, {3}, {5}};
  problem.nodes = {makeNode({}, {0, 1, 2, 3}, {{0, 2}, {1, 3}})};
  EXPECT_EQ(computePeak(problem, {0}), 4 + 6 + 3 + 5 - 5);
}

// Parts of one buffer: alive from the first writer to the last reader.
TEST(ScheduleTest, PartsOfOneBuffer) {
  Problem problem;
  // The buffer (20), a temporary (30) of each part.
  problem.storages = {{20}, {30}, {30}};
  problem.nodes = {makeNode({}, {1}), makeNode({0}, {0, 1}), makeNode({}, {2}),
                   makeNode({2}, {0, 2}), makeNode({1, 3}, {0})};
  EXPECT_EQ(computeProfile(problem, {0, 1, 2, 3, 4}),
            (std::vector<int64_t>{30, 50, 50, 50, 20}));
  EXPECT_EQ(solve(problem).peakAfter, 50);
}

TEST(ScheduleTest, WorkspaceAndEnds) {
  Problem problem;
  problem.storages = {{7, true}, {9, false, true}};
  problem.nodes = {makeNode({}, {0}), makeNode({0}, {1})};
  problem.nodes[0].workspace = 5;
  EXPECT_EQ(computeProfile(problem, {0, 1}), (std::vector<int64_t>{12, 9}));
  problem.nodes[1].touches.clear(); // Never made: takes nothing.
  EXPECT_EQ(computePeak(problem, {0, 1}), 12);
  problem.storages[1].liveIn = true; // There all the time.
  EXPECT_EQ(computePeak(problem, {0, 1}), 21);
  EXPECT_EQ(computeNodeBound(problem), 21);
}

// The order stays if nothing is gained, though others are as good.
TEST(ScheduleTest, TiesKeepTheOrder) {
  Problem problem;
  for (int i = 0; i < 6; ++i) {
    problem.storages.push_back({1});
    problem.nodes.push_back(makeNode({}, {i}));
  }
  Result result = solve(problem);
  EXPECT_EQ(result.order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(result.isProved());
}

TEST(ScheduleTest, Malformed) {
  auto check = [](Node node, std::vector<Storage> storages = {{1}, {1}}) {
    Problem problem;
    problem.storages = std::move(storages);
    problem.nodes = {std::move(node)};
    return checkProblem(problem);
  };
  EXPECT_EQ(check(makeNode({}, {0, 1})), "");
  EXPECT_EQ(check(makeNode({0}, {})),
            "node 0 has predecessor 0, which is no node before it");
  EXPECT_EQ(check(makeNode({}, {2})),
            "node 0 touches storage 2, which does not exist");
  EXPECT_EQ(check(makeNode({}, {1, 1})), "node 0 lists a storage twice");
  EXPECT_EQ(check(makeNode({}, {1}, {{0, 1}})),
            "node 0 overwrites what are not two storages that it touches");
  EXPECT_EQ(check(makeNode({}, {}), {{-1}}), "storage 0 has a negative size");
  EXPECT_EQ(check(makeNode({}, {}), {{INT64_MAX}, {1}}),
            "the storages' sizes do not fit 64 bits");
  EXPECT_EQ(check({{}, {}, -1, {}}), "node 0 has a negative workspace");
  EXPECT_EQ(check({{}, {}, 1, {}}, {{INT64_MAX}}),
            "the storages' sizes and a workspace do not fit 64 bits");
  EXPECT_EQ(check(makeNode({}, {0, 1}, {{0, 1}}), {{1}, {1, true}}),
            "node 0 overwrites into storage 1, which another node may touch "
            "before: all others that touch it must list the node as a "
            "predecessor");
  Problem twice;
  twice.nodes = {makeNode({}, {}), makeNode({0, 0}, {})};
  EXPECT_EQ(checkProblem(twice), "node 1 lists a predecessor twice");
}

} // namespace
