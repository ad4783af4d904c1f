//===- Instance.cpp - Cutting time into sections --------------------------===//

#include "Instance.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

/// The difference, or the largest number if it does not fit.
static int64_t measureLife(int64_t lower, int64_t upper) {
  uint64_t length = static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower);
  return static_cast<int64_t>(std::min<uint64_t>(length, INT64_MAX));
}

Instance buildInstance(const std::vector<Instance::Item> &items) {
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
  Instance instance;
  instance.numItems = static_cast<int>(items.size());
  instance.first.resize(items.size());
  instance.last.resize(items.size());
  // A set of live items is maximal where an end follows a start.
  bool grew = false;
  for (const Event &event : events) {
    if (event.isStart) {
      instance.first[event.item] = instance.numSections;
      grew = true;
      continue;
    }
    instance.numSections += grew;
    grew = false;
    instance.last[event.item] = instance.numSections;
  }
  for (const Instance::Item &item : items) {
    instance.length.push_back(measureLife(item.lower, item.upper));
    instance.size.push_back(item.size);
    instance.padding.push_back(item.padding);
    instance.alignment.push_back(item.alignment);
    instance.fixedOffset.push_back(item.fixedOffset);
    instance.floor.push_back(alignUp(item.floor, item.alignment));
  }
  return instance;
}

int64_t computeGrain(const Instance &instance) {
  int64_t grain = 0;
  for (int64_t alignment : instance.alignment)
    grain = std::gcd(grain, alignment);
  return std::max<int64_t>(grain, 1);
}

} // namespace memplan::solver
