//===- Checker.cpp - Independent check of a placement ---------------------===//

#include "memplan/Solver/Checker.h"

#include "LiveRanges.h"

#include <algorithm>
#include <unordered_map>

namespace memplan::solver {

namespace {

class Checker {
public:
  Checker(const Problem &problem, const Solution &solution,
          const BufferName &name)
      : buffers(problem.buffers), capacity(problem.capacity),
        solution(solution), name(name) {}

  std::string run();

private:
  std::string describe(size_t i) const;
  std::string checkPlacement();
  std::string checkBuffer(size_t i) const;
  std::string checkGroups();
  std::string checkOverlaps() const;
  std::string describeOverlap(size_t i) const;
  std::string checkBound() const;
  std::string checkStatus() const;
  bool hasPlacement() const {
    return solution.offsets.size() == buffers.size();
  }

  const std::vector<Buffer> &buffers;
  const std::optional<int64_t> &capacity;
  const Solution &solution;
  const BufferName &name;
  /// Who owns the bytes of a buffer: itself, or its group's first member.
  std::vector<size_t> owners;
};

} // namespace

std::string Checker::describe(size_t i) const {
  const Buffer &buffer = buffers[i];
  return name(i) + " at " + std::to_string(solution.offsets[i]) + " of size " +
         std::to_string(buffer.size) + " in [" + std::to_string(buffer.lower) +
         ", " + std::to_string(buffer.upper) + ")";
}

std::string Checker::checkBuffer(size_t i) const {
  const Buffer &buffer = buffers[i];
  int64_t offset = solution.offsets[i];
  if (buffer.lower > buffer.upper)
    return describe(i) + " ends before it starts";
  if (buffer.size < 0 || offset < 0 || offset > INT64_MAX - buffer.size)
    return describe(i) + " is not a range of bytes";
  if (buffer.alignment < 1 || offset % buffer.alignment != 0)
    return describe(i) + " is not aligned to " +
           std::to_string(buffer.alignment);
  if (buffer.fixedOffset && *buffer.fixedOffset != offset)
    return describe(i) + " is fixed at " + std::to_string(*buffer.fixedOffset);
  return "";
}

std::string Checker::checkGroups() {
  std::unordered_map<int64_t, size_t> firsts;
  owners.resize(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    owners[i] = i;
    if (!buffers[i].group)
      continue;
    owners[i] = firsts.emplace(buffers[i].group->id, i).first->second;
    size_t first = owners[i];
    __int128 got = __int128(solution.offsets[i]) - solution.offsets[first];
    __int128 wanted =
        __int128(buffers[i].group->offset) - buffers[first].group->offset;
    if (got != wanted)
      return describe(i) + " and " + describe(first) +
             " are not at the distance that their group offsets " +
             std::to_string(buffers[i].group->offset) + " and " +
             std::to_string(buffers[first].group->offset) + " say";
  }
  return "";
}

/// Adds buffers in the order of their starts to those that live; whoever has
/// ended by then is taken out first, since lifetimes are half-open.
std::string Checker::checkOverlaps() const {
  std::vector<size_t> starts;
  std::vector<int64_t> bounds;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size > 0 && buffers[i].lower < buffers[i].upper) {
      starts.push_back(i);
      bounds.push_back(solution.offsets[i]);
      bounds.push_back(solution.offsets[i] + buffers[i].size);
    }
  std::vector<size_t> ends = starts;
  std::sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    return std::pair(buffers[a].lower, a) < std::pair(buffers[b].lower, b);
  });
  std::sort(ends.begin(), ends.end(), [&](size_t a, size_t b) {
    return buffers[a].upper < buffers[b].upper;
  });
  LiveRanges live(std::move(bounds));
  auto rangeOf = [&](size_t i) {
    return live.find(solution.offsets[i],
                     solution.offsets[i] + buffers[i].size);
  };
  size_t nextEnd = 0;
  for (size_t i : starts) {
    for (; buffers[ends[nextEnd]].upper <= buffers[i].lower; ++nextEnd)
      live.remove(rangeOf(ends[nextEnd]));
    LiveRanges::Range range = rangeOf(i);
    if (!live.isFreeFor(range, owners[i]))
      return describeOverlap(i);
    live.add(range, owners[i]);
  }
  return "";
}

