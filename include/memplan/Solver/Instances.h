//===- Instances.h - Generated problems -------------------------*- C++ -*-===//
//
// Problems for tests and benchmarks. The same options give the same problem
// with any compiler and library: all random numbers are integers drawn from
// SplitMix64.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_SOLVER_INSTANCES_H
#define MEMPLAN_SOLVER_INSTANCES_H

#include "memplan/Solver/Problem.h"

namespace memplan::solver {

/// A rectangle of all bytes over all time that is cut into buffers: the optimum
/// is its height, since every byte is in use at every time.
struct PerfectPackingOptions {
  int64_t count = 100;
  /// Time goes from 0 to this.
  int64_t duration = 1000;
  int64_t height = 1 << 20;
  /// Cuts lie at multiples of these, so that few or many end points coincide.
  /// They must divide the duration and the height.
  int64_t timeStep = 1;
  int64_t sizeStep = 1024;
  /// How many cuts in a hundred are pinwheels: five parts, none of which can be
  /// cut off from edge to edge. 0 gives guillotine packings.
  int64_t pinwheelPercent = 50;
  uint64_t seed = 0;
};

struct PerfectPacking {
  Problem problem;
  /// Of height `PerfectPackingOptions::height`, called optimal.
  Solution solution;
};

/// None if the steps do not divide the rectangle or leave fewer than `count`
/// cells of it. The buffers come in random order.
std::optional<PerfectPacking>
makePerfectPacking(const PerfectPackingOptions &options);

/// Buffers whose lifetimes and sizes are heavy-tailed: twice the length is half
/// as frequent (a Pareto distribution of exponent 1, cut at the maximum).
struct HeavyTailedOptions {
  int64_t count = 1000;
  /// Starts are uniform in [0, duration); 0 stands for `count`.
  int64_t duration = 0;
  int64_t minLifetime = 4;
  int64_t maxLifetime = 1 << 16;
  int64_t minSize = 64;
  int64_t maxSize = 1 << 24;
  int64_t alignment = 1;
  uint64_t seed = 0;
};

Problem makeHeavyTailed(const HeavyTailedOptions &options);

/// What a model's ops leave: each op writes one buffer that the next one reads,
/// some are read again much later (skip links, which may nest), some ops have a
/// workspace that lives at their point alone. Sizes change from stage to stage.
struct ModelTraceOptions {
  int64_t ops = 100;
  int64_t skipPercent = 20;
  /// How many ops later a skip link is read at most.
  int64_t maxSkip = 30;
  int64_t workspacePercent = 15;
  int64_t alignment = 1;
  uint64_t seed = 0;
};

Problem makeModelTrace(const ModelTraceOptions &options);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_INSTANCES_H
