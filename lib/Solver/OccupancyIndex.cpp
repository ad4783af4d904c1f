//===- OccupancyIndex.cpp - Where is there room, and when -----------------===//

#include "OccupancyIndex.h"

#include "Strip.h"

#include <algorithm>

namespace memplan::solver {

OccupancyIndex::OccupancyIndex(int numSections) {
  numLeaves = 1;
  while (numLeaves < numSections)
    numLeaves *= 2;
  nodes.resize(2 * numLeaves);
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

/// The largest subtrees that lie within a range of leaves.
template <typename Callback>
static void forCanonicalNodes(int left, int right, Callback callback) {
  while (left <= right) {
    if (left & 1)
      callback(left++);
    if (!(right & 1))
      callback(right--);
    left /= 2;
    right /= 2;
  }
}

void OccupancyIndex::insert(const Part &part, int64_t place, int64_t &steps) {
  Bytes bytes{place + part.low, place + part.high};
  int left = part.first + numLeaves, right = part.last - 1 + numLeaves;
  forCanonicalNodes(left, right, [&](int node) {
    add(nodes[node].throughout, bytes, steps);
  });
  for (; left >= 1; left /= 2, right /= 2) {
    add(nodes[left].somewhere, bytes, steps);
    if (right != left)
      add(nodes[right].somewhere, bytes, steps);
  }
}

/// What a query has to look at. In its canonical nodes, what is taken within
/// them: by parts whose first or last section is there, and by those that cover
/// the node or a node below it, which then have an end in it or cover the
/// canonical node or one above. Above them, what goes through.
void OccupancyIndex::collect(const Part &part) {
  auto push = [&](const Union &ranges) {
    if (!ranges.empty())
      cursors.push_back({&ranges, 0, part.low, part.high});
  };
  int left = part.first + numLeaves, right = part.last - 1 + numLeaves;
  forCanonicalNodes(left, right, [&](int node) {
    push(nodes[node].somewhere);
    push(nodes[node].throughout);
  });
  // The nodes above are those on the two paths to the root that reach beyond
  // the query.
  for (int low = left, high = right, width = 1; low >= 1;
       low /= 2, high /= 2, width *= 2) {
    auto reachesBeyond = [&](int node) {
      int first = node * width - numLeaves;
      return first < part.first || first + width > part.last;
    };
    if (reachesBeyond(low))
      push(nodes[low].throughout);
    if (high != low && reachesBeyond(high))
      push(nodes[high].throughout);
  }
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
