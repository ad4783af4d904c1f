//===- Signedness.h - unsigned inputs and outputs ---------------*- C++ -*-===//
//
// The IR's integers have no sign: ops tell. What a caller passes has one, and
// the emitted table of inputs and outputs says which.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_DIALECT_SIGNEDNESS_H
#define MEMPLAN_DIALECT_SIGNEDNESS_H

#include "llvm/ADT/StringRef.h"

namespace memplan {

/// Unit attribute of a function's argument or result: its integers are
/// unsigned to the function's caller.
inline constexpr llvm::StringLiteral kUnsignedAttr = "memplan.unsigned";

} // namespace memplan

#endif // MEMPLAN_DIALECT_SIGNEDNESS_H
