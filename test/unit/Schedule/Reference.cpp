//===- Reference.cpp - Peaks by definition, orders by trial ---------------===//

#include "Reference.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace memplan::schedule {

int64_t computeReferencePeak(const Problem &problem,
                             const std::vector<int> &order) {
  const int numNodes = static_cast<int>(problem.nodes.size());
  if (static_cast<int>(order.size()) != numNodes)
    return -1;
  std::vector<int> when(numNodes, -1);
  for (int position = 0; position < numNodes; ++position)
    when.at(order[position]) = position;
  for (int node = 0; node < numNodes; ++node) {
    if (when[node] < 0)
      return -1;
    for (int predecessor : problem.nodes[node].predecessors)
      if (when[predecessor] > when[node])
        return -1;
  }
  // Birth and death of each storage as closed intervals of positions, where
  // -1 is before the first node and numNodes after the last.
  struct Life {
    int birth, death;
  };
  std::vector<Life> lives;
  std::vector<std::vector<int>> timesOf(problem.storages.size());
  for (int node = 0; node < numNodes; ++node)
    for (int touched : problem.nodes[node].touches)
      timesOf[touched].push_back(when[node]);
  for (size_t storage = 0; storage < problem.storages.size(); ++storage) {
    const std::vector<int> &times = timesOf[storage];
    const Storage &data = problem.storages[storage];
    bool spans = data.liveIn && data.liveOut;
    if (times.empty() && !spans) {
      lives.push_back({numNodes + 1, -2});
      continue;
    }
    lives.push_back(
        {data.liveIn ? -1 : *std::min_element(times.begin(), times.end()),
         data.liveOut ? numNodes
                      : *std::max_element(times.begin(), times.end())});
  }
  // Bytes born at each position and dead from it on, shifted by one.
  std::vector<int64_t> change(numNodes + 4);
  for (size_t storage = 0; storage < lives.size(); ++storage)
    if (lives[storage].birth <= lives[storage].death) {
      change[lives[storage].birth + 1] += problem.storages[storage].bytes;
      change[lives[storage].death + 2] -= problem.storages[storage].bytes;
    }
  int64_t peak = 0, alive = 0;
  for (int position = -1; position <= numNodes; ++position) {
    alive += change[position + 1];
    int64_t sum = alive;
    if (position >= 0 && position < numNodes) {
      const Node &node = problem.nodes[order[position]];
      sum += node.workspace;
      int64_t best = 0;
      for (const Overwrite &pair : node.overwrites)
        if (lives[pair.input].death == position &&
            problem.storages[pair.input].bytes >=
                problem.storages[pair.output].bytes)
          best = std::max(best, problem.storages[pair.output].bytes);
      sum -= best;
    }
    peak = std::max(peak, sum);
  }
  return peak;
}

static void tryOrders(const Problem &problem, std::vector<int> &order,
                      std::set<int> &placed, int64_t &best) {
  if (order.size() == problem.nodes.size()) {
    int64_t peak = computeReferencePeak(problem, order);
    if (best < 0 || peak < best)
      best = peak;
    return;
  }
  for (int node = 0; node < static_cast<int>(problem.nodes.size()); ++node) {
    const std::vector<int> &before = problem.nodes[node].predecessors;
    if (placed.count(node) ||
        !std::all_of(before.begin(), before.end(),
                     [&](int other) { return placed.count(other) != 0; }))
      continue;
    order.push_back(node);
    placed.insert(node);
    tryOrders(problem, order, placed, best);
    placed.erase(node);
    order.pop_back();
  }
}

int64_t findSmallestPeak(const Problem &problem) {
  std::vector<int> order;
  std::set<int> placed;
  int64_t best = -1;
  tryOrders(problem, order, placed, best);
  return best;
}

Problem makeRandomProblem(SplitMix64 &random, const Shape &shape) {
  Problem problem;
  auto addStorage = [&](bool liveIn) {
    problem.storages.push_back({random.between(0, shape.maxBytes), liveIn,
                                random.chance(shape.liveOutPercent)});
    return static_cast<int>(problem.storages.size()) - 1;
  };
  std::vector<int> made;             // by node
  std::vector<char> isShared;        // by storage: several writers
  std::vector<std::vector<int>> all; // touchers by storage
  for (int number = 0; number < shape.numNodes; ++number) {
    Node node;
    std::set<int> before, touches;
    for (int64_t i = random.between(0, shape.maxPredecessors);
         i > 0 && number > 0; --i) {
      int64_t first = std::max<int64_t>(0, number - shape.reach);
      before.insert(static_cast<int>(random.between(first, number - 1)));
    }
    for (int other : before)
      if (random.chance(90))
        touches.insert(made[other]);
    if (random.chance(shape.liveInPercent))
      touches.insert(addStorage(/*liveIn=*/true));
    if (number > 0 && random.chance(shape.aliasPercent)) {
      made.push_back(made[random.below(number)]);
    } else {
      made.push_back(addStorage(/*liveIn=*/false));
    }
    touches.insert(made.back());
    node.predecessors.assign(before.begin(), before.end());
    node.touches.assign(touches.begin(), touches.end());
    if (random.chance(shape.workspacePercent))
      node.workspace = random.between(0, shape.maxBytes);
    problem.nodes.push_back(node);
  }
  all.resize(problem.storages.size());
  for (int number = 0; number < shape.numNodes; ++number)
    for (int storage : problem.nodes[number].touches)
      all[storage].push_back(number);
  // A pair is well-formed where all touchers list the first one.
  for (int number = 0; number < shape.numNodes; ++number) {
    Node &node = problem.nodes[number];
    for (int output : node.touches)
      for (int input : node.touches) {
        if (input == output || problem.storages[output].liveIn ||
            all[output].front() != number ||
            !random.chance(shape.overwritePercent))
          continue;
        for (int toucher : all[output]) {
          std::vector<int> &before = problem.nodes[toucher].predecessors;
          if (toucher != number &&
              std::find(before.begin(), before.end(), number) == before.end())
            before.push_back(number);
        }
        node.overwrites.push_back({input, output});
      }
  }
  return problem;
}

std::string print(const Problem &problem) {
  std::ostringstream os;
  for (size_t i = 0; i < problem.storages.size(); ++i)
    os << "storage " << i << ": " << problem.storages[i].bytes
       << (problem.storages[i].liveIn ? " in" : "")
       << (problem.storages[i].liveOut ? " out" : "") << "\n";
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    os << "node " << i << ": after";
    for (int predecessor : problem.nodes[i].predecessors)
      os << " " << predecessor;
    os << ", touches";
    for (int storage : problem.nodes[i].touches)
      os << " " << storage;
    os << ", workspace " << problem.nodes[i].workspace << ", overwrites";
    for (auto [input, output] : problem.nodes[i].overwrites)
      os << " " << input << "->" << output;
    os << "\n";
  }
  return os.str();
}

} // namespace memplan::schedule
