//===- Solver.h - Offset assignment: the solver interface -------*- C++ -*-===//

#ifndef MEMPLAN_SOLVER_SOLVER_H
#define MEMPLAN_SOLVER_SOLVER_H

#include "memplan/Solver/Problem.h"

#include <memory>

namespace memplan::solver {

/// Assigns offsets. Implementations are deterministic: the same problem gives
/// the same solution on any machine; search is bounded by steps, never by time.
class Solver {
public:
  virtual ~Solver();

  /// Fails only on a malformed problem (see `checkProblem`) or on fixed buffers
  /// that collide with each other.
  virtual Outcome solve(const Problem &problem) = 0;
};

/// How a heuristic chooses among the gaps that are large enough.
enum class Fit { First, Best };

/// In which order a heuristic places buffers.
enum class Order { Size, Area, Length, Start, End, Contention };

struct HeuristicOptions {
  /// Bound on the comparisons of two buffers over all tries; the first try
  /// always runs to its end.
  int64_t maxSteps = 100'000'000;
};

/// The best of first fit and best fit over several orders. Stops at the first
/// placement that meets the lower bound.
std::unique_ptr<Solver> createHeuristicSolver(HeuristicOptions options = {});

/// Each buffer at the end of the one before: no byte is used twice. The oracle
/// to compare with when a plan is suspected.
std::unique_ptr<Solver> createNoReuseSolver();

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_SOLVER_H
