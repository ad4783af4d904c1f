//===- Make.h - Buffers in one line -----------------------------*- C++ -*-===//

#ifndef MEMPLAN_TEST_UNIT_SOLVER_MAKE_H
#define MEMPLAN_TEST_UNIT_SOLVER_MAKE_H

#include "memplan/Solver/Problem.h"

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

} // namespace memplan::solver::test

#endif // MEMPLAN_TEST_UNIT_SOLVER_MAKE_H
