//===- PairSearchTest.cpp - Bodies of any shape ---------------------------===//

#include "../../../lib/Solver/PairSearch.h"

#include "BruteForce.h"
#include "Make.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace memplan::solver;
using namespace memplan::solver::test;

namespace {

constexpr int64_t manySteps = 10'000'000;

bool areInOneGroup(const Buffer &a, const Buffer &b) {
  return a.group && b.group && a.group->id == b.group->id;
}

/// Looks at every pair of buffers; shares no code with the search.
bool isPlacement(const Problem &problem, const std::vector<int64_t> &offsets,
                 int64_t capacity) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const Buffer &a = problem.buffers[i];
    if (offsets[i] < 0 || offsets[i] % a.alignment != 0 ||
        offsets[i] + a.size > capacity ||
        offsets[i] != a.fixedOffset.value_or(offsets[i]))
      return false;
    for (size_t j = 0; j < i; ++j) {
      const Buffer &b = problem.buffers[j];
      if (areInOneGroup(a, b)) {
        if (offsets[i] - offsets[j] != a.group->offset - b.group->offset)
          return false;
        continue;
      }
      bool liveAtOnce = std::max(a.lower, b.lower) < std::min(a.upper, b.upper);
      bool shareBytes = std::max(offsets[i], offsets[j]) <
                        std::min(offsets[i] + a.size, offsets[j] + b.size);
      if (liveAtOnce && shareBytes)
        return false;
    }
  }
  return true;
}

SearchResult search(const Problem &problem, PairSearch &pairs,
                    const Bodies &bodies, int64_t capacity,
                    int64_t maxSteps = manySteps) {
  SearchResult result = pairs.run(capacity, maxSteps);
  bool isRight =
      result != SearchResult::Found ||
      isPlacement(problem, toOffsets(bodies, pairs.getPlaces()), capacity);
  EXPECT_TRUE(isRight) << "capacity " << capacity << print(problem);
  return result;
}

SearchResult search(const Problem &problem, int64_t capacity) {
  EXPECT_EQ(checkProblem(problem), "");
  Bodies bodies = collectBodies(problem);
  PairSearch pairs(bodies);
  return search(problem, pairs, bodies, capacity);
}

void expectMinimum(const Problem &problem, int64_t minimum) {
  EXPECT_EQ(search(problem, minimum - 1), SearchResult::Infeasible);
  EXPECT_EQ(search(problem, minimum), SearchResult::Found);
}

TEST(PairSearch, NothingNeedsNothing) {
  EXPECT_EQ(search({}, 0), SearchResult::Found);
  // Neither takes a byte.
  EXPECT_EQ(search({{make(0, 5, 0), make(1, 1, 7)}, {}}, 7),
            SearchResult::Found);
}

TEST(PairSearch, OneOnTheOther) {
  // 3 + 4 + 5 = 12.
  expectMinimum({{make(0, 2, 3), make(0, 2, 4), make(1, 2, 5)}, {}}, 12);
}

TEST(PairSearch, InterlocksTwoLs) {
  // L: 6 bytes in [0, 1), then only the lower 2 of them in [1, 2).
  // Upside down: 2 bytes at +4 in [0, 1), 6 bytes in [1, 2).
  // The second on the first: at time 0 its foot at +4 must be at least 6, so
  // it lies 2 higher; at time 1 it must be at least 2: 2 + 6 = 8.
  Problem problem;
  problem.buffers = {inGroup(1, 0, make(0, 1, 6)), inGroup(1, 0, make(1, 2, 2)),
                     inGroup(2, 4, make(0, 1, 2)),
                     inGroup(2, 0, make(1, 2, 6))};
  expectMinimum(problem, 8);
}

TEST(PairSearch, FillsGap) {
  // Bytes [0, 3) and [7, 10) of a group leave 4 free: 4 bytes fit, 5 do not and
  // then lie on top: 10 + 5.
  Problem problem;
  problem.buffers = {inGroup(1, 0, make(0, 1, 3)), inGroup(1, 7, make(0, 1, 3)),
                     make(0, 1, 4)};
  expectMinimum(problem, 10);
  problem.buffers.back().size = 5;
  expectMinimum(problem, 15);
}

TEST(PairSearch, RespectsFixedPlaces) {
  // 4 to 8 is taken: 4 bytes below it, the other 3 above: 8 + 3.
  Problem problem;
  problem.buffers = {fixedAt(4, make(0, 3, 4)), make(0, 3, 4), make(0, 3, 3)};
  expectMinimum(problem, 11);
  // 2 to 6 and 4 to 8.
  problem.buffers.push_back(fixedAt(2, make(2, 3, 4)));
  EXPECT_EQ(search(problem, 1000), SearchResult::Infeasible);
}

TEST(PairSearch, KeepsOddAlignments) {
  // Aligned to 2 at +0 and to 3 at +1: places 2 modulo 6, extent 2. Three
  // bytes more do not fit below place 2: above its end at 4, 4 + 3.
  Problem problem;
  problem.buffers = {inGroup(1, 0, make(0, 1, 1, 2)),
                     inGroup(1, 1, make(0, 1, 1, 3)), make(0, 1, 3)};
  expectMinimum(problem, 7);
  // A multiple of 3 above the end at 4: 6 + 3.
  problem.buffers.back().alignment = 3;
  expectMinimum(problem, 9);
  // Two such groups: places 2 and 8, 3 bytes between them at 4.
  problem.buffers.back().alignment = 1;
  problem.buffers.push_back(inGroup(2, 0, make(0, 1, 1, 2)));
  problem.buffers.push_back(inGroup(2, 1, make(0, 1, 1, 3)));
  expectMinimum(problem, 10);
}

