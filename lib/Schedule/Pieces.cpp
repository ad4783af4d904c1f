//===- Pieces.cpp - Stretches of an order as problems ---------------------===//

#include "Pieces.h"

#include <algorithm>
#include <unordered_map>

namespace memplan::schedule {

std::vector<Stretch> cutIntoPieces(const Problem &problem) {
  const int numNodes = static_cast<int>(problem.nodes.size());
  // All nodes before v are its ancestors if each of them has a successor of at
  // most v, for then a path of ascending numbers leads from each to v. Likewise
  // for those after it.
  std::vector<int> leastSuccessor(numNodes, numNodes);
  std::vector<int> mostPredecessor(numNodes, -1);
  for (int node = 0; node < numNodes; ++node)
    for (int predecessor : problem.nodes[node].predecessors) {
      leastSuccessor[predecessor] = std::min(leastSuccessor[predecessor], node);
      mostPredecessor[node] = std::max(mostPredecessor[node], predecessor);
    }
  std::vector<char> reachesAll(numNodes);
  int least = numNodes;
  for (int node = numNodes - 1; node >= 0; --node) {
    reachesAll[node] = least >= node;
    least = std::min(least, mostPredecessor[node]);
  }
  std::vector<Stretch> pieces;
  int begin = 0, most = -1;
  for (int node = 0; node < numNodes; ++node) {
    if (most <= node && reachesAll[node]) {
      if (begin < node)
        pieces.push_back({begin, node});
      pieces.push_back({node, node + 1});
      begin = node + 1;
    }
    most = std::max(most, leastSuccessor[node]);
  }
  if (begin < numNodes)
    pieces.push_back({begin, numNodes});
  return pieces;
}

Slicer::Slicer(const Problem &problem, const std::vector<int> &order)
    : problem(problem), order(order), positions(order.size()),
      firstTouch(problem.storages.size(), -1),
      lastTouch(problem.storages.size(), -1) {
  for (const Node &node : problem.nodes)
    for (int storage : node.touches)
      firstTouch[storage] = 0;
  live.push_back(0);
  for (size_t storage = 0; storage < problem.storages.size(); ++storage) {
    const Storage &data = problem.storages[storage];
    if (data.liveIn && (data.liveOut || firstTouch[storage] == 0))
      live[0] += data.bytes;
  }
  live.resize(order.size() + 1);
  renew({0, static_cast<int>(order.size())});
}

void Slicer::renew(Stretch stretch) {
  auto isInside = [&](int position) {
    return stretch.begin <= position && position < stretch.end;
  };
  // Forget what was inside; then the first and the last one seen count.
  for (int position = stretch.begin; position < stretch.end; ++position) {
    positions[order[position]] = position;
    for (int storage : problem.nodes[order[position]].touches) {
      if (isInside(firstTouch[storage]))
        firstTouch[storage] = stretch.end;
      if (isInside(lastTouch[storage]))
        lastTouch[storage] = -1;
    }
  }
  for (int position = stretch.begin; position < stretch.end; ++position)
    for (int storage : problem.nodes[order[position]].touches) {
      firstTouch[storage] = std::min(firstTouch[storage], position);
      lastTouch[storage] = std::max(lastTouch[storage], position);
    }
  for (int position = stretch.begin; position < stretch.end; ++position) {
    int64_t next = live[position];
    for (int storage : problem.nodes[order[position]].touches) {
      const Storage &data = problem.storages[storage];
      if (!data.liveIn && firstTouch[storage] == position)
        next += data.bytes;
      if (!data.liveOut && lastTouch[storage] == position)
        next -= data.bytes;
    }
    live[position + 1] = next;
  }
}

Problem Slicer::slice(Stretch stretch) const {
  Problem part;
  std::unordered_map<int, int> numbers;
  int64_t held = live[stretch.begin];
  auto getNumber = [&](int storage) {
    auto [entry, isNew] =
        numbers.try_emplace(storage, static_cast<int>(part.storages.size()));
    if (isNew) {
      Storage data = problem.storages[storage];
      data.liveIn |= firstTouch[storage] < stretch.begin;
      data.liveOut |= lastTouch[storage] >= stretch.end;
      held -= data.liveIn ? data.bytes : 0;
      part.storages.push_back(data);
    }
    return entry->second;
  };
  for (int position = stretch.begin; position < stretch.end; ++position) {
    const Node &node = problem.nodes[order[position]];
    Node copy;
    copy.workspace = node.workspace;
    for (int predecessor : node.predecessors)
      if (positions[predecessor] >= stretch.begin)
        copy.predecessors.push_back(positions[predecessor] - stretch.begin);
    for (int storage : node.touches)
      copy.touches.push_back(getNumber(storage));
    for (auto [input, output] : node.overwrites)
      copy.overwrites.push_back({getNumber(input), getNumber(output)});
    part.nodes.push_back(std::move(copy));
  }
  part.storages.push_back({held, /*liveIn=*/true, /*liveOut=*/true});
  return part;
}

} // namespace memplan::schedule
