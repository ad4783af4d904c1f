//===- Problem.h - Offset assignment: the problem ---------------*- C++ -*-===//
//
// Buffers with known lifetimes are to be given offsets in one block so that no
// two buffers that live at the same time share a byte, and the block is small
// (dynamic storage allocation, NP-hard: Garey and Johnson, SR2). Nothing here
// knows MLIR; all numbers are bytes or abstract time points.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_SOLVER_PROBLEM_H
#define MEMPLAN_SOLVER_PROBLEM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memplan::solver {

/// One buffer. It lives in the half-open interval [lower, upper).
///
/// Two degenerate forms are legal. A buffer of size 0 or of an empty lifetime
/// shares bytes with nobody; it still gets an aligned offset with
/// offset + size <= height.
struct Buffer {
  int64_t lower = 0;
  int64_t upper = 0;
  /// In bytes, not rounded up.
  int64_t size = 0;
  /// In bytes, at least 1; the offset is a multiple of it.
  int64_t alignment = 1;
  /// If set, the offset is given and not chosen.
  std::optional<int64_t> fixedOffset;
};

struct Problem {
  std::vector<Buffer> buffers;
};

/// What is known about the height of a solution.
enum class Status {
  /// The height equals a proved lower bound.
  Optimal,
  /// A valid placement, perhaps not the lowest one.
  Feasible,
};

struct Solution {
  /// One per buffer, in the problem's order.
  std::vector<int64_t> offsets;
  /// The largest offset + size, 0 without buffers.
  int64_t height = 0;
  /// No valid placement has a smaller height.
  int64_t lowerBound = 0;
  Status status = Status::Feasible;
};

/// A solution or the reason why there is none.
struct Outcome {
  std::optional<Solution> solution;
  std::string error;

  explicit operator bool() const { return solution.has_value(); }
};

/// Checks each buffer by itself: lower <= upper, size >= 0, alignment >= 1,
/// fixed offsets non-negative and aligned, and that the sum of all aligned
/// sizes and the end of each fixed buffer fit int64_t, so that no later sum can
/// overflow. Returns what is wrong, or an empty string.
std::string checkProblem(const Problem &problem);

/// A height below which no placement can be: the largest number of bytes that
/// live at one time. Offsets are multiples of the greatest common divisor g of
/// all alignments, so each live buffer but the topmost takes its size rounded
/// up to g. The problem must have passed `checkProblem`.
int64_t computeLowerBound(const Problem &problem);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_PROBLEM_H
