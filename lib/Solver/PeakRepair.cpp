//===- PeakRepair.cpp - What failed goes first ----------------------------===//

#include "PeakRepair.h"

#include "FirstFit.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memplan::solver {

PeakRepair::PeakRepair(const Problem &problem, const Bodies &bodies,
                       SolveCore solveCore)
    : problem(problem), solve(std::move(solveCore)), bodies(bodies),
      live(computeLiveBytes(bodies)), isInCore(bodies.size(), false) {
  // Nothing may be placed where these are.
  for (int b = 0; b < bodies.size(); ++b)
    if (bodies.list[b].fixedPlace != noOffset) {
      isInCore[b] = true;
      ++coreSize;
    }
}

/// For each part above the goal the section of its life with most live bytes:
/// the others are likely to have room for it. Counts the marks before each
/// section.
std::vector<int>
PeakRepair::markCrowdedSections(const std::vector<int64_t> &places,
                                int64_t goal) const {
  std::vector<int> marks(bodies.numSections + 1, 0);
  for (int b = 0; b < bodies.size(); ++b) {
    const Body &body = bodies.list[b];
    for (int p = body.firstPart; p < body.lastPart; ++p) {
      const OccupancyIndex::Part &part = bodies.parts[p];
      if (places[b] + part.high > goal)
        marks[live.max(part.first, part.last).index + 1] = 1;
    }
  }
  std::partial_sum(marks.begin(), marks.end(), marks.begin());
  return marks;
}

/// Adds what lives at the crowded sections; false if that is nothing new, or so
/// much that the core is hardly smaller than the whole.
bool PeakRepair::growCore(const std::vector<int64_t> &places, int64_t goal) {
  std::vector<int> marks = markCrowdedSections(places, goal);
  int64_t sizeBefore = coreSize;
  for (int b = 0; b < bodies.size(); ++b) {
    const Body &body = bodies.list[b];
    bool isCrowded = std::any_of(
        bodies.parts.begin() + body.firstPart,
        bodies.parts.begin() + body.lastPart,
        [&](const auto &part) { return marks[part.first] < marks[part.last]; });
    if (!isCrowded || isInCore[b])
      continue;
    isInCore[b] = true;
    ++coreSize;
  }
  return coreSize > sizeBefore && coreSize <= bodies.size() / 2;
}

/// Gives the core's bodies their places.
Solution PeakRepair::solveCore(int64_t goal, Budget &budget) {
  Problem core;
  std::vector<size_t> indices;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (isInCore[bodies.bodyOf[i]]) {
      indices.push_back(i);
      core.buffers.push_back(problem.buffers[i]);
    }
  // The search may take as much as all before it, so that a hard core doesn't
  // use up what other cores need.
  Solution solution = solve(core, goal, budget.getPart(budget.getUsed()));
  budget.charge(solution.steps);
  for (size_t i = 0; i < indices.size() && !solution.offsets.empty(); ++i)
    bodies.list[bodies.bodyOf[indices[i]]].fixedPlace =
        solution.offsets[i] - bodies.distance[indices[i]];
  return solution;
}

int64_t PeakRepair::run(std::vector<int64_t> &places, int64_t goal,
                        Budget &budget) {
  int64_t height = computeHeight(bodies, places), lowerBound = 0;
  std::vector<int64_t> current = places;
  while (height > goal && !budget.isSpent() && growCore(current, goal)) {
    Solution core = solveCore(goal, budget);
    lowerBound = std::max(lowerBound, core.lowerBound);
    goal = std::max(goal, core.height);
    if (core.offsets.empty() || core.height >= height)
      break;
    auto found = FirstFit(bodies).run(GreedyOrder::Size, goal,
                                      std::numeric_limits<int64_t>::max(),
                                      budget, /*mayStop=*/true);
    if (!found)
      break;
    current = std::move(*found);
    // A round may be worse than the one before and still lead to a better one.
    if (int64_t newHeight = computeHeight(bodies, current);
        newHeight < height) {
      height = newHeight;
      places = current;
    }
  }
  return lowerBound;
}

} // namespace memplan::solver
