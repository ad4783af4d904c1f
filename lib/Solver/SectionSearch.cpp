//===- SectionSearch.cpp - Exact search for one capacity ------------------===//

#include "SectionSearch.h"

#include "memplan/Support/SplitMix64.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace memplan::solver {

namespace {

constexpr int64_t noLimit = std::numeric_limits<int64_t>::max();
constexpr int nothing = std::numeric_limits<int>::max();
constexpr size_t numRemembered = size_t{1} << 16;

} // namespace

SectionSearch::SectionSearch(const Strip &strip, const SearchRules &rules)
    : in(strip), rules(rules), words((strip.numItems + 63) / 64) {
  adjacency.assign(size_t(in.numItems) * words, 0);
  wordBegin.assign(in.numItems, words);
  wordEnd.assign(in.numItems, 0);
  auto connect = [&](int a, int b) {
    adjacency[size_t(a) * words + b / 64] |= Word{1} << (b % 64);
    wordBegin[a] = std::min(wordBegin[a], b / 64);
    wordEnd[a] = std::max(wordEnd[a], b / 64 + 1);
  };
  for (int i = 0; i < in.numItems; ++i)
    for (int j = i + 1; j < in.numItems && in.first[j] < in.last[i]; ++j) {
      connect(i, j);
      connect(j, i);
    }
  SplitMix64 numbers(0);
  for (int i = 0; i < in.numItems; ++i)
    itemKeys.push_back({numbers.next(), numbers.next()});
  buildMembers();
  failedStates.resize(numRemembered);
}

void SectionSearch::buildMembers() {
  memberBegin.assign(in.numSections + 1, 0);
  slotBegin.assign(in.numItems + 1, 0);
  for (int i = 0; i < in.numItems; ++i) {
    slotBegin[i + 1] = slotBegin[i] + in.last[i] - in.first[i];
    for (int s = in.first[i]; s < in.last[i]; ++s)
      ++memberBegin[s + 1];
  }
  std::partial_sum(memberBegin.begin(), memberBegin.end(), memberBegin.begin());
  members.resize(memberBegin.back());
  slots.resize(slotBegin.back());
}

void SectionSearch::reset(int64_t newCapacity) {
  // All offsets are multiples of the grain, so what is rounded up may end at
  // the capacity rounded up.
  capacity = alignUp(newCapacity, computeGrain(in));
  latest.resize(in.numItems);
  for (int i = 0; i < in.numItems; ++i) {
    int64_t room = newCapacity - (in.size[i] - in.padding[i]);
    latest[i] = in.fixedOffset[i] != noOffset && in.fixedOffset[i] <= room
                    ? in.fixedOffset[i]
                : room < 0 ? -1
                           : room / in.alignment[i] * in.alignment[i];
  }

  head = in.floor;
  for (int i = 0; i < in.numItems; ++i)
    head[i] = std::max(head[i], in.fixedOffset[i]);
  offset.assign(in.numItems, noOffset);
  delayed.assign(in.numItems, false);
  unplaced.assign(words, 0);
  for (int i = 0; i < in.numItems; ++i)
    unplaced[i / 64] |= Word{1} << (i % 64);
  count.assign(in.numSections, 0);
  remaining.assign(in.numSections, 0);
  for (int i = 0; i < in.numItems; ++i)
    for (int s = in.first[i]; s < in.last[i]; ++s) {
      int slot = memberBegin[s] + count[s]++;
      members[slot] = i;
      slots[slotBegin[i] + s - in.first[i]] = slot;
      remaining[s] += in.size[i];
    }
  base.assign(in.numSections, 0);
  witness.assign(in.numSections, nothing);
  trail.clear();
  touched.clear();
  isTouched.assign(in.numSections, false);

  numReasons = 0;
  headReason.assign(in.numItems, newReason()); // the empty set
  placeReason.assign(in.numItems, 0);
  conflict.assign(words, 0);
  numPlaced = 0;
  placedAt.assign(in.numItems, 0);
  leanedOn = nothing;
  std::fill(failedStates.begin(), failedStates.end(), Key{0, 0});

  twin.assign(in.numItems, nothing);
  if (rules.orderTwins) {
    std::vector<int> byRank(in.numItems);
    for (int i = 0; i < in.numItems; ++i)
      byRank[branching->rank[i]] = i;
    std::map<std::tuple<int, int, int64_t, int64_t, int64_t>, int> previous;
    for (int i : byRank) {
      if (in.fixedOffset[i] != noOffset)
        continue;
      auto [it, isNew] = previous.try_emplace({in.first[i], in.last[i],
                                               in.size[i] - in.padding[i],
                                               in.alignment[i], in.floor[i]},
                                              i);
      if (!isNew) {
        twin[i] = it->second;
        it->second = i;
      }
    }
  }
}