/// Group 3 is put below 1 at time 1 and 1 below 2 at time 0; then the cheapest
/// way out of the collision of 2 and 3 at time 2 is to put 2 below 3. The three
/// would go on to lift each other up to the capacity.
TEST(PairSearch, RefutesCyclesQuickly) {
  Problem problem;
  problem.buffers = {
      inGroup(1, 0, make(0, 1, 1)), inGroup(1, 0, make(1, 2, 2)),
      inGroup(2, 0, make(0, 1, 1)), inGroup(2, 0, make(2, 3, 1)),
      inGroup(3, 0, make(1, 2, 1)), inGroup(3, 0, make(2, 3, 10))};
  Bodies bodies = collectBodies(problem);
  PairSearch pairs(bodies);
  EXPECT_EQ(search(problem, pairs, bodies, int64_t(1) << 61),
            SearchResult::Found);
  EXPECT_LT(pairs.getSteps(), 1000);
}

TEST(PairSearch, TakesLargestCapacity) {
  Problem problem;
  problem.buffers = {make(0, 1, 5, 64), make(0, 1, 7, 3),
                     fixedAt(10, make(0, 1, 4))};
  EXPECT_EQ(search(problem, INT64_MAX), SearchResult::Found);
}

TEST(PairSearch, EndsAtItsLimit) {
  Problem problem;
  for (int i = 0; i < 20; ++i)
    problem.buffers.push_back(make(0, 1, i + 1));
  Bodies bodies = collectBodies(problem);
  PairSearch pairs(bodies);
  EXPECT_EQ(pairs.run(210, 10), SearchResult::Limit);
  EXPECT_EQ(search(problem, pairs, bodies, 210), SearchResult::Found);
}

TEST(PairSearch, StaysExactWhenItBeginsAgain) {
  // 9 + 10 + ... + 16 = 100. All orders of the eight are tried in vain.
  Problem problem;
  for (int64_t size = 9; size <= 16; ++size)
    problem.buffers.push_back(make(0, 1, size));
  expectMinimum(problem, 100);
}

// 17 + 20 + 26 + 37 = 100 below the fixed byte, 13 + 19 + 38 + 30 = 100 above.
TEST(PairSearch, FindsAfterBeginningAgain) {
  Problem problem;
  problem.buffers.push_back(fixedAt(100, make(0, 1, 1)));
  for (int64_t size : {17, 20, 26, 13, 19, 38, 37, 30})
    problem.buffers.push_back(make(0, 1, size));
  expectMinimum(problem, 201);
}

TEST(PairSearch, SolvesAHundredBodies) {
  // 100 of one byte each: their numbers order them, no search is needed.
  Problem problem;
  for (int i = 0; i < 100; ++i)
    problem.buffers.push_back(make(0, 1, 1));
  expectMinimum(problem, 100);
}

//===----------------------------------------------------------------------===//
// Against brute force
//===----------------------------------------------------------------------===//

Problem makeRandom(std::mt19937 &random) {
  auto pick = [&](int below) { return static_cast<int64_t>(random() % below); };
  const int64_t alignments[] = {1, 1, 1, 2, 2, 3, 4};
  Problem problem;
  int64_t numBuffers = 2 + pick(6);
  bool hasGroups = pick(4) != 0, hasFixed = pick(3) == 0;
  for (int64_t i = 0; i < numBuffers; ++i) {
    int64_t lower = pick(4);
    Buffer buffer = make(lower, lower + pick(4), pick(7), alignments[pick(7)]);
    if (hasGroups && pick(3) != 0)
      buffer.group = GroupMember{pick(3), pick(8)};
    if (hasFixed && pick(4) == 0)
      buffer.fixedOffset = pick(6) * buffer.alignment;
    problem.buffers.push_back(buffer);
    if (pick(4) == 0) // a twin
      problem.buffers.push_back(problem.buffers.back());
  }
  if (!hasGroups || pick(2) == 0)
    return problem;
  // A twin of group 0, or almost one.
  for (size_t i = 0, end = problem.buffers.size(); i < end; ++i) {
    Buffer buffer = problem.buffers[i];
    if (!buffer.group || buffer.group->id != 0)
      continue;
    buffer.group->id = 3;
    if (pick(8) == 0)
      buffer.size += 1;
    if (pick(8) == 0) {
      buffer.group->offset += 1;
      buffer.size = std::max<int64_t>(buffer.size - 1, 0);
    }
    if (pick(8) == 0)
      buffer.alignment = alignments[pick(7)];
    problem.buffers.push_back(buffer);
  }
  return problem;
}

TEST(PairSearch, FindsTrueMinimum) {
  int compared = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    Problem problem = makeRandom(random);
    if (!checkProblem(problem).empty())
      continue;
    ++compared;
    std::optional<int64_t> minimum = BruteForce(problem).minimumHeight();
    Bodies bodies = collectBodies(problem);
    PairSearch pairs(bodies);
    for (int64_t capacity = 0; capacity <= minimum.value_or(127); ++capacity)
      ASSERT_EQ(search(problem, pairs, bodies, capacity),
                minimum && capacity == *minimum ? SearchResult::Found
                                                : SearchResult::Infeasible)
          << "seed " << seed << " capacity " << capacity << print(problem);
  }
  // Most are well-formed.
  EXPECT_GT(compared, 2000);
}

} // namespace
