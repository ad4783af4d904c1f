//===- PairSearch.h - Exact search for bodies of any shape ------*- C++ -*-===//
//
// Does a placement of at most a given height exist? Disjunctive search: for two
// bodies that live at once, the displacement of one from the other lies in one
// of some ranges. Once a range is chosen for each pair what is left are
// difference constraints, whose least solution is found by propagation. Knows
// parts only through the pairs, so that rigid groups may interlock, have gaps
// and odd alignments. For small problems: it keeps all pairs.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_PAIRSEARCH_H
#define MEMPLAN_LIB_SOLVER_PAIRSEARCH_H

#include "Bodies.h"
#include "SectionSearch.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan::solver {

class PairSearch {
public:
  /// O(p^2 log p) for p parts.
  explicit PairSearch(const Bodies &bodies);

  /// Looks for a placement of at most `capacity` bytes within `maxSteps` steps.
  /// May be called again with another capacity.
  SearchResult run(int64_t capacity, int64_t maxSteps);

  /// After `Found`: one per body.
  const std::vector<int64_t> &getPlaces() const { return lowest; }
  /// Of the last run: pairs looked at.
  int64_t getSteps() const { return steps; }

private:
  /// Displacements, both ends included.
  struct Range {
    int64_t low, high;
  };
  /// The displacement place[b] - place[a] lies in one of `ranges`, namely in
  /// one of [first, last] at the moment.
  struct Pair {
    int a, b;
    int firstRange, lastRange;
    int first, last;
    /// How often it has failed, plus 1.
    int64_t failures;
  };
  /// Why a body's lowest place isn't lower: it lies at least `distance` above
  /// `body`, or nothing but its alignment if `body` is negative.
  struct Support {
    int body;
    int64_t distance;
  };
  enum class Change : uint8_t { Lowest, Highest, First, Last };
  struct TrailEntry {
    Change change;
    int index;
    int64_t oldValue;
    Support oldSupport;
  };
  /// What remains of a pair's ranges once those tried have failed.
  struct Decision {
    int pair;
    int first, last;
    size_t mark;
  };

  void buildPair(int a, int b);
  bool areTwins(int a, int b) const;
  void findComponents();

  bool reset(int64_t capacity);
  SearchResult searchComponent(const std::vector<int> &component,
                               int64_t maxSteps);
  bool choose(const std::vector<int> &component, Decision &taken,
              Decision &other);
  SearchResult backtrack(int64_t maxSteps);
  void restrict(const Decision &decision);

  SearchResult propagate(int64_t maxSteps);
  bool revise(int index);
  bool raise(int body, Support support);
  bool lower(int body, int64_t place);
  bool isLiftedByItself(int body);
  void enqueue(int body);
  void undo(size_t mark);

  const Bodies &bodies;

  // Fixed for the problem. A fixed place is a residue modulo 0.
  std::vector<int64_t> modulus, residue;
  std::vector<Pair> pairs;
  std::vector<Range> ranges;
  std::vector<std::vector<int>> pairsOf;
  /// Pairs, in sets that share no body.
  std::vector<std::vector<int>> components;

  // All places between these two that are still possible, both included and
  // both possible as far as the alignment goes.
  std::vector<int64_t> lowest, highest;
  std::vector<Support> supports;
  std::vector<TrailEntry> trail;
  std::vector<Decision> decisions;
  /// Bodies whose pairs are to be looked at, first in first out.
  std::vector<int> queue;
  std::vector<uint8_t> isQueued;

  int64_t steps = 0;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_PAIRSEARCH_H
