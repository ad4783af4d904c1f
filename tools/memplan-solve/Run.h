//===- Run.h - From a table to a placement ----------------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANSOLVE_RUN_H
#define MEMPLAN_TOOLS_MEMPLANSOLVE_RUN_H

#include "ExitCode.h"
#include "memplan/Solver/Solver.h"

#include <string>

namespace memplan {

struct RunOptions {
  /// A path, or `-` for standard input.
  std::string input;
  /// Where the table goes; empty for nowhere, `-` for standard output.
  std::string output;
  /// Where the drawing goes; empty for nowhere.
  std::string svg;
  std::optional<int64_t> capacity;
  solver::SolverOptions solver;
  /// Check the placement of the column `offset` instead of making one.
  bool check = false;
  bool json = false;
  bool quiet = false;
};

/// Reads one input, places or checks it, and writes what is asked for, all of
/// it or nothing. Says on standard error what went wrong.
ExitCode run(const RunOptions &options);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANSOLVE_RUN_H
