//===- AnnotateONNX.cpp - A plan in a model's metadata --------------------===//
//
// Works on the wire format (protobuf.dev/programming-guides/encoding), so that
// what is not annotated stays as it was, weights are not copied in memory, and
// fields that this version does not know survive.
//
//===----------------------------------------------------------------------===//

#include "memplan/Target/Report/PlanReport.h"
#include "llvm/ADT/StringMap.h"

#include <deque>
#include <map>

using llvm::StringRef;

namespace memplan {

namespace {

// Field numbers of onnx.proto.
constexpr unsigned kModelGraph = 7, kModelMetadata = 14, kModelFunctions = 25;
constexpr unsigned kGraphNode = 1, kGraphInitializer = 5,
                   kGraphSparseInitializer = 15;
constexpr unsigned kFunctionNode = 7;
constexpr unsigned kNodeOutput = 2, kNodeName = 3, kNodeAttribute = 5,
                   kNodeMetadata = 9;
constexpr unsigned kAttributeTensor = 5, kAttributeGraph = 6,
                   kAttributeTensors = 10, kAttributeGraphs = 11;
constexpr unsigned kTensorDataLocation = 14, kEntryKey = 1, kEntryValue = 2;
/// protobuf's own limit.
constexpr int kMaxDepth = 100;

/// Text in pieces, most of which are the model's own file.
struct Rope {
  std::vector<StringRef> pieces;
  size_t size = 0;

