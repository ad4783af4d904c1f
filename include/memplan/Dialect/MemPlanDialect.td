//===- MemPlanDialect.td - The memplan dialect --------------*- tablegen -*-===//

#ifndef MEMPLAN_DIALECT_MEMPLANDIALECT_TD
#define MEMPLAN_DIALECT_MEMPLANDIALECT_TD

include "mlir/IR/OpBase.td"

def MemPlan_Dialect : Dialect {
  let name = "memplan";
  let cppNamespace = "::memplan";
  let summary = "What upstream cannot say: padded windows, fused rows, arena plans";
  let description = [{
    Structured ops that have no `linalg` form without a padded copy or an
    intermediate buffer, all in destination-passing style, on tensors and on
    memrefs; and the attributes that carry an arena plan and the place of a
    weight in its file.

    Discardable attributes of the dialect:
    - `memplan.model` (module): the model's name.
    - `memplan.name` (function argument, result, global): the model's name for it.
    - `memplan.unsigned` (function argument, result; unit): its integers are
      unsigned to the caller.
    - `memplan.weight` (`memref.global`): where the bytes are, see `#memplan.weight`.
    - `memplan.slot` (`memref.alloc`, `memref.view`): a planned buffer, see `#memplan.slot`.
    - `memplan.workspace` (the same, a unit): it is an op's workspace, which no
      bound counts and nothing else uses.
    - `memplan.callee_slots` (`func.call`): an array of slots, the places of the
      callee's arenas in the caller's; gone after materialization.
    - `memplan.arenas` (function): its arenas, see `#memplan.arena`, one a memory
      space.
    - `memplan.arena` (function argument, `memref.alloc`): it is the arena; its
      `#memplan.arena`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

#endif // MEMPLAN_DIALECT_MEMPLANDIALECT_TD
