//===- Problem.cpp - Well-formed problems and what orders cost ------------===//

#include "Walker.h"
#include "memplan/Support/CheckedMath.h"

#include <algorithm>

namespace memplan::schedule {

static bool contains(const std::vector<int> &list, int entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

static bool hasRepetition(std::vector<int> list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

/// Why one node is malformed.
static std::string checkNode(const Problem &problem, int number) {
  const Node &node = problem.nodes[number];
  const int numStorages = static_cast<int>(problem.storages.size());
  if (node.workspace < 0)
    return "has a negative workspace";
  for (int predecessor : node.predecessors)
    if (predecessor < 0 || predecessor >= number)
      return "has predecessor " + std::to_string(predecessor) +
             ", which is no node before it";
  for (int storage : node.touches)
    if (storage < 0 || storage >= numStorages)
      return "touches storage " + std::to_string(storage) +
             ", which does not exist";
  if (hasRepetition(node.predecessors))
    return "lists a predecessor twice";
  if (hasRepetition(node.touches))
    return "lists a storage twice";
  for (auto [input, output] : node.overwrites)
    if (input == output || !contains(node.touches, input) ||
        !contains(node.touches, output))
      return "overwrites what are not two storages that it touches";
  return "";
}

std::string checkProblem(const Problem &problem) {
  // No sum of what is alive can overflow if the sum of everything doesn't.
  int64_t total = 0, most = 0;
  auto add = [](int64_t &sum, int64_t bytes) {
    auto next = checkedAdd(sum, bytes);
    sum = next.value_or(0);
    return next.has_value();
  };
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    if (problem.storages[i].bytes < 0)
      return "storage " + std::to_string(i) + " has a negative size";
    if (!add(total, problem.storages[i].bytes))
      return "the storages' sizes do not fit 64 bits";
  }
  std::vector<std::vector<int>> touchers(problem.storages.size());
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    std::string fault = checkNode(problem, static_cast<int>(i));
    if (!fault.empty())
      return "node " + std::to_string(i) + " " + fault;
    most = std::max(most, problem.nodes[i].workspace);
    for (int storage : problem.nodes[i].touches)
      touchers[storage].push_back(static_cast<int>(i));
  }
  if (!add(total, most))
    return "the storages' sizes and a workspace do not fit 64 bits";
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    for (auto [input, output] : problem.nodes[i].overwrites) {
      bool isBorn = !problem.storages[output].liveIn;
      for (int toucher : touchers[output])
        isBorn &=
            toucher == static_cast<int>(i) ||
            contains(problem.nodes[toucher].predecessors, static_cast<int>(i));
      if (!isBorn)
        return "node " + std::to_string(i) + " overwrites into storage " +
               std::to_string(output) +
               ", which another node may touch before: all others that touch "
               "it must list the node as a predecessor";
    }
  return "";
}

std::vector<int64_t> computeProfile(const Problem &problem,
                                    const std::vector<int> &order) {
  Walker walker(problem);
  std::vector<int64_t> profile;
  profile.reserve(order.size());
  for (int node : order) {
    profile.push_back(walker.getCost(node).during);
    walker.run(node);
  }
  return profile;
}

int64_t computePeak(const Problem &problem, const std::vector<int> &order) {
  Walker walker(problem);
  int64_t peak = walker.getLive();
  for (int node : order) {
    peak = std::max(peak, walker.getCost(node).during);
    walker.run(node);
  }
  return std::max(peak, walker.getLive());
}

} // namespace memplan::schedule
