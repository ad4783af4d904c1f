//===- Bodies.h - What is moved as one --------------------------*- C++ -*-===//
//
// The solver's view of a problem: *bodies*, each a buffer alone or a rigid
// group, made of parts that take bytes for some sections of time. A solution is
// a place for each body.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_BODIES_H
#define MEMPLAN_LIB_SOLVER_BODIES_H

#include "OccupancyIndex.h"
#include "Strip.h"
#include "memplan/Solver/Problem.h"

namespace memplan::solver {

struct Body {
  /// Its parts in `Bodies::parts`: those of its buffers that take bytes.
  int firstPart = 0, lastPart = 0;
  /// Bytes from its place to its end, whether taken or not.
  int64_t extent = 0;
  /// The places are residue + k * modulus, k >= 0.
  int64_t modulus = 1, residue = 0;
  /// The given place or `noOffset`.
  int64_t fixedPlace = noOffset;
  /// From the first to the last time it takes bytes.
  int64_t lower = 0, upper = 0;
  /// Bytes times time points, summed over its parts.
  double area = 0;

  int numParts() const { return lastPart - firstPart; }
};

struct Bodies {
  std::vector<Body> list;
  std::vector<OccupancyIndex::Part> parts;
  int numSections = 0;
  /// For each buffer its body and its distance from the body's place.
  std::vector<int> bodyOf;
  std::vector<int64_t> distance;

  int size() const { return static_cast<int>(list.size()); }
};

/// The problem must have passed `checkProblem`. O(n log n).
Bodies collectBodies(const Problem &problem);

/// The bytes that are taken in each section, by fixed bodies and others.
std::vector<int64_t> computeLiveBytes(const Bodies &bodies);

/// One per buffer.
std::vector<int64_t> toOffsets(const Bodies &bodies,
                               const std::vector<int64_t> &places);

/// The largest end of a body.
int64_t computeHeight(const Bodies &bodies, const std::vector<int64_t> &places);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_BODIES_H
