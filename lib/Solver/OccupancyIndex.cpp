//===- OccupancyIndex.cpp - Where is there room, and when -----------------===//

#include "OccupancyIndex.h"

#include "Instance.h"

#include <algorithm>

namespace memplan::solver {

OccupancyIndex::OccupancyIndex(int numSections) {
  numLeaves = 1;
  while (numLeaves < numSections)
    numLeaves *= 2;
  throughout.resize(2 * numLeaves);
  somewhere.resize(2 * numLeaves);
}

void OccupancyIndex::add(Union &ranges, Bytes bytes, int64_t &steps) {
  auto begin = std::partition_point(
      ranges.begin(), ranges.end(),
      [&](const Bytes &range) { return range.high < bytes.low; });
  auto end = begin;
  while (end != ranges.end() && end->low <= bytes.high) {
    bytes.low = std::min(bytes.low, end->low);
    bytes.high = std::max(bytes.high, end->high);
    ++end;
  }
  steps += 4 + (end - begin);
  if (begin == end) {
    steps += (ranges.end() - end) / 8;
    ranges.insert(begin, bytes);
    return;
  }
  *begin = bytes;
  ranges.erase(begin + 1, end);
}

void OccupancyIndex::insert(const Part &part, int64_t place, int64_t &steps) {
  Bytes bytes{place + part.low, place + part.high};
  int left = part.first + numLeaves, right = part.last - 1 + numLeaves;
  // The nodes that make up the range get it in full, all above them in part.
  int low = left, high = right;
  auto coverNode = [&](int node) { add(throughout[node], bytes, steps); };
  while (low <= high) {
    if (low & 1)
      coverNode(low++);
    if (!(high & 1))
      coverNode(high--);
    low /= 2;
    high /= 2;
  }
  // Every node that has a section of the part on its paths to the root.
  for (int l = left, r = right; l >= 1; l /= 2, r /= 2) {
    add(somewhere[l], bytes, steps);
    if (r != l)
      add(somewhere[r], bytes, steps);
  }
  // Nodes that lie wholly inside the range but on neither path hold nothing of
  // it in `somewhere`; `collect` finds it in `throughout` at or above them, and
  // canonical nodes of a query are searched in both.
}

/// A query's canonical nodes show what lies inside them, their ancestors what
/// goes through them.
void OccupancyIndex::collect(const Part &part) {
  auto push = [&](const Union &ranges) {
    if (!ranges.empty())
      cursors.push_back({&ranges, 0, part.low, part.high});
  };
  ancestors.clear();
  int low = part.first + numLeaves, high = part.last - 1 + numLeaves;
  auto visit = [&](int node) {
    push(somewhere[node]);
    push(throughout[node]);
    if (node > 1)
      ancestors.push_back(node / 2);
  };
  while (low <= high) {
    if (low & 1)
      visit(low++);
    if (!(high & 1))
      visit(high--);
    low /= 2;
    high /= 2;
  }
  // The canonical nodes' ancestors, each once: they come in order of depth from
  // below on both flanks, so duplicates are adjacent after sorting by number.
  for (size_t i = 0; i < ancestors.size(); ++i)
    if (ancestors[i] > 1)
      ancestors.push_back(ancestors[i] / 2);
  std::sort(ancestors.begin(), ancestors.end());
  ancestors.erase(std::unique(ancestors.begin(), ancestors.end()),
                  ancestors.end());
  for (int node : ancestors)
    push(throughout[node]);
}

int64_t OccupancyIndex::findPlace(const Part *begin, const Part *end,
                                  int64_t from, int64_t modulus, int64_t limit,
                                  int64_t &steps) {
  cursors.clear();
  for (const Part *part = begin; part != end; ++part)
    collect(*part);
  int64_t place = from;
  size_t clean = 0;
  for (size_t i = 0; clean < cursors.size(); i = (i + 1) % cursors.size()) {
    Cursor &cursor = cursors[i];
    const Union &ranges = *cursor.ranges;
    // First range that ends above the part's bottom, by galloping.
    size_t step = 1, next = cursor.next;
    while (next < ranges.size() && ranges[next].high <= place + cursor.low) {
      cursor.next = next + 1;
      next += step;
      step *= 2;
      ++steps;
    }
    auto first = ranges.begin() + cursor.next;
    auto last = ranges.begin() + std::min(next, ranges.size());
    cursor.next =
        std::partition_point(first, last,
                             [&](const Bytes &range) {
                               return range.high <= place + cursor.low;
                             }) -
        ranges.begin();
    ++steps;
    ++clean;
    if (cursor.next == ranges.size() ||
        ranges[cursor.next].low >= place + cursor.high)
      continue;
    place =
        from + alignUp(ranges[cursor.next].high - cursor.low - from, modulus);
    if (place > limit)
      return place;
    clean = 1;
    // The range that was hit may not be the last that blocks the new place.
    if (cursor.next + 1 < ranges.size() &&
        ranges[cursor.next + 1].low < place + cursor.high)
      clean = 0;
  }
  return place;
}

} // namespace memplan::solver
