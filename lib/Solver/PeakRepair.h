//===- PeakRepair.h - What failed goes first --------------------*- C++ -*-===//
//
// Improvement at scale: the bodies around the sections where a greedy placement
// grew too high are a small problem that can be solved well, and what is left
// then fits around them (squeaky wheel optimization, Joslin and Clements 1999,
// with a search for the squeaky part).
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_PEAKREPAIR_H
#define MEMPLAN_LIB_SOLVER_PEAKREPAIR_H

#include "Bodies.h"
#include "Budget.h"
#include "RangeMaxTree.h"

#include <functional>

namespace memplan::solver {

class PeakRepair {
public:
  /// Solves a part of the problem, down to a goal.
  using SolveCore =
      std::function<Solution(const Problem &core, int64_t goal, Budget budget)>;

  PeakRepair(const Problem &problem, const Bodies &bodies, SolveCore solveCore);

  /// Looks for places of a height of at most `goal`, beginning with those
  /// given; leaves there the lowest it has come to. Returns a proved lower
  /// bound on the height.
  int64_t run(std::vector<int64_t> &places, int64_t goal, Budget &budget);

private:
  bool growCore(const std::vector<int64_t> &places, int64_t goal);
  std::vector<int> markCrowdedSections(const std::vector<int64_t> &places,
                                       int64_t goal) const;
  Solution solveCore(int64_t goal, Budget &budget);

  const Problem &problem;
  const SolveCore solve;
  /// Those of the core with the places that they were given.
  Bodies bodies;
  RangeMaxTree live;
  std::vector<char> isInCore;
  int64_t coreSize = 0;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_PEAKREPAIR_H
