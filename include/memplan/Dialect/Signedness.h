//===- Signedness.h - inputs and outputs as their caller sees them -*- C++ -*-//
//
// The IR's integers have no sign: ops tell. What a caller passes has one, and
// the emitted table of inputs and outputs says which. Likewise for elements of
// which several share a byte: to the IR those are bytes.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_DIALECT_SIGNEDNESS_H
#define MEMPLAN_DIALECT_SIGNEDNESS_H

#include "llvm/ADT/StringRef.h"

namespace memplan {

/// Unit attribute of a function's argument or result: its integers are
/// unsigned to the function's caller.
inline constexpr llvm::StringLiteral kUnsignedAttr = "memplan.unsigned";

/// Type attribute of a function's argument or result, which are bytes: the
/// tensor that is packed into them, the first element in the lowest bits, such
/// as tensor<3x5xi4> in a memref<8xi8>.
inline constexpr llvm::StringLiteral kPackedAttr = "memplan.packed";

} // namespace memplan

#endif // MEMPLAN_DIALECT_SIGNEDNESS_H
