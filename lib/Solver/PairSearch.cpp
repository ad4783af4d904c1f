//===- PairSearch.cpp - Exact search for bodies of any shape --------------===//

#include "PairSearch.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

/// The ends of the first and last range of a pair.
static constexpr int64_t infinity = INT64_MAX;

/// In [0, modulus).
static int64_t floorMod(int64_t value, int64_t modulus) {
  int64_t rest = value % modulus;
  return rest < 0 ? rest + modulus : rest;
}

PairSearch::PairSearch(const Bodies &bodies)
    : bodies(bodies), pairsOf(bodies.list.size()), lowest(bodies.list.size()),
      highest(bodies.list.size()), isQueued(bodies.list.size()) {
  for (const Body &body : bodies.list) {
    bool isFixed = body.fixedPlace != noOffset;
    modulus.push_back(isFixed ? 0 : body.modulus);
    residue.push_back(isFixed ? body.fixedPlace : body.residue);
  }
  for (int b = 0; b < bodies.size(); ++b)
    for (int a = 0; a < b; ++a)
      buildPair(a, b);
  findComponents();
}

/// Whether any placement stays one if the two are swapped.
bool PairSearch::areTwins(int a, int b) const {
  const Body &one = bodies.list[a], &other = bodies.list[b];
  if (modulus[a] == 0 || modulus[a] != modulus[b] || residue[a] != residue[b] ||
      one.extent != other.extent)
    return false;
  auto parts = bodies.parts.begin();
  return std::equal(
      parts + one.firstPart, parts + one.lastPart, parts + other.firstPart,
      parts + other.lastPart,
      [](const OccupancyIndex::Part &p, const OccupancyIndex::Part &q) {
        return p.first == q.first && p.last == q.last && p.low == q.low &&
               p.high == q.high;
      });
}

/// The displacements that no two parts forbid, in the residue class that the
/// alignments leave. No sum overflows: `checkProblem` has added up all extents,
/// moduli and any fixed place.
void PairSearch::buildPair(int a, int b) {
  const Body &one = bodies.list[a], &other = bodies.list[b];
  std::vector<Range> forbidden; // without the ends
  for (int i = one.firstPart; i < one.lastPart; ++i)
    for (int j = other.firstPart; j < other.lastPart; ++j) {
      const auto &p = bodies.parts[i], &q = bodies.parts[j];
      if (p.first < q.last && q.first < p.last)
        forbidden.push_back({p.low - q.high, p.high - q.low});
    }
  if (forbidden.empty())
    return;
  std::sort(forbidden.begin(), forbidden.end(),
            [](const Range &x, const Range &y) { return x.low < y.low; });
  int64_t divisor = std::gcd(modulus[a], modulus[b]);
  int64_t rest = residue[b] - residue[a];
  // Equal bodies are placed in the order of their numbers.
  bool onlyAbove = areTwins(a, b);
  int firstRange = static_cast<int>(ranges.size());
  auto allow = [&](int64_t low, int64_t high) {
    if (divisor != 0 && low != -infinity)
      low += floorMod(rest - low, divisor);
    if (divisor != 0 && high != infinity)
      high -= floorMod(high - rest, divisor);
    if (low <= high && !(onlyAbove && high < 0))
      ranges.push_back({low, high});
  };
  int64_t reached = -infinity;
  for (const Range &range : forbidden) {
    if (reached <= range.low)
      allow(reached, range.low);
    reached = std::max(reached, range.high);
  }
  allow(reached, infinity);
  int lastRange = static_cast<int>(ranges.size()) - 1;
  int index = static_cast<int>(pairs.size());
  pairs.push_back({a, b, firstRange, lastRange, firstRange, lastRange, 1});
  pairsOf[a].push_back(index);
  pairsOf[b].push_back(index);
}

