//===- SolverPropertyTest.cpp - The solver against brute force ------------===//
//
// Tiny problems are always solved to the end: the height is the true minimum
// and called optimal, with a capacity the answer is yes or no.
//
//===----------------------------------------------------------------------===//

#include "BruteForce.h"
#include "Make.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Instances.h"
#include "memplan/Solver/Solver.h"
#include "memplan/Support/SplitMix64.h"

#include "gtest/gtest.h"

#include <functional>

using namespace memplan::solver;
using namespace memplan::solver::test;
using memplan::solver::test::BruteForce;

namespace {

/// What is wrong with the solver's answer, given the true minimum.
std::string judge(const Problem &problem, std::optional<int64_t> minimum,
                  const SolverOptions &options = {}) {
  Outcome outcome = createSolver(options)->solve(problem);
  if (!outcome)
    return "error: " + outcome.error;
  const Solution &solution = *outcome.solution;
  if (std::string fault = checkSolution(problem, solution); !fault.empty())
    return "wrong placement: " + fault;
  std::string got = std::string(toString(solution.status)) + " at height " +
                    std::to_string(solution.height) + " with lower bound " +
                    std::to_string(solution.lowerBound);
  if (!minimum || (problem.capacity && *minimum > *problem.capacity))
    return solution.status == Status::Infeasible ? "" : got;
  if (solution.lowerBound > *minimum)
    return "false bound: " + got;
  if (problem.capacity)
    // Within the capacity, as the checker has seen.
    return solution.status == Status::Optimal ||
                   solution.status == Status::Feasible
               ? ""
               : got;
  return solution.status == Status::Optimal && solution.height == *minimum
             ? ""
             : got;
}

/// Compares on one problem, without and with capacities around the minimum.
/// True if all is well.
bool compare(Problem problem) {
  BruteForce truth(problem);
  std::string malformed = checkProblem(problem);
  EXPECT_EQ(malformed.empty(), truth.isWellFormed())
      << malformed << print(problem);
  if (!malformed.empty())
    return !testing::Test::HasFailure();
  std::optional<int64_t> minimum = truth.minimumHeight();
  std::string wanted =
      minimum ? std::to_string(*minimum) : std::string("infeasible");
  EXPECT_LE(computeLowerBound(problem), minimum.value_or(INT64_MAX))
      << print(problem);
  EXPECT_EQ(judge(problem, minimum), "")
      << "wanted " << wanted << print(problem);
  for (int64_t above : {-1, 0, 1}) {
    problem.capacity = minimum.value_or(8) + above;
    if (*problem.capacity < 0)
      continue;
    EXPECT_EQ(judge(problem, minimum), "")
        << "wanted " << wanted << print(problem);
  }
  return !testing::Test::HasFailure();
}

//===----------------------------------------------------------------------===//
// All small cases
//===----------------------------------------------------------------------===//

/// Calls `visit` with every multiset of `count` of the kinds.
bool forEachMultiset(const std::vector<Buffer> &kinds, size_t count,
                     const std::function<bool(const Problem &)> &visit,
                     Problem &problem, size_t first = 0) {
  if (problem.buffers.size() == count)
    return visit(problem);
  for (size_t kind = first; kind < kinds.size(); ++kind) {
    problem.buffers.push_back(kinds[kind]);
    bool goesOn = forEachMultiset(kinds, count, visit, problem, kind);
    problem.buffers.pop_back();
    if (!goesOn)
      return false;
  }
  return true;
}

void compareAll(const std::vector<Buffer> &kinds, size_t maxCount) {
  for (size_t count = 0; count <= maxCount; ++count) {
    Problem problem;
    if (!forEachMultiset(kinds, count, compare, problem))
      return;
  }
}

/// Every lifetime in [0, duration) with every one of the sizes.
std::vector<Buffer> makeKinds(int64_t duration,
                              const std::vector<int64_t> &sizes) {
  std::vector<Buffer> kinds;
  for (int64_t lower = 0; lower < duration; ++lower)
    for (int64_t upper = lower + 1; upper <= duration; ++upper)
      for (int64_t size : sizes) {
        kinds.emplace_back();
        kinds.back().lower = lower;
        kinds.back().upper = upper;
        kinds.back().size = size;
      }
  return kinds;
}

TEST(SolverProperty, AllOfSevenSizesOneAndTwo) {
  // 6 lifetimes, 2 sizes: 12 kinds.
  compareAll(makeKinds(3, {1, 2}), 7);
}

TEST(SolverProperty, AllOfFourSizesOneToThree) {
  // 10 lifetimes, 3 sizes: 30 kinds.
  compareAll(makeKinds(4, {1, 2, 3}), 4);
}

TEST(SolverProperty, AllAlignments) {
  // 3 lifetimes, sizes 0, 1 and 3, alignments 1 to 4: 36 kinds.
  std::vector<Buffer> kinds;
  for (const Buffer &kind : makeKinds(2, {0, 1, 3}))
    for (int64_t alignment : {1, 2, 3, 4}) {
      kinds.push_back(kind);
      kinds.back().alignment = alignment;
    }
  compareAll(kinds, 3);
}

TEST(SolverProperty, AllFixedOffsets) {
  // 3 lifetimes, sizes 1 and 2, free or fixed at 0 to 3: 30 kinds.
  std::vector<Buffer> kinds = makeKinds(2, {1, 2});
  for (const Buffer &kind : makeKinds(2, {1, 2}))
    for (int64_t offset : {0, 1, 2, 3}) {
      kinds.push_back(kind);
      kinds.back().fixedOffset = offset;
    }
  compareAll(kinds, 4);
}

TEST(SolverProperty, AllGroups) {
  // 3 lifetimes, sizes 1 and 2, in no group or in one of two at 0 to 2: 42
  // kinds.
  std::vector<Buffer> kinds = makeKinds(2, {1, 2});
  for (const Buffer &kind : makeKinds(2, {1, 2}))
    for (int64_t group : {0, 1})
      for (int64_t offset : {0, 1, 2}) {
        kinds.push_back(kind);
        kinds.back().group = GroupMember{group, offset};
      }
  compareAll(kinds, 4);
}

//===----------------------------------------------------------------------===//
// Random ones
//===----------------------------------------------------------------------===//

Problem makeRandom(uint64_t seed) {
  memplan::SplitMix64 random(seed);
  Problem problem;
  // Some problems have everything, some one thing alone.
  int64_t alignedPercent = random.chance(50) ? 50 : 0;
  int64_t fixedPercent = random.chance(40) ? 20 : 0;
  int64_t groupPercent = random.chance(50) ? 60 : 0;
  int64_t numGroups = random.between(1, 2);
  int64_t emptyPercent = random.chance(20) ? 20 : 0;
  for (int64_t i = 0, e = random.between(1, 7); i < e; ++i) {
    Buffer buffer;
    buffer.lower = random.between(0, 5);
    buffer.upper = random.between(buffer.lower + 1, 6);
    buffer.size = random.between(1, 6);
    if (random.chance(emptyPercent))
      buffer.upper = buffer.lower;
    if (random.chance(emptyPercent))
      buffer.size = 0;
    if (random.chance(alignedPercent))
      buffer.alignment = random.between(2, 4);
    if (random.chance(fixedPercent))
      buffer.fixedOffset =
          random.between(0, 8) / buffer.alignment * buffer.alignment;
    if (random.chance(groupPercent))
      buffer.group = GroupMember{random.below(numGroups), random.between(0, 6)};
    if (random.chance(10))
      buffer.preferredOffset = random.between(0, 20);
    problem.buffers.push_back(buffer);
  }
  return problem;
}

TEST(SolverProperty, RandomOnes) {
  constexpr uint64_t count = 100'000;
  for (uint64_t seed = 0; seed < count; ++seed)
    if (!compare(makeRandom(seed))) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
}

constexpr bool SearchRules::*rules[] = {
    &SearchRules::decompose, &SearchRules::backjump, &SearchRules::remember,
    &SearchRules::orderStacks, &SearchRules::orderTwins};
static_assert(std::size(rules) == sizeof(SearchRules), "every rule is listed");

TEST(SolverProperty, NoRuleChangesWhatIsProved) {
  for (uint64_t seed = 0; seed < 5'000; ++seed) {
    Problem problem = makeRandom(seed);
    if (!checkProblem(problem).empty())
      continue;
    std::optional<int64_t> minimum = BruteForce(problem).minimumHeight();
    SolverOptions none;
    for (size_t i = 0; i < std::size(rules); ++i) {
      SolverOptions options;
      options.rules.*rules[i] = none.rules.*rules[i] = false;
      ASSERT_EQ(judge(problem, minimum, options), "")
          << "seed " << seed << " without rule " << i << print(problem);
    }
    ASSERT_EQ(judge(problem, minimum, none), "")
        << "seed " << seed << " without rules" << print(problem);
  }
}

/// The brute force itself, against an even plainer one: every offset for every
/// buffer, judged by the checker.
std::optional<int64_t> tryEverything(const Problem &problem, int64_t limit) {
  std::optional<int64_t> best;
  Solution solution;
  solution.offsets.assign(problem.buffers.size(), 0);
  std::function<void(size_t)> place = [&](size_t i) {
    if (i < problem.buffers.size()) {
      for (int64_t offset = 0; offset <= limit; ++offset) {
        solution.offsets[i] = offset;
        place(i + 1);
      }
      return;
    }
    solution.height = 0;
    for (size_t j = 0; j < i; ++j)
      solution.height = std::max(solution.height,
                                 solution.offsets[j] + problem.buffers[j].size);
    if ((!best || solution.height < *best) &&
        checkSolution(problem, solution).empty())
      best = solution.height;
  };
  place(0);
  return best;
}

TEST(SolverProperty, BruteForceIsRight) {
  int compared = 0;
  for (uint64_t seed = 0; compared < 150; ++seed) {
    Problem problem = makeRandom(seed);
    problem.buffers.resize(std::min<size_t>(problem.buffers.size(), 3));
    if (!checkProblem(problem).empty())
      continue;
    ++compared;
    // No placement is made better by offsets above 18 + 14: two buffers of 6
    // below the third, or above one that is fixed at 8.
    EXPECT_EQ(BruteForce(problem).minimumHeight(), tryEverything(problem, 32))
        << "seed " << seed << print(problem);
  }
}

} // namespace
