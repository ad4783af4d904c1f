//===- LiveRanges.h - Who owns which bytes now, for the checker -*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_LIVERANGES_H
#define MEMPLAN_LIB_SOLVER_LIVERANGES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan::solver {

/// Ranges of bytes that come and go, each with an owner; ranges of one owner
/// may overlap. A segment tree over the end points, which are known beforehand:
/// each operation visits O(log n) nodes. Invariant: all ranges that contain one
/// byte have the same owner. Owners and counts are below 2^31.
class LiveRanges {
public:
  /// A range by the indices of its end points.
  struct Range {
    size_t begin;
    size_t end;
  };

  explicit LiveRanges(std::vector<int64_t> points);

  /// [lower, upper) must be end points given before.
  Range find(int64_t lower, int64_t upper) const;

  /// Whether every byte of the range is free or belongs to `owner`.
  bool isFreeFor(Range range, size_t owner) const;

  /// The range must be free for the owner.
  void add(Range range, size_t owner);

  /// The range must have been added.
  void remove(Range range);

private:
  static constexpr int32_t none = -1;
  static constexpr int32_t several = -2;

  struct Node {
    /// Of the ranges that were put at this node, which they cover whole.
    int32_t owner = none;
    int32_t count = 0;
    /// Of all ranges here and below.
    int32_t inside = none;
  };

  void refresh(size_t node);
  void refreshAbove(Range range);
  template <typename Visit>
  void forEachCover(Range range, Visit visit) const;

  std::vector<int64_t> points;
  size_t leaves = 1;
  std::vector<Node> nodes;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_LIVERANGES_H
