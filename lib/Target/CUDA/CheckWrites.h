//===- CheckWrites.h - What an op may write ---------------------*- C++ -*-===//
//
// Memref IR can say what no launch can do. Private to lib/Target/CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_CHECKWRITES_H
#define MEMPLAN_LIB_TARGET_CUDA_CHECKWRITES_H

#include "BufferRef.h"

namespace memplan {

/// Reports at `op` if it writes an input or a weight, or reads elements that
/// another of its threads overwrites. Parts of one buffer that overlap but
/// differ are the plan verifier's to find.
mlir::LogicalResult checkWrites(BufferTable &buffers, mlir::Operation *op);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_CHECKWRITES_H
