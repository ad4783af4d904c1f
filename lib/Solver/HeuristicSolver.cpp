//===- HeuristicSolver.cpp - Best of several greedy placements ------------===//

#include "memplan/Solver/Solver.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

Solver::~Solver() = default;

namespace {

int64_t alignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool occupies(const Buffer &buffer) {
  return buffer.size > 0 && buffer.lower < buffer.upper;
}

bool livesWith(const Buffer &a, const Buffer &b) {
  return a.lower < b.upper && b.lower < a.upper;
}

/// One greedy pass: buffers in a given order, each into a gap between those
/// already placed that live with it.
class Placement {
public:
  Placement(const Problem &problem, Fit fit, int64_t heightLimit,
            int64_t &stepsLeft)
      : problem(problem), fit(fit), heightLimit(heightLimit),
        stepsLeft(stepsLeft), offsets(problem.buffers.size(), 0) {}

  /// Places all; false if the height reaches the limit or the steps run out.
  bool run(const std::vector<size_t> &order, bool mayStop) {
    for (size_t i : order) {
      const Buffer &buffer = problem.buffers[i];
      int64_t offset =
          buffer.fixedOffset ? *buffer.fixedOffset : findOffset(buffer);
      if (mayStop && (offset + buffer.size >= heightLimit || stepsLeft <= 0))
        return false;
      place(i, offset);
    }
    return true;
  }

  std::vector<int64_t> takeOffsets() { return std::move(offsets); }

private:
  struct Placed {
    int64_t offset;
    size_t index;
  };

  int64_t findOffset(const Buffer &buffer) {
    if (!occupies(buffer))
      return 0;
    int64_t bottom = 0;
    int64_t best = -1, bestGap = 0;
    for (const Placed &other : placed) {
      const Buffer &neighbour = problem.buffers[other.index];
      if (!livesWith(buffer, neighbour))
        continue;
      int64_t start = alignUp(bottom, buffer.alignment);
      int64_t gap = other.offset - bottom;
      if (start + buffer.size <= other.offset) {
        if (fit == Fit::First) {
          stepsLeft -= &other - placed.data();
          return start;
        }
        if (best < 0 || gap < bestGap) {
          best = start;
          bestGap = gap;
        }
      }
      bottom = std::max(bottom, other.offset + neighbour.size);
    }
    stepsLeft -= static_cast<int64_t>(placed.size());
    return best >= 0 ? best : alignUp(bottom, buffer.alignment);
  }

  void place(size_t index, int64_t offset) {
    offsets[index] = offset;
    if (!occupies(problem.buffers[index]))
      return;
    auto position = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [](int64_t value, const Placed &p) { return value < p.offset; });
    placed.insert(position, {offset, index});
  }

  const Problem &problem;
  Fit fit;
  int64_t heightLimit;
  int64_t &stepsLeft;
  std::vector<int64_t> offsets;
  /// By offset.
  std::vector<Placed> placed;
};

/// For each buffer the largest number of bytes that live at any time of its
/// life: what lives through the peak goes first.
std::vector<int64_t> computeContention(const Problem &problem) {
  std::vector<int64_t> times;
  times.reserve(problem.buffers.size());
  for (const Buffer &buffer : problem.buffers)
    times.push_back(buffer.lower);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto indexOf = [&](int64_t time) -> size_t {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };
  // Live bytes only grow at a start, so starts are the only times to look at.
  std::vector<int64_t> live(times.size() + 1, 0);
  for (const Buffer &buffer : problem.buffers) {
    live[indexOf(buffer.lower)] += buffer.size;
    live[indexOf(buffer.upper)] -= buffer.size;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  // Sparse table of maxima over ranges of starts.
  std::vector<std::vector<int64_t>> maxima = {live};
  for (size_t width = 1; 2 * width <= live.size(); width *= 2) {
    const std::vector<int64_t> &last = maxima.back();
    std::vector<int64_t> next(live.size() - 2 * width + 1);
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = std::max(last[i], last[i + width]);
    maxima.push_back(std::move(next));
  }
  std::vector<int64_t> result;
  for (const Buffer &buffer : problem.buffers) {
    size_t begin = indexOf(buffer.lower), end = indexOf(buffer.upper);
    if (begin >= end) {
      result.push_back(0);
      continue;
    }
    size_t level = 0;
    while (size_t{2} << level <= end - begin)
      ++level;
    result.push_back(std::max(maxima[level][begin],
                              maxima[level][end - (size_t{1} << level)]));
  }
  return result;
}

std::vector<size_t> makeOrder(const Problem &problem, Order order,
                              const std::vector<int64_t> &contention) {
  // Keys are compared in turn, larger first; ties keep the problem's order.
  // A product of size and length may not fit 64 bits, hence the double.
  using Key = std::pair<double, double>;
  auto keyOf = [&](size_t i) -> Key {
    const Buffer &buffer = problem.buffers[i];
    double size = static_cast<double>(buffer.size);
    double length =
        static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower);
    switch (order) {
    case Order::Size:
      return {size, length};
    case Order::Area:
      return {size * length, size};
    case Order::Length:
      return {length, size};
    case Order::Start:
      return {-static_cast<double>(buffer.lower), size};
    case Order::End:
      return {static_cast<double>(buffer.upper), size};
    case Order::Contention:
      return {static_cast<double>(contention[i]), size * length};
    }
    return {};
  };
  std::vector<Key> keys;
  keys.reserve(problem.buffers.size());
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    keys.push_back(keyOf(i));
  std::vector<size_t> indices(problem.buffers.size());
  std::iota(indices.begin(), indices.end(), size_t{0});
  std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) {
    bool fixedA = problem.buffers[a].fixedOffset.has_value();
    bool fixedB = problem.buffers[b].fixedOffset.has_value();
    if (fixedA != fixedB)
      return fixedA;
    return keys[a] > keys[b];
  });
  return indices;
}

