//===- Make.h - Buffers in one line -----------------------------*- C++ -*-===//

#ifndef MEMPLAN_TEST_UNIT_SOLVER_MAKE_H
#define MEMPLAN_TEST_UNIT_SOLVER_MAKE_H

#include "memplan/Solver/Problem.h"

#include <sstream>
#include <string>

namespace memplan::solver::test {

inline Buffer make(int64_t lower, int64_t upper, int64_t size,
                   int64_t alignment = 1) {
  Buffer buffer;
  buffer.lower = lower;
  buffer.upper = upper;
  buffer.size = size;
  buffer.alignment = alignment;
  return buffer;
}

inline Buffer fixedAt(int64_t offset, Buffer buffer) {
  buffer.fixedOffset = offset;
  return buffer;
}

inline Buffer inGroup(int64_t id, int64_t offset, Buffer buffer) {
  buffer.group = GroupMember{id, offset};
  return buffer;
}

/// A problem for failure messages, a line for each buffer.
inline std::string print(const Problem &problem) {
  std::ostringstream os;
  for (const Buffer &buffer : problem.buffers) {
    os << "\n  [" << buffer.lower << ", " << buffer.upper << ") size "
       << buffer.size << " alignment " << buffer.alignment;
    if (buffer.fixedOffset)
      os << " fixed at " << *buffer.fixedOffset;
    if (buffer.preferredOffset)
      os << " prefers " << *buffer.preferredOffset;
    if (buffer.group)
      os << " group " << buffer.group->id << " at " << buffer.group->offset;
  }
  if (problem.capacity)
    os << "\n  capacity " << *problem.capacity;
  return os.str();
}

} // namespace memplan::solver::test

#endif // MEMPLAN_TEST_UNIT_SOLVER_MAKE_H
