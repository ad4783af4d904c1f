//===- ExitCode.h - What memplan-opt's exit status means --------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_EXITCODE_H
#define MEMPLAN_TOOLS_MEMPLANOPT_EXITCODE_H

namespace memplan {

/// Exit statuses of memplan-opt; `--help` prints this table.
enum class ExitCode : int {
  Done = 0,
  UsageOrIO = 1,
  InvalidModel = 2,
  Unsupported = 3,
  UnboundShape = 4,
  OverBudget = 5,
  Verifier = 6,
  Internal = 70,
};

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_EXITCODE_H
