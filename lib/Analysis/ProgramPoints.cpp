//===- ProgramPoints.cpp - Numbering of memory accesses in time -----------===//

#include "memplan/Analysis/ProgramPoints.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace memplan {

/// Whether the op by itself, without its regions, may read or write memory.
static bool mayTouchMemory(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
           !isMemoryEffectFree(op);
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::any_of(instances, [](const auto &instance) {
    return isa<MemoryEffects::Read, MemoryEffects::Write>(instance.getEffect());
  });
}

ProgramPoints::ProgramPoints(Operation *function) {
  numberRegions(function);
  spans[function] = {0, next};
}

void ProgramPoints::numberRegions(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      int64_t first = next;
      for (Operation &nested : block)
        number(&nested);
      blockSpans[&block] = {first, next};
    }
}

void ProgramPoints::number(Operation *op) {
  // Terminators only hand values on; those without known effects are no access.
  bool touches = mayTouchMemory(op) && !op->hasTrait<OpTrait::IsTerminator>();
  int64_t first = next;
  if (op->getNumRegions() > 0) {
    // Tentatively behind a begin point, which is taken back if nothing inside
    // has a point of its own.
    ++next;
    numberRegions(op);
    bool holdsPoints = next > first + 1;
    if (holdsPoints) {
      ++next;
    } else {
      next = first;
      op->walk([&](Operation *nested) { spans[nested] = {first, first}; });
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blockSpans[&block] = {first, first};
      next += touches;
    }
  } else {
    next += touches;
  }
  spans[op] = {first, next};
}

} // namespace memplan
