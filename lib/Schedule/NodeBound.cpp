//===- NodeBound.cpp - What must be alive while a node runs ---------------===//

#include "memplan/Schedule/Schedule.h"

#include <algorithm>

namespace memplan::schedule {
namespace {

/// A set of nodes, one bit each.
using BitSet = std::vector<uint64_t>;

/// Larger problems would need gigabytes of sets.
constexpr size_t maxNodesWithSets = 20'000;

void insert(BitSet &set, int node) {
  set[node / 64] |= uint64_t(1) << (node % 64);
}

bool contains(const BitSet &set, int node) {
  return (set[node / 64] >> (node % 64) & 1) != 0;
}

void unite(BitSet &set, const BitSet &other) {
  for (size_t word = 0; word < set.size(); ++word)
    set[word] |= other[word];
}

/// The nodes before and after each node, in every order.
struct Reach {
  std::vector<BitSet> ancestors, descendants;

  explicit Reach(const Problem &problem) {
    const size_t numNodes = problem.nodes.size();
    ancestors.assign(numNodes, BitSet((numNodes + 63) / 64));
    descendants = ancestors;
    for (size_t node = 0; node < numNodes; ++node)
      for (int predecessor : problem.nodes[node].predecessors) {
        unite(ancestors[node], ancestors[predecessor]);
        insert(ancestors[node], predecessor);
      }
    for (size_t node = numNodes; node-- > 0;)
      for (int predecessor : problem.nodes[node].predecessors) {
        unite(descendants[predecessor], descendants[node]);
        insert(descendants[predecessor], static_cast<int>(node));
      }
  }
};

/// Adds the storage's bytes to each node that it must be alive at without being
/// touched: one that is after one toucher and before another.
void addWhereHeld(const Storage &storage, const std::vector<int> &touchers,
                  const Reach &reach, std::vector<int64_t> &bytes) {
  const uint64_t all = ~uint64_t(0);
  BitSet before(reach.ancestors.front().size(), storage.liveOut ? all : 0);
  BitSet after(before.size(), storage.liveIn ? all : 0);
  for (int toucher : touchers) {
    unite(before, reach.ancestors[toucher]);
    unite(after, reach.descendants[toucher]);
  }
  for (int toucher : touchers)
    before[toucher / 64] &= ~(uint64_t(1) << (toucher % 64));
  for (size_t word = 0; word < before.size(); ++word)
    for (uint64_t bits = before[word] & after[word]; bits; bits &= bits - 1)
      if (size_t node = word * 64 + __builtin_ctzll(bits); node < bytes.size())
        bytes[node] += storage.bytes;
}

} // namespace

int64_t computeNodeBound(const Problem &problem) {
  const size_t numNodes = problem.nodes.size();
  std::vector<std::vector<int>> touchers(problem.storages.size());
  std::vector<int64_t> bytes(numNodes);
  for (size_t node = 0; node < numNodes; ++node) {
    bytes[node] = problem.nodes[node].workspace;
    for (int storage : problem.nodes[node].touches) {
      touchers[storage].push_back(static_cast<int>(node));
      bytes[node] += problem.storages[storage].bytes;
    }
  }
  int64_t liveIn = 0, liveOut = 0;
  for (size_t storage = 0; storage < problem.storages.size(); ++storage) {
    const Storage &data = problem.storages[storage];
    if (data.liveIn && (data.liveOut || !touchers[storage].empty()))
      liveIn += data.bytes;
    if (data.liveOut && (data.liveIn || !touchers[storage].empty()))
      liveOut += data.bytes;
  }
  int64_t bound = std::max(liveIn, liveOut);
  if (numNodes == 0)
    return bound;
  const bool hasSets = numNodes <= maxNodesWithSets;
  Problem none;
  Reach reach(hasSets ? problem : none);
  if (hasSets)
    for (size_t storage = 0; storage < problem.storages.size(); ++storage)
      if (problem.storages[storage].bytes > 0)
        addWhereHeld(problem.storages[storage], touchers[storage], reach,
                     bytes);
  for (size_t node = 0; node < numNodes; ++node) {
    int64_t saved = 0;
    for (auto [input, output] : problem.nodes[node].overwrites) {
      bool mayDie =
          !problem.storages[input].liveOut &&
          problem.storages[input].bytes >= problem.storages[output].bytes;
      for (int toucher : touchers[input])
        mayDie &= !hasSets || !contains(reach.descendants[node], toucher);
      if (mayDie)
        saved = std::max(saved, problem.storages[output].bytes);
    }
    bound = std::max(bound, bytes[node] - saved);
  }
  return bound;
}

} // namespace memplan::schedule
