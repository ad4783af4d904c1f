//===- Strip.h - Offset assignment in the solver's terms --------*- C++ -*-===//
//
// The form in which the exact search takes a problem: time is cut into
// *sections*, the maximal sets of buffers that live at once, and a buffer's
// life becomes a range of section numbers. Sections that are part of a
// neighbour say nothing of their own and are left out.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_STRIP_H
#define MEMPLAN_LIB_SOLVER_STRIP_H

#include <cstdint>
#include <vector>

namespace memplan::solver {

constexpr int64_t noOffset = -1;

/// Rectangles to be stacked. One entry per item in each vector; every item
/// has a positive size and lives in at least one section.
struct Strip {
  int numItems = 0;
  int numSections = 0;
  /// The sections an item lives in: [first, last).
  std::vector<int> first, last;
  /// Life in time points, for orders by length and area.
  std::vector<int64_t> length;
  /// In bytes, rounded up to the grain that all offsets are multiples of.
  std::vector<int64_t> size;
  /// What was added to `size` by rounding: may stick out above the capacity.
  std::vector<int64_t> padding;
  std::vector<int64_t> alignment;
  /// Given offset or `noOffset`.
  std::vector<int64_t> fixedOffset;
  /// No lower offset is possible: the top of what is below and isn't moved.
  std::vector<int64_t> floor;

  /// What `buildStrip` needs of an item.
  struct Item {
    int64_t lower, upper, size, alignment;
    int64_t fixedOffset = noOffset;
    int64_t padding = 0;
    int64_t floor = 0;
  };

  bool overlap(int a, int b) const {
    return first[a] < last[b] && first[b] < last[a];
  }
};

/// Items, sorted by `lower`, keep their order. O(n log n).
Strip buildStrip(const std::vector<Strip::Item> &items);

/// What all offsets are multiples of: the greatest common divisor of the
/// alignments, at least 1.
int64_t computeGrain(const Strip &strip);

inline int64_t alignUp(int64_t value, int64_t alignment) {
  return alignment == 1 ? value
                        : (value + alignment - 1) / alignment * alignment;
}

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_STRIP_H
