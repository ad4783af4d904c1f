//===- Checker.cpp - Independent check of a placement ---------------------===//

#include "memplan/Solver/Checker.h"

#include <algorithm>
#include <map>

namespace memplan::solver {

static std::string describe(const Problem &problem, const Solution &solution,
                            size_t i) {
  const Buffer &buffer = problem.buffers[i];
  return "buffer " + std::to_string(i) + " at " +
         std::to_string(solution.offsets[i]) + " of size " +
         std::to_string(buffer.size) + " in [" + std::to_string(buffer.lower) +
         ", " + std::to_string(buffer.upper) + ")";
}

/// Inserts and removes buffers in time order into a map by offset; a newcomer
/// can only collide with its neighbours there.
static std::string checkOverlaps(const Problem &problem,
                                 const Solution &solution) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].size > 0 &&
        problem.buffers[i].lower < problem.buffers[i].upper)
      starts.push_back(i);
  std::vector<size_t> ends = starts;
  std::stable_sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    return problem.buffers[a].lower < problem.buffers[b].lower;
  });
  std::stable_sort(ends.begin(), ends.end(), [&](size_t a, size_t b) {
    return problem.buffers[a].upper < problem.buffers[b].upper;
  });
  std::map<int64_t, size_t> live;
  size_t nextEnd = 0;
  for (size_t i : starts) {
    while (nextEnd < ends.size() &&
           problem.buffers[ends[nextEnd]].upper <= problem.buffers[i].lower)
      live.erase(solution.offsets[ends[nextEnd++]]);
    int64_t offset = solution.offsets[i];
    auto above = live.lower_bound(offset);
    if (above != live.end() && above->first < offset + problem.buffers[i].size)
      return describe(problem, solution, i) + " overlaps " +
             describe(problem, solution, above->second);
    if (above != live.begin()) {
      size_t below = std::prev(above)->second;
      if (solution.offsets[below] + problem.buffers[below].size > offset)
        return describe(problem, solution, i) + " overlaps " +
               describe(problem, solution, below);
    }
    live.emplace(offset, i);
  }
  return "";
}

std::string checkSolution(const Problem &problem, const Solution &solution) {
  if (solution.offsets.size() != problem.buffers.size())
    return std::to_string(solution.offsets.size()) + " offsets for " +
           std::to_string(problem.buffers.size()) + " buffers";
  int64_t height = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    int64_t offset = solution.offsets[i];
    if (offset < 0 || offset > INT64_MAX - buffer.size)
      return describe(problem, solution, i) + " is not a range of bytes";
    if (offset % buffer.alignment != 0)
      return describe(problem, solution, i) + " is not aligned to " +
             std::to_string(buffer.alignment);
    if (buffer.fixedOffset && *buffer.fixedOffset != offset)
      return describe(problem, solution, i) + " is fixed at " +
             std::to_string(*buffer.fixedOffset);
    height = std::max(height, offset + buffer.size);
  }
  if (height != solution.height)
    return "height is " + std::to_string(solution.height) +
           ", but the largest end is " + std::to_string(height);
  if (solution.lowerBound > height)
    return "lower bound " + std::to_string(solution.lowerBound) +
           " is above the height " + std::to_string(height);
  if (solution.status == Status::Optimal && solution.lowerBound != height)
    return "called optimal at height " + std::to_string(height) +
           " with lower bound " + std::to_string(solution.lowerBound);
  return checkOverlaps(problem, solution);
}

} // namespace memplan::solver
