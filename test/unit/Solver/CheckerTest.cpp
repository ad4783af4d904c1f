//===- CheckerTest.cpp - Every kind of wrong placement is caught ----------===//

#include "memplan/Solver/Checker.h"
#include "Make.h"
#include "memplan/Solver/Instances.h"
#include "memplan/Support/SplitMix64.h"

#include "gtest/gtest.h"

using namespace memplan::solver;
using namespace memplan::solver::test;

namespace {

Solution place(std::vector<int64_t> offsets, int64_t height,
               int64_t lowerBound = 0, Status status = Status::Feasible) {
  Solution solution;
  solution.offsets = std::move(offsets);
  solution.height = height;
  solution.lowerBound = lowerBound;
  solution.status = status;
  return solution;
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

TEST(Checker, FaultsOfOneBuffer) {
  Problem problem = {{make(0, 2, 8, 8), make(1, 3, 8, 8)}, {}};
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16)), "");
  EXPECT_EQ(checkSolution(problem, place({0}, 8)), "1 offsets for 2 buffers");
  EXPECT_EQ(checkSolution(problem, place({0, 4}, 12)),
            "buffer 1 at 4 of size 8 in [1, 3) is not aligned to 8");
  EXPECT_EQ(checkSolution(problem, place({0, -8}, 8)),
            "buffer 1 at -8 of size 8 in [1, 3) is not a range of bytes");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 20)),
            "height is 20, but the largest end is 16");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 8)),
            "height is 8, but the largest end is 16");
  problem.buffers[0].fixedOffset = 8;
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16)),
            "buffer 0 at 0 of size 8 in [0, 2) is fixed at 8");
}

TEST(Checker, NamesAreTheCallers) {
  EXPECT_EQ(checkSolution({{make(0, 2, 8, 8)}, {}}, place({4}, 12),
                          [](size_t i) { return "row " + std::to_string(i); }),
            "row 0 at 4 of size 8 in [0, 2) is not aligned to 8");
}

TEST(Checker, Overlaps) {
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}, {}};
  EXPECT_EQ(checkSolution(problem, place({0, 7}, 15)),
            "buffer 1 at 7 of size 8 in [1, 3) overlaps buffer 0 at 0 of size "
            "8 in [0, 2)");
  EXPECT_EQ(checkSolution(problem, place({7, 0}, 15)),
            "buffer 1 at 0 of size 8 in [1, 3) overlaps buffer 0 at 7 of size "
            "8 in [0, 2)");
  EXPECT_NE(checkSolution(problem, place({0, 0}, 8)), "");
  // One within the other.
  problem.buffers[1].size = 2;
  EXPECT_NE(checkSolution(problem, place({0, 3}, 8)), "");
  // Touching lifetimes, no bytes, no time: no overlap.
  problem.buffers[1] = make(2, 3, 8);
  EXPECT_EQ(checkSolution(problem, place({0, 0}, 8)), "");
  problem.buffers[1] = make(0, 3, 0);
  EXPECT_EQ(checkSolution(problem, place({0, 3}, 8)), "");
  problem.buffers[1] = make(1, 1, 8);
  EXPECT_EQ(checkSolution(problem, place({0, 3}, 11)), "");
}

