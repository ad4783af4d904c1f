//===- FuseIntoConv.h - Patterns that move ops into convolutions -*- C++ -*-==//
//
// Private to memplan-fuse.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TRANSFORMS_FUSEINTOCONV_H
#define MEMPLAN_LIB_TRANSFORMS_FUSEINTOCONV_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace memplan {

/// Upsampling before a convolution, and a channel shuffle or pooling after it,
/// become part of it once nothing else does: its epilogue takes nothing more
/// then. `count` is how often.
void populateConvFusionPatterns(mlir::RewritePatternSet &patterns,
                                mlir::Pass::Statistic &count);

} // namespace memplan

#endif // MEMPLAN_LIB_TRANSFORMS_FUSEINTOCONV_H
