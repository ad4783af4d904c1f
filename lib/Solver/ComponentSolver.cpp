//===- ComponentSolver.cpp - Lowest height of one part of time ------------===//

#include "ComponentSolver.h"

#include "Dive.h"

#include <atomic>
#include <numeric>
#include <thread>

namespace memplan::solver {

namespace {

/// The first round gives each search about five times what it takes to place
/// all items without turning back; each further round has twice as many
/// searches, each twice as long.
constexpr int64_t stepsPerItemAndSection = 25;
constexpr int maxRound = 24;

struct NamedBranching {
  double floorWeight;
  std::vector<OrderKey> keys;
  bool matchWalls = false;
};

/// Different in kind: what one is bad at another is good at. docs/Solver.md has
/// the measurements behind the choice.
const std::vector<NamedBranching> &getPortfolio() {
  using K = OrderKey;
  static const std::vector<NamedBranching> portfolio = {
      {0, {K::Length, K::Area, K::Crowding}},
      {-0.2, {K::Size, K::Length, K::Area}},
      {1, {K::Length, K::Area, K::Crowding}},
      {0, {K::Length, K::Area, K::Crowding}, true},
      {-0.2, {K::Crowding, K::Length, K::Area}},
      {-3, {K::Crowding, K::Area, K::Length}},
      {0.5, {K::Sections, K::Size, K::Area}},
      {-3, {K::Crowding, K::Length, K::Area}},
      {-1000, {K::Crowding, K::Size, K::Length}},
      {-0.2, {K::Size, K::Length, K::Area}, true},
      {-0.5, {K::Area, K::Length, K::Crowding}},
      {0.2, {K::Size, K::Length, K::Area}},
      {-1, {K::Length, K::Area, K::Crowding}},
      {0, {K::Sections, K::Size, K::Area}},
  };
  return portfolio;
}

/// Shorter searches aren't worth a thread.
constexpr int64_t minThreadedLimit = int64_t{1} << 23;
constexpr size_t maxThreads = 16;

constexpr double randomWeights[] = {-0.2, -3, 0, -0.5, -10, -1, -1000};

} // namespace

ComponentSolver::ComponentSolver(const Strip &strip,
                                 const SolverOptions &options, Budget &budget)
    : in(strip), rules(options.rules), budget(budget),
      numThreads(options.threads > 0 ? options.threads
                                     : std::thread::hardware_concurrency()),
      crowding(computeCrowding(strip)) {
  numThreads = std::clamp<size_t>(numThreads, 1, maxThreads);
  quantum = 0;
  for (int i = 0; i < in.numItems; ++i) {
    quantum = std::gcd(quantum, std::gcd(in.size[i], in.alignment[i]));
    if (in.fixedOffset[i] != noOffset)
      quantum = std::gcd(quantum, in.fixedOffset[i]);
    // The last byte of a padded item may be anywhere.
    if (in.padding[i] != 0)
      quantum = 1;
  }
  quantum = std::max<int64_t>(quantum, 1);
}

bool ComponentSolver::isSearchable() const {
  return in.numItems <= maxSearchItems;
}

void ComponentSolver::addBranchings(size_t count) {
  while (branchings.size() < count) {
    size_t next = branchings.size();
    if (next < getPortfolio().size()) {
      const NamedBranching &named = getPortfolio()[next];
      branchings.push_back({named.floorWeight,
                            computeRanks(in, crowding, named.keys),
                            named.matchWalls});
    } else {
      branchings.push_back({randomWeights[next % std::size(randomWeights)],
                            computeRandomRanks(in, crowding, next),
                            /*matchWalls=*/next % 2 == 0});
    }
  }
}

void ComponentSolver::dive(Bracket &bracket, int64_t goal) {
  for (int64_t fixed : in.fixedOffset)
    if (fixed != noOffset)
      return;
  using K = OrderKey;
  const std::vector<OrderKey> orders[] = {
      {K::Length, K::Area, K::Crowding},
      {K::Crowding, K::Length, K::Area},
      {K::Size, K::Length, K::Area},
  };
  Dive dive(in, rules);
  for (const std::vector<OrderKey> &keys : orders) {
    if (bracket.height <= goal || budget.isSpent())
      return;
    std::optional<int64_t> height =
        dive.run(goal, computeRanks(in, crowding, keys),
                 budget.getPiece(std::numeric_limits<int64_t>::max()));
    budget.charge(dive.getSteps());
    if (height && *height < bracket.height) {
      bracket.height = *height;
      bracket.offsets = dive.getOffsets();
    }
    // Small ones are better searched.
    if (isSearchable())
      return;
  }
}

/// Runs searches `begin` to `end` of the portfolio, the first here and each
/// other in a thread of its own, and stops what a lower-numbered one makes
/// needless. Returns the lowest number that came to a result, or `end`: the
/// same as if they had run one after the other.
size_t ComponentSolver::runBatch(size_t begin, size_t end, int64_t capacity,
                                 int64_t limit,
                                 std::vector<SearchResult> &results) {
  std::atomic<size_t> winner = end;
  auto runOne = [&](size_t i) {
    SearchResult result = searches[i - begin].run(
        capacity, branchings[i], limit, [&winner, i] { return winner < i; });
    results[i - begin] = result;
    if (result == SearchResult::Limit)
      return;
    size_t best = winner;
    while (i < best && !winner.compare_exchange_weak(best, i))
      ;
  };
  std::vector<std::thread> threads;
  for (size_t i = begin + 1; i < end; ++i)
    threads.emplace_back(runOne, i);
  runOne(begin);
  for (std::thread &thread : threads)
    thread.join();
  return winner;
}

SearchResult ComponentSolver::searchAll(Bracket &bracket, int64_t capacity,
                                        int round) {
  int64_t limit = stepsPerItemAndSection * in.numItems *
                  (int64_t{in.numItems} + in.numSections);
  limit <<= std::min(round, maxRound);
  size_t count = getPortfolio().size() << std::min(round, maxRound);
  for (size_t i = 0; i < count && !budget.isSpent();) {
    // Steps are counted as if searches ran one after the other, so all of a
    // batch must have a full piece left.
    size_t batch = std::min(numThreads, count - i);
    if (limit < minThreadedLimit ||
        budget.getPiece(static_cast<int64_t>(batch) * limit) <
            static_cast<int64_t>(batch) * limit)
      batch = 1;
    while (searches.size() < batch)
      searches.emplace_back(in, rules);
    addBranchings(i + batch);
    std::vector<SearchResult> results(batch);
    int64_t piece = budget.getPiece(limit);
    size_t winner = runBatch(i, i + batch, capacity, piece, results);
    // No more than the piece, so that the next has the same whatever the batch.
    for (size_t k = i; k < i + batch && k <= winner; ++k)
      budget.charge(std::min(searches[k - i].getSteps(), piece));
    if (winner < i + batch) {
      conclude(bracket, capacity, searches[winner - i], results[winner - i]);
      return results[winner - i];
    }
    i += batch;
  }
  return SearchResult::Limit;
}

void ComponentSolver::conclude(Bracket &bracket, int64_t capacity,
                               const SectionSearch &search,
                               SearchResult result) {
  if (result == SearchResult::Infeasible) {
    bracket.lowerBound =
        std::max(bracket.lowerBound, (capacity / quantum + 1) * quantum);
    return;
  }
  bracket.offsets = search.getOffsets();
  bracket.height = 0;
  for (int i = 0; i < in.numItems; ++i)
    bracket.height = std::max(bracket.height,
                              bracket.offsets[i] + in.size[i] - in.padding[i]);
}

void ComponentSolver::reach(Bracket &bracket, int64_t goal) {
  bracket.lowerBound = alignUp(bracket.lowerBound, quantum);
  if (bracket.height > goal)
    dive(bracket, goal);
  if (!isSearchable())
    return;
  for (int round = 0;
       bracket.height > goal && bracket.lowerBound <= goal && !budget.isSpent();
       ++round)
    searchAll(bracket, goal, round);
}

void ComponentSolver::minimize(Bracket &bracket, int64_t goal) {
  bracket.lowerBound = alignUp(bracket.lowerBound, quantum);
  goal = std::max(goal, bracket.lowerBound);
  if (bracket.height > goal)
    dive(bracket, goal);
  if (!isSearchable())
    return;
  for (int round = 0; bracket.height > goal && !budget.isSpent(); ++round) {
    goal = std::max(goal, bracket.lowerBound);
    bisect(bracket, goal, round);
  }
}

/// One round: the goal itself, then a few easier heights, halfway between what
/// was not reached and what was. Few, since each that fails costs as much as
/// the goal, and the next round asks again.
void ComponentSolver::bisect(Bracket &bracket, int64_t goal, int round) {
  constexpr int maxFailures = 3;
  searchAll(bracket, goal, round);
  int64_t failed = goal;
  for (int failures = 0; failures < maxFailures && bracket.height > failed &&
                         !budget.isSpent();) {
    failed = std::max(failed, bracket.lowerBound - quantum);
    int64_t middle = failed + (bracket.height - failed) / 2;
    middle = middle / quantum * quantum;
    if (middle <= failed)
      return;
    if (searchAll(bracket, middle, round) != SearchResult::Found) {
      failed = middle;
      ++failures;
    }
  }
}

} // namespace memplan::solver