/// Looks for whom buffer i met when it started.
std::string Checker::describeOverlap(size_t i) const {
  for (size_t j = 0; j < buffers.size(); ++j) {
    bool meet =
        std::pair(buffers[j].lower, j) < std::pair(buffers[i].lower, i) &&
        buffers[j].upper > buffers[i].lower && buffers[j].size > 0 &&
        buffers[j].lower < buffers[j].upper;
    if (meet && owners[i] != owners[j] &&
        solution.offsets[j] < solution.offsets[i] + buffers[i].size &&
        solution.offsets[i] < solution.offsets[j] + buffers[j].size)
      return describe(i) + " overlaps " + describe(j);
  }
  return describe(i) + " overlaps another buffer";
}

std::string Checker::checkPlacement() {
  int64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (std::string fault = checkBuffer(i); !fault.empty())
      return fault;
    height = std::max(height, solution.offsets[i] + buffers[i].size);
  }
  std::string fault = checkGroups();
  if (fault.empty())
    fault = checkOverlaps();
  if (fault.empty() && height != solution.height)
    return "height is " + std::to_string(solution.height) +
           ", but the largest end is " + std::to_string(height);
  return fault;
}

std::string Checker::checkBound() const {
  if (solution.lowerBound > solution.height)
    return "lower bound " + std::to_string(solution.lowerBound) +
           " is above the height " + std::to_string(solution.height);
  if (solution.status == Status::Optimal &&
      solution.lowerBound != solution.height)
    return "called optimal at height " + std::to_string(solution.height) +
           " with lower bound " + std::to_string(solution.lowerBound);
  return "";
}

std::string Checker::checkStatus() const {
  std::string called = std::string("called ") + toString(solution.status);
  bool isWithin = hasPlacement() && (!capacity || solution.height <= *capacity);
  switch (solution.status) {
  case Status::Optimal:
  case Status::Feasible:
    return isWithin
               ? ""
               : called + ", but height " + std::to_string(solution.height) +
                     " is above the capacity " + std::to_string(*capacity);
  case Status::Limit:
    if (!capacity)
      return called + " without a capacity";
    if (solution.lowerBound > *capacity)
      return called + ", but lower bound " +
             std::to_string(solution.lowerBound) + " is above the capacity " +
             std::to_string(*capacity);
    [[fallthrough]];
  case Status::Infeasible:
    return isWithin
               ? called + ", but there is a placement" +
                     (capacity
                          ? " within the capacity " + std::to_string(*capacity)
                          : "")
               : "";
  }
  return "the status is none of the known ones";
}

std::string Checker::run() {
  bool mayLackPlacement =
      solution.status == Status::Infeasible || solution.status == Status::Limit;
  if (!hasPlacement() && !(mayLackPlacement && solution.offsets.empty()))
    return std::to_string(solution.offsets.size()) + " offsets for " +
           std::to_string(buffers.size()) + " buffers";
  if (!hasPlacement() && solution.height != 0)
    return "height is " + std::to_string(solution.height) +
           " without a placement";
  std::string fault;
  if (hasPlacement())
    fault = checkPlacement();
  if (fault.empty() && hasPlacement())
    fault = checkBound();
  return fault.empty() ? checkStatus() : fault;
}

std::string checkSolution(const Problem &problem, const Solution &solution,
                          const BufferName &name) {
  if (name)
    return Checker(problem, solution, name).run();
  BufferName number = [](size_t i) { return "buffer " + std::to_string(i); };
  return Checker(problem, solution, number).run();
}

} // namespace memplan::solver
