//===- BruteForce.h - True minimum heights of tiny problems -----*- C++ -*-===//
//
// Shares no code with the library but the problem type.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TEST_UNIT_SOLVER_BRUTEFORCE_H
#define MEMPLAN_TEST_UNIT_SOLVER_BRUTEFORCE_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver::test {

/// Tries every offset below 128 for every buffer or group, depth first, always
/// the one with the fewest offsets left. So it is for problems whose buffers
/// fit 128 bytes one above the other, padding and fixed offsets included.
class BruteForce {
public:
  explicit BruteForce(const Problem &problem);

  /// Whether each buffer and group has an offset where it can be by itself: if
  /// not, the problem is malformed.
  bool isWellFormed() const;

  /// The smallest height of any placement; none if fixed buffers collide. The
  /// capacity plays no part.
  std::optional<int64_t> minimumHeight() const;

private:
  /// A set of offsets: bit i stands for offset i.
  using Offsets = unsigned __int128;

  /// What moves as one: a buffer, or a group.
  struct Unit {
    std::vector<size_t> members;
    int64_t lowest = 0;
    int64_t extent = 0;
    Offsets allowed = 0;
  };

  /// Where unit b collides with unit a: at d bytes above it (bit d of `above`),
  /// or below it (bit 127 - d of `below`).
  struct Collisions {
    Offsets above = 0;
    Offsets below = 0;
  };

  int64_t distance(const Unit &unit, size_t i) const;
  void addMember(size_t i);
  void measure(Unit &unit) const;
  bool collide(const Unit &a, const Unit &b, int64_t distance) const;
  std::vector<std::vector<size_t>> findComponents() const;
  std::optional<int64_t> minimumOf(const std::vector<size_t> &units) const;
  int64_t liveBytes(const std::vector<size_t> &units) const;
  bool search(std::vector<Offsets> &left, std::vector<size_t> open) const;

  const std::vector<Buffer> &buffers;
  std::vector<Unit> units;
  /// One row and one column for each unit.
  std::vector<std::vector<Collisions>> collisions;
};

} // namespace memplan::solver::test

#endif // MEMPLAN_TEST_UNIT_SOLVER_BRUTEFORCE_H
