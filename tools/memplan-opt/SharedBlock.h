//===- SharedBlock.h - Several models, one arena ----------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_SHAREDBLOCK_H
#define MEMPLAN_TOOLS_MEMPLANOPT_SHAREDBLOCK_H

#include "Driver.h"

namespace memplan {

/// Compiles `options.input` and `options.more` for runs one after another in
/// one arena, as large as the largest of theirs: OUT_MODEL.cu, .h and
/// .safetensors of each, and OUT.h, which loads them all into one block. A flag
/// that binds names is about every model that has the name, and an error if
/// none has.
ExitCode compileTogether(const DriverOptions &options,
                         mlir::MLIRContext &context);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_SHAREDBLOCK_H
