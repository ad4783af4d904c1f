//===- Greedy.h - One order by local choice ---------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SCHEDULE_GREEDY_H
#define MEMPLAN_LIB_SCHEDULE_GREEDY_H

#include "memplan/Schedule/Schedule.h"

namespace memplan::schedule {

/// Always runs the ready node after which fewest bytes more are alive; ties go
/// to the one whose inputs were made last, then to the original order. Time
/// O(n log n) where each storage has few touchers.
std::vector<int> makeGreedyOrder(const Problem &problem, int64_t &steps);

/// Runs what a node needs just before it, depth first, as if the DAG were a
/// tree: first the predecessor that needs most bytes above those that it leaves
/// (Liu, "On the storage requirement in the out-of-core multifrontal method",
/// 1986). Linear, but for sorting.
std::vector<int> makeDemandOrder(const Problem &problem, int64_t &steps);

} // namespace memplan::schedule

#endif // MEMPLAN_LIB_SCHEDULE_GREEDY_H
