//===- ImportFlags.h - What is said of an input file ------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_IMPORTFLAGS_H
#define MEMPLAN_TOOLS_MEMPLANOPT_IMPORTFLAGS_H

#include "Driver.h"
#include "memplan/Import/ONNX/Import.h"

namespace memplan {

/// The flags that say what the model's file leaves open, or an error.
mlir::FailureOr<ImportOptions> parseImportOptions(const DriverOptions &options,
                                                  mlir::MLIRContext &context);

/// An error if one of those flags was given, which MLIR text has no use for.
mlir::LogicalResult checkNoImportFlags(const DriverOptions &options,
                                       mlir::MLIRContext &context);

/// MLIR text may come from a stranger, too: its weights are in files below its
/// own folder or the external data root, or an error.
mlir::LogicalResult checkWeightFiles(mlir::ModuleOp module,
                                     const DriverOptions &options);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_IMPORTFLAGS_H
