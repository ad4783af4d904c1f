//===- Preferences.cpp - Moving buffers to where they are wanted ----------===//

#include "Preferences.h"

namespace memplan::solver {

static bool collide(const Bodies &bodies, int a, int64_t placeOfA, int b,
                    int64_t placeOfB) {
  const Body &first = bodies.list[a], &second = bodies.list[b];
  for (int p = first.firstPart; p < first.lastPart; ++p)
    for (int q = second.firstPart; q < second.lastPart; ++q) {
      const OccupancyIndex::Part &x = bodies.parts[p], &y = bodies.parts[q];
      if (x.first < y.last && y.first < x.last &&
          placeOfA + x.low < placeOfB + y.high &&
          placeOfB + y.low < placeOfA + x.high)
        return true;
    }
  return false;
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
  std::vector<uint8_t> isMoved(bodies.size(), false);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    int b = bodies.bodyOf[i];
    if (!problem.buffers[i].preferredOffset || isMoved[b])
      continue;
    int64_t wanted = *problem.buffers[i].preferredOffset;
    if (wanted < bodies.distance[i])
      continue;
    wanted -= bodies.distance[i];
    if (!isLegal(bodies, b, wanted, height) || budget.isSpent())
      continue;
    bool isFree = true;
    for (int other = 0; other < bodies.size() && isFree; ++other)
      isFree = other == b || !collide(bodies, b, wanted, other, places[other]);
    budget.charge(bodies.size());
    if (!isFree)
      continue;
    places[b] = wanted;
    isMoved[b] = true;
  }
}

} // namespace memplan::solver