void PairSearch::findComponents() {
  std::vector<uint8_t> isSeen(bodies.list.size());
  for (int start = 0; start < bodies.size(); ++start) {
    if (isSeen[start] || pairsOf[start].empty())
      continue;
    components.emplace_back();
    std::vector<int> reached = {start};
    isSeen[start] = true;
    for (size_t next = 0; next < reached.size(); ++next)
      for (int index : pairsOf[reached[next]]) {
        const Pair &pair = pairs[index];
        if (pair.a == reached[next])
          components.back().push_back(index);
        for (int body : {pair.a, pair.b})
          if (!isSeen[body]) {
            isSeen[body] = true;
            reached.push_back(body);
          }
      }
  }
}

//===----------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------===//

void PairSearch::enqueue(int body) {
  if (isQueued[body])
    return;
  isQueued[body] = true;
  queue.push_back(body);
}

/// Whether a body's lowest place rests on itself, some bytes further down: then
/// it would rise for ever. Without this a contradiction costs as many rounds as
/// the capacity has bytes. The round trip must be more than what rounding to
/// different alignments gains, so the distances are added up.
bool PairSearch::isLiftedByItself(int body) {
  __int128 sum = supports[body].distance;
  int at = supports[body].body;
  for (int i = 0; i < bodies.size() && at != body && at >= 0; ++i) {
    ++steps;
    sum += supports[at].distance;
    at = supports[at].body;
  }
  return at == body && sum > 0;
}

bool PairSearch::raise(int body, Support support) {
  if (support.distance > highest[body] - lowest[support.body])
    return false;
  int64_t gap = lowest[support.body] + support.distance - lowest[body];
  if (gap <= 0)
    return true;
  trail.push_back({Change::Lowest, body, lowest[body], supports[body]});
  // Not above `highest`, which is as well aligned.
  lowest[body] += ((gap - 1) / modulus[body] + 1) * modulus[body];
  supports[body] = support;
  enqueue(body);
  return !isLiftedByItself(body);
}

bool PairSearch::lower(int body, int64_t place) {
  if (place < lowest[body])
    return false;
  if (place >= highest[body])
    return true;
  trail.push_back({Change::Highest, body, highest[body], {}});
  int64_t gap = highest[body] - place;
  highest[body] -= ((gap - 1) / modulus[body] + 1) * modulus[body];
  enqueue(body);
  return true;
}

void PairSearch::restrict(const Decision &decision) {
  Pair &pair = pairs[decision.pair];
  if (pair.first != decision.first)
    trail.push_back({Change::First, decision.pair, pair.first, {}});
  if (pair.last != decision.last)
    trail.push_back({Change::Last, decision.pair, pair.last, {}});
  pair.first = decision.first;
  pair.last = decision.last;
}

/// Drops ranges that the places exclude, then places that the ranges exclude.
bool PairSearch::revise(int index) {
  ++steps;
  const Pair &pair = pairs[index];
  int a = pair.a, b = pair.b, first = pair.first, last = pair.last;
  while (first <= last && ranges[first].high < lowest[b] - highest[a])
    ++first;
  while (first <= last && ranges[last].low > highest[b] - lowest[a])
    --last;
  if (first > last)
    return false;
  restrict({index, first, last, 0});
  int64_t least = ranges[first].low, most = ranges[last].high;
  return (least == -infinity ||
          (raise(b, {a, least}) && lower(a, highest[b] - least))) &&
         (most == infinity ||
          (raise(a, {b, -most}) && lower(b, highest[a] + most)));
}

SearchResult PairSearch::propagate(int64_t maxSteps) {
  SearchResult result = SearchResult::Found;
  for (size_t next = 0; next < queue.size(); ++next) {
    int body = queue[next];
    isQueued[body] = false;
    for (int index : pairsOf[body])
      if (result == SearchResult::Found && !revise(index)) {
        ++pairs[index].failures;
        result = SearchResult::Infeasible;
      }
    if (result == SearchResult::Found && steps > maxSteps)
      result = SearchResult::Limit;
  }
  queue.clear();
  return result;
}