SearchResult SectionSearch::run(int64_t newCapacity,
                                const Branching &newBranching,
                                int64_t newMaxSteps,
                                const std::function<bool()> &newIsNeedless) {
  isNeedless = &newIsNeedless;
  branching = &newBranching;
  maxSteps = newMaxSteps;
  steps = 0;
  reset(newCapacity);
  for (int i = 0; i < in.numItems; ++i)
    if (head[i] > latest[i])
      return SearchResult::Infeasible;
  for (int s = 0; s < in.numSections; ++s) {
    isTouched[s] = true;
    touched.push_back(s);
  }
  if (!updateTouched())
    return SearchResult::Infeasible;
  stack.resize(in.numItems);
  std::iota(stack.begin(), stack.end(), 0);
  return searchParts({0, in.numItems});
}

//===----------------------------------------------------------------------===//
// Tree
//===----------------------------------------------------------------------===//

/// Splits what is left of a component where no unplaced item goes on, and
/// searches the parts one after the other, the smallest first: they share
/// nothing, so one that fails fails the whole.
SearchResult SectionSearch::searchParts(Range component) {
  int mark = static_cast<int>(stack.size());
  std::vector<Range> parts;
  int end = 0;
  for (int k = component.begin; k < component.end; ++k) {
    int item = stack[k];
    if (offset[item] != noOffset)
      continue;
    if (parts.empty() || (rules.decompose && in.first[item] >= end))
      parts.push_back({static_cast<int>(stack.size()), 0});
    stack.push_back(item);
    parts.back().end = static_cast<int>(stack.size());
    end = std::max(end, in.last[item]);
  }
  steps += component.end - component.begin;
  std::stable_sort(parts.begin(), parts.end(), [](Range a, Range b) {
    return a.end - a.begin < b.end - b.begin;
  });
  SearchResult result = SearchResult::Found;
  for (Range part : parts) {
    result = searchComponent(part);
    if (result != SearchResult::Found)
      break;
  }
  stack.resize(mark);
  return result;
}

SearchResult SectionSearch::searchComponent(Range component) {
  Key key{0, 0};
  if (rules.remember) {
    key = computeKey(component);
    if (failedStates[key.low % numRemembered] == key) {
      std::fill(conflict.begin(), conflict.end(), 0);
      for (int k = component.begin; k < component.end; ++k)
        addReason(conflict.data(), headReason[stack[k]]);
      steps += int64_t(component.end - component.begin) * words;
      return SearchResult::Infeasible;
    }
  }
  size_t mark = trail.size();
  int outerLeanedOn = leanedOn;
  int placedBefore = numPlaced;
  leanedOn = nothing;
  SearchResult result = branch(component);
  if (result == SearchResult::Infeasible) {
    undo(mark);
    if (rules.remember && leanedOn >= placedBefore)
      failedStates[key.low % numRemembered] = key;
  }
  leanedOn = std::min(leanedOn, outerLeanedOn);
  return result;
}

SearchResult SectionSearch::branch(Range component) {
  while (true) {
    int item = select(component);
    if (item < 0)
      return SearchResult::Found;
    if (steps > maxSteps || (*isNeedless && (*isNeedless)()))
      return SearchResult::Limit;
    // Either the item lies at its head on what is placed now ...
    std::fill(conflict.begin(), conflict.end(), 0);
    bool isRefuted = false;
    if (delayed[item] ||
        (twin[item] != nothing && offset[twin[item]] == noOffset)) {
      // ... which something already speaks against,
    } else if (int partner = findSwapPartner(item); partner >= 0) {
      addReason(conflict.data(), placeReason[partner]);
      leanedOn = std::min(leanedOn, placedAt[partner]);
      isRefuted = true;
    } else {
      size_t mark = trail.size();
      if (place(item) && updateTouched()) {
        SearchResult result = searchParts(component);
        if (result != SearchResult::Infeasible)
          return result;
      }
      undo(mark);
      if (rules.backjump && !testBit(conflict.data(), item))
        return SearchResult::Infeasible;
      isRefuted = true;
    }
    // ... or it lies on something that isn't placed yet.
    if (!delay(item, isRefuted) || !updateTouched())
      return SearchResult::Infeasible;
  }
}