/// Fixed buffers are placed unseen, so their collisions are looked for first.
std::string checkFixed(const Problem &problem) {
  std::vector<size_t> fixed;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].fixedOffset && occupies(problem.buffers[i]))
      fixed.push_back(i);
  for (size_t a = 0; a < fixed.size(); ++a)
    for (size_t b = a + 1; b < fixed.size(); ++b) {
      const Buffer &first = problem.buffers[fixed[a]];
      const Buffer &second = problem.buffers[fixed[b]];
      if (livesWith(first, second) &&
          *first.fixedOffset < *second.fixedOffset + second.size &&
          *second.fixedOffset < *first.fixedOffset + first.size)
        return "buffers " + std::to_string(fixed[a]) + " and " +
               std::to_string(fixed[b]) +
               " live at once and are fixed at overlapping offsets";
    }
  return "";
}

Solution makeSolution(const Problem &problem, std::vector<int64_t> offsets,
                      int64_t lowerBound) {
  Solution solution;
  for (size_t i = 0; i < offsets.size(); ++i)
    solution.height =
        std::max(solution.height, offsets[i] + problem.buffers[i].size);
  solution.offsets = std::move(offsets);
  solution.lowerBound = lowerBound;
  solution.status =
      solution.height == lowerBound ? Status::Optimal : Status::Feasible;
  return solution;
}

class HeuristicSolver : public Solver {
public:
  explicit HeuristicSolver(HeuristicOptions options) : options(options) {}

  Outcome solve(const Problem &problem) override {
    std::string error = checkProblem(problem);
    if (error.empty())
      error = checkFixed(problem);
    if (!error.empty())
      return {std::nullopt, error};
    int64_t lowerBound = computeLowerBound(problem);
    std::vector<int64_t> contention = computeContention(problem);
    int64_t stepsLeft = options.maxSteps;
    std::optional<Solution> best;
    for (Fit fit : {Fit::First, Fit::Best})
      for (Order order : {Order::Size, Order::Contention, Order::Area,
                          Order::Length, Order::Start, Order::End}) {
        Placement placement(problem, fit, best ? best->height : 0, stepsLeft);
        if (placement.run(makeOrder(problem, order, contention),
                          /*mayStop=*/best.has_value()))
          best = makeSolution(problem, placement.takeOffsets(), lowerBound);
        if (best->status == Status::Optimal)
          return {std::move(best), ""};
      }
    return {std::move(best), ""};
  }

private:
  HeuristicOptions options;
};

class NoReuseSolver : public Solver {
public:
  Outcome solve(const Problem &problem) override {
    std::string error = checkProblem(problem);
    if (!error.empty())
      return {std::nullopt, error};
    // A fixed offset is a wish to share or to leave a gap; without reuse
    // neither has a meaning.
    std::vector<int64_t> offsets;
    offsets.reserve(problem.buffers.size());
    int64_t end = 0;
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer &buffer = problem.buffers[i];
      if (buffer.fixedOffset)
        return {std::nullopt, "buffer " + std::to_string(i) +
                                  " has a fixed offset, which a placement "
                                  "without reuse does not take"};
      offsets.push_back(alignUp(end, buffer.alignment));
      end = offsets.back() + buffer.size;
    }
    return {
        makeSolution(problem, std::move(offsets), computeLowerBound(problem)),
        ""};
  }
};

} // namespace

std::unique_ptr<Solver> createHeuristicSolver(HeuristicOptions options) {
  return std::make_unique<HeuristicSolver>(options);
}

std::unique_ptr<Solver> createNoReuseSolver() {
  return std::make_unique<NoReuseSolver>();
}

} // namespace memplan::solver
