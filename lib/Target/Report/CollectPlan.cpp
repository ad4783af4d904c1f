//===- CollectPlan.cpp - A module's plan as data --------------------------===//

#include "memplan/Analysis/BufferFlow.h"
#include "memplan/Analysis/Liveness.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Target/Report/Peak.h"
#include "memplan/Target/Report/PlanDocument.h"
#include "memplan/Target/Report/WeightsLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <numeric>
#include <set>

using namespace mlir;

namespace memplan {

namespace {

std::string clean(StringRef text) { return llvm::json::fixUTF8(text); }

void collectNames(Location location, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    names.insert(name.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names);
  }
}

void setType(PlanTensor &tensor, MemRefType type) {
  llvm::raw_string_ostream(tensor.type) << type.getElementType();
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  tensor.bytes = getContentBytes(type).value_or(0);
}

class Collector {
public:
  explicit Collector(ModuleOp module) : module(module) {}

  PlanDocument run() {
    if (auto model = module->getAttrOfType<StringAttr>(kModelAttr))
      plan.model = clean(model.getValue());
    collectWeights();
    plan.lowerBoundProof = stringifyBoundProof(BoundProof::LiveBytes).str();
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function.isExternal())
        collectFunction(function);
    for (size_t arena = 0; arena < plan.arenas.size(); ++arena)
      computeLive(arena);
    collectPeaks();
    return std::move(plan);
  }

private:
  void collectWeights() {
    auto layout = computeWeightsLayout(module);
    if (failed(layout))
      return;
    plan.weightsBytes = layout->bytes;
    for (const Weight &weight : layout->weights) {
      PlanValue value;
      value.name = clean(weight.name);
      memref::GlobalOp global = weight.global;
      setType(value, global.getType());
      value.offset = weight.blockOffset;
      weightOf[global.getSymName()] = plan.weights.size();
      plan.weights.push_back(std::move(value));
    }
  }

