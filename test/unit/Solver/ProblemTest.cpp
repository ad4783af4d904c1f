//===- ProblemTest.cpp - Well-formedness and the lower bound --------------===//

#include "memplan/Solver/Problem.h"
#include "Make.h"
#include "memplan/Solver/Instances.h"
#include "memplan/Solver/LiveProfile.h"
#include "memplan/Support/SplitMix64.h"

#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace memplan::solver;
using namespace memplan::solver::test;

namespace {

constexpr int64_t large = int64_t(1) << 62;

//===----------------------------------------------------------------------===//
// checkProblem
//===----------------------------------------------------------------------===//

TEST(CheckProblem, Numbers) {
  auto errorOf = [](Buffer buffer) { return checkProblem({{buffer}, {}}); };
  EXPECT_EQ(errorOf(make(2, 1, 1)),
            "buffer 0 has lifetime [2, 1), expected lower <= upper");
  EXPECT_EQ(errorOf(make(0, 1, -1)), "buffer 0 has negative size -1");
  EXPECT_EQ(errorOf(make(0, 1, 1, 0)),
            "buffer 0 has alignment 0, expected at least 1");
  EXPECT_EQ(errorOf(make(0, 1, 1, -4)),
            "buffer 0 has alignment -4, expected at least 1");
  EXPECT_EQ(errorOf(fixedAt(8, make(0, 1, 1, 16))),
            "buffer 0 is fixed at offset 8, expected a non-negative multiple "
            "of 16");
  EXPECT_EQ(errorOf(fixedAt(-16, make(0, 1, 1, 16))),
            "buffer 0 is fixed at offset -16, expected a non-negative multiple "
            "of 16");
  EXPECT_EQ(errorOf(inGroup(0, -1, make(0, 1, 1))),
            "buffer 0 has the negative group offset -1");
  Buffer hinted = make(0, 1, 1);
  hinted.preferredOffset = -1;
  EXPECT_EQ(errorOf(hinted), "buffer 0 prefers the negative offset -1");
  // Times may be anything.
  EXPECT_EQ(errorOf(make(INT64_MIN, INT64_MAX, 1)), "");
  EXPECT_EQ(errorOf(make(-5, -5, 0)), "");
}

TEST(CheckProblem, Capacity) {
  EXPECT_EQ(checkProblem({{}, 0}), "");
  EXPECT_EQ(checkProblem({{}, -1}), "the capacity is negative: -1");
}

TEST(CheckProblem, NamesAreTheCallers) {
  EXPECT_EQ(checkProblem({{make(0, 1, 1), make(0, 1, -1)}, {}},
                         [](size_t i) { return "row " + std::to_string(i); }),
            "row 1 has negative size -1");
}

TEST(CheckProblem, SumsThatDoNotFit) {
  EXPECT_EQ(checkProblem({{make(0, 1, INT64_MAX)}, {}}), "");
  EXPECT_EQ(checkProblem({{make(0, 1, INT64_MAX), make(5, 6, 1)}, {}}),
            "the sizes up to buffer 1 do not fit 63 bits");
  // 2^62 - 1 twice is 2^63 - 2; 2^62 twice is one more than fits.
  EXPECT_EQ(checkProblem({{make(0, 1, large - 1), make(0, 1, large - 1)}, {}}),
            "");
  EXPECT_EQ(checkProblem({{make(0, 1, large), make(0, 1, large)}, {}}),
            "the sizes up to buffer 1 do not fit 63 bits");
  // Rounding up to 2 takes it to 2^63.
  EXPECT_EQ(checkProblem({{make(0, 1, INT64_MAX, 2)}, {}}),
            "the sizes up to buffer 0 do not fit 63 bits");
  EXPECT_EQ(checkProblem({{make(0, 1, 1, INT64_MAX)}, {}}),
            "the sizes up to buffer 0 do not fit 63 bits");
  EXPECT_EQ(checkProblem({{fixedAt(large, make(0, 1, large - 1))}, {}}), "");
  EXPECT_EQ(checkProblem({{fixedAt(large, make(0, 1, large))}, {}}),
            "the fixed offset of buffer 0 and the sizes together do not fit 63 "
            "bits");
}

TEST(CheckProblem, SumsOfGroups) {
  EXPECT_EQ(checkProblem({{inGroup(0, INT64_MAX, make(0, 1, 0))}, {}}), "");
  EXPECT_EQ(checkProblem({{inGroup(0, 0, make(0, 1, 1)),
                           inGroup(0, INT64_MAX, make(0, 1, 1))},
                          {}}),
            "buffer 1 has group offset 9223372036854775807, which together "
            "with its size does not fit 63 bits");
  // A group counts from its first byte to its last, holes too: 2^62 + 1, once.
  std::vector<Buffer> group = {inGroup(0, 0, make(0, 1, 1)),
                               inGroup(0, large, make(0, 1, 1))};
  EXPECT_EQ(checkProblem({group, {}}), "");
  group.push_back(inGroup(1, 0, make(0, 1, 1)));
  group.push_back(inGroup(1, large, make(0, 1, 1)));
  EXPECT_EQ(checkProblem({group, {}}),
            "the sizes up to buffer 3 do not fit 63 bits");
  // Views of the same 2^62 bytes count once.
  std::vector<Buffer> views(10, inGroup(3, 0, make(0, 1, large)));
  EXPECT_EQ(checkProblem({views, {}}), "");
}

TEST(CheckProblem, FixedMembersAgree) {
  std::vector<Buffer> buffers = {fixedAt(10, inGroup(7, 2, make(0, 1, 4))),
                                 fixedAt(14, inGroup(7, 6, make(0, 1, 4)))};
  EXPECT_EQ(checkProblem({buffers, {}}), "");
  buffers[1].fixedOffset = 15;
  EXPECT_EQ(checkProblem({buffers, {}}),
            "buffer 1 and buffer 0 are fixed at offsets that their group "
            "offsets contradict");
  // Origin 3 - 6 = -3: the other member would lie at -1.
  buffers[1].fixedOffset = 3;
  buffers[0].fixedOffset.reset();
  EXPECT_EQ(checkProblem({buffers, {}}),
            "buffer 0 would be put at offset -1 by buffer 1, which is fixed; "
            "expected a non-negative multiple of 1");
  // Origin -2: the other member at 0 is legal.
  buffers[1].fixedOffset = 4;
  EXPECT_EQ(checkProblem({buffers, {}}), "");
  // Origin -1 puts the other at 1, which is no multiple of 4.
  buffers[1].fixedOffset = 5;
  buffers[0].alignment = 4;
  EXPECT_EQ(checkProblem({buffers, {}}),
            "buffer 0 would be put at offset 1 by buffer 1, which is fixed; "
            "expected a non-negative multiple of 4");
}

TEST(CheckProblem, AlignmentsOfAGroup) {
  auto errorOf = [](int64_t distance, int64_t low, int64_t high) {
    return checkProblem({{inGroup(0, 5, make(0, 1, 1, low)),
                          inGroup(0, 5 + distance, make(0, 1, 1, high))},
                         {}});
  };
  EXPECT_EQ(errorOf(8, 4, 8), "");
  EXPECT_EQ(errorOf(4, 4, 8), "") << "4 and 8, 12 and 16";
  EXPECT_EQ(errorOf(2, 4, 8),
            "buffer 1 cannot be aligned to 8 while buffer 0 in the same group "
            "is aligned to 4: their distance is 2");
  EXPECT_EQ(errorOf(1, 2, 3), "") << "2 and 3";
  EXPECT_EQ(errorOf(3, 6, 4),
            "buffer 1 cannot be aligned to 4 while buffer 0 in the same group "
            "is aligned to 6: their distance is 3");
  // The product of these primes is near 2^63; with the padding, it is too much.
  EXPECT_EQ(errorOf(1, 2147483647, 4294967291), "the sizes up to buffer 1 do "
                                                "not fit 63 bits");
  EXPECT_EQ(errorOf(1, large, 3),
            "the alignments of the group of buffer 1 have no common multiple "
            "that fits 63 bits");
  EXPECT_EQ(errorOf(large, large, large),
            "the sizes up to buffer 1 do not fit 63 bits");
}

TEST(CheckProblem, AlignmentsOfThreeAndMore) {
  // A place p with p = 0 mod 6, p + 2 = 0 mod 2, p + 3 = 0 mod 3 and p + 1 = 0
  // mod 5: 24.
  EXPECT_EQ(
      checkProblem(
          {{inGroup(0, 0, make(0, 1, 1, 6)), inGroup(0, 2, make(0, 1, 1, 2)),
            inGroup(0, 3, make(0, 1, 1, 3)), inGroup(0, 1, make(0, 1, 1, 5))},
           {}}),
      "");
  EXPECT_EQ(checkProblem({{inGroup(0, 0, make(0, 1, 1, 6)),
                           inGroup(0, 2, make(0, 1, 1, 2)),
                           inGroup(0, 4, make(0, 1, 1, 3))},
                          {}}),
            "buffer 2 cannot be aligned to 3 while buffer 0 in the same group "
            "is aligned to 6: their distance is 4");
}

//===----------------------------------------------------------------------===//
// The lower bound
//===----------------------------------------------------------------------===//

int64_t boundOf(std::vector<Buffer> buffers) {
  Problem problem = {std::move(buffers), {}};
  EXPECT_EQ(checkProblem(problem), "");
  return computeLowerBound(problem);
}

TEST(LowerBound, LiveBytes) {
  EXPECT_EQ(boundOf({}), 0);
  EXPECT_EQ(boundOf({make(0, 1, 10), make(1, 2, 10)}), 10)
      << "touching lifetimes";
  EXPECT_EQ(boundOf({make(0, 2, 10), make(1, 3, 20), make(2, 4, 25)}), 45)
      << "20 + 25 at time 2";
  EXPECT_EQ(boundOf({make(INT64_MIN, INT64_MAX, 1), make(-3, 5, 2)}), 3);
}

TEST(LowerBound, NoBytesOrNoTime) {
  EXPECT_EQ(boundOf({make(0, 4, 30), make(2, 2, 50), make(0, 4, 0)}), 50)
      << "it shares with nobody, but must end below the height";
}

TEST(LowerBound, AllButTheTopmostAreRoundedUp) {
  EXPECT_EQ(boundOf({make(0, 2, 100, 64), make(1, 3, 100, 64)}), 228)
      << "128 for the lower one, 100 for the upper one";
  EXPECT_EQ(boundOf({make(0, 2, 100, 64), make(1, 3, 65, 64)}), 193)
      << "the one with the larger slack on top: 128 + 65";
  EXPECT_EQ(boundOf({make(0, 1, 3, 1), make(0, 1, 4, 4)}), 7)
      << "the divisor is 1, and 4 at 0 with 3 at 4 is possible";
  EXPECT_EQ(boundOf({make(0, 1, 3, 6), make(0, 1, 4, 4)}), 7)
      << "the divisor is 2: 4 for the 3 bytes; 4 + 3";
  EXPECT_EQ(boundOf({make(0, 1, 3, 6), make(0, 1, 5, 4)}), 9)
      << "the divisor is 2: 4 + 6 - 1";
  EXPECT_EQ(boundOf({make(0, 1, 100, 64), make(0, 1, 100, 64), make(0, 1, 0, 1),
                     make(5, 5, 9, 1)}),
            228)
      << "buffers that share with nobody do not spoil the divisor";
  EXPECT_EQ(
      boundOf({make(0, 1, 1, 64), make(1, 3, 60, 64), make(2, 3, 60, 64)}), 124)
      << "what has ended is no longer on top: 64 + 60";
}

TEST(LowerBound, FixedOffsets) {
  EXPECT_EQ(boundOf({fixedAt(96, make(0, 1, 10)), make(5, 6, 20)}), 106);
}

TEST(LowerBound, GroupsCountOnce) {
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 4, 10)),
                     inGroup(0, 5, make(0, 4, 10)), make(3, 5, 7)}),
            22)
      << "bytes 0 to 15 of the group, and 7";
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 4, 10)),
                     inGroup(0, 20, make(0, 4, 10)), make(3, 5, 7)}),
            30)
      << "the hole of 10 holds the 7; the group itself is 30 long";
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 4, 10)),
                     inGroup(0, 20, make(0, 4, 10)), make(3, 5, 17)}),
            37)
      << "10 + 10 + 17: holes count for nothing";
  EXPECT_EQ(
      boundOf({inGroup(0, 0, make(0, 2, 10)), inGroup(0, 0, make(1, 4, 6)),
               make(2, 5, 7), inGroup(1, 0, make(0, 1, 2))}),
      13)
      << "10 at time 1, then 6 + 7; the other group's 2 only with the 10";
}

