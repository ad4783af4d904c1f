//===- RangeMaxTree.cpp - Sums over ranges and their maximum --------------===//

#include "RangeMaxTree.h"

#include <algorithm>
#include <limits>

namespace memplan::solver {

/// Low enough to lose, high enough to add to.
constexpr int64_t none = std::numeric_limits<int64_t>::min() / 2;

RangeMaxTree::RangeMaxTree(const std::vector<int64_t> &values) {
  numLeaves = 1;
  while (numLeaves < static_cast<int>(values.size()))
    numLeaves *= 2;
  nodes.assign(2 * numLeaves, Node{none});
  for (size_t i = 0; i < values.size(); ++i)
    nodes[numLeaves + i].max = values[i];
  for (int n = numLeaves - 1; n > 0; --n)
    nodes[n].max = std::max(nodes[2 * n].max, nodes[2 * n + 1].max);
}

void RangeMaxTree::add(int node, int begin, int end, int first, int last,
                       int64_t value) {
  if (last <= begin || end <= first)
    return;
  if (first <= begin && end <= last) {
    nodes[node].max += value;
    nodes[node].added += value;
    return;
  }
  int middle = (begin + end) / 2;
  add(2 * node, begin, middle, first, last, value);
  add(2 * node + 1, middle, end, first, last, value);
  nodes[node].max = std::max(nodes[2 * node].max, nodes[2 * node + 1].max) +
                    nodes[node].added;
}

int RangeMaxTree::argMax(int node) const {
  while (node < numLeaves)
    node = 2 * node + (nodes[2 * node].max < nodes[2 * node + 1].max ? 1 : 0);
  return node - numLeaves;
}

RangeMaxTree::Entry RangeMaxTree::max(int node, int begin, int end, int first,
                                      int last) const {
  if (last <= begin || end <= first)
    return {none, -1};
  if (first <= begin && end <= last)
    return {nodes[node].max, argMax(node)};
  int middle = (begin + end) / 2;
  Entry left = max(2 * node, begin, middle, first, last);
  Entry right = max(2 * node + 1, middle, end, first, last);
  Entry best = left.value >= right.value ? left : right;
  best.value += nodes[node].added;
  return best;
}

} // namespace memplan::solver
