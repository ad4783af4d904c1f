//===- FirstFit.cpp - One body after the other ----------------------------===//

#include "FirstFit.h"

#include "RangeMaxTree.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memplan::solver {

FirstFit::FirstFit(const Bodies &bodies)
    : bodies(bodies), fixedIndex(bodies.numSections) {
  std::vector<int64_t> live(bodies.numSections + 1, 0);
  for (const OccupancyIndex::Part &part : bodies.parts) {
    live[part.first] += part.high - part.low;
    live[part.last] -= part.high - part.low;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  RangeMaxTree tree(live);
  for (const Body &body : bodies.list) {
    int64_t most = 0;
    for (int p = body.firstPart; p < body.lastPart; ++p)
      most = std::max(
          most, tree.max(bodies.parts[p].first, bodies.parts[p].last).value);
    crowding.push_back(static_cast<double>(most));
  }
}

bool FirstFit::placeFixed() {
  int64_t steps = 0;
  for (const Body &body : bodies.list) {
    if (body.fixedPlace == noOffset || body.numParts() == 0)
      continue;
    const OccupancyIndex::Part *parts = &bodies.parts[body.firstPart];
    if (fixedIndex.findPlace(parts, parts + body.numParts(), body.fixedPlace,
                             body.modulus, body.fixedPlace,
                             steps) != body.fixedPlace)
      return false;
    for (int p = body.firstPart; p < body.lastPart; ++p)
      fixedIndex.insert(bodies.parts[p], body.fixedPlace, steps);
  }
  return true;
}

std::vector<int> FirstFit::makeOrder(GreedyOrder order) const {
  auto keyOf = [&](int b) -> std::pair<double, double> {
    const Body &body = bodies.list[b];
    double length =
        static_cast<double>(body.upper) - static_cast<double>(body.lower);
    double size = static_cast<double>(body.extent);
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
  std::vector<int> result(bodies.size());
  std::iota(result.begin(), result.end(), 0);
  std::stable_sort(result.begin(), result.end(),
                   [&](int a, int b) { return keys[a] > keys[b]; });
  return result;
}

std::optional<std::vector<int64_t>>
FirstFit::run(GreedyOrder order, int64_t limit, Budget &budget) {
  constexpr int stepsBetweenLooks = 1024;
  OccupancyIndex index = fixedIndex;
  std::vector<int64_t> places(bodies.size());
  bool mayStop = hasRun;
  hasRun = true;
  int64_t steps = 0, numPlaced = 0;
  for (int b : makeOrder(order)) {
    const Body &body = bodies.list[b];
    if (body.fixedPlace != noOffset || body.numParts() == 0) {
      places[b] = body.fixedPlace != noOffset ? body.fixedPlace : body.residue;
      continue;
    }
    const OccupancyIndex::Part *parts = &bodies.parts[body.firstPart];
    places[b] = index.findPlace(parts, parts + body.numParts(), body.residue,
                                body.modulus,
                                std::numeric_limits<int64_t>::max(), steps);
    if (mayStop && places[b] + body.extent >= limit) {
      budget.charge(steps);
      return std::nullopt;
    }
    for (int p = body.firstPart; p < body.lastPart; ++p)
      index.insert(bodies.parts[p], places[b], steps);
    if (++numPlaced % stepsBetweenLooks == 0) {
      budget.charge(steps);
      steps = 0;
      if (mayStop && budget.isSpent())
        return std::nullopt;
    }
  }
  budget.charge(steps);
  return places;
}

} // namespace memplan::solver
