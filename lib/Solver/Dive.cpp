//===- Dive.cpp - One placement from the ground up ------------------------===//

#include "Dive.h"

#include "Orders.h"
#include "SectionSearch.h"

#include <numeric>

namespace memplan::solver {

namespace {

std::vector<int64_t> sumSections(const Strip &strip) {
  std::vector<int64_t> sums(strip.numSections + 1, 0);
  for (int i = 0; i < strip.numItems; ++i) {
    sums[strip.first[i]] += strip.size[i];
    sums[strip.last[i]] -= strip.size[i];
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  sums.pop_back();
  return sums;
}

/// The suffixes that a repair tries, in decisions taken back, and the largest
/// sub-problem that it gives to the search.
constexpr size_t firstSuffix = 16, suffixGrowth = 4, maxSuffixItems = 4096;
/// A repair may take this many times what the dive took so far.
constexpr int64_t repairStepsPerStep = 16;
constexpr double repairWeights[] = {0, 1, -3};

} // namespace

Dive::Dive(const Strip &strip, const SearchRules &rules)
    : in(strip), rules(rules), unplaced(strip), remaining(sumSections(strip)) {}

std::optional<int64_t> Dive::run(int64_t capacity,
                                 const std::vector<int> &newRanks,
                                 int64_t maxSteps) {
  ranks = newRanks;
  // Padded sizes may end at the padded capacity.
  int64_t limit = alignUp(capacity, computeGrain(in));
  unplaced = OverlapIndex(in);
  remaining = RangeMaxTree(sumSections(in));
  head = in.floor;
  offset.assign(in.numItems, noOffset);
  sequence.clear();
  steps = in.numItems;
  bool isInReach = true;
  while (static_cast<int>(sequence.size()) < in.numItems) {
    if (steps > maxSteps)
      return std::nullopt;
    int item = select(limit);
    if (blockedSection >= 0) {
      if (isInReach &&
          repair(blockedSection, limit,
                 std::min(maxSteps / 4, repairStepsPerStep * steps)))
        continue;
      // Go on as low as possible.
      isInReach = false;
      limit = head[item] + remaining.max(in.first[item], in.last[item]).value;
    }
    place(item);
  }
  int64_t height = 0;
  for (int i = 0; i < in.numItems; ++i)
    height = std::max(height, offset[i] + in.size[i] - in.padding[i]);
  return height;
}

/// The unplaced item of a section that can begin lowest.
int Dive::findLowest(int section) {
  int best = -1;
  unplaced.forEach(section, section + 1, steps, [&](int item) {
    if (best < 0 || head[item] < head[best] ||
        (head[item] == head[best] && ranks[item] < ranks[best]))
      best = item;
  });
  return best;
}

/// What fits below an item goes there first.
int Dive::descend(int item) {
  while (true) {
    int below = -1;
    unplaced.forEach(in.first[item], in.last[item], steps, [&](int other) {
      if (other == item || head[other] + in.size[other] > head[item])
        return;
      if (below < 0 || head[other] < head[below] ||
          (head[other] == head[below] && ranks[other] < ranks[below]))
        below = other;
    });
    if (below < 0)
      return item;
    item = below;
  }
}

/// The next item to place. If it leaves too little room in some section, the
/// lowest item there comes first; if it is that item itself, the section is
/// blocked.
int Dive::select(int64_t capacity) {
  blockedSection = -1;
  int item = descend(findLowest(remaining.max().index));
  while (true) {
    auto [bytes, section] = remaining.max(in.first[item], in.last[item]);
    if (head[item] + bytes <= capacity)
      return item;
    int lower = findLowest(section);
    if (head[lower] >= head[item]) {
      blockedSection = section;
      return item;
    }
    item = descend(lower);
  }
}

void Dive::place(int item) {
  offset[item] = head[item];
  sequence.push_back(item);
  unplaced.erase(item);
  remaining.add(in.first[item], in.last[item], -in.size[item]);
  int64_t top = head[item] + in.size[item];
  unplaced.forEach(in.first[item], in.last[item], steps, [&](int other) {
    head[other] = std::max(head[other], alignUp(top, in.alignment[other]));
  });
}

bool Dive::repair(int section, int64_t capacity, int64_t maxSteps) {
  for (size_t suffix = firstSuffix;; suffix *= suffixGrowth) {
    size_t keep = sequence.size() - std::min(suffix, sequence.size());
    int64_t before = steps;
    if (searchSuffix(keep, section, capacity, maxSteps / 4))
      return true;
    maxSteps -= steps - before;
    if (keep == 0 || maxSteps <= 0 || suffix > maxSuffixItems)
      return false;
  }
}

/// The free items that are joined with a section by lives of free items.
std::vector<int> Dive::collectComponent(const std::vector<uint8_t> &isFree,
                                        int section) const {
  std::vector<int> component;
  int end = 0;
  bool holdsSection = false;
  for (int i = 0; i < in.numItems; ++i) {
    if (!isFree[i])
      continue;
    if (in.first[i] >= end) {
      if (holdsSection)
        break;
      component.clear();
    }
    component.push_back(i);
    end = std::max(end, in.last[i]);
    holdsSection |= in.first[i] <= section && section < in.last[i];
  }
  return component;
}

/// Keeps the first decisions and searches the rest of the section's component
/// on top of them.
bool Dive::searchSuffix(size_t keep, int section, int64_t capacity,
                        int64_t maxSteps) {
  std::vector<uint8_t> isFree(in.numItems, true);
  for (size_t k = 0; k < keep; ++k)
    isFree[sequence[k]] = false;
  std::vector<int> component = collectComponent(isFree, section);
  if (component.size() > maxSuffixItems) {
    steps += in.numItems;
    return false;
  }
  int begin = in.numSections, end = 0;
  for (int i : component) {
    begin = std::min(begin, in.first[i]);
    end = std::max(end, in.last[i]);
  }
  std::vector<int64_t> floor(end - begin, 0);
  for (size_t k = 0; k < keep; ++k) {
    int item = sequence[k];
    for (int s = std::max(begin, in.first[item]);
         s < std::min(end, in.last[item]); ++s)
      floor[s - begin] =
          std::max(floor[s - begin], offset[item] + in.size[item]);
  }
  std::vector<Strip::Item> items;
  for (int i : component) {
    Strip::Item item{in.first[i], in.last[i], in.size[i], in.alignment[i]};
    item.padding = in.padding[i];
    item.floor = *std::max_element(floor.begin() + in.first[i] - begin,
                                   floor.begin() + in.last[i] - begin);
    item.floor = std::max(item.floor, in.floor[i]);
    items.push_back(item);
  }
  steps += in.numItems;

  Strip suffix = buildStrip(items);
  Branching branching;
  std::vector<int> order(component.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return ranks[component[a]] < ranks[component[b]];
  });
  branching.rank.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    branching.rank[order[i]] = static_cast<int>(i);
  SectionSearch search(suffix, rules);
  for (double weight : repairWeights) {
    branching.floorWeight = weight;
    SearchResult result = search.run(capacity, branching, maxSteps / 4);
    steps += search.getSteps();
    if (result == SearchResult::Infeasible)
      return false;
    if (result == SearchResult::Limit)
      continue;
    for (size_t k = 0; k < component.size(); ++k) {
      int item = component[k];
      offset[item] = search.getOffsets()[k];
      if (!unplaced.contains(item))
        continue;
      unplaced.erase(item);
      remaining.add(in.first[item], in.last[item], -in.size[item]);
      sequence.push_back(item);
    }
    return true;
  }
  return false;
}

} // namespace memplan::solver
