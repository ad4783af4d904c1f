//===- Search.cpp - Exact search and beam over downsets -------------------===//
//
// What is alive after a set of nodes depends on the set alone, so orders of one
// set need not be told apart (dynamic programming over downsets, as in Ahn et
// al., "Ordering chaos: memory-aware scheduling of irregularly wired neural
// networks for edge devices", MLSys 2020). Bottom-up search visits sets in the
// order of the peak that is needed to reach them, which is Dijkstra's algorithm
// with max instead of sum: the first time that all nodes have run, the peak is
// the smallest.
//
//===----------------------------------------------------------------------===//

#include "Search.h"

#include "Walker.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace memplan::schedule {
namespace {

/// Bounds on memory: about 40 bytes a state and 8 an edge.
constexpr size_t maxStates = 4'000'000;
constexpr size_t maxEdges = 16'000'000;

/// No chain that is longer is looked through for a place to commit to.
constexpr int maxChain = 64;

/// A downset with the way that led to it.
struct State {
  int parent;
  int node; ///< That ran last.
  int depth;
  SetHash hash;
};

/// States by hash; open addressing.
class StateSet {
public:
  StateSet() : slots(1024, -1) {}

  /// False if a state of this hash is in the set already.
  bool insert(const std::vector<State> &states, int index) {
    if (++count * 2 > slots.size())
      grow(states);
    int &slot = find(states, states[index].hash);
    if (slot >= 0) {
      --count;
      return false;
    }
    slot = index;
    return true;
  }
  bool contains(const std::vector<State> &states, const SetHash &hash) {
    return find(states, hash) >= 0;
  }

private:
  int &find(const std::vector<State> &states, const SetHash &hash) {
    size_t mask = slots.size() - 1, at = hash.low & mask;
    while (slots[at] >= 0 && !(states[slots[at]].hash == hash))
      at = (at + 1) & mask;
    return slots[at];
  }
  void grow(const std::vector<State> &states) {
    std::vector<int> old(slots.size() * 2, -1);
    old.swap(slots);
    for (int index : old)
      if (index >= 0)
        find(states, states[index].hash) = index;
  }

  std::vector<int> slots;
  size_t count = 0;
};

/// States and a walker that can be put at any of them.
class StateSpace {
public:
  explicit StateSpace(const Problem &problem) : walker(problem) {
    states.push_back({-1, -1, 0, walker.getHash()});
  }

  void moveTo(int target) {
    path.clear();
    int at = target;
    for (; states[at].depth > states[current].depth; at = states[at].parent)
      path.push_back(at);
    while (current != at) {
      if (states[current].depth == states[at].depth) {
        path.push_back(at);
        at = states[at].parent;
      }
      walker.undo(states[current].node);
      current = states[current].parent;
    }
    for (; !path.empty(); path.pop_back()) {
      walker.run(states[path.back()].node);
      current = path.back();
    }
  }

  SetHash getHashAfter(int state, int node) const {
    SetHash hash = states[state].hash;
    toggleInHash(hash, node);
    return hash;
  }

  int add(int parent, int node) {
    states.push_back(
        {parent, node, states[parent].depth + 1, getHashAfter(parent, node)});
    return static_cast<int>(states.size()) - 1;
  }

  std::vector<int> getOrder(int state) const {
    std::vector<int> order;
    for (; state > 0; state = states[state].parent)
      order.push_back(states[state].node);
    std::reverse(order.begin(), order.end());
    return order;
  }

  Walker walker;
  std::vector<State> states;

private:
  int current = 0;
  std::vector<int> path;
};

/// Nodes that, run from where the walker is, never need more than `limit` and
/// end with at most the bytes that are alive now; empty if none are found.
///
/// Each such run is the best continuation (docs/Schedule.md): the bytes alive
/// after a downset are a submodular function of it, and no prefix of the run
/// has fewer than its end. That needs each node of the run to be ready only
/// after the one before, so that the prefixes are all downsets in between.
std::vector<int> findCommitment(Walker &walker, int64_t limit) {
  const int64_t live = walker.getLive();
  std::vector<int> chain;
  for (int first = walker.getNextReady(0); first >= 0;
       first = walker.getNextReady(first + 1)) {
    int next = first;
    bool isFound = false;
    while (next >= 0 && static_cast<int>(chain.size()) < maxChain) {
      Walker::Cost cost = walker.getCost(next);
      if (cost.during > limit)
        break;
      chain.push_back(next);
      if (cost.after <= live) {
        isFound = true;
        break;
      }
      walker.run(next);
      int follower = -1, numFollowers = 0;
      for (int successor : walker.getSuccessors(next))
        if (walker.isReady(successor)) {
          follower = successor;
          ++numFollowers;
        }
      next = numFollowers == 1 ? follower : -1;
    }
    for (int i = static_cast<int>(chain.size()) - 1; i >= 0; --i)
      if (walker.hasRun(chain[i]))
        walker.undo(chain[i]);
    if (isFound)
      return chain;
    chain.clear();
  }
  return chain;
}

/// A node that can run, and its cost.
struct Choice {
  int node;
  Walker::Cost cost;
};

/// Those that are ready, the one that leaves fewest bytes alive first.
std::vector<Choice> listChoices(const Walker &walker) {
  std::vector<Choice> choices;
  for (int node = walker.getNextReady(0); node >= 0;
       node = walker.getNextReady(node + 1))
    choices.push_back({node, walker.getCost(node)});
  std::sort(
      choices.begin(), choices.end(), [](const Choice &a, const Choice &b) {
        return std::tie(a.cost.after, a.node) < std::tie(b.cost.after, b.node);
      });
  return choices;
}

class ThresholdSearch {
public:
  ThresholdSearch(const Problem &problem, int64_t threshold, int64_t toBeat,
                  int64_t effort, bool commit)
      : problem(problem), space(problem), threshold(threshold), toBeat(toBeat),
        effort(effort), commit(commit) {}

