//===- ComponentSolver.h - Lowest height of one part of time ----*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_COMPONENTSOLVER_H
#define MEMPLAN_LIB_SOLVER_COMPONENTSOLVER_H

#include "Budget.h"
#include "Orders.h"
#include "SectionSearch.h"
#include "Strip.h"

#include <deque>

namespace memplan::solver {

/// A placement and what is known about how low one can be.
struct Bracket {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  int64_t lowerBound = 0;
};

/// Dives first, then a portfolio of exact searches under growing limits.
class ComponentSolver {
public:
  /// The exact search is for so many items at most: it keeps which of them
  /// overlap as a matrix of bits.
  static constexpr int maxSearchItems = 4096;

  ComponentSolver(const Strip &strip, const SolverOptions &options,
                  Budget &budget);

  /// Looks for a placement of at most `goal`; ends when it has one, when the
  /// goal is proved out of reach or when the budget is spent.
  void reach(Bracket &bracket, int64_t goal);

  /// Closes the bracket from both sides, no further down than `goal`.
  void minimize(Bracket &bracket, int64_t goal);

private:
  void dive(Bracket &bracket, int64_t goal);
  SearchResult searchAll(Bracket &bracket, int64_t capacity, int round);
  void bisect(Bracket &bracket, int64_t goal, int round);
  size_t runBatch(size_t begin, size_t end, int64_t capacity, int64_t limit,
                  std::vector<SearchResult> &results);
  void conclude(Bracket &bracket, int64_t capacity, const SectionSearch &search,
                SearchResult result);
  void addBranchings(size_t count);
  bool isSearchable() const;

  const Strip &in;
  const SearchRules rules;
  Budget &budget;
  size_t numThreads;
  std::vector<int64_t> crowding;
  /// All heights are multiples of this.
  int64_t quantum = 1;
  std::vector<Branching> branchings;
  /// One for each thread. They are large; a deque doesn't move them.
  std::deque<SectionSearch> searches;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_COMPONENTSOLVER_H
