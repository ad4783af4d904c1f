//===- RunDims.h - extents that a run tells ---------------------*- C++ -*-===//
//
// An output whose size depends on data has the shape of its upper bound. The
// extents that the run found are results of the function too, each a scalar
// integer, and come after all outputs.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_DIALECT_RUNDIMS_H
#define MEMPLAN_DIALECT_RUNDIMS_H

#include "llvm/ADT/StringRef.h"

namespace memplan {

/// An array of two integers on such a result: the number of the output, and
/// the dim whose extent it is.
inline constexpr llvm::StringLiteral kRunDimAttr = "memplan.run_dim";

} // namespace memplan

#endif // MEMPLAN_DIALECT_RUNDIMS_H