TEST(Checker, AllLiveBuffersAreLookedAt) {
  // The long one ends far above the start of the newcomer; between them in the
  // order of offsets lies one that the newcomer does not touch.
  Problem problem = {{make(0, 9, 100), make(0, 1, 10), make(5, 6, 10)}, {}};
  problem.buffers[1].lower = 2;
  problem.buffers[1].upper = 9;
  EXPECT_EQ(checkSolution(problem, place({0, 100, 90}, 110)),
            "buffer 2 at 90 of size 10 in [5, 6) overlaps buffer 0 at 0 of "
            "size 100 in [0, 9)");
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

TEST(Checker, GroupsKeepTheirDistances) {
  Problem problem = {
      {inGroup(4, 10, make(0, 2, 8)), inGroup(4, 30, make(0, 2, 8))}, {}};
  EXPECT_EQ(checkSolution(problem, place({0, 20}, 28)), "");
  EXPECT_EQ(checkSolution(problem, place({5, 25}, 33)), "");
  EXPECT_EQ(checkSolution(problem, place({0, 21}, 29)),
            "buffer 1 at 21 of size 8 in [0, 2) and buffer 0 at 0 of size 8 in "
            "[0, 2) are not at the distance that their group offsets 30 and 10 "
            "say");
}

TEST(Checker, OneGroupMayShareBytes) {
  Problem problem = {
      {inGroup(4, 0, make(0, 5, 8)), inGroup(4, 2, make(1, 3, 4))}, {}};
  EXPECT_EQ(checkSolution(problem, place({0, 2}, 8)), "");
  // Other groups, and buffers without one, may not.
  problem.buffers[1].group->id = 5;
  EXPECT_NE(checkSolution(problem, place({0, 2}, 8)), "");
  problem.buffers[1].group.reset();
  EXPECT_NE(checkSolution(problem, place({0, 2}, 8)), "");
}

TEST(Checker, BytesStayTakenUntilTheLastViewEnds) {
  // Three views of the same bytes; the newcomer meets the one that is left.
  Problem problem = {{inGroup(4, 0, make(0, 2, 8)),
                      inGroup(4, 0, make(0, 9, 8)),
                      inGroup(4, 4, make(1, 4, 8)), make(3, 6, 4)},
                     {}};
  EXPECT_EQ(checkSolution(problem, place({0, 0, 4, 6}, 12)),
            "buffer 3 at 6 of size 4 in [3, 6) overlaps buffer 1 at 0 of size "
            "8 in [0, 9)");
  EXPECT_EQ(checkSolution(problem, place({0, 0, 4, 8}, 12)),
            "buffer 3 at 8 of size 4 in [3, 6) overlaps buffer 2 at 4 of size "
            "8 in [1, 4)");
  problem.buffers[3].lower = 4;
  EXPECT_EQ(checkSolution(problem, place({0, 0, 4, 8}, 12)), "");
}

TEST(Checker, HolesOfAGroupAreFree) {
  Problem problem = {{inGroup(4, 0, make(0, 9, 4)),
                      inGroup(4, 8, make(0, 9, 4)), make(3, 6, 4)},
                     {}};
  EXPECT_EQ(checkSolution(problem, place({0, 8, 4}, 12)), "");
  EXPECT_NE(checkSolution(problem, place({0, 8, 5}, 12)), "");
}

//===----------------------------------------------------------------------===//
// What is claimed
//===----------------------------------------------------------------------===//

TEST(Checker, BoundAndOptimality) {
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}, {}};
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 16, Status::Optimal)), "");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 17)),
            "lower bound 17 is above the height 16");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 8, Status::Optimal)),
            "called optimal at height 16 with lower bound 8");
}

TEST(Checker, FeasibleOnlyWithinTheCapacity) {
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}, 16};
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16)), "");
  problem.capacity = 15;
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16)),
            "called feasible, but height 16 is above the capacity 15");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 16, Status::Optimal)),
            "called optimal, but height 16 is above the capacity 15");
  EXPECT_EQ(checkSolution(problem, place({}, 0)), "0 offsets for 2 buffers");
}

TEST(Checker, InfeasibleAndLimit) {
  Problem problem = {{make(0, 2, 8), make(1, 3, 8)}, 15};
  for (Status status : {Status::Infeasible, Status::Limit}) {
    std::string called = std::string("called ") + toString(status);
    // Without a placement, or with one that is too high.
    EXPECT_EQ(checkSolution(problem, place({}, 0, 10, status)), "");
    EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 10, status)), "");
    EXPECT_EQ(checkSolution(problem, place({}, 16, 10, status)),
              "height is 16 without a placement");
    EXPECT_EQ(checkSolution(problem, place({0}, 8, 8, status)),
              "1 offsets for 2 buffers");
    EXPECT_NE(checkSolution(problem, place({0, 7}, 15, 10, status)), "")
        << "wrong, whatever it is called";
    EXPECT_EQ(
        checkSolution({problem.buffers, 16}, place({0, 8}, 16, 10, status)),
        called + ", but there is a placement within the capacity 16");
  }
  EXPECT_EQ(checkSolution(problem, place({}, 0, 16, Status::Limit)),
            "called limit, but lower bound 16 is above the capacity 15");
  EXPECT_EQ(checkSolution(problem, place({}, 0, 16, Status::Infeasible)), "");
  problem.capacity.reset();
  EXPECT_EQ(checkSolution(problem, place({}, 0, 10, Status::Limit)),
            "called limit without a capacity");
  EXPECT_EQ(checkSolution(problem, place({}, 0, 10, Status::Infeasible)), "");
  EXPECT_EQ(checkSolution(problem, place({0, 8}, 16, 8, Status::Infeasible)),
            "called infeasible, but there is a placement");
}

TEST(Checker, Empty) {
  EXPECT_EQ(checkSolution({}, place({}, 0, 0, Status::Optimal)), "");
  EXPECT_EQ(checkSolution({{}, 0}, place({}, 0, 0, Status::Infeasible)),
            "called infeasible, but there is a placement within the capacity "
            "0");
}

