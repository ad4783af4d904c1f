//===- InPlace.h - Which input an op may overwrite --------------*- C++ -*-===//

#ifndef MEMPLAN_ANALYSIS_INPLACE_H
#define MEMPLAN_ANALYSIS_INPLACE_H

#include "mlir/IR/Operation.h"

namespace memplan {

/// Whether the op gives the same result with one memref, type and all, for
/// `input` and its destination `init`: `memplan::InPlaceOpInterface`, or a
/// `linalg` op whose loops are all parallel and which reads `input` where it
/// writes `init`. Narrower elements don't do: among threads, one stores what
/// another has yet to read. The op must be in destination-passing style.
bool canOverwrite(mlir::OpOperand &input, mlir::OpOperand &init);

} // namespace memplan

#endif // MEMPLAN_ANALYSIS_INPLACE_H
