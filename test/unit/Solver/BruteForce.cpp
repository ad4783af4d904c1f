//===- BruteForce.cpp - True minimum heights of tiny problems -------------===//

#include "BruteForce.h"

#include <algorithm>

namespace memplan::solver::test {

static constexpr int64_t numOffsets = 128;

static int count(unsigned __int128 offsets) {
  return __builtin_popcountll(static_cast<uint64_t>(offsets)) +
         __builtin_popcountll(static_cast<uint64_t>(offsets >> 64));
}

BruteForce::BruteForce(const Problem &problem) : buffers(problem.buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    addMember(i);
  for (Unit &unit : units)
    measure(unit);
  collisions.assign(units.size(), std::vector<Collisions>(units.size()));
  for (size_t a = 0; a < units.size(); ++a)
    for (size_t b = 0; b < units.size(); ++b)
      for (int64_t d = 0; a != b && d < numOffsets; ++d) {
        if (collide(units[a], units[b], d))
          collisions[a][b].above |= Offsets(1) << d;
        if (collide(units[a], units[b], -d))
          collisions[a][b].below |= Offsets(1) << (numOffsets - 1 - d);
      }
}

void BruteForce::addMember(size_t i) {
  for (Unit &unit : units) {
    const Buffer &first = buffers[unit.members.front()];
    if (buffers[i].group && first.group &&
        buffers[i].group->id == first.group->id)
      return unit.members.push_back(i);
  }
  units.push_back({{i}, 0, 0, 0});
}

int64_t BruteForce::distance(const Unit &unit, size_t i) const {
  return buffers[i].group ? buffers[i].group->offset - unit.lowest : 0;
}

void BruteForce::measure(Unit &unit) const {
  if (buffers[unit.members.front()].group) {
    unit.lowest = INT64_MAX;
    for (size_t i : unit.members)
      unit.lowest = std::min(unit.lowest, buffers[i].group->offset);
  }
  for (size_t i : unit.members)
    unit.extent = std::max(unit.extent, distance(unit, i) + buffers[i].size);
  for (int64_t offset = 0; offset + unit.extent <= numOffsets; ++offset) {
    bool isAllowed = true;
    for (size_t i : unit.members) {
      int64_t own = offset + distance(unit, i);
      isAllowed &= own % buffers[i].alignment == 0 &&
                   buffers[i].fixedOffset.value_or(own) == own;
    }
    // A unit without bytes may end at the very top; that never matters.
    if (isAllowed && offset < numOffsets)
      unit.allowed |= Offsets(1) << offset;
  }
}

/// Whether two units share a byte at some time when b's lowest member lies
/// `distance` above a's.
bool BruteForce::collide(const Unit &a, const Unit &b, int64_t distance) const {
  for (size_t i : a.members)
    for (size_t j : b.members) {
      const Buffer &first = buffers[i], &second = buffers[j];
      int64_t lower = std::max(first.lower, second.lower);
      int64_t upper = std::min(first.upper, second.upper);
      int64_t firstBegin = this->distance(a, i);
      int64_t secondBegin = distance + this->distance(b, j);
      int64_t begin = std::max(firstBegin, secondBegin);
      int64_t end =
          std::min(firstBegin + first.size, secondBegin + second.size);
      if (lower < upper && begin < end)
        return true;
    }
  return false;
}

bool BruteForce::isWellFormed() const {
  return std::all_of(units.begin(), units.end(),
                     [](const Unit &unit) { return unit.allowed != 0; });
}

/// Units that can never collide, not even through others, are looked at apart:
/// the height is the largest of theirs.
std::vector<std::vector<size_t>> BruteForce::findComponents() const {
  std::vector<std::vector<size_t>> components;
  std::vector<bool> isSeen(units.size());
  for (size_t start = 0; start < units.size(); ++start) {
    if (isSeen[start])
      continue;
    std::vector<size_t> component = {start};
    isSeen[start] = true;
    for (size_t k = 0; k < component.size(); ++k)
      for (size_t b = 0; b < units.size(); ++b) {
        const Collisions &pair = collisions[component[k]][b];
        if (!isSeen[b] && (pair.above != 0 || pair.below != 0)) {
          isSeen[b] = true;
          component.push_back(b);
        }
      }
    components.push_back(component);
  }
  return components;
}

bool BruteForce::search(std::vector<Offsets> &left,
                        std::vector<size_t> open) const {
  if (open.empty())
    return true;
  auto fewest =
      std::min_element(open.begin(), open.end(), [&](size_t a, size_t b) {
        return count(left[a]) < count(left[b]);
      });
  size_t unit = *fewest;
  open.erase(fewest);
  for (int64_t offset = 0; offset < numOffsets; ++offset) {
    if ((left[unit] >> offset & 1) == 0)
      continue;
    std::vector<Offsets> next = left;
    for (size_t other : open) {
      const Collisions &pair = collisions[unit][other];
      next[other] &=
          ~(pair.above << offset) & ~(pair.below >> (numOffsets - 1 - offset));
    }
    if (search(next, open))
      return true;
  }
  return false;
}

/// The most bytes that are in use at one time, byte by byte.
int64_t BruteForce::liveBytes(const std::vector<size_t> &component) const {
  int64_t most = 0;
  for (const Buffer &moment : buffers) {
    int64_t bytes = 0;
    for (size_t a : component) {
      Offsets used = 0;
      for (size_t i : units[a].members)
        if (buffers[i].lower <= moment.lower && moment.lower < buffers[i].upper)
          used |= ((Offsets(1) << buffers[i].size) - 1)
                  << distance(units[a], i);
      bytes += count(used);
    }
    most = std::max(most, bytes);
  }
  return most;
}

std::optional<int64_t>
BruteForce::minimumOf(const std::vector<size_t> &component) const {
  int64_t height = liveBytes(component);
  for (size_t a : component) {
    int64_t lowest = 0;
    while ((units[a].allowed >> lowest & 1) == 0)
      ++lowest;
    height = std::max(height, lowest + units[a].extent);
  }
  for (; height <= numOffsets; ++height) {
    std::vector<Offsets> left(units.size());
    for (size_t a : component) {
      int64_t last = height - units[a].extent;
      Offsets upTo =
          last >= numOffsets - 1 ? ~Offsets(0) : (Offsets(1) << (last + 1)) - 1;
      left[a] = units[a].allowed & upTo;
    }
    if (search(left, component))
      return height;
  }
  return std::nullopt;
}

std::optional<int64_t> BruteForce::minimumHeight() const {
  // Only fixed units can make a placement impossible: any other goes on top.
  for (size_t a = 0; a < units.size(); ++a)
    for (size_t b = 0; b < units.size(); ++b) {
      auto isFixed = [&](const Unit &unit) {
        return std::any_of(
            unit.members.begin(), unit.members.end(),
            [&](size_t i) { return buffers[i].fixedOffset.has_value(); });
      };
      if (!isFixed(units[a]) || !isFixed(units[b]))
        continue;
      std::vector<Offsets> left(units.size());
      left[a] = units[a].allowed;
      left[b] = units[b].allowed;
      if (a != b && !search(left, {a, b}))
        return std::nullopt;
    }
  int64_t height = 0;
  for (const std::vector<size_t> &component : findComponents()) {
    auto minimum = minimumOf(component);
    if (!minimum)
      return std::nullopt;
    height = std::max(height, *minimum);
  }
  return height;
}

} // namespace memplan::solver::test
