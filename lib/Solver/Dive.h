//===- Dive.h - One placement from the ground up ----------------*- C++ -*-===//
//
// The fast path: a greedy placement that always works on the section with most
// bytes still to be placed, and that repairs itself by exact search over the
// last few decisions when it is about to exceed the height it was given.
// docs/Solver.md has the reasons.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_DIVE_H
#define MEMPLAN_LIB_SOLVER_DIVE_H

#include "OverlapIndex.h"
#include "RangeMaxTree.h"
#include "memplan/Solver/Solver.h"

namespace memplan::solver {

/// Takes no fixed offsets.
class Dive {
public:
  Dive(const Strip &strip, const SearchRules &rules);

  /// Places all items, at most `capacity` high if it succeeds, and returns the
  /// height. A dive whose steps run out stops there and returns nothing.
  std::optional<int64_t> run(int64_t capacity, const std::vector<int> &ranks,
                             int64_t maxSteps);

  const std::vector<int64_t> &getOffsets() const { return offset; }
  int64_t getSteps() const { return steps; }

private:
  int findLowest(int section);
  int descend(int item);
  int select(int64_t capacity);
  void place(int item);
  bool repair(int section, int64_t capacity, int64_t maxSteps);
  std::vector<int> collectComponent(const std::vector<uint8_t> &isFree,
                                    int section) const;
  bool searchSuffix(size_t keep, int section, int64_t capacity,
                    int64_t maxSteps);

  const Strip &in;
  const SearchRules rules;
  std::vector<int> ranks;
  OverlapIndex unplaced;
  /// Bytes still to be placed in each section.
  RangeMaxTree remaining;
  std::vector<int64_t> head, offset;
  /// Items in the order in which they were placed.
  std::vector<int> sequence;
  /// The section that makes the capacity unreachable, after `select`.
  int blockedSection = -1;
  int64_t steps = 0;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_DIVE_H
