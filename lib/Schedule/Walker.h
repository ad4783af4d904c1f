//===- Walker.h - One position in an order ----------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SCHEDULE_WALKER_H
#define MEMPLAN_LIB_SCHEDULE_WALKER_H

#include "memplan/Schedule/Schedule.h"

namespace memplan::schedule {

/// 128 bits that stand for a set of nodes: the sum (xor) of a random word pair
/// of each.
struct SetHash {
  uint64_t low = 0, high = 0;
  bool operator==(const SetHash &other) const {
    return low == other.low && high == other.high;
  }
};

/// Adds a node to the set that the hash stands for, or takes it out.
void toggleInHash(SetHash &hash, int node);

/// A downset: the nodes that have run, closed under predecessors. Knows what is
/// alive after it and what running one more node costs. All about a downset
/// depends on the set alone, not on the order in which it ran.
class Walker {
public:
  explicit Walker(const Problem &problem);

  /// What a node would do if it ran now.
  struct Cost {
    int64_t during; ///< Bytes alive while it runs.
    int64_t after;  ///< Bytes alive after it.
  };
  Cost getCost(int node) const;

  /// Runs a node that is ready.
  void run(int node);
  /// Takes back the node that ran last.
  void undo(int node);

  bool hasRun(int node) const { return done[node]; }
  bool isReady(int node) const { return !done[node] && waiting[node] == 0; }
  /// The least ready node of at least this number, or -1.
  int getNextReady(int node) const;
  /// Bytes alive now.
  int64_t getLive() const { return live; }
  int getNumRun() const { return numRun; }
  SetHash getHash() const { return hash; }
  /// Successors of a node, in ascending order.
  const std::vector<int> &getSuccessors(int node) const {
    return successors[node];
  }
  /// Storages looked at so far.
  int64_t getSteps() const { return steps; }

private:
  void flipReady(int node) { ready[node / 64] ^= uint64_t(1) << (node % 64); }
  bool isAlive(int storage) const {
    return (problem.storages[storage].liveIn || touched[storage] > 0) &&
           (problem.storages[storage].liveOut ||
            touched[storage] < touchers[storage]);
  }

  const Problem &problem;
  std::vector<std::vector<int>> successors;
  std::vector<int> waiting;  ///< Predecessors that have not run.
  std::vector<int> touched;  ///< Nodes that touch a storage and have run.
  std::vector<int> touchers; ///< All nodes that touch a storage.
  std::vector<char> done;
  std::vector<uint64_t> ready; ///< One bit for each node.
  int64_t live = 0;
  int numRun = 0;
  SetHash hash;
  mutable int64_t steps = 0;
};

} // namespace memplan::schedule

#endif // MEMPLAN_LIB_SCHEDULE_WALKER_H
