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
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace memplan::solver {

/// A buffer's place in a rigid group: buffers with the same `id` move together,
/// each at its own distance from the group's origin and each alive for its own
/// time. Members of one group may share bytes (views of one buffer).
struct GroupMember {
  int64_t id = 0;
  /// In bytes, not negative: the buffer's offset is the group's origin plus
  /// this. The origin itself is free; only the members' offsets must not be
  /// negative.
  int64_t offset = 0;
};

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
  /// If set, the buffer is moved there at the end where that neither collides
  /// nor raises the height. Never makes a placement worse.
  std::optional<int64_t> preferredOffset;
  std::optional<GroupMember> group;
};

struct Problem {
  std::vector<Buffer> buffers;
  /// In bytes. If set, any placement of at most this height will do; if not,
  /// the lowest one is looked for.
  std::optional<int64_t> capacity;
};

/// What is known at the end.
enum class Status {
  /// The height equals a proved lower bound (and is within the capacity).
  Optimal,
  /// A placement (within the capacity, if one is given), perhaps not the
  /// lowest one.
  Feasible,
  /// Proved: no placement within the capacity, or none at all because fixed
  /// offsets collide.
  Infeasible,
  /// Only with a capacity: the effort ran out before a placement within it was
  /// found or proved not to be.
  Limit,
};

/// "optimal", "feasible", "infeasible" or "limit".
const char *toString(Status status);

struct Solution {
  /// One per buffer, in the problem's order; empty where no placement is known.
  /// With `Infeasible` or `Limit` it is the lowest placement found, which is
  /// higher than the capacity.
  std::vector<int64_t> offsets;
  /// The largest offset + size, 0 without buffers.
  int64_t height = 0;
  /// No valid placement has a smaller height.
  int64_t lowerBound = 0;
  Status status = Status::Feasible;
  /// Effort spent, in the unit of `SolverOptions::effort`.
  int64_t steps = 0;
};

/// A solution or what is wrong with the problem.
struct Outcome {
  std::optional<Solution> solution;
  std::string error;

  explicit operator bool() const { return solution.has_value(); }
};

/// How messages call a buffer, given its index; "buffer 7" where none is given.
using BufferName = std::function<std::string(size_t)>;

/// Checks that each number is legal (lower <= upper, size >= 0, alignment >= 1,
/// offsets and the capacity not negative, fixed offsets aligned), that each
/// group can be placed (fixed members agree on one origin, the alignments can
/// be met together), and that the sum of all sizes with their padding and the
/// end of each fixed buffer fit 63 bits together, so that no later sum can
/// overflow. Returns what is wrong with which buffer, or an empty string.
/// O(n log n).
std::string checkProblem(const Problem &problem,
                         const BufferName &name = nullptr);

/// A height below which no placement can be: the largest number of bytes that
/// live at one time, where bytes that members of one group share count once and
/// holes in a group count for nothing. Offsets are multiples of the greatest
/// common divisor g of all alignments, so that every range of bytes but the
/// topmost is rounded up to g. At least the end of each fixed buffer, and of
/// each group at its lowest place. The problem must have passed `checkProblem`.
/// O(n log n).
int64_t computeLowerBound(const Problem &problem);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_PROBLEM_H
