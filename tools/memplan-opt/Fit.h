//===- Fit.h - A model and the memory that there is -------------*- C++ -*-===//
//
// A dimension's extents against the bytes that the model then needs, and the
// largest extent that a budget allows. Each row is a whole import and plan.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_FIT_H
#define MEMPLAN_TOOLS_MEMPLANOPT_FIT_H

#include "Driver.h"
#include "Summary.h"

namespace memplan {

/// Exit code OverBudget, after an error that says by how much, what lives at
/// the peak and what would fit, if `module`, planned, is over the budget.
ExitCode checkBudget(mlir::ModuleOp module, const DriverOptions &options);

/// Prints the table of --sweep.
ExitCode sweepDim(const DriverOptions &options, mlir::MLIRContext &context,
                  llvm::raw_ostream &os);

/// Prints the table of --fit-batch, and adds the --dim that it found to
/// `options`. The extent fits, and the one above doesn't, or the model isn't
/// valid with it; bytes are taken to grow with the extent.
ExitCode fitDim(DriverOptions &options, mlir::MLIRContext &context,
                llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_FIT_H
