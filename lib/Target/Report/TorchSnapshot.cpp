//===- TorchSnapshot.cpp - A plan as PyTorch's allocator would tell it ----===//
//
// The structure: docs.pytorch.org, "Understanding CUDA Memory Usage". Its page
// reads pickles of protocol 2 to 4 with containers, strings and integers.
//
//===----------------------------------------------------------------------===//

#include "memplan/Support/CheckedMath.h"
#include "memplan/Target/Report/PlanReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

#include <algorithm>

namespace memplan {

namespace {

/// Opcodes of Python's pickletools.
class Pickle {
public:
  explicit Pickle(llvm::raw_ostream &os) : os(os) { os << "\x80\x02"; }
  void finish() { os << '.'; }

  void value(llvm::StringRef text) {
    os << 'X';
    uint32(static_cast<uint32_t>(text.size()));
    os << text;
  }
  void value(const char *text) { value(llvm::StringRef(text)); }
  void value(const std::string &text) { value(llvm::StringRef(text)); }
  void value(bool boolean) { os << (boolean ? '\x88' : '\x89'); }
  void value(int64_t number) {
    if (number >= 0 && number < 256) {
      os << 'K' << static_cast<char>(number);
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
      os << 'J';
      uint32(static_cast<uint32_t>(number));
    } else {
      os << "\x8a\x08";
      char bytes[8];
      llvm::support::endian::write64le(bytes, static_cast<uint64_t>(number));
      os.write(bytes, sizeof(bytes));
    }
  }

  template <typename Write>
  void dict(Write write) {
    os << "}(";
    write();
    os << 'u';
  }
  template <typename T>
  void item(const char *key, const T &entry) {
    value(key);
    value(entry);
  }
  template <typename Range, typename Write>
  void list(const Range &range, Write write) {
    os << ']';
    // As Python does: readers need not hold a long list twice.
    size_t number = 0;
    for (const auto &entry : range) {
      if (number % 1000 == 0)
        os << '(';
      write(entry);
      if (++number % 1000 == 0)
        os << 'e';
    }
    if (number % 1000 != 0)
      os << 'e';
  }

private:
  void uint32(uint32_t number) {
    char bytes[4];
    llvm::support::endian::write32le(bytes, number);
    os.write(bytes, sizeof(bytes));
  }

  llvm::raw_ostream &os;
};

/// One entry of the trace; also a block, if it stays.
struct TraceEvent {
  const char *action;
  int64_t address, size, time;
  std::string name;
};

struct Segment {
  int64_t address, bytes;
  std::string name;
  bool isWeights;
};

/// Device addresses are made up: pages of 2 MiB from here on.
constexpr int64_t kFirstAddress = int64_t(1) << 32;
constexpr int64_t kSegmentAlignment = int64_t(1) << 21;

class SnapshotWriter {
public:
  SnapshotWriter(const PlanDocument &plan, llvm::raw_ostream &os)
      : plan(plan), pickle(os) {}

  llvm::Error run() {
    if (!placeSegments())
      return llvm::createStringError(
          "weights and arenas of %lld and %lld bytes have no addresses of 63 "
          "bits",
          static_cast<long long>(plan.weightsBytes),
          static_cast<long long>(plan.arenaBytes));
    listEvents();
    pickle.dict([&] {
      pickle.value("segments");
      pickle.list(segments, [&](const Segment &s) { writeSegment(s); });
      pickle.value("device_traces");
      pickle.list(llvm::ArrayRef<int>{0}, [&](int) {
        pickle.list(events, [&](const TraceEvent &e) { writeEvent(e); });
      });
    });
    pickle.finish();
    return llvm::Error::success();
  }

private:
  bool placeSegments() {
    std::optional<int64_t> address = kFirstAddress;
    auto add = [&](int64_t bytes, std::string name, bool isWeights) {
      if (!address)
        return;
      segments.push_back({*address, bytes, name, isWeights});
      events.push_back({"segment_alloc", *address, bytes, 0, std::move(name)});
      auto end = checkedAdd(*address, bytes);
      address = end ? checkedAlignTo(*end, kSegmentAlignment) : std::nullopt;
    };
    if (plan.weightsBytes > 0)
      add(plan.weightsBytes, "weights", true);
    for (const PlanArena &arena : plan.arenas)
      add(arena.bytes,
          "arena of @" + plan.functions[arena.function].name +
              (arena.memorySpace.empty() ? "" : " in " + arena.memorySpace),
          false);
    return address.has_value();
  }

