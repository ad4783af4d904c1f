//===- CsvFuzzer.cpp - Any text as a table of buffers ---------------------===//
//
// A table that is accepted is solved with little effort; the independent
// checker finds no fault, and writing and reading it again changes nothing.
//
//===----------------------------------------------------------------------===//

#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Csv.h"
#include "memplan/Solver/Solver.h"

#include <cstdio>
#include <cstdlib>

using namespace memplan::solver;

[[noreturn]] static void fail(const char *what, const std::string &detail) {
  std::fprintf(stderr, "FAILED: %s: %s\n", what, detail.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  CsvOutcome read = readCsv(text, OffsetColumn::Fixed);
  (void)readCsv(text, OffsetColumn::Placement);
  if (!read) {
    if (read.error.empty())
      fail("no reason", text);
    return 0;
  }
  SolverOptions options;
  options.effort = 5000;
  options.threads = 1;
  Outcome outcome = createSolver(options)->solve(read.table->problem);
  if (!outcome)
    fail("a problem that was read is refused", outcome.error);
  const Solution &solution = *outcome.solution;
  std::string fault = checkSolution(read.table->problem, solution);
  if (!fault.empty())
    fail("the checker", fault);
  if (solution.offsets.empty())
    return 0;
  CsvOutcome again =
      readCsv(writeCsv(*read.table, solution.offsets), OffsetColumn::Placement);
  if (!again)
    fail("what was written is refused", again.error);
  if (placementOf(*again.table).offsets != solution.offsets)
    fail("what was written reads differently", text);
  return 0;
}