int SectionSearch::select(Range component) {
  int begin = nothing, end = 0;
  for (int k = component.begin; k < component.end; ++k) {
    int item = stack[k];
    if (offset[item] != noOffset)
      continue;
    begin = std::min(begin, in.first[item]);
    end = std::max(end, in.last[item]);
  }
  steps += component.end - component.begin;
  int section = -1;
  double bestScore = 0;
  for (int s = begin; s < end; ++s) {
    if (count[s] == 0)
      continue;
    double score = static_cast<double>(remaining[s]) +
                   branching->floorWeight * static_cast<double>(base[s]);
    if (section < 0 || score > bestScore) {
      section = s;
      bestScore = score;
    }
  }
  if (section < 0)
    return -1;
  steps += end - begin + count[section];
  int best = -1;
  for (int k = 0; k < count[section]; ++k) {
    int item = members[memberBegin[section] + k];
    if (best < 0 || isBefore(item, best))
      best = item;
  }
  return descend(best);
}

bool SectionSearch::isBefore(int item, int other) const {
  if (head[item] != head[other])
    return head[item] < head[other];
  if (branching->matchWalls) {
    int walls = countWalls(item), otherWalls = countWalls(other);
    if (walls != otherWalls)
      return walls > otherWalls;
  }
  return branching->rank[item] < branching->rank[other];
}

/// How well an item would fill the hole in the skyline where it begins: a point
/// for each side that is a wall, two if the wall is as high as the item's top.
int SectionSearch::countWalls(int item) const {
  auto countSide = [&](int section) {
    if (section < 0 || section >= in.numSections || count[section] == 0)
      return 1;
    if (base[section] <= head[item])
      return 0;
    return base[section] == head[item] + in.size[item] ? 2 : 1;
  };
  return countSide(in.first[item] - 1) + countSide(in.last[item]);
}

/// An item is only branched on when nothing unplaced fits below it.
int SectionSearch::descend(int item) {
  while (true) {
    int below = -1;
    forUnplacedNeighbours(item, [&](int other) {
      if (head[other] + in.size[other] <= head[item] &&
          (below < 0 || head[other] < head[below] ||
           (head[other] == head[below] &&
            branching->rank[other] < branching->rank[below])))
        below = other;
    });
    if (below < 0)
      return item;
    item = below;
  }
}

//===----------------------------------------------------------------------===//
// Placing and delaying
//===----------------------------------------------------------------------===//

bool SectionSearch::place(int item) {
  int64_t top = head[item] + in.size[item];
  trail.push_back({Change::Place, item, numReasons, 0});
  int reason = newReason();
  addReason(reasonAt(reason), headReason[item]);
  reasonAt(reason)[item / 64] |= Word{1} << (item % 64);
  placeReason[item] = reason;
  placedAt[item] = numPlaced++;
  offset[item] = head[item];
  unplaced[item / 64] &= ~(Word{1} << (item % 64));
  for (int s = in.first[item]; s < in.last[item]; ++s) {
    remaining[s] -= in.size[item];
    int &slot = slots[slotBegin[item] + s - in.first[item]];
    int lastSlot = memberBegin[s] + --count[s];
    int other = members[lastSlot];
    std::swap(members[slot], members[lastSlot]);
    slots[slotBegin[other] + s - in.first[other]] = slot;
    slot = lastSlot;
    if (witness[s] == item && !isTouched[s]) {
      isTouched[s] = true;
      touched.push_back(s);
    }
  }
  steps += in.last[item] - in.first[item];
  bool fits = true;
  forUnplacedNeighbours(item, [&](int other) {
    int64_t newHead = alignUp(top, in.alignment[other]);
    if (!fits || newHead < head[other])
      return;
    if (delayed[other]) {
      trail.push_back({Change::Delayed, other, 0, 0});
      delayed[other] = false;
    }
    if (newHead > head[other])
      fits = raise(other, newHead, reason, /*isDelay=*/false);
  });
  return fits;
}

/// Raises the item to the lowest top that an unplaced neighbour could have.
bool SectionSearch::delay(int item, bool withConflict) {
  trail.push_back({Change::Reason, 0, numReasons, 0});
  int reason = newReason();
  Word *set = reasonAt(reason);
  if (withConflict) {
    std::copy(conflict.begin(), conflict.end(), set);
    set[item / 64] &= ~(Word{1} << (item % 64));
  }
  addReason(set, headReason[item]);
  int64_t lowestTop = noLimit;
  forUnplacedNeighbours(item, [&](int other) {
    lowestTop = std::min(lowestTop, head[other] + in.size[other]);
    addReason(set, headReason[other]);
    steps += words;
  });
  if (lowestTop == noLimit) {
    std::copy(set, set + words, conflict.begin());
    return false;
  }
  return raise(item, alignUp(lowestTop, in.alignment[item]), reason,
               /*isDelay=*/true);
}

