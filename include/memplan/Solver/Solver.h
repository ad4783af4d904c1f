//===- Solver.h - Offset assignment: the solver interface -------*- C++ -*-===//

#ifndef MEMPLAN_SOLVER_SOLVER_H
#define MEMPLAN_SOLVER_SOLVER_H

#include "memplan/Solver/Problem.h"

#include <memory>

namespace memplan::solver {

/// Assigns offsets. Implementations are deterministic: the same problem and
/// options give the same solution on any machine, whatever its load; search is
/// bounded by steps, not by time.
class Solver {
public:
  virtual ~Solver();

  /// Fails only on a malformed problem (see `checkProblem`).
  virtual Outcome solve(const Problem &problem) = 0;
};

/// The inference rules of the exact search, each of which can be switched off
/// to measure what it is worth. None changes what is proved. See
/// docs/Solver.md for each.
struct SearchRules {
  /// Solve parts of time that no unplaced buffer joins each for itself.
  bool decompose = true;
  /// Return past decisions that a failure does not depend on.
  bool backjump = true;
  /// Recognise partial placements that failed before.
  bool remember = true;
  /// Of two buffers with the same lifetime, one directly on the other, keep one
  /// order.
  bool orderStacks = true;
  /// Place equal buffers in one order.
  bool orderTwins = true;
};

struct SolverOptions {
  /// Bound on the work, in steps (about a nanosecond each: one buffer or
  /// section looked at). The first greedy placement always runs to its end.
  int64_t effort = 2'000'000'000;
  /// In seconds of wall-clock time. Opt-in: with it the answer depends on the
  /// machine.
  std::optional<double> timeLimit;
  /// At most so many threads, 0 for one per core. The answer and its steps are
  /// the same with any number.
  int threads = 0;
  SearchRules rules;
};

/// Greedy placements, exact search and improvement at scale, in that order
/// until the height is proved optimal or the effort is spent.
std::unique_ptr<Solver> createSolver(SolverOptions options = {});

/// Each buffer at the end of the one before: no byte is used twice. The oracle
/// to compare with when a plan is suspected.
std::unique_ptr<Solver> createNoReuseSolver();

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_SOLVER_H