  void add(StringRef piece) {
    pieces.push_back(piece);
    size += piece.size();
  }
  void add(const Rope &other) {
    pieces.insert(pieces.end(), other.pieces.begin(), other.pieces.end());
    size += other.size;
  }
};

std::string encodeVarint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

std::string encodeField(unsigned number, StringRef content) {
  return encodeVarint(number << 3 | 2) + encodeVarint(content.size()) +
         content.str();
}

std::string encodeEntry(unsigned number, StringRef key, StringRef value) {
  return encodeField(number, encodeField(kEntryKey, key) +
                                 encodeField(kEntryValue, value));
}

bool readVarint(StringRef &bytes, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    uint8_t byte = bytes.front();
    bytes = bytes.drop_front();
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

struct Field {
  unsigned number = 0, wireType = 0;
  StringRef whole, content;
  uint64_t value = 0;
};

/// Takes the next field off `bytes`.
bool readField(StringRef &bytes, Field &field) {
  const char *begin = bytes.data();
  uint64_t tag = 0;
  if (!readVarint(bytes, tag) || (tag >> 3) == 0 || (tag >> 3) > (1 << 29))
    return false;
  field.number = tag >> 3;
  field.wireType = tag & 7;
  uint64_t size = 0;
  if (field.wireType == 0) {
    if (!readVarint(bytes, field.value))
      return false;
  } else if (field.wireType == 1 || field.wireType == 5) {
    size = field.wireType == 1 ? 8 : 4;
  } else if (field.wireType != 2 || !readVarint(bytes, size)) {
    return false;
  }
  if (size > bytes.size())
    return false;
  field.content = bytes.take_front(size);
  bytes = bytes.drop_front(size);
  field.whole = StringRef(begin, bytes.data() - begin);
  return true;
}

class Annotator {
public:
  explicit Annotator(const PlanDocument &plan) : plan(plan) {
    for (auto [index, function] : llvm::enumerate(plan.functions))
      for (const PlanOperation &operation : function.operations)
        for (const std::string &node : operation.nodes)
          operationsOf[node].push_back({index, &operation});
    for (const PlanBuffer &buffer : plan.buffers) {
      size_t function = plan.arenas[buffer.arena].function;
      for (int64_t point : buffer.writtenAt)
        writes[{function, point}].push_back(&buffer);
      for (int64_t point : buffer.readAt)
        reads[{function, point}].push_back(&buffer);
    }
  }

  bool rewriteModel(StringRef bytes, Rope &out) {
    if (!rewrite(bytes, out, 0, [&](const Field &field, Rope &inner, int) {
          if (field.number == kModelGraph)
            return rewriteGraph(field.content, inner, 0);
          if (field.number == kModelFunctions)
            return rewriteFunction(field.content, inner);
          return keep(field, inner, kModelMetadata);
        }))
      return false;
    auto add = [&](StringRef key, const std::string &value) {
      out.add(own(encodeEntry(kModelMetadata, key, value)));
    };
    add("memplan.arena_bytes", std::to_string(plan.arenaBytes));
    add("memplan.lower_bound_bytes", std::to_string(plan.lowerBoundBytes));
    add("memplan.weights_bytes", std::to_string(plan.weightsBytes));
    add("memplan.optimal", plan.optimal ? "true" : "false");
    return true;
  }

  bool hasExternalData = false;

private:
  enum class Result { Changed, Kept, Dropped, Failed };

  StringRef own(std::string text) {
    storage.push_back(std::move(text));
    return storage.back();
  }

  /// Copies a message, fields of length-delimited type as `handle` makes them.
  template <typename Handle>
  bool rewrite(StringRef bytes, Rope &out, int depth, Handle handle) {
    if (depth > kMaxDepth)
      return false;
    while (!bytes.empty()) {
      Field field;
      if (!readField(bytes, field))
        return false;
      if (field.wireType != 2) {
        out.add(field.whole);
        continue;
      }
      Rope inner;
      Result result = handle(field, inner, depth);
      if (result == Result::Failed)
        return false;
      if (result == Result::Kept)
        out.add(field.whole);
      if (result == Result::Changed) {
        out.add(own(encodeVarint(field.number << 3 | 2) +
                    encodeVarint(inner.size)));
        out.add(inner);
      }
    }
    return true;
  }

  /// Everything but entries that an earlier run made.
  Result keep(const Field &field, Rope &, unsigned metadata) {
    if (field.number != metadata)
      return Result::Kept;
    StringRef entry = field.content;
    Field part;
    while (!entry.empty() && readField(entry, part))
      if (part.number == kEntryKey && part.content.starts_with("memplan."))
        return Result::Dropped;
    return Result::Kept;
  }

  static Result toResult(bool done) {
    return done ? Result::Changed : Result::Failed;
  }

  Result rewriteFunction(StringRef bytes, Rope &out) {
    return toResult(
        rewrite(bytes, out, 1, [&](const Field &field, Rope &inner, int depth) {
          return field.number == kFunctionNode
                     ? rewriteNode(field.content, inner, depth + 1)
                     : Result::Kept;
        }));
  }

  Result rewriteGraph(StringRef bytes, Rope &out, int depth) {
    return toResult(rewrite(
        bytes, out, depth + 1, [&](const Field &field, Rope &inner, int at) {
          if (field.number == kGraphNode)
            return rewriteNode(field.content, inner, at + 1);
          if (field.number == kGraphInitializer)
            lookAtTensor(field.content);
          if (field.number == kGraphSparseInitializer)
            lookInside(field.content);
          return Result::Kept;
        }));
  }

  Result rewriteNode(StringRef bytes, Rope &out, int depth) {
    std::string key, output;
    bool done = rewrite(
        bytes, out, depth, [&](const Field &field, Rope &inner, int at) {
          if (field.number == kNodeName)
            key = field.content.str();
          // What the importer calls a node without a name.
          if (field.number == kNodeOutput && !field.content.empty())
            output = field.content.str();
          if (field.number == kNodeAttribute)
            return rewriteAttribute(field.content, inner, at + 1);
          return keep(field, inner, kNodeMetadata);
        });
    if (done)
      annotate(key.empty() ? output : key, out);
    return toResult(done);
  }

  Result rewriteAttribute(StringRef bytes, Rope &out, int depth) {
    return toResult(rewrite(
        bytes, out, depth, [&](const Field &field, Rope &inner, int at) {
          if (field.number == kAttributeGraph ||
              field.number == kAttributeGraphs)
            return rewriteGraph(field.content, inner, at + 1);
          if (field.number == kAttributeTensor ||
              field.number == kAttributeTensors)
            lookAtTensor(field.content);
          return Result::Kept;
        }));
  }

  void lookAtTensor(StringRef bytes) {
    Field field;
    while (!bytes.empty() && readField(bytes, field))
      hasExternalData |= field.number == kTensorDataLocation &&
                         field.wireType == 0 && field.value == 1;
  }

  void lookInside(StringRef bytes) {
    Field field;
    while (!bytes.empty() && readField(bytes, field))
      if (field.wireType == 2)
        lookAtTensor(field.content);
  }

  void annotate(StringRef node, Rope &out) {
    auto found = operationsOf.find(node);
    if (found == operationsOf.end())
      return;
    std::string points, ops, fused, live, written, read;
    auto append = [](std::string &list, const std::string &entry) {
      if (!entry.empty())
        list += (list.empty() ? "" : "; ") + entry;
    };
    for (auto [function, operation] : found->second) {
      append(points, std::to_string(operation->point));
      append(ops, operation->op);
      if (operation->nodes.size() > 1)
        append(fused, getTitle(*operation));
      append(live, std::to_string(liveAt(function, operation->point)));
      for (const PlanBuffer *buffer : writes[{function, operation->point}])
        append(written, describe(*buffer));
      for (const PlanBuffer *buffer : reads[{function, operation->point}])
        append(read, describe(*buffer));
    }
    for (auto [key, value] :
         {std::pair<StringRef, std::string &>{"memplan.point", points},
          {"memplan.op", ops},
          {"memplan.fused", fused},
          {"memplan.live_bytes", live},
          {"memplan.writes", written},
          {"memplan.reads", read}})
      if (!value.empty())
        out.add(own(encodeEntry(kNodeMetadata, key, value)));
  }

  static std::string describe(const PlanBuffer &buffer) {
    return buffer.name + ": " + std::to_string(buffer.bytes) + " bytes at " +
           std::to_string(buffer.offset) + ", lives [" +
           std::to_string(buffer.lower) + ", " + std::to_string(buffer.upper) +
           ")";
  }

  int64_t liveAt(size_t function, int64_t point) const {
    int64_t sum = 0;
    for (const PlanArena &arena : plan.arenas) {
      if (arena.function != function)
        continue;
      auto next = std::upper_bound(
          arena.live.begin(), arena.live.end(), point,
          [](int64_t at, const auto &entry) { return at < entry.first; });
      if (next != arena.live.begin())
        sum += std::prev(next)->second;
    }
    return sum;
  }

  using Key = std::pair<size_t, int64_t>;
  const PlanDocument &plan;
  llvm::StringMap<std::vector<std::pair<size_t, const PlanOperation *>>>
      operationsOf;
  std::map<Key, std::vector<const PlanBuffer *>> writes, reads;
  std::deque<std::string> storage;
};

} // namespace

llvm::Error emitAnnotatedONNX(const PlanDocument &plan, StringRef model,
                              bool keepsFolder, llvm::raw_ostream &os) {
  Annotator annotator(plan);
  Rope result;
  if (!annotator.rewriteModel(model, result))
    return llvm::createStringError("not a well-formed ONNX model");
  if (annotator.hasExternalData && !keepsFolder)
    return llvm::createStringError(
        "the model's external data is found from the folder that its file is "
        "in; write the annotated model there: -o FOLDER/NAME.onnx");
  for (StringRef piece : result.pieces)
    os << piece;
  return llvm::Error::success();
}

} // namespace memplan
