//===- Rules.h - One flag for each rule of the search -----------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANSOLVE_RULES_H
#define MEMPLAN_TOOLS_MEMPLANSOLVE_RULES_H

#include "memplan/Solver/Solver.h"
#include "llvm/Support/CommandLine.h"

namespace memplan {

/// Registers a flag for each rule, and shows in --help these and the flags of
/// `category` only. To be called before the command line is parsed.
void registerRuleFlags(llvm::cl::OptionCategory &category);

/// What the command line says.
solver::SearchRules rulesFromFlags();

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANSOLVE_RULES_H
