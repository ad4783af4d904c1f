//===- Strip.cpp - Cutting time into sections --------------------------===//

#include "Strip.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

/// The difference, or the largest number if it does not fit.
static int64_t measureLife(int64_t lower, int64_t upper) {
  uint64_t length = static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower);
  return static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX));
}

Strip buildStrip(const std::vector<Strip::Item> &items) {
  struct Event {
    int64_t time;
    bool isStart;
    int item;
  };
  std::vector<Event> events;
  events.reserve(2 * items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    events.push_back({items[i].lower, true, static_cast<int>(i)});
    events.push_back({items[i].upper, false, static_cast<int>(i)});
  }
  // Ends come before starts: lifetimes are half-open.
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.time != b.time         ? a.time < b.time
           : a.isStart != b.isStart ? a.isStart < b.isStart
                                    : a.item < b.item;
  });
  Strip strip;
  strip.numItems = static_cast<int>(items.size());
  strip.first.resize(items.size());
  strip.last.resize(items.size());
  // A set of live items is maximal where an end follows a start.
  bool grew = false;
  for (const Event &event : events) {
    if (event.isStart) {
      strip.first[event.item] = strip.numSections;
      grew = true;
      continue;
    }
    strip.numSections += grew;
    grew = false;
    strip.last[event.item] = strip.numSections;
  }
  for (const Strip::Item &item : items) {
    strip.length.push_back(measureLife(item.lower, item.upper));
    strip.size.push_back(item.size);
    strip.padding.push_back(item.padding);
    strip.alignment.push_back(item.alignment);
    strip.fixedOffset.push_back(item.fixedOffset);
    strip.floor.push_back(alignUp(item.floor, item.alignment));
  }
  return strip;
}

int64_t computeGrain(const Strip &strip) {
  int64_t grain = 0;
  for (int64_t alignment : strip.alignment)
    grain = std::gcd(grain, alignment);
  return std::max<int64_t>(grain, 1);
}

} // namespace memplan::solver
