//===- LowerBound.cpp - The largest number of live bytes ------------------===//

#include "RigidGroups.h"
#include "memplan/Solver/LiveProfile.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>

namespace memplan::solver {

namespace {

/// Bytes that one buffer, or the live members of one group, take in [lower,
/// upper): whole units of g bytes, of which the topmost has `slack` bytes that
/// are not used. Everything begins at a multiple of g, so no unit is shared.
struct Piece {
  int64_t lower;
  int64_t upper;
  int64_t bytes;
  int64_t slack;
};

/// The length of the union of ranges that come and go, over end points that are
/// known beforehand (Bentley's segment tree for Klee's measure problem).
class UnionLength {
public:
  explicit UnionLength(std::vector<int64_t> points) : points(points) {
    nodes.resize(4 * points.size());
  }

  void add(int64_t lower, int64_t upper, int64_t count) {
    update(1, 0, points.size() - 1, {lower, upper}, count);
  }

  int64_t length() const { return nodes[1].length; }

private:
  struct Node {
    int64_t count = 0;
    int64_t length = 0;
  };

  void update(size_t node, size_t begin, size_t end,
              std::pair<int64_t, int64_t> range, int64_t count) {
    if (range.second <= points[begin] || points[end] <= range.first)
      return;
    Node &here = nodes[node];
    if (range.first <= points[begin] && points[end] <= range.second) {
      here.count += count;
    } else {
      size_t middle = (begin + end) / 2;
      update(2 * node, begin, middle, range, count);
      update(2 * node + 1, middle, end, range, count);
    }
    if (here.count > 0)
      here.length = points[end] - points[begin];
    else if (end - begin == 1)
      here.length = 0;
    else
      here.length = nodes[2 * node].length + nodes[2 * node + 1].length;
  }

  std::vector<int64_t> points;
  std::vector<Node> nodes;
};

class BoundBuilder {
public:
  explicit BoundBuilder(const Problem &problem) : problem(problem) {
    for (const Buffer &buffer : problem.buffers)
      if (takesBytes(buffer))
        divisor = std::gcd(divisor, buffer.alignment);
  }

  int64_t run();
  std::vector<LivePoint> profile();

private:
  static bool takesBytes(const Buffer &buffer) {
    return buffer.size > 0 && buffer.lower < buffer.upper;
  }

  int64_t roundUp(int64_t bytes) const {
    return (bytes + divisor - 1) / divisor * divisor;
  }

  void addAll();
  void addBuffer(const Buffer &buffer);
  void addGroup(const RigidGroup &group);
  void addGroupPieces(const std::vector<size_t> &members, int64_t lowest);
  int64_t sweep();

