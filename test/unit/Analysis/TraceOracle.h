//===- TraceOracle.h - Decides by running whether a plan is valid -*- C++ -*-=//

#ifndef MEMPLAN_TEST_UNIT_ANALYSIS_TRACEORACLE_H
#define MEMPLAN_TEST_UNIT_ANALYSIS_TRACEORACLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace memplan::test {

/// Runs a planned function (slots on allocs) on an arena whose bytes are stamps
/// (instance of a buffer, version), over all choices of branches and up to two
/// rounds of each loop, within a budget of runs. Returns the first fault: a
/// byte that is read does not hold what its buffer last wrote there. An empty
/// string means that no run went wrong. Shares no code with planner or
/// verifier; knows the few ops that the test modules use.
std::string runTraces(mlir::func::FuncOp function);

} // namespace memplan::test

#endif // MEMPLAN_TEST_UNIT_ANALYSIS_TRACEORACLE_H
