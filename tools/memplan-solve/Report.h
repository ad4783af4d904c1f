//===- Report.h - What memplan-solve says about a run -----------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANSOLVE_REPORT_H
#define MEMPLAN_TOOLS_MEMPLANSOLVE_REPORT_H

#include "memplan/Solver/Csv.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// One input and its placement.
struct Report {
  llvm::StringRef file;
  const solver::CsvTable &table;
  const solver::Solution &solution;
  double seconds = 0;
};

/// A line of JSON with the fields that docs/MemplanSolve.md lists.
void printJson(llvm::raw_ostream &os, const Report &report);

/// The line for an input that could not be read, was wrong or failed the check.
void printJsonError(llvm::raw_ostream &os, llvm::StringRef file,
                    llvm::StringRef error);

/// A line for people.
void printSummary(llvm::raw_ostream &os, const Report &report);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANSOLVE_REPORT_H