TEST(LowerBound, GroupsAtTheirLowestPlace) {
  EXPECT_EQ(
      boundOf({inGroup(0, 100, make(0, 1, 4)), inGroup(0, 130, make(2, 3, 5))}),
      35)
      << "the origin may be -100: from 0 to 30 + 5";
  EXPECT_EQ(
      boundOf({inGroup(0, 0, make(0, 1, 4)), inGroup(0, 1, make(2, 3, 5, 8))}),
      13)
      << "7 and 8: the lower one cannot lie lower";
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 1, 4)),
                     fixedAt(20, inGroup(0, 10, make(2, 3, 5)))}),
            25);
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 0, 4, 4)),
                     inGroup(0, 10, make(2, 3, 5, 3))}),
            23)
      << "above a multiple of 4: 10 and 14 are no multiples of 3, 18 is; 18 + "
         "5";
}

TEST(LowerBound, SlackInGroups) {
  // Divisor 8. The group takes [0, 8) and [16, 24), its last byte is 18; the
  // other takes 8 more: 24 - 5.
  EXPECT_EQ(boundOf({inGroup(0, 0, make(0, 1, 5, 8)),
                     inGroup(0, 16, make(0, 1, 3, 8)), make(0, 1, 4, 8)}),
            19);
}

/// Byte by byte and moment by moment, for small numbers and divisor 1.
int64_t boundByHand(const Problem &problem) {
  int64_t bound = 0;
  for (int64_t time = 0; time < 24; ++time) {
    std::map<int64_t, std::set<int64_t>> bytesOfGroups;
    int64_t live = 0;
    for (const Buffer &buffer : problem.buffers) {
      if (time < buffer.lower || buffer.upper <= time)
        continue;
      if (!buffer.group)
        live += buffer.size;
      for (int64_t i = 0; buffer.group && i < buffer.size; ++i)
        bytesOfGroups[buffer.group->id].insert(buffer.group->offset + i);
    }
    for (const auto &group : bytesOfGroups)
      live += static_cast<int64_t>(group.second.size());
    bound = std::max(bound, live);
  }
  return bound;
}