  void listEvents() {
    for (const PlanValue &weight : plan.weights)
      if (weight.bytes > 0)
        events.push_back({"alloc", kFirstAddress + weight.offset.value_or(0),
                          weight.bytes, 0, "weight " + weight.name});
    size_t firstArena = plan.weightsBytes > 0;
    for (size_t function = 0; function < plan.functions.size(); ++function) {
      size_t begin = events.size();
      for (size_t arena = 0; arena < plan.arenas.size(); ++arena)
        if (plan.arenas[arena].function == function)
          listEventsOf(arena, segments[firstArena + arena].address);
      // What ends at a point is free for what begins there.
      std::stable_sort(events.begin() + begin, events.end(),
                       [](const TraceEvent &a, const TraceEvent &b) {
                         return std::make_pair(a.time, rank(a)) <
                                std::make_pair(b.time, rank(b));
                       });
      splitFrees(begin);
    }
  }

  static int rank(const TraceEvent &event) {
    return llvm::StringRef(event.action) == "alloc";
  }

  void listEventsOf(size_t arena, int64_t base) {
    for (const PlanRange &range : listRanges(plan, arena)) {
      if (range.bytes == 0)
        continue;
      const PlanBuffer &buffer = plan.buffers[range.buffer];
      std::string name = buffer.name + " " + buffer.node;
      if (buffer.isWorkspace())
        name += " (workspace)";
      events.push_back(
          {"alloc", base + range.offset, range.bytes, range.lower, name});
      events.push_back({"free_completed", base + range.offset, range.bytes,
                        range.upper, std::move(name)});
    }
  }

  /// The allocator frees in two steps, which here follow each other.
  void splitFrees(size_t begin) {
    std::vector<TraceEvent> split;
    for (TraceEvent &event : llvm::drop_begin(events, begin)) {
      if (rank(event) == 0) {
        split.push_back(event);
        split.back().action = "free_requested";
      }
      split.push_back(std::move(event));
    }
    events.resize(begin);
    llvm::append_range(events, std::move(split));
  }

  void writeFrames(llvm::StringRef name, int64_t line) {
    pickle.value("frames");
    pickle.list(llvm::ArrayRef<int>{0}, [&](int) {
      pickle.dict([&] {
        pickle.item("filename", plan.model.value_or("plan"));
        pickle.item("line", line);
        pickle.item("name", name);
      });
    });
  }

  void writeEvent(const TraceEvent &event) {
    pickle.dict([&] {
      pickle.item("action", event.action);
      pickle.item("addr", event.address);
      pickle.item("size", event.size);
      pickle.item("stream", int64_t(0));
      pickle.item("time_us", event.time);
      writeFrames(event.name, event.time);
    });
  }

  void writeBlock(int64_t address, int64_t size, int64_t requested,
                  const char *state, llvm::StringRef name) {
    pickle.dict([&] {
      pickle.item("address", address);
      pickle.item("size", size);
      pickle.item("requested_size", requested);
      pickle.item("state", state);
      writeFrames(name, 0);
    });
  }

  /// As at the end of the run: weights are there, the arena is free.
  void writeSegment(const Segment &segment) {
    int64_t active = segment.isWeights ? segment.bytes : 0;
    pickle.dict([&] {
      pickle.item("device", int64_t(0));
      pickle.item("address", segment.address);
      pickle.item("total_size", segment.bytes);
      pickle.item("allocated_size", active);
      pickle.item("active_size", active);
      pickle.item("requested_size", active);
      pickle.item("stream", int64_t(0));
      pickle.item("segment_type", "large");
      pickle.item("is_expandable", false);
      writeFrames(segment.name, 0);
      pickle.value("blocks");
      if (segment.isWeights)
        writeWeights(segment);
      else
        pickle.list(llvm::ArrayRef<int>{0}, [&](int) {
          writeBlock(segment.address, segment.bytes, 0, "inactive",
                     segment.name);
        });
    });
  }

  /// Blocks follow each other without gaps, so padding is part of them.
  void writeWeights(const Segment &segment) {
    std::vector<const PlanValue *> placed;
    for (const PlanValue &weight : plan.weights)
      if (weight.bytes > 0)
        placed.push_back(&weight);
    llvm::stable_sort(placed, [](const PlanValue *a, const PlanValue *b) {
      return a->offset < b->offset;
    });
    size_t next = 0;
    pickle.list(placed, [&](const PlanValue *weight) {
      int64_t begin = weight->offset.value_or(0);
      int64_t end = ++next < placed.size() ? placed[next]->offset.value_or(0)
                                           : segment.bytes;
      writeBlock(segment.address + begin, end - begin, weight->bytes,
                 "active_allocated", "weight " + weight->name);
    });
  }

  const PlanDocument &plan;
  Pickle pickle;
  std::vector<Segment> segments;
  std::vector<TraceEvent> events;
};

} // namespace

llvm::Error emitTorchSnapshot(const PlanDocument &plan, llvm::raw_ostream &os) {
  return SnapshotWriter(plan, os).run();
}

} // namespace memplan
