//===- Reference.h - Peaks by definition, orders by trial -------*- C++ -*-===//
//
// Shares no code with lib/Schedule: lifetimes are intervals of positions, and
// the smallest peak is that of the best of all orders.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TEST_UNIT_SCHEDULE_REFERENCE_H
#define MEMPLAN_TEST_UNIT_SCHEDULE_REFERENCE_H

#include "memplan/Schedule/Schedule.h"
#include "memplan/Support/SplitMix64.h"

namespace memplan::schedule {

/// The peak of an order, or -1 if it is none of the problem's.
int64_t computeReferencePeak(const Problem &problem,
                             const std::vector<int> &order);

/// The smallest peak of all orders.
int64_t findSmallestPeak(const Problem &problem);

/// What random problems are made of; percents are per node or storage.
struct Shape {
  int numNodes = 8;
  int maxPredecessors = 2;
  /// Predecessors are at most so many nodes back.
  int reach = 8;
  int64_t maxBytes = 10;
  int overwritePercent = 40;
  int aliasPercent = 20;
  int liveOutPercent = 10;
  int liveInPercent = 20;
  int workspacePercent = 20;
};

/// A well-formed problem: each node makes a storage, some write into one that
/// another made (parts of one buffer), and read those of their predecessors.
Problem makeRandomProblem(SplitMix64 &random, const Shape &shape);

/// For messages.
std::string print(const Problem &problem);

} // namespace memplan::schedule

#endif // MEMPLAN_TEST_UNIT_SCHEDULE_REFERENCE_H
