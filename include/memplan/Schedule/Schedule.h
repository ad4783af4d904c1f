//===- Schedule.h - Order a DAG for the smallest peak -----------*- C++ -*-===//
//
// The problem behind memplan-schedule, without MLIR: order the nodes of a DAG
// so that the most bytes alive at one time are as few as possible. NP-hard
// (Sethi, "Complete register allocation problems", 1975). Depends on the C++
// standard library alone; docs/Schedule.md has the model and the algorithms.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_SCHEDULE_SCHEDULE_H
#define MEMPLAN_SCHEDULE_SCHEDULE_H

#include <cstdint>
#include <string>
#include <vector>

namespace memplan::schedule {

/// Bytes that are alive from the first node that touches them to the last,
/// whichever these are in an order. Values that alias (a tensor and its views,
/// the parts of one buffer) are one storage.
struct Storage {
  int64_t bytes = 0;
  /// Alive before the first node.
  bool liveIn = false;
  /// Alive after the last node.
  bool liveOut = false;
};

/// A node may write its result over an input.
struct Overwrite {
  int input;  ///< A storage that the node touches.
  int output; ///< Another one, born at this node in every order.
};

/// One operation.
struct Node {
  /// Nodes that come before; each has a smaller number.
  std::vector<int> predecessors;
  /// Storages that it reads or writes, each once.
  std::vector<int> touches;
  /// Bytes that are alive while it runs and neither before nor after.
  int64_t workspace = 0;
  /// The node takes one of these pairs, the one that saves most. A pair can be
  /// taken if the input dies at this node and has at least the output's bytes.
  std::vector<Overwrite> overwrites;
};

/// Nodes in their original order, which must be a valid one.
///
/// While a node runs, these are alive: storages that were touched before and
/// are still to be touched, all that it touches, and its workspace. From that
/// the taken overwrite saves the output's bytes. The peak of an order is the
/// largest such sum, and at least the bytes that are alive before the first
/// node and after the last. A storage that no node touches is alive if it is
/// both live in and live out.
struct Problem {
  std::vector<Node> nodes;
  std::vector<Storage> storages;
};

/// Why a problem is malformed, or nothing. Other functions take well-formed
/// problems only.
std::string checkProblem(const Problem &problem);

/// The bytes that are alive while each node runs, by position in the order.
std::vector<int64_t> computeProfile(const Problem &problem,
                                    const std::vector<int> &order);

/// The peak of an order in bytes.
int64_t computePeak(const Problem &problem, const std::vector<int> &order);

/// Bytes below which no order's peak is, by looking at each node alone: what it
/// touches and what must be alive then, since it comes from ancestors and goes
/// to descendants.
int64_t computeNodeBound(const Problem &problem);

/// Each switches off one part of the search, to measure what it is worth. None
/// changes what is proved.
struct Rules {
  /// Solve what is between nodes that everything else is before or after, each
  /// for itself.
  bool cut = true;
  /// Take a run of nodes at once when it ends with no more bytes than it began
  /// with, without looking at other orders.
  bool commit = true;
};

struct Options {
  /// Bound on the work, in steps: a storage looked at, some nanoseconds.
  int64_t effort = 50'000'000;
  Rules rules;
};

struct Result {
  /// Node numbers. The original order if no better one was found.
  std::vector<int> order;
  int64_t peakBefore = 0; ///< Of the original order.
  int64_t peakAfter = 0;  ///< Of `order`; never above `peakBefore`.
  int64_t lowerBound = 0; ///< No order's peak is below.
  int64_t steps = 0;      ///< Taken, see Options::effort.
  int pieces = 0;         ///< That the DAG was cut into.
  bool isProved() const { return peakAfter == lowerBound; }
};

/// Looks for an order of smallest peak. Deterministic; ends after about
/// `effort` steps and a pass over the problem.
Result solve(const Problem &problem, const Options &options = {});

} // namespace memplan::schedule

#endif // MEMPLAN_SCHEDULE_SCHEDULE_H