  const Problem &problem;
  int64_t divisor = 0;
  int64_t bound = 0;
  std::vector<Piece> pieces;
};

} // namespace

void BoundBuilder::addBuffer(const Buffer &buffer) {
  bound = std::max(bound, buffer.fixedOffset.value_or(0) + buffer.size);
  if (!takesBytes(buffer))
    return;
  int64_t bytes = roundUp(buffer.size);
  pieces.push_back({buffer.lower, buffer.upper, bytes, bytes - buffer.size});
}

/// No member lies below 0, so the group's lowest place bounds the height even
/// where nothing else is alive.
void BoundBuilder::addGroup(const RigidGroup &group) {
  bound =
      std::max(bound, group.fixedPlace.value_or(group.residue) + group.extent);
  std::vector<size_t> members;
  int64_t lowest = INT64_MAX;
  for (size_t i : group.members)
    if (takesBytes(problem.buffers[i])) {
      members.push_back(i);
      lowest = std::min(lowest, problem.buffers[i].group->offset);
    }
  if (!members.empty())
    addGroupPieces(members, lowest);
}

/// One piece for each stretch of time in which the same members are alive. The
/// members' offsets are multiples of g, hence so are their distances.
void BoundBuilder::addGroupPieces(const std::vector<size_t> &members,
                                  int64_t lowest) {
  struct Event {
    int64_t time;
    int64_t count; // 1 or -1
    size_t index;
  };
  std::vector<Event> events;
  std::vector<int64_t> points;
  for (size_t i : members) {
    const Buffer &buffer = problem.buffers[i];
    events.push_back({buffer.lower, 1, i});
    events.push_back({buffer.upper, -1, i});
    points.push_back(buffer.group->offset - lowest);
    points.push_back(points.back() + roundUp(buffer.size));
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::sort(events.begin(), events.end(),
            [](const Event &a, const Event &b) { return a.time < b.time; });
  UnionLength covered(points);
  std::multiset<int64_t> ends;
  for (size_t e = 0; e < events.size(); ++e) {
    const Buffer &buffer = problem.buffers[events[e].index];
    int64_t begin = buffer.group->offset - lowest;
    covered.add(begin, begin + roundUp(buffer.size), events[e].count);
    if (events[e].count > 0)
      ends.insert(begin + buffer.size);
    else
      ends.erase(ends.find(begin + buffer.size));
    if (ends.empty() || events[e].time == events[e + 1].time)
      continue;
    int64_t top = *ends.rbegin();
    pieces.push_back({events[e].time, events[e + 1].time, covered.length(),
                      roundUp(top) - top});
  }
}

int64_t BoundBuilder::sweep() {
  std::vector<size_t> byEnd(pieces.size());
  std::iota(byEnd.begin(), byEnd.end(), 0);
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece &a, const Piece &b) { return a.lower < b.lower; });
  std::sort(byEnd.begin(), byEnd.end(), [&](size_t a, size_t b) {
    return pieces[a].upper < pieces[b].upper;
  });
  // The largest slack of a live piece; pieces that have ended are dropped when
  // they come to the top.
  auto lessSlack = [&](size_t a, size_t b) {
    return pieces[a].slack < pieces[b].slack;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(lessSlack)> slacks(
      lessSlack);
  int64_t live = 0;
  size_t nextEnd = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t now = pieces[i].lower;
    while (pieces[byEnd[nextEnd]].upper <= now)
      live -= pieces[byEnd[nextEnd++]].bytes;
    live += pieces[i].bytes;
    if (divisor == 1) {
      bound = std::max(bound, live);
      continue;
    }
    slacks.push(i);
    while (pieces[slacks.top()].upper <= now)
      slacks.pop();
    bound = std::max(bound, live - pieces[slacks.top()].slack);
  }
  return bound;
}

void BoundBuilder::addAll() {
  std::vector<RigidGroup> groups;
  collectGroups(problem, [](size_t) { return std::string(); }, groups);
  for (const Buffer &buffer : problem.buffers)
    if (!buffer.group)
      addBuffer(buffer);
  for (const RigidGroup &group : groups)
    addGroup(group);
}

int64_t BoundBuilder::run() {
  addAll();
  return sweep();
}

std::vector<LivePoint> BoundBuilder::profile() {
  addAll();
  std::vector<LivePoint> changes;
  for (const Piece &piece : pieces) {
    changes.push_back({piece.lower, piece.bytes});
    changes.push_back({piece.upper, -piece.bytes});
  }
  // What ends comes first, so that no sum is larger than what lives.
  std::sort(changes.begin(), changes.end(),
            [](const LivePoint &a, const LivePoint &b) {
              return std::pair(a.time, a.bytes) < std::pair(b.time, b.bytes);
            });
  std::vector<LivePoint> points;
  int64_t live = 0;
  for (const LivePoint &change : changes) {
    live += change.bytes;
    if (points.empty() || points.back().time != change.time)
      points.push_back({change.time, live});
    points.back().bytes = live;
  }
  return points;
}

int64_t computeLowerBound(const Problem &problem) {
  return BoundBuilder(problem).run();
}

std::vector<LivePoint> computeLiveProfile(const Problem &problem) {
  return BoundBuilder(problem).profile();
}

} // namespace memplan::solver
