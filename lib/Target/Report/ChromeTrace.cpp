//===- ChromeTrace.cpp - A plan as trace events ---------------------------===//
//
// The format: Trace Event Format, Google, "JSON Object Format"; phases M
// (metadata), X (complete events, nested by their times) and C (counters).
//
//===----------------------------------------------------------------------===//

#include "memplan/Target/Report/PlanReport.h"
#include "llvm/Support/JSON.h"

#include <map>

namespace memplan {

namespace {

/// The buffers that the operation at a point touches.
struct Touched {
  std::vector<const PlanBuffer *> writes, reads;
};

class TraceWriter {
public:
  TraceWriter(const PlanDocument &plan, llvm::raw_ostream &os)
      : plan(plan), json(os, /*IndentSize=*/1) {}

  void run() {
    json.object([&] {
      json.attribute("displayTimeUnit", "ns");
      json.attributeObject("otherData", [&] {
        json.attribute("model", plan.model.value_or(""));
        json.attribute("arena_bytes", plan.arenaBytes);
        json.attribute("lower_bound_bytes", plan.lowerBoundBytes);
        json.attribute("weights_bytes", plan.weightsBytes);
        json.attribute("time", "one microsecond is one point of the plan");
      });
      json.attributeArray("traceEvents", [&] {
        for (size_t i = 0; i < plan.functions.size(); ++i)
          writeFunction(i);
      });
    });
  }

private:
  void event(llvm::StringRef phase, size_t function, llvm::StringRef name,
             llvm::function_ref<void()> rest) {
    json.object([&] {
      json.attribute("ph", phase);
      json.attribute("pid", static_cast<int64_t>(function + 1));
      json.attribute("tid", 1);
      json.attribute("name", name);
      rest();
    });
  }

  void writeName(llvm::StringRef what, size_t function, llvm::StringRef name) {
    event("M", function, what, [&] {
      json.attributeObject("args", [&] { json.attribute("name", name); });
    });
  }

  void writeFunction(size_t index) {
    const PlanFunction &function = plan.functions[index];
    std::string process = "@" + function.name;
    if (plan.model)
      process = *plan.model + " " + process;
    writeName("process_name", index, process);
    writeName("thread_name", index, "operations");
    std::map<int64_t, Touched> touched;
    for (const PlanBuffer &buffer : plan.buffers) {
      if (plan.arenas[buffer.arena].function != index)
        continue;
      for (int64_t point : buffer.writtenAt)
        touched[point].writes.push_back(&buffer);
      for (int64_t point : buffer.readAt)
        touched[point].reads.push_back(&buffer);
    }
    for (const PlanOperation &operation : function.operations)
      writeSlice(index, operation, touched[operation.point]);
    for (const PlanArena &arena : plan.arenas)
      if (arena.function == index)
        writeCounters(arena, function.points);
  }

  void writeSlice(size_t function, const PlanOperation &operation,
                  const Touched &touched) {
    event("X", function, getTitle(operation), [&] {
      json.attribute("cat", operation.op);
      json.attribute("ts", operation.point);
      json.attribute("dur", operation.end - operation.point);
      json.attributeObject("args", [&] {
        json.attribute("op", operation.op);
        writeBuffers("writes", touched.writes);
        writeBuffers("reads", touched.reads);
      });
    });
  }

  void writeBuffers(llvm::StringRef key,
                    const std::vector<const PlanBuffer *> &buffers) {
    json.attributeArray(key, [&] {
      for (const PlanBuffer *buffer : buffers)
        json.object([&] {
          json.attribute("buffer", buffer->name);
          json.attribute("node", buffer->node);
          json.attribute("bytes", buffer->bytes);
          json.attribute("offset", buffer->offset);
          json.attribute("lives", "[" + std::to_string(buffer->lower) + ", " +
                                      std::to_string(buffer->upper) + ")");
        });
    });
  }

  void writeCounter(const PlanArena &arena, llvm::StringRef name, int64_t time,
                    int64_t bytes) {
    std::string title = name.str();
    if (!arena.memorySpace.empty())
      title += " in memory space " + arena.memorySpace;
    event("C", arena.function, title, [&] {
      json.attribute("ts", time);
      json.attributeObject("args", [&] { json.attribute("bytes", bytes); });
    });
  }

  void writeCounters(const PlanArena &arena, int64_t points) {
    for (auto [point, bytes] : arena.live)
      writeCounter(arena, "live bytes", point, bytes);
    // A counter holds until its next value: two make a line.
    for (int64_t time : {int64_t(0), points}) {
      writeCounter(arena, "lower bound", time, arena.lowerBoundBytes);
      writeCounter(arena, "arena", time, arena.bytes);
    }
  }

  const PlanDocument &plan;
  llvm::json::OStream json;
};

} // namespace

void emitChromeTrace(const PlanDocument &plan, llvm::raw_ostream &os) {
  TraceWriter(plan, os).run();
  os << "\n";
}

} // namespace memplan