  SearchResult run() {
    SearchResult result;
    visited.insert(space.states, 0);
    stack.push_back(0);
    while (true) {
      if (stack.empty() && !raiseThreshold()) {
        result.lowerBound = toBeat;
        break;
      }
      if (stack.empty())
        continue;
      int state = stack.back();
      stack.pop_back();
      if (space.states[state].depth == static_cast<int>(problem.nodes.size())) {
        result.order = space.getOrder(state);
        result.peak = computePeak(problem, *result.order);
        result.lowerBound = threshold;
        break;
      }
      if (space.walker.getSteps() > effort || space.states.size() > maxStates ||
          numEdges > maxEdges) {
        result.lowerBound = threshold;
        break;
      }
      expand(state);
    }
    result.steps = space.walker.getSteps();
    return result;
  }

private:
  /// Goes on with the edges of the least cost; false if none is below the peak
  /// to beat.
  bool raiseThreshold() {
    if (later.empty() || later.begin()->first >= toBeat)
      return false;
    threshold = later.begin()->first;
    // The first ones found are on top of the stack.
    std::vector<Edge> edges = std::move(later.begin()->second);
    later.erase(later.begin());
    numEdges -= edges.size();
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge)
      push(edge->state, edge->node);
    return true;
  }

  void push(int state, int node) {
    if (visited.contains(space.states, space.getHashAfter(state, node)))
      return;
    int next = space.add(state, node);
    visited.insert(space.states, next);
    stack.push_back(next);
  }

  void expand(int state) {
    space.moveTo(state);
    if (commit) {
      std::vector<int> chain = findCommitment(space.walker, threshold);
      if (!chain.empty()) {
        int last = chain.back();
        chain.pop_back();
        for (int node : chain)
          state = space.add(state, node);
        push(state, last);
        return;
      }
    }
    std::vector<Choice> choices = listChoices(space.walker);
    for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
      if (choice->cost.during <= threshold) {
        push(state, choice->node);
      } else if (choice->cost.during < toBeat) {
        later[choice->cost.during].push_back({state, choice->node});
        ++numEdges;
      }
    }
  }

  struct Edge {
    int state, node;
  };

  const Problem &problem;
  StateSpace space;
  StateSet visited;
  std::vector<int> stack;
  std::map<int64_t, std::vector<Edge>> later;
  size_t numEdges = 0;
  int64_t threshold;
  const int64_t toBeat, effort;
  const bool commit;
};

} // namespace

SearchResult searchBottomUp(const Problem &problem, int64_t enough,
                            int64_t toBeat, int64_t effort, bool commit) {
  return ThresholdSearch(problem, enough, toBeat, effort, commit).run();
}

SearchResult searchWithin(const Problem &problem, int64_t limit, int64_t effort,
                          bool commit) {
  SearchResult result =
      ThresholdSearch(problem, limit, limit + 1, effort, commit).run();
  if (result.order || result.lowerBound == limit)
    result.lowerBound = 0;
  return result;
}

SearchResult searchBeam(const Problem &problem, int width, int64_t enough,
                        int64_t toBeat, int64_t effort) {
  struct Partial {
    int64_t peak, live;
    int depth, state;
  };
  StateSpace space(problem);
  SearchResult result;
  result.peak = toBeat;
  int64_t start = std::max(enough, space.walker.getLive());
  std::vector<Partial> beam = {{start, space.walker.getLive(), 0, 0}}, next;
  while (!beam.empty() && result.peak > enough &&
         space.walker.getSteps() <= effort &&
         space.states.size() <= maxStates) {
    next.clear();
    StateSet seen;
    for (Partial partial : beam) {
      space.moveTo(partial.state);
      std::vector<int> chain = findCommitment(space.walker, partial.peak);
      for (int node : chain) {
        space.walker.run(node);
        partial.state = space.add(partial.state, node);
      }
      partial.live = space.walker.getLive();
      for (auto node = chain.rbegin(); node != chain.rend(); ++node)
        space.walker.undo(*node);
      partial.depth = space.states[partial.state].depth;
      if (partial.depth == static_cast<int>(problem.nodes.size())) {
        if (partial.peak < result.peak) {
          result.peak = partial.peak;
          result.order = space.getOrder(partial.state);
        }
        continue;
      }
      if (!chain.empty()) {
        if (seen.insert(space.states, partial.state))
          next.push_back(partial);
        continue;
      }
      for (const Choice &choice : listChoices(space.walker)) {
        int64_t peak = std::max(partial.peak, choice.cost.during);
        if (peak >= result.peak)
          continue;
        int state = space.add(partial.state, choice.node);
        if (seen.insert(space.states, state))
          next.push_back({peak, choice.cost.after, partial.depth + 1, state});
      }
    }
    std::sort(next.begin(), next.end(), [](const Partial &a, const Partial &b) {
      return std::tuple(a.peak, a.live, -a.depth, a.state) <
             std::tuple(b.peak, b.live, -b.depth, b.state);
    });
    if (next.size() > static_cast<size_t>(width))
      next.resize(width);
    beam.swap(next);
  }
  if (result.order)
    result.peak = computePeak(problem, *result.order);
  result.steps = space.walker.getSteps();
  return result;
}

} // namespace memplan::schedule
