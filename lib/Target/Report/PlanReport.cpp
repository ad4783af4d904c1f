//===- PlanReport.cpp - A plan as JSON and CSV ----------------------------===//

#include "memplan/Target/Report/PlanReport.h"

#include "memplan/Target/Report/PlanDocument.h"
#include "memplan/Target/Report/WeightsLayout.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace memplan {

int64_t getWeightsBytes(ModuleOp module) {
  auto layout = computeWeightsLayout(module);
  return succeeded(layout) ? layout->bytes : 0;
}

namespace {

class Writer {
public:
  Writer(const PlanDocument &plan, llvm::raw_ostream &os, unsigned indent)
      : plan(plan), json(os, indent) {}

  void run() {
    json.object([&] {
      json.attribute("version", 1);
      if (plan.model)
        json.attribute("model", *plan.model);
      json.attribute("arena_bytes", plan.arenaBytes);
      json.attribute("weights_bytes", plan.weightsBytes);
      json.attribute("no_reuse_bytes", plan.noReuseBytes);
      json.attribute("lower_bound_bytes", plan.lowerBoundBytes);
      json.attribute("lower_bound_proof", plan.lowerBoundProof);
      json.attribute("optimal", plan.optimal);
      json.attribute("alignment", plan.alignment);
      list("buffers", plan.buffers, [&](const auto &b) { writeBuffer(b); });
      list("peaks", plan.peaks, [&](const auto &p) { writePeak(p); });
      list("arenas", plan.arenas, [&](const auto &a) { writeArena(a); });
      list("functions", plan.functions,
           [&](const auto &f) { writeFunction(f); });
      auto writeEach = [&](const PlanValue &value) { writeValue(value); };
      list("weights", plan.weights, writeEach);
      list("inputs", plan.inputs, writeEach);
      list("outputs", plan.outputs, writeEach);
    });
  }

private:
  /// An array of objects.
  template <typename Range, typename Write>
  void list(llvm::StringRef key, const Range &range, Write write) {
    json.attributeArray(key, [&] {
      for (const auto &entry : range)
        json.object([&] { write(entry); });
    });
  }

  template <typename Range>
  void values(llvm::StringRef key, const Range &range) {
    json.attributeArray(key, [&] {
      for (const auto &entry : range)
        json.value(entry);
    });
  }

  void writeBuffer(const PlanBuffer &buffer) {
    json.attribute("name", buffer.name);
    json.attribute("cause", buffer.cause);
    json.attribute("bytes", buffer.bytes);
    json.attribute("lower", buffer.lower);
    json.attribute("upper", buffer.upper);
    json.attribute("offset", buffer.offset);
    if (!buffer.parts.empty())
      list("parts", buffer.parts, [&](const PlanPart &part) {
        json.attribute("offset", part.offset);
        json.attribute("bytes", part.bytes);
        json.attribute("lower", part.lower);
        json.attribute("upper", part.upper);
      });
    writeTypeAndUses(buffer, buffer.node);
    json.attribute("arena", static_cast<int64_t>(buffer.arena));
  }

  void writeTypeAndUses(const PlanTensor &tensor,
                        std::optional<llvm::StringRef> node = {}) {
    json.attribute("type", tensor.type);
    values("shape", tensor.shape);
    if (node)
      json.attribute("node", *node);
    values("written_at", tensor.writtenAt);
    values("read_at", tensor.readAt);
  }

  void writePeak(const PlanPeak &peak) {
    json.attribute("function", peak.function);
    json.attribute("point", peak.point);
    json.attribute("node", peak.node);
    json.attribute("live_bytes", peak.liveBytes);
    list("buffers", peak.buffers, [&](const PlanPeak::Entry &entry) {
      json.attribute("name", entry.name);
      json.attribute("first_written_by", entry.firstWrittenBy);
      json.attribute("last_used_by", entry.lastUsedBy);
      json.attribute("live_bytes_without", entry.liveBytesWithout);
    });
    if (peak.changeFirst)
      json.attribute("change_first", *peak.changeFirst);
  }