bool SectionSearch::raise(int item, int64_t newHead, int reason, bool isDelay) {
  trail.push_back({Change::Head, item, headReason[item], head[item]});
  head[item] = newHead;
  headReason[item] = reason;
  if (isDelay && !delayed[item]) {
    trail.push_back({Change::Delayed, item, 1, 0});
    delayed[item] = true;
  }
  if (newHead > latest[item]) {
    std::copy(reasonAt(reason), reasonAt(reason) + words, conflict.begin());
    for (int s : touched)
      isTouched[s] = false;
    touched.clear();
    return false;
  }
  for (int s = in.first[item]; s < in.last[item]; ++s)
    if (witness[s] == item && !isTouched[s]) {
      isTouched[s] = true;
      touched.push_back(s);
    }
  steps += in.last[item] - in.first[item];
  return true;
}

/// The bytes still to be placed in a section must fit above the lowest place
/// where one of them can begin.
bool SectionSearch::updateSection(int section) {
  trail.push_back({Change::Base, section, witness[section], base[section]});
  int lowest = nothing;
  int64_t newBase = noLimit;
  const int *begin = &members[memberBegin[section]];
  for (int k = 0; k < count[section]; ++k)
    if (head[begin[k]] < newBase) {
      lowest = begin[k];
      newBase = head[lowest];
    }
  steps += count[section];
  witness[section] = lowest;
  if (lowest == nothing)
    return true;
  base[section] = newBase;
  return newBase + remaining[section] <= capacity;
}

bool SectionSearch::updateTouched() {
  bool fits = true;
  for (int s : touched) {
    isTouched[s] = false;
    if (fits && !updateSection(s)) {
      fits = false;
      explainBySection(s);
    }
  }
  touched.clear();
  return fits;
}

void SectionSearch::undo(size_t mark) {
  while (trail.size() > mark) {
    TrailEntry entry = trail.back();
    trail.pop_back();
    int item = entry.index;
    switch (entry.change) {
    case Change::Head:
      head[item] = entry.oldValue;
      headReason[item] = entry.oldSecond;
      break;
    case Change::Delayed:
      delayed[item] = entry.oldSecond == 0;
      break;
    case Change::Base:
      base[item] = entry.oldValue;
      witness[item] = entry.oldSecond;
      break;
    case Change::Reason:
      numReasons = entry.oldSecond;
      break;
    case Change::Place:
      numReasons = entry.oldSecond;
      --numPlaced;
      offset[item] = noOffset;
      unplaced[item / 64] |= Word{1} << (item % 64);
      for (int s = in.first[item]; s < in.last[item]; ++s) {
        remaining[s] += in.size[item];
        ++count[s]; // the item is right behind the last unplaced one
      }
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Symmetry, memory, explanations
//===----------------------------------------------------------------------===//

/// Two items with the same life that lie directly on each other can change
/// places, unless the upper one's end would then rise: what was added to a size
/// doesn't count at the top. Returns the placed one below `item` if it should
/// have come second.
int SectionSearch::findSwapPartner(int item) const {
  if (!rules.orderStacks || in.fixedOffset[item] != noOffset ||
      in.size[item] % in.alignment[item] != 0)
    return -1;
  // Only the last item placed in a section lies on its top.
  int section = in.first[item];
  int slot = memberBegin[section] + count[section];
  if (slot == memberBegin[section + 1])
    return -1;
  int other = members[slot];
  bool maySwap = in.first[other] == in.first[item] &&
                 in.last[other] == in.last[item] &&
                 offset[other] + in.size[other] == head[item] &&
                 branching->rank[other] > branching->rank[item] &&
                 in.fixedOffset[other] == noOffset &&
                 in.alignment[other] == in.alignment[item] &&
                 in.padding[other] >= in.padding[item] &&
                 in.floor[item] <= offset[other] &&
                 in.size[other] % in.alignment[other] == 0;
  return maySwap ? other : -1;
}

SectionSearch::Key SectionSearch::computeKey(Range component) const {
  Key key{0, 0};
  for (int k = component.begin; k < component.end; ++k) {
    int item = stack[k];
    uint64_t state = 2 * static_cast<uint64_t>(head[item]) + delayed[item];
    key.low += SplitMix64::mix(itemKeys[item].low ^ state);
    key.high += SplitMix64::mix(itemKeys[item].high + state);
  }
  return key;
}

int SectionSearch::newReason() {
  size_t end = size_t(numReasons + 1) * words;
  if (end > reasons.size())
    reasons.resize(std::max(2 * reasons.size(), end));
  std::fill(reasons.begin() + size_t(numReasons) * words, reasons.begin() + end,
            0);
  return numReasons++;
}

/// The unplaced items of a section are too many because none of them can begin
/// lower. As many are left out as the rest allows.
void SectionSearch::explainBySection(int section) {
  std::fill(conflict.begin(), conflict.end(), 0);
  for (int k = 0; k < count[section]; ++k)
    addReason(conflict.data(), headReason[members[memberBegin[section] + k]]);
  steps += int64_t(count[section]) * words;
}

} // namespace memplan::solver
