//===- PlanReport.cpp - A plan as JSON and CSV ----------------------------===//

#include "memplan/Target/Report/PlanReport.h"

#include "memplan/Analysis/Liveness.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Target/Report/Peak.h"
#include "memplan/Target/Report/WeightsLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace memplan {

namespace {

struct PlannedBuffer {
  Operation *op; ///< The alloc, or the view that it became.
  MemRefType type;
  SlotAttr slot;
  int64_t bytes;
};

/// All that the reports say about a module.
struct Plan {
  int64_t arenaBytes = 0, noReuseBytes = 0, lowerBoundBytes = 0;
  int64_t alignment = 1;
  bool optimal = true;
  /// As the arenas say it; `search` if one of them does.
  BoundProof lowerBoundProof = BoundProof::LiveBytes;
  int64_t spaces = 0;
  std::vector<PlannedBuffer> buffers;
};

/// The public functions' plans: those of private ones are inside them.
Plan readPlan(ModuleOp module) {
  Plan plan;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr);
    if (!arenas || !function.isPublic())
      continue;
    for (auto arena : arenas.getAsRange<ArenaAttr>()) {
      plan.arenaBytes += arena.getBytes();
      plan.noReuseBytes += arena.getNoReuse();
      plan.lowerBoundBytes += arena.getLowerBound();
      plan.optimal &= arena.getOptimal();
      if (arena.getLowerBoundProof() == BoundProof::Search)
        plan.lowerBoundProof = BoundProof::Search;
      plan.alignment = std::max(plan.alignment, arena.getAlignment());
      ++plan.spaces;
    }
    function.walk([&](Operation *op) {
      auto slot = op->getAttrOfType<SlotAttr>(kSlotAttr);
      if (!slot || op->getNumResults() != 1)
        return;
      auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
      if (!type)
        return;
      plan.buffers.push_back(
          {op, type, slot, getContentBytes(type).value_or(0)});
    });
  }
  return plan;
}

} // namespace

int64_t getWeightsBytes(ModuleOp module) {
  auto layout = computeWeightsLayout(module);
  return succeeded(layout) ? layout->bytes : 0;
}

static void writePeaks(ModuleOp module, llvm::json::OStream &json) {
  auto nameOf = [](Operation *op) {
    return llvm::json::fixUTF8(op ? getBufferName(op->getLoc()) : "");
  };
  json.attributeArray("peaks", [&] {
    for (const ArenaPeak &peak : findPeaks(module))
      json.object([&] {
        json.attribute("function", func::FuncOp(peak.function).getName());
        json.attribute("point", peak.point);
        json.attribute("node", nameOf(peak.op));
        json.attribute("live_bytes", peak.liveBytes);
        json.attributeArray("buffers", [&] {
          for (const PeakBuffer &buffer : peak.buffers)
            json.object([&] {
              json.attribute("name", "b" + std::to_string(buffer.index));
              json.attribute("first_written_by", nameOf(buffer.birth));
              json.attribute("last_used_by", nameOf(buffer.death));
              json.attribute("live_bytes_without", buffer.peakWithout);
            });
        });
        if (const PeakBuffer *first = peak.getFirstToChange())
          json.attribute("change_first", "b" + std::to_string(first->index));
      });
  });
}

llvm::Error emitPlanJSON(ModuleOp module, llvm::raw_ostream &os) {
  Plan plan = readPlan(module);
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    if (auto model = module->getAttrOfType<StringAttr>(kModelAttr))
      json.attribute("model", llvm::json::fixUTF8(model.getValue()));
    json.attribute("arena_bytes", plan.arenaBytes);
    json.attribute("weights_bytes", getWeightsBytes(module));
    json.attribute("no_reuse_bytes", plan.noReuseBytes);
    json.attribute("lower_bound_bytes", plan.lowerBoundBytes);
    json.attribute("lower_bound_proof",
                   stringifyBoundProof(plan.lowerBoundProof));
    json.attribute("optimal", plan.optimal);
    json.attribute("alignment", plan.alignment);
    json.attributeArray("buffers", [&] {
      for (auto [index, buffer] : llvm::enumerate(plan.buffers))
        json.object([&, &buffer = buffer, index = index] {
          json.attribute("name", "b" + std::to_string(index));
          json.attribute("cause", buffer.op->hasAttr(kWorkspaceAttr)
                                      ? "workspace"
                                      : "activation");
          json.attribute("bytes", buffer.bytes);
          json.attribute("lower", buffer.slot.getLower());
          json.attribute("upper", buffer.slot.getUpper());
          json.attribute("offset", buffer.slot.getOffset());
          if (ArrayAttr parts = buffer.slot.getParts())
            json.attributeArray("parts", [&] {
              for (auto part : parts.getAsRange<PartAttr>())
                json.object([&] {
                  json.attribute("offset", part.getOffset());
                  json.attribute("bytes", part.getBytes());
                  json.attribute("lower", part.getLower());
                  json.attribute("upper", part.getUpper());
                });
            });
          std::string type;
          llvm::raw_string_ostream(type) << buffer.type.getElementType();
          json.attribute("type", type);
          json.attributeArray("shape", [&] {
            for (int64_t extent : buffer.type.getShape())
              json.value(extent);
          });
          json.attribute(
              "node", llvm::json::fixUTF8(getBufferName(buffer.op->getLoc())));
        });
    });
    writePeaks(module, json);
  });
  os << "\n";
  return llvm::Error::success();
}

llvm::Error emitPlanCSV(ModuleOp module, llvm::raw_ostream &os) {
  Plan plan = readPlan(module);
  if (plan.spaces > 1)
    return llvm::createStringError(
        "the plan has %lld arenas; a CSV file holds one, use --emit=plan",
        static_cast<long long>(plan.spaces));
  os << "id,lower,upper,size,offset\n";
  for (auto [index, buffer] : llvm::enumerate(plan.buffers)) {
    // The problem as the solver had it: what is offered came after.
    if (buffer.op->hasAttr(kWorkspaceAttr))
      continue;
    if (ArrayAttr parts = buffer.slot.getParts()) {
      for (auto [number, part] : llvm::enumerate(parts.getAsRange<PartAttr>()))
        os << 'b' << index << '.' << number << ',' << part.getLower() << ','
           << part.getUpper() << ',' << part.getBytes() << ','
           << buffer.slot.getOffset() + part.getOffset() << '\n';
      continue;
    }
    os << 'b' << index << ',' << buffer.slot.getLower() << ','
       << buffer.slot.getUpper() << ',' << buffer.bytes << ','
       << buffer.slot.getOffset() << '\n';
  }
  return llvm::Error::success();
}

} // namespace memplan
