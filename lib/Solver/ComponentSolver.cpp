//===- ComponentSolver.cpp - Lowest height of one part of time ------------===//

#include "ComponentSolver.h"

#include "Dive.h"

#include <numeric>

namespace memplan::solver {

namespace {

/// The exact search is for so many items at most: it keeps which of them
/// overlap as a matrix of bits.
constexpr int maxSearchItems = 4096;

/// The first round gives each search about five times what it takes to place
/// all items without turning back; each further round has twice as many
/// searches, each twice as long.
constexpr int64_t stepsPerItemAndSection = 25;
constexpr int maxRound = 24;

struct NamedBranching {
  double floorWeight;
  std::vector<OrderKey> keys;
};

/// Different in kind: what one is bad at another is good at. docs/Solver.md has
/// the measurements behind the choice.
const std::vector<NamedBranching> &getPortfolio() {
  using K = OrderKey;
  static const std::vector<NamedBranching> portfolio = {
      {0, {K::Length, K::Area, K::Crowding}},
      {-0.2, {K::Size, K::Length, K::Area}},
      {1, {K::Length, K::Area, K::Crowding}},
      {-0.2, {K::Crowding, K::Length, K::Area}},
      {-3, {K::Crowding, K::Area, K::Length}},
      {0.5, {K::Sections, K::Size, K::Area}},
      {-3, {K::Crowding, K::Length, K::Area}},
      {-1000, {K::Crowding, K::Size, K::Length}},
      {-0.5, {K::Area, K::Length, K::Crowding}},
      {0.2, {K::Size, K::Length, K::Area}},
      {-1, {K::Length, K::Area, K::Crowding}},
      {0, {K::Sections, K::Size, K::Area}},
  };
  return portfolio;
}

constexpr double randomWeights[] = {-0.2, -3, 0, -0.5, -10, -1, -1000};

} // namespace

ComponentSolver::ComponentSolver(const Instance &instance,
                                 const SearchRules &rules, Budget &budget)
    : in(instance), rules(rules), budget(budget),
      crowding(computeCrowding(instance)) {
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

const Branching &ComponentSolver::getBranching(size_t index) {
  while (branchings.size() <= index) {
    size_t next = branchings.size();
    if (next < getPortfolio().size()) {
      const NamedBranching &named = getPortfolio()[next];
      branchings.push_back(
          {named.floorWeight, computeRanks(in, crowding, named.keys)});
    } else {
      branchings.push_back({randomWeights[next % std::size(randomWeights)],
                            computeRandomRanks(in, crowding, next)});
    }
  }
  return branchings[index];
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

SearchResult ComponentSolver::searchAll(Bracket &bracket, int64_t capacity,
                                        int round) {
  if (!search)
    search.emplace(in, rules);
  int64_t limit = stepsPerItemAndSection * in.numItems *
                  (int64_t{in.numItems} + in.numSections);
  limit <<= std::min(round, maxRound);
  size_t count = getPortfolio().size() << std::min(round, maxRound);
  for (size_t i = 0; i < count && !budget.isSpent(); ++i) {
    SearchResult result =
        search->run(capacity, getBranching(i), budget.getPiece(limit));
    budget.charge(search->getSteps());
    if (result == SearchResult::Limit)
      continue;
    if (result == SearchResult::Found) {
      bracket.offsets = search->getOffsets();
      bracket.height = 0;
      for (int item = 0; item < in.numItems; ++item)
        bracket.height =
            std::max(bracket.height,
                     bracket.offsets[item] + in.size[item] - in.padding[item]);
    } else {
      bracket.lowerBound =
          std::max(bracket.lowerBound, (capacity / quantum + 1) * quantum);
    }
    return result;
  }
  return SearchResult::Limit;
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

/// One round: the goal itself, then ever easier heights until one is found, and
/// from there down again.
bool ComponentSolver::bisect(Bracket &bracket, int64_t goal, int round) {
  int64_t failed = goal;
  searchAll(bracket, goal, round);
  while (bracket.height > std::max(goal, bracket.lowerBound) &&
         !budget.isSpent()) {
    failed = std::max(failed, bracket.lowerBound - quantum);
    int64_t middle = failed + (bracket.height - failed) / 2;
    middle = middle / quantum * quantum;
    if (middle <= failed)
      return false;
    if (searchAll(bracket, middle, round) != SearchResult::Found)
      failed = middle;
  }
  return true;
}

} // namespace memplan::solver
