//===- BetterOrder.h - The order that needs less in the end -----*- C++ -*-===//
//
// Private to lib/Transforms.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TRANSFORMS_BETTERORDER_H
#define MEMPLAN_LIB_TRANSFORMS_BETTERORDER_H

#include "mlir/Pass/PassManager.h"

namespace memplan {

/// Runs `schedule` on a module, then `rest`, which plans its arenas. If that
/// makes arenas larger in sum than `rest` alone, the module is what `rest`
/// alone makes of it: scheduling knows nothing of what later passes keep in
/// outputs or forward. Modules of more than 4,000 ops are scheduled in any
/// case, since they would take twice the time.
std::unique_ptr<mlir::Pass> createBetterOrder(mlir::OpPassManager schedule,
                                              mlir::OpPassManager rest);

} // namespace memplan

#endif // MEMPLAN_LIB_TRANSFORMS_BETTERORDER_H
