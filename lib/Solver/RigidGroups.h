//===- RigidGroups.h - Where a rigid group may lie --------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_RIGIDGROUPS_H
#define MEMPLAN_LIB_SOLVER_RIGIDGROUPS_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver {

/// Buffers that move together. The group's place is the offset of its lowest
/// member; the alignments leave the places residue + k * modulus with k >= 0.
struct RigidGroup {
  /// In the problem's order.
  std::vector<size_t> members;
  /// The smallest of the members' group offsets.
  int64_t lowest = 0;
  /// From the lowest member's first byte to the last end.
  int64_t extent = 0;
  int64_t modulus = 1;
  int64_t residue = 0;
  /// The place that fixed members decide.
  std::optional<int64_t> fixedPlace;
};

/// All groups in the order of their first members. Stops at a group that cannot
/// be placed and then returns why. The numbers of each buffer by itself must be
/// legal. O(n log n).
std::string collectGroups(const Problem &problem, const BufferName &name,
                          std::vector<RigidGroup> &groups);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_RIGIDGROUPS_H
