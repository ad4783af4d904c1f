//===- FirstFit.cpp - One body after the other ----------------------------===//

#include "FirstFit.h"

#include "RangeMaxTree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace memplan::solver {

/// For each body, the most bytes alive at a time of its life.
std::vector<double> FirstFit::computeCrowding() const {
  RangeMaxTree tree(computeLiveBytes(bodies));
  std::vector<double> crowding;
  crowding.reserve(bodies.size());
  for (const Body &body : bodies.list) {
    int64_t most = 0;
    for (int p = body.firstPart; p < body.lastPart; ++p)
      most = std::max(
          most, tree.max(bodies.parts[p].first, bodies.parts[p].last).value);
    crowding.push_back(static_cast<double>(most));
  }
  return crowding;
}

bool FirstFit::placeFixed(OccupancyIndex &index, int64_t &steps) const {
  for (const Body &body : bodies.list) {
    if (body.fixedPlace == noOffset || body.numParts() == 0)
      continue;
    const OccupancyIndex::Part *parts = &bodies.parts[body.firstPart];
    if (index.findPlace(parts, parts + body.numParts(), body.fixedPlace,
                        body.modulus, body.fixedPlace,
                        steps) != body.fixedPlace)
      return false;
    for (int p = body.firstPart; p < body.lastPart; ++p)
      index.insert(bodies.parts[p], body.fixedPlace, steps);
  }
  return true;
}

bool FirstFit::doFixedCollide() const {
  OccupancyIndex index(bodies.numSections);
  int64_t steps = 0;
  return !placeFixed(index, steps);
}

bool FirstFit::isHuge() const {
  constexpr int minBodies = 1 << 16;
  return bodies.size() >= minBodies;
}

std::vector<int> FirstFit::makeOrder(GreedyOrder order) const {
  std::vector<double> crowding;
  if (order == GreedyOrder::Crowding)
    crowding = computeCrowding();
  auto keyOf = [&](int b) -> std::pair<double, double> {
    const Body &body = bodies.list[b];
    double length =
        static_cast<double>(body.upper) - static_cast<double>(body.lower);
    // What the next one above has to keep off.
    double modulus = static_cast<double>(body.modulus);
    double size =
        std::ceil(static_cast<double>(body.extent) / modulus) * modulus;
    switch (order) {
    case GreedyOrder::Size:
      return {size, length};
    case GreedyOrder::Length:
      return {length, size};
    case GreedyOrder::Area:
      return {body.area, size};
    case GreedyOrder::Crowding:
      return {crowding[b], body.area};
    }
    return {};
  };
  std::vector<std::pair<double, double>> keys;
  keys.reserve(bodies.size());
  for (int b = 0; b < bodies.size(); ++b)
    keys.push_back(keyOf(b));
  // Neighbours in time look at the same nodes of the index: with very many
  // bodies those of about one size and length go from left to right, so that
  // what they look at stays in the cache.
  auto classOf = [](std::pair<double, double> key) {
    constexpr double maxOctaves = 256;
    return std::ilogb(key.first + 1) * maxOctaves + std::ilogb(key.second + 1);
  };
  if (isHuge())
    for (int b = 0; b < bodies.size(); ++b)
      keys[b] = {classOf(keys[b]), -static_cast<double>(bodies.list[b].lower)};
  std::vector<int> result(bodies.size());
  std::iota(result.begin(), result.end(), 0);
  std::stable_sort(result.begin(), result.end(),
                   [&](int a, int b) { return keys[a] > keys[b]; });
  return result;
}

namespace {

/// Where bodies of about one size and start were put last. What is below has
/// just been looked through in vain for a like one, so a search that begins
/// there loses little and is much shorter.
class Hints {
public:
  explicit Hints(int numSections)
      : sectionsPerBucket(numSections / numBuckets + 1),
        places(numBuckets * numClasses, 0) {}

  int64_t get(int section, int64_t size) const {
    return places[indexOf(section, size)];
  }
  void set(int section, int64_t size, int64_t place) {
    places[indexOf(section, size)] = place;
  }

private:
  static constexpr int numBuckets = 256, numClasses = 4 * 64;

  /// Four classes from each power of two to the next.
  size_t indexOf(int section, int64_t size) const {
    int exponent = 63 - __builtin_clzll(static_cast<uint64_t>(size) | 1);
    int quarter = exponent < 2 ? 0 : (size >> (exponent - 2)) & 3;
    return size_t(section / sectionsPerBucket) * numClasses + 4 * exponent +
           quarter;
  }

  int sectionsPerBucket;
  std::vector<int64_t> places;
};

} // namespace

/// From the hint, unless that leads above the goal.
int64_t FirstFit::findPlace(OccupancyIndex &index, const Body &body,
                            int64_t hint, int64_t goal, int64_t &steps) const {
  const OccupancyIndex::Part *parts = &bodies.parts[body.firstPart];
  const OccupancyIndex::Part *end = parts + body.numParts();
  constexpr int64_t noLimit = std::numeric_limits<int64_t>::max();
  if (hint > body.residue) {
    int64_t from = body.residue + alignUp(hint - body.residue, body.modulus);
    int64_t highest = goal - body.extent;
    int64_t place =
        index.findPlace(parts, end, from, body.modulus, highest, steps);
    if (place <= highest)
      return place;
  }
  return index.findPlace(parts, end, body.residue, body.modulus, noLimit,
                         steps);
}

std::optional<std::vector<int64_t>> FirstFit::run(GreedyOrder order,
                                                  int64_t goal, int64_t limit,
                                                  Budget &budget,
                                                  bool mayStop) const {
  constexpr int stepsBetweenLooks = 1024;
  // Each look at the index is likely a miss in the cache.
  constexpr int64_t cost = 16;
  // Where a search is this long on average, hints are worth their small loss.
  constexpr int64_t longSearch = 256;
  OccupancyIndex index(bodies.numSections);
  std::optional<Hints> hints;
  if (isHuge())
    hints.emplace(bodies.numSections);
  std::vector<int64_t> places(bodies.size());
  int64_t steps = 0, allSteps = 0, numPlaced = 0;
  placeFixed(index, steps);
  for (int b : makeOrder(order)) {
    const Body &body = bodies.list[b];
    if (body.fixedPlace != noOffset || body.numParts() == 0) {
      places[b] = body.fixedPlace != noOffset ? body.fixedPlace : body.residue;
      continue;
    }
    int section = bodies.parts[body.firstPart].first;
    bool useHint = hints && allSteps + steps > longSearch * numPlaced;
    int64_t hint = useHint ? hints->get(section, body.extent) : 0;
    places[b] = findPlace(index, body, hint, goal, steps);
    if (hints)
      hints->set(section, body.extent, places[b]);
    if (mayStop && places[b] + body.extent >= limit) {
      budget.charge(cost * steps);
      return std::nullopt;
    }
    for (int p = body.firstPart; p < body.lastPart; ++p)
      index.insert(bodies.parts[p], places[b], steps);
    if (++numPlaced % stepsBetweenLooks == 0) {
      budget.charge(cost * steps);
      allSteps += steps;
      steps = 0;
      if (mayStop && budget.isSpent())
        return std::nullopt;
    }
  }
  budget.charge(cost * steps);
  return places;
}

} // namespace memplan::solver
