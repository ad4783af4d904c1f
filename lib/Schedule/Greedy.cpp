//===- Greedy.cpp - One order by local choice -----------------------------===//

#include "Greedy.h"

#include "Walker.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace memplan::schedule {

std::vector<int> makeGreedyOrder(const Problem &problem, int64_t &steps) {
  const int numNodes = static_cast<int>(problem.nodes.size());
  Walker walker(problem);
  std::vector<std::vector<int>> touchers(problem.storages.size());
  for (int node = 0; node < numNodes; ++node)
    for (int storage : problem.nodes[node].touches)
      touchers[storage].push_back(node);
  std::vector<int> left(problem.storages.size());
  std::vector<char> isTouched(problem.storages.size());
  for (size_t storage = 0; storage < touchers.size(); ++storage)
    left[storage] = static_cast<int>(touchers[storage].size());

  struct Candidate {
    int64_t growth;
    int age; ///< Negative position of the last node that it follows.
    int node;
    bool operator<(const Candidate &other) const {
      return std::tie(growth, age, node) >
             std::tie(other.growth, other.age, other.node);
    }
  };
  std::priority_queue<Candidate> queue;
  std::vector<int> age(numNodes);
  auto getGrowth = [&](int node) {
    return walker.getCost(node).after - walker.getLive();
  };
  auto push = [&](int node) { queue.push({getGrowth(node), age[node], node}); };
  for (int node = walker.getNextReady(0); node >= 0;
       node = walker.getNextReady(node + 1))
    push(node);
  std::vector<int> order;
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    // Each change of a growth has pushed the node again.
    if (walker.hasRun(best.node) || getGrowth(best.node) != best.growth)
      continue;
    int node = best.node;
    walker.run(node);
    order.push_back(node);
    for (int successor : walker.getSuccessors(node))
      if (walker.isReady(successor)) {
        age[successor] = -static_cast<int>(order.size());
        push(successor);
      }
    for (int storage : problem.nodes[node].touches) {
      --left[storage];
      if (isTouched[storage] && left[storage] != 1)
        continue;
      isTouched[storage] = true;
      steps += static_cast<int64_t>(touchers[storage].size());
      for (int toucher : touchers[storage])
        if (walker.isReady(toucher))
          push(toucher);
    }
  }
  steps += walker.getSteps();
  return order;
}

std::vector<int> makeDemandOrder(const Problem &problem, int64_t &steps) {
  const int numNodes = static_cast<int>(problem.nodes.size());
  // As if the DAG were a tree: the peak of a node's ancestors and itself, and
  // the bytes that it leaves.
  std::vector<int64_t> peaks(numNodes), made(numNodes);
  std::vector<char> hasSuccessor(numNodes), isMade(problem.storages.size());
  std::vector<std::vector<int>> needs(numNodes);
  for (int node = 0; node < numNodes; ++node) {
    const Node &data = problem.nodes[node];
    needs[node] = data.predecessors;
    for (int predecessor : data.predecessors)
      hasSuccessor[predecessor] = true;
    std::sort(needs[node].begin(), needs[node].end(), [&](int a, int b) {
      int64_t first = peaks[a] - made[a], second = peaks[b] - made[b];
      return first != second ? first > second : a < b;
    });
    int64_t held = 0;
    for (int predecessor : needs[node]) {
      peaks[node] = std::max(peaks[node], held + peaks[predecessor]);
      held += made[predecessor];
    }
    for (int storage : data.touches) {
      if (!isMade[storage] && !problem.storages[storage].liveIn)
        made[node] += problem.storages[storage].bytes;
      isMade[storage] = true;
    }
    peaks[node] = std::max(peaks[node], held + made[node] + data.workspace);
    steps += 1 + static_cast<int64_t>(data.touches.size() + needs[node].size());
  }
  std::vector<char> done(numNodes);
  std::vector<int> order, stack;
  for (int last = 0; last < numNodes; ++last) {
    if (hasSuccessor[last])
      continue;
    stack.push_back(last);
    while (!stack.empty()) {
      int node = stack.back();
      auto next = std::find_if(needs[node].begin(), needs[node].end(),
                               [&](int other) { return !done[other]; });
      ++steps;
      if (next != needs[node].end()) {
        stack.push_back(*next);
        continue;
      }
      stack.pop_back();
      if (!done[node])
        order.push_back(node);
      done[node] = true;
    }
  }
  return order;
}

} // namespace memplan::schedule
