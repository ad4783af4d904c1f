//===- Problem.cpp - Well-formedness and the lower bound ------------------===//

#include "memplan/Solver/Problem.h"

#include "memplan/Support/CheckedMath.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace memplan::solver {

std::string checkProblem(const Problem &problem) {
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    std::string name = "buffer " + std::to_string(i);
    if (buffer.lower > buffer.upper)
      return name + " has lifetime [" + std::to_string(buffer.lower) + ", " +
             std::to_string(buffer.upper) + "), expected lower <= upper";
    if (buffer.size < 0)
      return name + " has negative size " + std::to_string(buffer.size);
    if (buffer.alignment < 1)
      return name + " has alignment " + std::to_string(buffer.alignment) +
             ", expected at least 1";
    auto aligned = checkedAlignTo(buffer.size, buffer.alignment);
    // The next buffer's alignment may be larger than this one's: a placement
    // on top of this buffer adds at most alignment - 1 more.
    auto padded =
        aligned ? checkedAdd(*aligned, buffer.alignment - 1) : aligned;
    auto sum = padded ? checkedAdd(total, *padded) : padded;
    if (!sum)
      return "the sizes up to " + name + " do not fit 63 bits";
    total = *sum;
    if (!buffer.fixedOffset)
      continue;
    int64_t offset = *buffer.fixedOffset;
    if (offset < 0 || offset % buffer.alignment != 0)
      return name + " is fixed at offset " + std::to_string(offset) +
             ", expected a non-negative multiple of " +
             std::to_string(buffer.alignment);
  }
  // Placing free buffers above all fixed ones must not overflow either.
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    auto fixed = problem.buffers[i].fixedOffset;
    if (fixed && !checkedAdd(*fixed, total))
      return "the fixed offset of buffer " + std::to_string(i) +
             " and the sizes together do not fit 63 bits";
  }
  return "";
}

int64_t computeLowerBound(const Problem &problem) {
  struct Event {
    int64_t time;
    bool isStart;
    size_t index;
  };
  int64_t divisor = 0;
  int64_t bound = 0;
  std::vector<Event> events;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    divisor = std::gcd(divisor, buffer.alignment);
    bound = std::max(bound, buffer.fixedOffset.value_or(0) + buffer.size);
    if (buffer.lower == buffer.upper || buffer.size == 0)
      continue;
    events.push_back({buffer.lower, true, i});
    events.push_back({buffer.upper, false, i});
  }
  // Ends come before starts: lifetimes are half-open.
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.time != b.time ? a.time < b.time : a.isStart < b.isStart;
  });
  int64_t live = 0;
  std::multiset<int64_t> slacks;
  for (const Event &event : events) {
    int64_t size = problem.buffers[event.index].size;
    int64_t aligned = (size + divisor - 1) / divisor * divisor;
    if (event.isStart) {
      live += aligned;
      slacks.insert(aligned - size);
      bound = std::max(bound, live - *slacks.rbegin());
    } else {
      live -= aligned;
      slacks.erase(slacks.find(aligned - size));
    }
  }
  return bound;
}

} // namespace memplan::solver