void PairSearch::undo(size_t mark) {
  for (; trail.size() > mark; trail.pop_back()) {
    const TrailEntry &entry = trail.back();
    switch (entry.change) {
    case Change::Lowest:
      lowest[entry.index] = entry.oldValue;
      supports[entry.index] = entry.oldSupport;
      break;
    case Change::Highest:
      highest[entry.index] = entry.oldValue;
      break;
    case Change::First:
      pairs[entry.index].first = static_cast<int>(entry.oldValue);
      break;
    case Change::Last:
      pairs[entry.index].last = static_cast<int>(entry.oldValue);
      break;
    }
  }
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// False if a body can't be within the capacity.
bool PairSearch::reset(int64_t capacity) {
  steps = 0;
  trail.clear();
  supports.assign(bodies.list.size(), {-1, 0});
  for (Pair &pair : pairs) {
    pair.first = pair.firstRange;
    pair.last = pair.lastRange;
    pair.failures = 1;
  }
  for (int b = 0; b < bodies.size(); ++b) {
    int64_t room = capacity - bodies.list[b].extent - residue[b];
    if (room < 0)
      return false;
    lowest[b] = residue[b];
    highest[b] = residue[b] + (modulus[b] == 0 ? 0 : room - room % modulus[b]);
    enqueue(b);
  }
  return true;
}

/// Chooses a pair that collides at the lowest places, and on which side of the
/// collision to look first: where a body has to rise less. Prefers pairs that
/// have little room and have failed often (Boussemart et al., Boosting
/// systematic search by weighting constraints, 2004). False if none collides.
bool PairSearch::choose(const std::vector<int> &component, Decision &taken,
                        Decision &other) {
  double best = 0;
  for (int index : component) {
    ++steps;
    const Pair &pair = pairs[index];
    int64_t displacement = lowest[pair.b] - lowest[pair.a];
    int above = pair.first;
    while (ranges[above].high < displacement)
      ++above;
    if (ranges[above].low <= displacement)
      continue;
    int64_t down = ranges[above - 1].high, up = ranges[above].low;
    auto roomA = static_cast<double>(highest[pair.a] - lowest[pair.b] + down);
    auto roomB = static_cast<double>(highest[pair.b] - lowest[pair.a] - up);
    double score = static_cast<double>(pair.failures) / (1 + roomA + roomB);
    if (score <= best)
      continue;
    best = score;
    taken = {index, pair.first, above - 1, trail.size()};
    other = {index, above, pair.last, trail.size()};
    if (up - displacement <= displacement - down)
      std::swap(taken, other);
  }
  return best > 0;
}

/// Takes back decisions until the other side of one does not fail at once.
SearchResult PairSearch::backtrack(int64_t maxSteps) {
  while (!decisions.empty()) {
    Decision other = decisions.back();
    decisions.pop_back();
    undo(other.mark);
    restrict(other);
    enqueue(pairs[other.pair].a);
    SearchResult result = propagate(maxSteps);
    if (result != SearchResult::Infeasible)
      return result;
  }
  return SearchResult::Infeasible;
}

/// Begins again from time to time, so as not to be stuck below bad decisions;
/// what is kept are the counts of failures. Since the number of failures until
/// then grows without bound the search remains complete.
SearchResult PairSearch::searchComponent(const std::vector<int> &component,
                                         int64_t maxSteps) {
  decisions.clear();
  size_t begin = trail.size();
  int64_t numFailures = 0, maxFailures = 100;
  Decision taken, other;
  while (choose(component, taken, other)) {
    decisions.push_back(other);
    restrict(taken);
    enqueue(pairs[taken.pair].a);
    SearchResult result = propagate(maxSteps);
    if (result == SearchResult::Infeasible) {
      result = backtrack(maxSteps);
      ++numFailures;
    }
    if (result != SearchResult::Found)
      return result;
    if (numFailures < maxFailures)
      continue;
    undo(begin);
    decisions.clear();
    numFailures = 0;
    maxFailures += maxFailures / 2;
  }
  return SearchResult::Found;
}

SearchResult PairSearch::run(int64_t capacity, int64_t maxSteps) {
  // A run that ended in `reset` has left bodies there.
  for (int body : queue)
    isQueued[body] = false;
  queue.clear();
  if (!reset(capacity))
    return SearchResult::Infeasible;
  SearchResult result = propagate(maxSteps);
  for (const std::vector<int> &component : components)
    if (result == SearchResult::Found)
      result = searchComponent(component, maxSteps);
  return result;
}

} // namespace memplan::solver
