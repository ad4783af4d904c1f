//===- Bodies.cpp - What is moved as one ----------------------------------===//

#include "Bodies.h"

#include "RigidGroups.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

namespace {

class BodyBuilder {
public:
  explicit BodyBuilder(const Problem &problem) : problem(problem) {}
  Bodies run();

private:
  void addBody(Body body, const std::vector<size_t> &members, int64_t lowest);
  void cutIntoSections();

  const Problem &problem;
  Bodies bodies;
  std::vector<Strip::Item> times;
};

} // namespace

void BodyBuilder::addBody(Body body, const std::vector<size_t> &members,
                          int64_t lowest) {
  body.firstPart = static_cast<int>(bodies.parts.size());
  for (size_t i : members) {
    const Buffer &buffer = problem.buffers[i];
    int64_t distance = buffer.group ? buffer.group->offset - lowest : 0;
    bodies.bodyOf[i] = bodies.size();
    bodies.distance[i] = distance;
    if (buffer.size == 0 || buffer.lower == buffer.upper)
      continue;
    bool isFirst = body.firstPart == static_cast<int>(bodies.parts.size());
    body.lower = isFirst ? buffer.lower : std::min(body.lower, buffer.lower);
    body.upper = isFirst ? buffer.upper : std::max(body.upper, buffer.upper);
    body.area +=
        static_cast<double>(buffer.size) *
        (static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower));
    bodies.parts.push_back({0, 0, distance, distance + buffer.size});
    times.push_back({buffer.lower, buffer.upper, buffer.size, 1});
  }
  body.lastPart = static_cast<int>(bodies.parts.size());
  bodies.list.push_back(body);
}

void BodyBuilder::cutIntoSections() {
  std::vector<int> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return times[a].lower < times[b].lower;
  });
  std::vector<Strip::Item> sorted;
  sorted.reserve(times.size());
  for (int part : order)
    sorted.push_back(times[part]);
  Strip strip = buildStrip(sorted);
  bodies.numSections = strip.numSections;
  for (size_t i = 0; i < order.size(); ++i) {
    bodies.parts[order[i]].first = strip.first[i];
    bodies.parts[order[i]].last = strip.last[i];
  }
}

Bodies BodyBuilder::run() {
  size_t count = problem.buffers.size();
  bodies.bodyOf.resize(count);
  bodies.distance.resize(count);
  std::vector<RigidGroup> groups;
  collectGroups(problem, nullptr, groups); // checked before
  for (const RigidGroup &group : groups) {
    Body body;
    body.extent = group.extent;
    body.modulus = group.modulus;
    body.residue = group.residue;
    body.fixedPlace = group.fixedPlace.value_or(noOffset);
    addBody(body, group.members, group.lowest);
  }
  for (size_t i = 0; i < count; ++i) {
    const Buffer &buffer = problem.buffers[i];
    if (buffer.group)
      continue;
    Body body;
    body.extent = buffer.size;
    body.modulus = buffer.alignment;
    body.fixedPlace = buffer.fixedOffset.value_or(noOffset);
    addBody(body, {i}, 0);
  }
  cutIntoSections();
  return std::move(bodies);
}

Bodies collectBodies(const Problem &problem) {
  return BodyBuilder(problem).run();
}

std::vector<int64_t> computeLiveBytes(const Bodies &bodies) {
  std::vector<int64_t> live(bodies.numSections + 1, 0);
  for (const OccupancyIndex::Part &part : bodies.parts) {
    live[part.first] += part.high - part.low;
    live[part.last] -= part.high - part.low;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

std::vector<int64_t> toOffsets(const Bodies &bodies,
                               const std::vector<int64_t> &places) {
  std::vector<int64_t> offsets(bodies.bodyOf.size());
  for (size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = places[bodies.bodyOf[i]] + bodies.distance[i];
  return offsets;
}

int64_t computeHeight(const Bodies &bodies,
                      const std::vector<int64_t> &places) {
  int64_t height = 0;
  for (int b = 0; b < bodies.size(); ++b)
    height = std::max(height, places[b] + bodies.list[b].extent);
  return height;
}

} // namespace memplan::solver
