//===- LiveProfile.h - How many bytes live when -----------------*- C++ -*-===//

#ifndef MEMPLAN_SOLVER_LIVEPROFILE_H
#define MEMPLAN_SOLVER_LIVEPROFILE_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver {

/// From `time` to the time of the next point, `bytes` live: sizes rounded up
/// to the common divisor of the alignments, what members of a group share
/// counted once (see `computeLowerBound`).
struct LivePoint {
  int64_t time;
  int64_t bytes;
};

/// In the order of time, each time once; the last point has no live bytes. The
/// problem must have passed `checkProblem`. O(n log n).
std::vector<LivePoint> computeLiveProfile(const Problem &problem);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_LIVEPROFILE_H
