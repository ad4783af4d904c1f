//===- Walker.cpp - One position in an order ------------------------------===//

#include "Walker.h"

#include "memplan/Support/SplitMix64.h"

#include <algorithm>

namespace memplan::schedule {

Walker::Walker(const Problem &problem)
    : problem(problem), successors(problem.nodes.size()),
      waiting(problem.nodes.size()), touched(problem.storages.size()),
      touchers(problem.storages.size()), done(problem.nodes.size()),
      ready((problem.nodes.size() + 63) / 64) {
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    waiting[node] = static_cast<int>(problem.nodes[node].predecessors.size());
    for (int predecessor : problem.nodes[node].predecessors)
      successors[predecessor].push_back(static_cast<int>(node));
    for (int storage : problem.nodes[node].touches)
      ++touchers[storage];
    if (waiting[node] == 0)
      flipReady(static_cast<int>(node));
  }
  for (size_t storage = 0; storage < problem.storages.size(); ++storage)
    if (isAlive(static_cast<int>(storage)))
      live += problem.storages[storage].bytes;
}

Walker::Cost Walker::getCost(int node) const {
  const Node &data = problem.nodes[node];
  int64_t born = 0, dead = 0, saved = 0;
  for (int storage : data.touches) {
    const Storage &bytes = problem.storages[storage];
    if (!bytes.liveIn && touched[storage] == 0)
      born += bytes.bytes;
    if (!bytes.liveOut && touched[storage] + 1 == touchers[storage])
      dead += bytes.bytes;
  }
  for (auto [input, output] : data.overwrites) {
    const Storage &from = problem.storages[input];
    if (!from.liveOut && touched[input] + 1 == touchers[input] &&
        from.bytes >= problem.storages[output].bytes)
      saved = std::max(saved, problem.storages[output].bytes);
  }
  steps +=
      1 + static_cast<int64_t>(data.touches.size() + data.overwrites.size());
  return {live + born + data.workspace - saved, live + born - dead};
}

void toggleInHash(SetHash &hash, int node) {
  uint64_t seed = static_cast<uint64_t>(node) * 2 + 1;
  hash.low ^= SplitMix64::mix(seed * 0x9e3779b97f4a7c15);
  hash.high ^= SplitMix64::mix((seed + 1) * 0xd1342543de82ef95);
}

void Walker::run(int node) {
  live = getCost(node).after;
  for (int storage : problem.nodes[node].touches)
    ++touched[storage];
  for (int successor : successors[node])
    if (--waiting[successor] == 0)
      flipReady(successor);
  flipReady(node);
  done[node] = true;
  ++numRun;
  toggleInHash(hash, node);
  steps += 1 + static_cast<int64_t>(successors[node].size());
}

void Walker::undo(int node) {
  for (int storage : problem.nodes[node].touches)
    --touched[storage];
  for (int successor : successors[node])
    if (waiting[successor]++ == 0)
      flipReady(successor);
  flipReady(node);
  done[node] = false;
  --numRun;
  toggleInHash(hash, node);
  Cost cost = getCost(node);
  live -= cost.after - live;
  steps += 1 + static_cast<int64_t>(successors[node].size());
}

int Walker::getNextReady(int node) const {
  size_t word = node / 64;
  if (word >= ready.size())
    return -1;
  uint64_t bits = ready[word] & (~uint64_t(0) << (node % 64));
  for (; bits == 0; bits = ready[word], ++steps)
    if (++word == ready.size())
      return -1;
  return static_cast<int>(word) * 64 + __builtin_ctzll(bits);
}

} // namespace memplan::schedule