  void collectFunction(func::FuncOp function) {
    ProgramPoints points(function);
    PlanFunction entry;
    entry.name = clean(function.getName());
    entry.points = points.size();
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function || points.begin(op) == points.end(op))
        return;
      llvm::SetVector<StringRef> names;
      collectNames(op->getLoc(), names);
      std::vector<std::string> nodes(names.size());
      llvm::transform(names, nodes.begin(), clean);
      entry.operations.push_back({points.begin(op), points.end(op),
                                  op->getName().getStringRef().str(),
                                  std::move(nodes)});
    });
    size_t index = plan.functions.size();
    plan.functions.push_back(std::move(entry));
    llvm::DenseMap<Attribute, size_t> arenaOf;
    collectArenas(function, index, arenaOf);
    collectArguments(function, index, points);
    function.walk([&](Operation *op) {
      if (auto slot = op->getAttrOfType<SlotAttr>(kSlotAttr))
        collectBuffer(op, slot, arenaOf, points);
      if (auto get = dyn_cast<memref::GetGlobalOp>(op))
        collectUse(get, index, points);
    });
  }

  void collectArenas(func::FuncOp function, size_t index,
                     llvm::DenseMap<Attribute, size_t> &arenaOf) {
    auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr);
    if (!arenas)
      return;
    for (auto arena : arenas.getAsRange<ArenaAttr>()) {
      plan.arenaBytes += arena.getBytes();
      plan.noReuseBytes += arena.getNoReuse();
      plan.lowerBoundBytes += arena.getLowerBound();
      plan.optimal &= arena.getOptimal();
      if (arena.getLowerBoundProof() == BoundProof::Search)
        plan.lowerBoundProof = stringifyBoundProof(BoundProof::Search).str();
      plan.alignment = std::max(plan.alignment, arena.getAlignment());
      PlanArena entry;
      entry.function = index;
      if (Attribute space = arena.getMemorySpace())
        llvm::raw_string_ostream(entry.memorySpace) << space;
      entry.memorySpace = clean(entry.memorySpace);
      entry.bytes = arena.getBytes();
      entry.noReuseBytes = arena.getNoReuse();
      entry.lowerBoundBytes = arena.getLowerBound();
      entry.alignment = arena.getAlignment();
      entry.lowerBoundProof =
          stringifyBoundProof(arena.getLowerBoundProof()).str();
      entry.optimal = arena.getOptimal();
      arenaOf[arena.getMemorySpace()] = plan.arenas.size();
      plan.arenas.push_back(std::move(entry));
    }
  }

  /// Adds the accesses to what `root` makes.
  void collectAccesses(Value root, const ProgramPoints &points,
                       PlanTensor &tensor) {
    for (const BufferAccess &access : flows.trace(root).accesses) {
      int64_t point = points.begin(access.op);
      if (point == points.end(access.op))
        continue;
      if (access.writes)
        tensor.writtenAt.push_back(point);
      if (access.reads)
        tensor.readAt.push_back(point);
    }
    for (std::vector<int64_t> *list : {&tensor.writtenAt, &tensor.readAt}) {
      llvm::sort(*list);
      list->erase(llvm::unique(*list), list->end());
    }
  }

  void collectArguments(func::FuncOp function, size_t index,
                        const ProgramPoints &points) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      BlockArgument argument = function.getArgument(i);
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type || function.getArgAttr(i, kArenaArgAttr))
        continue;
      PlanValue value;
      auto name = function.getArgAttrOfType<StringAttr>(i, kNameAttr);
      value.name = name ? clean(name.getValue()) : "arg" + std::to_string(i);
      value.function = index;
      setType(value, type);
      collectAccesses(argument, points, value);
      bool isOutput = function.getArgAttr(i, "bufferize.result") != nullptr;
      (isOutput ? plan.outputs : plan.inputs).push_back(std::move(value));
    }
  }

  void collectBuffer(Operation *op, SlotAttr slot,
                     const llvm::DenseMap<Attribute, size_t> &arenaOf,
                     const ProgramPoints &points) {
    auto type = op->getNumResults() == 1
                    ? dyn_cast<MemRefType>(op->getResult(0).getType())
                    : MemRefType();
    if (!type)
      return;
    PlanBuffer buffer;
    buffer.name = "b" + std::to_string(plan.buffers.size());
    buffer.cause = op->hasAttr(kWorkspaceAttr) ? "workspace" : "activation";
    setType(buffer, type);
    buffer.arena = arenaOf.lookup(type.getMemorySpace());
    buffer.lower = slot.getLower();
    buffer.upper = slot.getUpper();
    buffer.offset = slot.getOffset();
    if (ArrayAttr parts = slot.getParts())
      for (auto part : parts.getAsRange<PartAttr>())
        buffer.parts.push_back({part.getOffset(), part.getBytes(),
                                part.getLower(), part.getUpper()});
    buffer.node = clean(getBufferName(op->getLoc()));
    collectAccesses(op->getResult(0), points, buffer);
    plan.buffers.push_back(std::move(buffer));
  }

  void collectUse(memref::GetGlobalOp get, size_t function,
                  const ProgramPoints &points) {
    auto found = weightOf.find(get.getName());
    if (found == weightOf.end())
      return;
    PlanValue &weight = plan.weights[found->second];
    weight.function = function;
    collectAccesses(get.getResult(), points, weight);
  }

  /// Sizes as the lower bound counts them: rounded up, since all begin at
  /// multiples of one number, but for the padding of one that lies on top.
  void computeLive(size_t index) {
    PlanArena &arena = plan.arenas[index];
    std::vector<PlanRange> ranges;
    int64_t unit = arena.alignment;
    for (const PlanRange &range : listRanges(plan, index)) {
      const PlanBuffer &buffer = plan.buffers[range.buffer];
      if (buffer.isWorkspace() || range.bytes == 0)
        continue;
      ranges.push_back(range);
      unit = std::gcd(unit, range.offset - buffer.offset);
    }
    std::map<int64_t, std::pair<std::vector<int64_t>, std::vector<int64_t>>>
        changes; // At a time: the sizes that come and go.
    for (const PlanRange &range : ranges) {
      changes[range.lower].first.push_back(range.bytes);
      changes[range.upper].second.push_back(range.bytes);
    }
    int64_t live = 0;
    std::multiset<int64_t> padding;
    for (const auto &[time, sizes] : changes) {
      for (int64_t bytes : sizes.first) {
        int64_t rounded = (bytes + unit - 1) / unit * unit;
        live += rounded;
        padding.insert(rounded - bytes);
      }
      for (int64_t bytes : sizes.second) {
        int64_t rounded = (bytes + unit - 1) / unit * unit;
        live -= rounded;
        padding.erase(padding.find(rounded - bytes));
      }
      int64_t spared = padding.empty() ? 0 : *padding.rbegin();
      arena.live.push_back({time, live - spared});
    }
  }

  void collectPeaks() {
    auto nameOf = [](Operation *op) {
      return clean(op ? getBufferName(op->getLoc()) : "");
    };
    for (const ArenaPeak &found : findPeaks(module)) {
      PlanPeak peak;
      peak.function = clean(func::FuncOp(found.function).getName());
      peak.point = found.point;
      peak.node = nameOf(found.op);
      peak.liveBytes = found.liveBytes;
      for (const PeakBuffer &buffer : found.buffers)
        peak.buffers.push_back({"b" + std::to_string(buffer.index),
                                nameOf(buffer.birth), nameOf(buffer.death),
                                buffer.peakWithout});
      if (const PeakBuffer *first = found.getFirstToChange())
        peak.changeFirst = "b" + std::to_string(first->index);
      plan.peaks.push_back(std::move(peak));
    }
  }

  ModuleOp module;
  PlanDocument plan;
  BufferFlowAnalysis flows;
  llvm::StringMap<size_t> weightOf;
};

} // namespace

PlanDocument collectPlan(ModuleOp module) { return Collector(module).run(); }

} // namespace memplan
