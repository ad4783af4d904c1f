//===- LiveRanges.cpp - Who owns which bytes now, for the checker ---------===//

#include "LiveRanges.h"

#include <algorithm>

namespace memplan::solver {

LiveRanges::LiveRanges(std::vector<int64_t> given) : points(std::move(given)) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  while (leaves < points.size())
    leaves *= 2;
  nodes.resize(2 * leaves);
}

LiveRanges::Range LiveRanges::find(int64_t lower, int64_t upper) const {
  auto indexOf = [&](int64_t point) {
    return static_cast<size_t>(
        std::lower_bound(points.begin(), points.end(), point) - points.begin());
  };
  return {indexOf(lower), indexOf(upper)};
}

/// The nodes that cover the range and nothing else, no node twice.
template <typename Visit>
void LiveRanges::forEachCover(Range range, Visit visit) const {
  size_t begin = range.begin + leaves, end = range.end + leaves;
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1)
      visit(begin++);
    if (end % 2 == 1)
      visit(--end);
  }
}

bool LiveRanges::isFreeFor(Range range, size_t owner) const {
  bool isFree = true;
  auto allow = [&](int32_t other) {
    isFree &= other == none || other == static_cast<int32_t>(owner);
  };
  forEachCover(range, [&](size_t node) { allow(nodes[node].inside); });
  // A node that the range covers in part lies above its first or last leaf.
  for (size_t leaf : {range.begin + leaves, range.end - 1 + leaves})
    for (size_t node = leaf; node > 0; node /= 2)
      allow(nodes[node].owner);
  return isFree;
}

void LiveRanges::refresh(size_t node) {
  int32_t inside = nodes[node].owner;
  if (node < leaves)
    for (size_t child : {2 * node, 2 * node + 1})
      if (int32_t other = nodes[child].inside; other != none)
        inside = inside == none || inside == other ? other : several;
  nodes[node].inside = inside;
}

void LiveRanges::refreshAbove(Range range) {
  for (size_t leaf : {range.begin + leaves, range.end - 1 + leaves})
    for (size_t node = leaf / 2; node > 0; node /= 2)
      refresh(node);
}

void LiveRanges::add(Range range, size_t owner) {
  forEachCover(range, [&](size_t node) {
    nodes[node].owner = static_cast<int32_t>(owner);
    ++nodes[node].count;
    refresh(node);
  });
  refreshAbove(range);
}

void LiveRanges::remove(Range range) {
  forEachCover(range, [&](size_t node) {
    if (--nodes[node].count == 0)
      nodes[node].owner = none;
    refresh(node);
  });
  refreshAbove(range);
}

} // namespace memplan::solver