//===----------------------------------------------------------------------===//
// Hostile numbers
//===----------------------------------------------------------------------===//

TEST(Checker, TrustsNoNumber) {
  auto faultOf = [](Buffer buffer, int64_t offset) {
    return checkSolution({{buffer}, {}}, place({offset}, 0));
  };
  EXPECT_NE(faultOf(make(0, 1, 1), INT64_MAX), "") << "ends at 2^63";
  EXPECT_NE(faultOf(make(0, 1, INT64_MAX), INT64_MAX), "");
  EXPECT_NE(faultOf(make(0, 1, INT64_MIN), 0), "");
  EXPECT_NE(faultOf(make(0, 1, 1), INT64_MIN), "");
  EXPECT_NE(faultOf(make(0, 1, 1, 0), 0), "");
  EXPECT_NE(faultOf(make(0, 1, 1, -1), INT64_MIN), "");
  EXPECT_NE(faultOf(make(1, 0, 1), 0), "");
  Problem problem = {{inGroup(0, INT64_MAX, make(0, 1, 0)),
                      inGroup(0, INT64_MIN, make(0, 1, 0))},
                     {}};
  EXPECT_NE(checkSolution(problem, place({INT64_MAX, 0}, INT64_MAX)), "")
      << "2^63 - 1 against a distance of 2^64 - 1";
  problem.buffers[1].group->offset = 0;
  EXPECT_EQ(checkSolution(problem, place({INT64_MAX, 0}, INT64_MAX)), "");
}

TEST(Checker, RandomNumbersNeverTrap) {
  constexpr int64_t odd[] = {
      INT64_MIN,        INT64_MIN + 1, -1,       0, 1, 2, 7,
      int64_t(1) << 62, INT64_MAX - 1, INT64_MAX};
  memplan::SplitMix64 random(1);
  auto draw = [&] { return odd[random.below(std::size(odd))]; };
  for (int round = 0; round < 20000; ++round) {
    Problem problem;
    Solution solution =
        place({}, draw(), draw(), static_cast<Status>(random.below(4)));
    if (random.chance(50))
      problem.capacity = draw();
    for (int64_t i = 0, e = random.below(5); i < e; ++i) {
      problem.buffers.push_back(make(draw(), draw(), draw(), draw()));
      if (random.chance(50))
        problem.buffers.back().group = GroupMember{draw(), draw()};
      solution.offsets.push_back(draw());
    }
    // Under the sanitizers, this finds sums that overflow.
    checkSolution(problem, solution);
    checkProblem(problem);
  }
}

//===----------------------------------------------------------------------===//
// Against all pairs
//===----------------------------------------------------------------------===//

bool hasOverlap(const Problem &problem, const Solution &solution) {
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Buffer &a = problem.buffers[i], &b = problem.buffers[j];
      if (a.group && b.group && a.group->id == b.group->id)
        continue;
      if (std::max(a.lower, b.lower) < std::min(a.upper, b.upper) &&
          std::max(solution.offsets[i], solution.offsets[j]) <
              std::min(solution.offsets[i] + a.size,
                       solution.offsets[j] + b.size))
        return true;
    }
  return false;
}

TEST(Checker, RandomPlacementsAgainstAllPairs) {
  int numOverlaps = 0;
  constexpr int numRounds = 20000;
  for (uint64_t seed = 0; seed < numRounds; ++seed) {
    memplan::SplitMix64 random(seed);
    Problem problem;
    Solution solution;
    // The origins of three groups.
    int64_t origins[] = {random.below(200), random.below(200),
                         random.below(200)};
    for (int64_t i = 0, e = random.between(2, 14); i < e; ++i) {
      int64_t lower = random.below(12);
      Buffer buffer = make(lower, lower + random.below(6), random.below(40));
      int64_t offset = random.below(200);
      if (random.chance(60)) {
        int64_t group = random.below(3);
        buffer.group = GroupMember{group, random.below(60)};
        offset = origins[group] + buffer.group->offset;
      }
      problem.buffers.push_back(buffer);
      solution.offsets.push_back(offset);
      solution.height = std::max(solution.height, offset + buffer.size);
    }
    bool isWrong = hasOverlap(problem, solution);
    numOverlaps += isWrong;
    std::string fault = checkSolution(problem, solution);
    ASSERT_EQ(!fault.empty(), isWrong) << "seed " << seed << ": " << fault;
    ASSERT_EQ(fault.find("another buffer"), std::string::npos);
  }
  // Both kinds must have been seen.
  EXPECT_GT(numOverlaps, numRounds / 20);
  EXPECT_LT(numOverlaps, numRounds * 19 / 20);
}

} // namespace
