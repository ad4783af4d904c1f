//===- Schedule.cpp - From a problem to an order --------------------------===//

#include "Greedy.h"
#include "Pieces.h"
#include "Search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace memplan::schedule {
namespace {

/// Pieces of more nodes are improved by windows only.
constexpr int maxSearchedNodes = 4096;

std::vector<int> getOriginalOrder(const Problem &problem) {
  std::vector<int> order(problem.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Solves one piece: looks for an order of a peak of at most `enough`, below
/// which nothing is gained, or else of the smallest.
class PieceSolver {
public:
  PieceSolver(const Problem &problem, int64_t enough, int64_t effort,
              const Rules &rules)
      : problem(problem), enough(enough), left(effort), rules(rules),
        order(getOriginalOrder(problem)), peak(computePeak(problem, order)) {}

  void run() {
    tryOrder(makeGreedyOrder);
    tryOrder(makeDemandOrder);
    if (problem.nodes.size() <= maxSearchedNodes) {
      // A narrow beam first: the exact search never looks at what is not below
      // its peak.
      beam(8);
      bottomUp(left / 2);
      beam(128);
      bisect();
    }
    improveWindows();
  }

  const Problem &problem;
  const int64_t enough;
  int64_t left; ///< Of the effort.
  const Rules rules;
  std::vector<int> order;
  int64_t peak;
  int64_t lowerBound = 0; ///< Holds if it is above `enough`.

private:
  bool isDone() const {
    return peak <= std::max(enough, lowerBound) || left <= 0;
  }

  void take(SearchResult result) {
    left -= result.steps;
    if (result.order && result.peak < peak) {
      order = std::move(*result.order);
      peak = result.peak;
    }
    if (result.lowerBound > enough)
      lowerBound = std::max(lowerBound, result.lowerBound);
  }

  void tryOrder(std::vector<int> (*make)(const Problem &, int64_t &)) {
    if (isDone())
      return;
    SearchResult result;
    result.order = make(problem, result.steps);
    result.peak = computePeak(problem, *result.order);
    take(std::move(result));
  }

  void beam(int width) {
    // Quadratic in the number of nodes.
    int64_t nodes = static_cast<int64_t>(problem.nodes.size());
    if (!isDone() && nodes * nodes * width / 4 <= left)
      take(searchBeam(problem, width, enough, peak, left));
  }

  void bottomUp(int64_t effort) {
    if (!isDone())
      take(searchBottomUp(problem, enough, peak, effort, rules.commit));
  }

  /// Searches for peaks between the bound and the best one, each with an eighth
  /// of what is left.
  void bisect() {
    int64_t failed = std::max(enough, lowerBound) - 1;
    while (!isDone() && failed + 1 < peak) {
      int64_t limit = failed + (peak - failed) / 2;
      SearchResult result =
          searchWithin(problem, limit, left / 8, rules.commit);
      if (!result.order) {
        failed = limit;
        // Close enough: halving on would only repeat what was seen.
        if (peak - failed < peak / 256)
          return take(std::move(result));
      }
      take(std::move(result));
    }
  }

  /// Solves what is around each peak for itself while that lowers it.
  void improveWindows() {
    if (isDone())
      return;
    Slicer slicer(problem, order);
    std::vector<int64_t> profile = computeProfile(problem, order);
    while (!isDone()) {
      // A pass over the order.
      left -= static_cast<int64_t>(order.size());
      for (int at = 0; at < static_cast<int>(order.size()); ++at)
        if (profile[at] == peak && !improveWindow(at, slicer, profile))
          return;
      peak = *std::max_element(profile.begin(), profile.end());
    }
  }

  /// Lowers the peak at a position and renews the profile around it.
  bool improveWindow(int at, Slicer &slicer, std::vector<int64_t> &profile) {
    const int size = static_cast<int>(order.size());
    for (int reach = 8; reach <= 2048 && left > 0; reach *= 4) {
      Stretch window = {std::max(0, at - reach), std::min(size, at + reach)};
      Problem part = slicer.slice(window);
      left -= static_cast<int64_t>(part.storages.size()) * 8;
      int64_t bound = std::max(enough, computeNodeBound(part));
      if (bound >= peak)
        continue;
      // One that is a little lower is found sooner than the lowest one.
      int64_t goal = std::max(bound, peak - peak / 16);
      SearchResult result = searchBeam(part, 16, goal, peak, left / 4);
      left -= result.steps;
      if (!result.order) {
        result =
            searchBottomUp(part, goal, peak,
                           std::min<int64_t>(left / 4, 400'000), rules.commit);
        left -= result.steps;
      }
      if (!result.order)
        continue;
      std::vector<int64_t> renewed = computeProfile(part, *result.order);
      std::copy(renewed.begin(), renewed.end(), profile.begin() + window.begin);
      std::vector<int> old(order.begin() + window.begin,
                           order.begin() + window.end);
      for (size_t i = 0; i < old.size(); ++i)
        order[window.begin + i] = old[(*result.order)[i]];
      slicer.renew(window);
      return true;
    }
    return false;
  }
};

} // namespace

Result solve(const Problem &problem, const Options &options) {
  Result result;
  result.order = getOriginalOrder(problem);
  result.peakBefore = result.peakAfter = computePeak(problem, result.order);
  const int numNodes = static_cast<int>(problem.nodes.size());
  std::vector<Stretch> stretches;
  if (options.rules.cut)
    stretches = cutIntoPieces(problem);
  else if (numNodes > 0)
    stretches = {{0, numNodes}};
  result.pieces = static_cast<int>(stretches.size());

  struct Piece {
    Stretch stretch;
    Problem problem;
    int64_t peak;
  };
  std::vector<Piece> pieces;
  const std::vector<int> original = result.order;
  Slicer slicer(problem, original);
  // Of an empty problem, what is alive all the time.
  int64_t bound = stretches.empty() ? result.peakBefore : 0;
  for (Stretch stretch : stretches) {
    Problem part = slicer.slice(stretch);
    bound = std::max(bound, computeNodeBound(part));
    int64_t peak = computePeak(part, getOriginalOrder(part));
    pieces.push_back({stretch, std::move(part), peak});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) {
    return std::tuple(-a.peak, a.stretch.begin) <
           std::tuple(-b.peak, b.stretch.begin);
  });
  int64_t reached = bound;
  for (const Piece &piece : pieces) {
    // What is below the peak of another piece may keep its order.
    if (piece.peak <= reached)
      break;
    PieceSolver solver(piece.problem, reached, options.effort - result.steps,
                       options.rules);
    solver.run();
    result.steps = options.effort - solver.left;
    bound = std::max(bound, solver.lowerBound);
    reached = std::max(reached, solver.peak);
    for (size_t i = 0; i < solver.order.size(); ++i)
      result.order[piece.stretch.begin + i] =
          original[piece.stretch.begin + solver.order[i]];
  }
  result.peakAfter = computePeak(problem, result.order);
  result.lowerBound = std::min(bound, result.peakAfter);
  // Nothing is moved for nothing.
  if (result.peakAfter >= result.peakBefore)
    result.order = original;
  return result;
}

} // namespace memplan::schedule
