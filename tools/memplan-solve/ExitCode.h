//===- ExitCode.h - What memplan-solve's exit status means ------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANSOLVE_EXITCODE_H
#define MEMPLAN_TOOLS_MEMPLANSOLVE_EXITCODE_H

namespace memplan {

/// Exit statuses of memplan-solve; `--help` prints this table. They agree with
/// memplan-opt's where both have one.
enum class ExitCode : int {
  Done = 0,
  UsageOrIO = 1,
  InvalidInput = 2,
  NoPlacement = 5,
  CheckFailed = 6,
  Internal = 70,
};

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANSOLVE_EXITCODE_H
