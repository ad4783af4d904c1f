//===- Preferences.cpp - Moving buffers to where they are wanted ----------===//

#include "Preferences.h"

#include "OverlapIndex.h"

#include <algorithm>

namespace memplan::solver {

namespace {

/// Which parts live in a range of sections. Only places change, so that one
/// index serves all moves.
class Neighbours {
public:
  explicit Neighbours(const Bodies &bodies)
      : bodies(bodies), strip(sortParts()), index(strip) {}

  /// Whether the body would share bytes with another one at `place`.
  bool collide(int body, int64_t place, const std::vector<int64_t> &places,
               int64_t &steps) const;

private:
  Strip sortParts();

  const Bodies &bodies;
  /// Parts by first section, and the body of each.
  std::vector<const OccupancyIndex::Part *> parts;
  std::vector<int> owners;
  const Strip strip;
  const OverlapIndex index;
};

} // namespace

Strip Neighbours::sortParts() {
  std::vector<std::pair<const OccupancyIndex::Part *, int>> sorted;
  for (int b = 0; b < bodies.size(); ++b)
    for (int p = bodies.list[b].firstPart; p < bodies.list[b].lastPart; ++p)
      sorted.push_back({&bodies.parts[p], b});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto &a, const auto &b) {
                     return a.first->first < b.first->first;
                   });
  Strip result;
  result.numItems = static_cast<int>(sorted.size());
  for (auto [part, owner] : sorted) {
    parts.push_back(part);
    owners.push_back(owner);
    result.first.push_back(part->first);
    result.last.push_back(part->last);
  }
  return result;
}

bool Neighbours::collide(int body, int64_t place,
                         const std::vector<int64_t> &places,
                         int64_t &steps) const {
  bool isFree = true;
  for (int p = bodies.list[body].firstPart;
       p < bodies.list[body].lastPart && isFree; ++p) {
    const OccupancyIndex::Part &part = bodies.parts[p];
    index.forEach(part.first, part.last, steps, [&](int item) {
      int owner = owners[item];
      isFree &= owner == body ||
                place + part.low >= places[owner] + parts[item]->high ||
                places[owner] + parts[item]->low >= place + part.high;
    });
  }
  return !isFree;
}

static bool isLegal(const Bodies &bodies, int b, int64_t place,
                    int64_t height) {
  const Body &body = bodies.list[b];
  return body.fixedPlace == noOffset && place >= body.residue &&
         (place - body.residue) % body.modulus == 0 && body.extent <= height &&
         place <= height - body.extent;
}

void movePreferred(const Problem &problem, const Bodies &bodies, int64_t height,
                   std::vector<int64_t> &places, Budget &budget) {
  auto isPreference = [](const Buffer &buffer) {
    return buffer.preferredOffset.has_value();
  };
  if (std::none_of(problem.buffers.begin(), problem.buffers.end(),
                   isPreference))
    return;
  // A search that has spent its effort leaves preferences as they are, so they
  // have steps of their own. These only run out if very many buffers are alive
  // at once.
  constexpr int64_t maxSteps = int64_t{1} << 28;
  int64_t steps = 0;
  Neighbours neighbours(bodies);
  std::vector<uint8_t> isMoved(bodies.size(), false);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    int b = bodies.bodyOf[i];
    if (!problem.buffers[i].preferredOffset || isMoved[b])
      continue;
    int64_t wanted = *problem.buffers[i].preferredOffset;
    if (wanted < bodies.distance[i])
      continue;
    wanted -= bodies.distance[i];
    if (!isLegal(bodies, b, wanted, height) || steps > maxSteps ||
        neighbours.collide(b, wanted, places, steps))
      continue;
    places[b] = wanted;
    isMoved[b] = true;
  }
  budget.charge(steps);
}

} // namespace memplan::solver
