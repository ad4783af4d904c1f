//===- Budget.h - Bound on effort -------------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_BUDGET_H
#define MEMPLAN_LIB_SOLVER_BUDGET_H

#include "memplan/Solver/Solver.h"

#include <algorithm>
#include <chrono>

namespace memplan::solver {

/// Steps that are left and, if asked for, time.
class Budget {
public:
  explicit Budget(const SolverOptions &options) : left(options.effort) {
    if (options.timeLimit)
      deadline =
          Clock::now() +
          std::chrono::duration_cast<Clock::duration>(
              std::chrono::duration<double>(std::min(*options.timeLimit, 1e6)));
  }

  void charge(int64_t steps) {
    left -= steps;
    used += steps;
  }
  bool isSpent() const {
    return left <= 0 || (deadline && Clock::now() >= *deadline);
  }
  /// Steps that the next piece of work may take. Short with a time limit, since
  /// that is only looked at between pieces.
  int64_t getPiece(int64_t wanted) const {
    constexpr int64_t shortPiece = int64_t{1} << 26;
    wanted = std::min(wanted, left);
    return deadline ? std::min(wanted, shortPiece) : wanted;
  }
  /// A budget of its own of at most so many of the steps that are left.
  Budget getPart(int64_t steps) const {
    Budget part = *this;
    part.left = std::min(left, steps);
    part.used = 0;
    return part;
  }
  int64_t getUsed() const { return used; }

private:
  using Clock = std::chrono::steady_clock;
  int64_t left;
  int64_t used = 0;
  std::optional<Clock::time_point> deadline;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_BUDGET_H
