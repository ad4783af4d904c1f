//===- Checker.h - Offset assignment: independent check ---------*- C++ -*-===//

#ifndef MEMPLAN_SOLVER_CHECKER_H
#define MEMPLAN_SOLVER_CHECKER_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver {

/// Checks a solution by a sweep over time that shares no code with the solvers
/// and trusts no number, of the problem or of the solution:
///
/// - Every buffer has an offset, aligned, not negative, at its fixed place; the
///   members of a group lie at their distances.
/// - No two buffers that live at once share a byte, members of one group
///   excepted.
/// - The height is the largest end; the lower bound is not above it.
/// - `Optimal` only if they are equal. `Optimal` and `Feasible` come with
///   offsets and within the capacity; `Infeasible` and `Limit` either without
///   offsets (and height 0) or above the capacity. `Limit` only with a capacity
///   that the lower bound leaves open.
///
/// Returns the first fault found, or an empty string. O(n log n).
std::string checkSolution(const Problem &problem, const Solution &solution,
                          const BufferName &name = nullptr);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_CHECKER_H