TEST(LowerBound, RandomGroupsAgainstBytes) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    memplan::SplitMix64 random(seed);
    Problem problem;
    for (int64_t i = 0, e = random.between(8, 40); i < e; ++i) {
      int64_t lower = random.below(20);
      Buffer buffer = make(lower, lower + random.below(5), random.below(12));
      if (random.chance(70))
        buffer.group = GroupMember{random.below(4), random.below(8)};
      problem.buffers.push_back(buffer);
    }
    // Something that no lowest place of a group exceeds.
    problem.buffers.push_back(make(0, 24, 20));
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_EQ(computeLowerBound(problem), boundByHand(problem));
    int64_t most = 0;
    for (const LivePoint &point : computeLiveProfile(problem))
      most = std::max(most, point.bytes);
    EXPECT_EQ(most, boundByHand(problem));
  }
}

TEST(LiveProfile, Steps) {
  // 4 from 0, 4 + 3 from 2, 3 from 5, nothing from 6 to 8, 1 from 8 to 9.
  Problem problem = {{make(0, 5, 4), make(2, 6, 3), make(8, 9, 1)}, {}};
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (const LivePoint &point : computeLiveProfile(problem))
    steps.emplace_back(point.time, point.bytes);
  EXPECT_EQ(steps, (std::vector<std::pair<int64_t, int64_t>>{
                       {0, 4}, {2, 7}, {5, 3}, {6, 0}, {8, 1}, {9, 0}}));
}

TEST(ToString, EachStatus) {
  EXPECT_STREQ(toString(Status::Optimal), "optimal");
  EXPECT_STREQ(toString(Status::Feasible), "feasible");
  EXPECT_STREQ(toString(Status::Infeasible), "infeasible");
  EXPECT_STREQ(toString(Status::Limit), "limit");
}

} // namespace
