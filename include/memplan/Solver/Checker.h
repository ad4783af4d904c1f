//===- Checker.h - Offset assignment: independent check ---------*- C++ -*-===//

#ifndef MEMPLAN_SOLVER_CHECKER_H
#define MEMPLAN_SOLVER_CHECKER_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver {

/// Checks a solution by a sweep over time that shares no code with the solvers:
/// every buffer has an offset, aligned, not negative, at its fixed place,
/// inside the height; no two buffers that live at once share a byte; the height
/// is the largest end; the lower bound is not above it; `Optimal` only if they
/// are equal. Returns the first fault found, or an empty string. O(n log n).
std::string checkSolution(const Problem &problem, const Solution &solution);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_CHECKER_H
