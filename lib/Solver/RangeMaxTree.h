//===- RangeMaxTree.h - Sums over ranges and their maximum ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_RANGEMAXTREE_H
#define MEMPLAN_LIB_SOLVER_RANGEMAXTREE_H

#include <cstdint>
#include <utility>
#include <vector>

namespace memplan::solver {

/// An array of numbers to which a value can be added over a range, and whose
/// largest entry over a range can be asked for, both in O(log n). Of equal
/// entries the first counts.
class RangeMaxTree {
public:
  explicit RangeMaxTree(const std::vector<int64_t> &values);

  void add(int first, int last, int64_t value) {
    add(1, 0, numLeaves, first, last, value);
  }

  struct Entry {
    int64_t value;
    int index;
  };
  Entry max(int first, int last) const {
    return max(1, 0, numLeaves, first, last);
  }
  Entry max() const { return {nodes[1].max, argMax(1)}; }

private:
  struct Node {
    /// Of the subtree, with its own `added` but not that of its ancestors.
    int64_t max;
    int64_t added = 0;
  };
  void add(int node, int begin, int end, int first, int last, int64_t value);
  Entry max(int node, int begin, int end, int first, int last) const;
  int argMax(int node) const;

  int numLeaves;
  std::vector<Node> nodes;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_RANGEMAXTREE_H