  void writeArena(const PlanArena &arena) {
    json.attribute("function", static_cast<int64_t>(arena.function));
    if (!arena.memorySpace.empty())
      json.attribute("memory_space", arena.memorySpace);
    json.attribute("bytes", arena.bytes);
    json.attribute("no_reuse_bytes", arena.noReuseBytes);
    json.attribute("lower_bound_bytes", arena.lowerBoundBytes);
    json.attribute("lower_bound_proof", arena.lowerBoundProof);
    json.attribute("optimal", arena.optimal);
    json.attribute("alignment", arena.alignment);
    json.attributeArray("live", [&] {
      for (auto [point, bytes] : arena.live)
        json.array([&, point = point, bytes = bytes] {
          json.value(point);
          json.value(bytes);
        });
    });
  }

  void writeFunction(const PlanFunction &function) {
    json.attribute("name", function.name);
    json.attribute("points", function.points);
    list("operations", function.operations,
         [&](const PlanOperation &operation) {
           json.attribute("point", operation.point);
           json.attribute("end", operation.end);
           json.attribute("op", operation.op);
           values("nodes", operation.nodes);
         });
  }

  void writeValue(const PlanValue &value) {
    json.attribute("name", value.name);
    json.attribute("function", static_cast<int64_t>(value.function));
    json.attribute("bytes", value.bytes);
    if (value.offset)
      json.attribute("offset", *value.offset);
    writeTypeAndUses(value);
  }

  const PlanDocument &plan;
  llvm::json::OStream json;
};

} // namespace

void writePlanJSON(const PlanDocument &plan, llvm::raw_ostream &os,
                   unsigned indent) {
  Writer(plan, os, indent).run();
  os << "\n";
}

llvm::Error emitPlanCSV(const PlanDocument &plan, llvm::raw_ostream &os) {
  if (plan.arenas.size() > 1)
    return llvm::createStringError(
        "the plan has %zu arenas; a CSV file holds one, use --emit=plan",
        plan.arenas.size());
  os << "id,lower,upper,size,offset\n";
  for (const PlanBuffer &buffer : plan.buffers) {
    // The problem as the solver had it: what is offered came after.
    if (buffer.isWorkspace())
      continue;
    for (auto [number, part] : llvm::enumerate(buffer.parts))
      os << buffer.name << '.' << number << ',' << part.lower << ','
         << part.upper << ',' << part.bytes << ','
         << buffer.offset + part.offset << '\n';
    if (buffer.parts.empty())
      os << buffer.name << ',' << buffer.lower << ',' << buffer.upper << ','
         << buffer.bytes << ',' << buffer.offset << '\n';
  }
  return llvm::Error::success();
}

std::vector<PlanRange> listRanges(const PlanDocument &plan, size_t arena) {
  std::vector<PlanRange> ranges;
  for (auto [index, buffer] : llvm::enumerate(plan.buffers)) {
    if (buffer.arena != arena)
      continue;
    for (const PlanPart &part : buffer.parts)
      ranges.push_back({index, buffer.offset + part.offset, part.bytes,
                        part.lower, part.upper});
    if (buffer.parts.empty())
      ranges.push_back(
          {index, buffer.offset, buffer.bytes, buffer.lower, buffer.upper});
  }
  return ranges;
}

const PlanOperation *findOperation(const PlanFunction &function,
                                   int64_t point) {
  // In the order of their points, those in regions after what holds them.
  auto next = llvm::upper_bound(
      function.operations, point,
      [](int64_t at, const PlanOperation &op) { return at < op.point; });
  while (next != function.operations.begin()) {
    --next;
    if (point < next->end)
      return &*next;
  }
  return nullptr;
}

std::string getTitle(const PlanOperation &operation) {
  if (operation.nodes.empty())
    return operation.op;
  std::string title = operation.nodes.front();
  for (size_t i = 1; i < operation.nodes.size(); ++i)
    title += "+" + operation.nodes[i];
  return title;
}

} // namespace memplan
