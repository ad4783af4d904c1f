//===- ParsePlan.cpp - A plan's JSON, from whomever it may come -----------===//

#include "memplan/Support/CheckedMath.h"
#include "memplan/Target/Report/PlanDocument.h"
#include "llvm/Support/JSON.h"

using llvm::json::ObjectMapper;
using llvm::json::Path;
using llvm::json::Value;

namespace memplan {

namespace {

/// The JSON parser recurses with the file's brackets.
constexpr int kMaxDepth = 32;

bool nestsTooDeep(llvm::StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool report(Path path, llvm::StringLiteral message) {
  path.report(message);
  return false;
}

/// Fields of one object.
class Fields {
public:
  Fields(const Value &value, Path path)
      : object(value.getAsObject()), path(path), mapper(value, path) {
    ok = static_cast<bool>(mapper);
  }

  bool isOK() const { return ok; }

  template <typename T>
  Fields &get(llvm::StringLiteral key, T &out) {
    ok = ok && mapper.map(key, out);
    return *this;
  }
  Fields &count(llvm::StringLiteral key, int64_t &out) {
    ok = ok && mapper.map(key, out) &&
         (out >= 0 ||
          report(path.field(key), "expected a number that is not negative"));
    return *this;
  }
  Fields &index(llvm::StringLiteral key, size_t &out) {
    int64_t number = 0;
    count(key, number);
    out = static_cast<size_t>(number);
    return *this;
  }
  /// Entries of an array, which may be missing if `isOptional`.
  template <typename T, typename Read>
  Fields &list(llvm::StringLiteral key, std::vector<T> &out, Read read,
               bool isOptional = false) {
    if (!ok)
      return *this;
    const Value *value = object->get(key);
    if (!value && isOptional)
      return *this;
    const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
    if (!array) {
      ok =
          report(path.field(key), value ? llvm::StringLiteral("expected array")
                                        : llvm::StringLiteral("missing value"));
      return *this;
    }
    out.reserve(array->size());
    for (size_t i = 0; ok && i < array->size(); ++i) {
      out.emplace_back();
      ok = read((*array)[i], out.back(), path.field(key).index(i));
    }
    return *this;
  }
  Fields &check(bool condition, llvm::StringLiteral key,
                llvm::StringLiteral message) {
    ok = ok && (condition || report(path.field(key), message));
    return *this;
  }

private:
  const llvm::json::Object *object;
  Path path;
  ObjectMapper mapper;
  bool ok;
};

bool readNumber(const Value &value, int64_t &out, Path path) {
  if (!llvm::json::fromJSON(value, out, path))
    return false;
  return out >= 0 || report(path, "expected a number that is not negative");
}

bool readString(const Value &value, std::string &out, Path path) {
  return llvm::json::fromJSON(value, out, path);
}

bool endsWithin(int64_t offset, int64_t bytes, int64_t end) {
  auto sum = checkedAdd(offset, bytes);
  return sum && *sum <= end;
}

class Parser {
public:
  bool run(const Value &value, Path path) {
    Fields fields(value, path);
    int64_t version = 0;
    fields.get("version", version)
        .check(version == 1, "version", "expected 1")
        .get("model", plan.model)
        .count("arena_bytes", plan.arenaBytes)
        .count("weights_bytes", plan.weightsBytes)
        .count("no_reuse_bytes", plan.noReuseBytes)
        .count("lower_bound_bytes", plan.lowerBoundBytes)
        .get("lower_bound_proof", plan.lowerBoundProof)
        .get("optimal", plan.optimal)
        .count("alignment", plan.alignment);
    // What others refer to comes first, wherever it stands.
    fields.list("functions", plan.functions, readFunction)
        .list("arenas", plan.arenas,
              [this](auto &&...args) { return readArena(args...); })
        .list("buffers", plan.buffers,
              [this](auto &&...args) { return readBuffer(args...); })
        .list("peaks", plan.peaks, readPeak);
    auto readEach = [this](auto &&...args) { return readValue(args...); };
    fields.list("weights", plan.weights, readEach)
        .list("inputs", plan.inputs, readEach)
        .list("outputs", plan.outputs, readEach)
        .check(plan.peaks.size() == plan.arenas.size(), "peaks",
               "expected one for each arena");
    return fields.isOK();
  }

  PlanDocument plan;

private:
  static bool readFunction(const Value &value, PlanFunction &out, Path path) {
    Fields fields(value, path);
    fields.get("name", out.name).count("points", out.points);
    int64_t last = 0;
    fields.list("operations", out.operations,
                [&](const Value &entry, PlanOperation &op, Path at) {
                  Fields inner(entry, at);
                  inner.count("point", op.point)
                      .count("end", op.end)
                      .get("op", op.op)
                      .list("nodes", op.nodes, readString)
                      .check(op.point >= last, "point", "expected ascending")
                      .check(op.point < op.end && op.end <= out.points, "end",
                             "expected after point, in the function's points");
                  last = op.point;
                  return inner.isOK();
                });
    return fields.isOK();
  }

  bool readArena(const Value &value, PlanArena &out, Path path) {
    Fields fields(value, path);
    std::optional<std::string> space;
    fields.index("function", out.function)
        .check(out.function < plan.functions.size(), "function",
               "expected the index of a function")
        .get("memory_space", space)
        .count("bytes", out.bytes)
        .count("no_reuse_bytes", out.noReuseBytes)
        .count("lower_bound_bytes", out.lowerBoundBytes)
        .get("lower_bound_proof", out.lowerBoundProof)
        .get("optimal", out.optimal)
        .count("alignment", out.alignment);
    out.memorySpace = space.value_or("");
    int64_t last = -1;
    fields.list("live", out.live,
                [&](const Value &entry, auto &point, Path at) {
                  std::vector<int64_t> pair;
                  if (!llvm::json::fromJSON(entry, pair, at))
                    return false;
                  if (pair.size() != 2 || pair[0] <= last || pair[1] < 0)
                    return report(at, "expected a point, ascending, and bytes");
                  last = pair[0];
                  point = {pair[0], pair[1]};
                  return true;
                });
    return fields.isOK();
  }

  /// Type, shape, and accesses within the points of a function.
  static void readTensor(Fields &fields, PlanTensor &out, int64_t points) {
    auto readPoint = [points](const Value &value, int64_t &point, Path path) {
      return readNumber(value, point, path) &&
             (point < points ||
              report(path, "expected a point of the function"));
    };
    fields.get("name", out.name)
        .count("bytes", out.bytes)
        .get("type", out.type)
        .list("shape", out.shape, readNumber)
        .list("written_at", out.writtenAt, readPoint)
        .list("read_at", out.readAt, readPoint);
  }

  bool readBuffer(const Value &value, PlanBuffer &out, Path path) {
    Fields fields(value, path);
    fields.index("arena", out.arena)
        .check(out.arena < plan.arenas.size(), "arena",
               "expected the index of an arena");
    if (!fields.isOK())
      return false;
    const PlanArena &arena = plan.arenas[out.arena];
    int64_t points = plan.functions[arena.function].points;
    readTensor(fields, out, points);
    fields.get("cause", out.cause)
        .check(out.cause == "activation" || out.cause == "workspace", "cause",
               "expected \"activation\" or \"workspace\"")
        .count("lower", out.lower)
        .count("upper", out.upper)
        .count("offset", out.offset)
        .get("node", out.node)
        .check(endsWithin(out.offset, out.bytes, arena.bytes), "offset",
               "expected a place within the arena")
        .check(out.lower < out.upper && out.upper <= points, "upper",
               "expected after lower, in the function's points");
    int64_t end = 0;
    fields.list(
        "parts", out.parts,
        [&](const Value &entry, PlanPart &part, Path at) {
          Fields inner(entry, at);
          inner.count("offset", part.offset)
              .count("bytes", part.bytes)
              .count("lower", part.lower)
              .count("upper", part.upper)
              .check(part.offset >= end &&
                         endsWithin(part.offset, part.bytes, out.bytes),
                     "offset", "expected a place in the buffer, ascending")
              .check(part.lower >= out.lower && part.lower < part.upper &&
                         part.upper <= out.upper,
                     "upper", "expected after lower, in the buffer's life");
          end = part.offset + part.bytes;
          return inner.isOK();
        },
        /*isOptional=*/true);
    return fields.isOK();
  }

  static bool readPeak(const Value &value, PlanPeak &out, Path path) {
    Fields fields(value, path);
    fields.get("function", out.function)
        .get("point", out.point)
        .get("node", out.node)
        .count("live_bytes", out.liveBytes)
        .get("change_first", out.changeFirst)
        .list("buffers", out.buffers,
              [](const Value &entry, PlanPeak::Entry &buffer, Path at) {
                Fields inner(entry, at);
                inner.get("name", buffer.name)
                    .get("first_written_by", buffer.firstWrittenBy)
                    .get("last_used_by", buffer.lastUsedBy)
                    .count("live_bytes_without", buffer.liveBytesWithout);
                return inner.isOK();
              });
    return fields.isOK();
  }

  bool readValue(const Value &value, PlanValue &out, Path path) {
    Fields fields(value, path);
    fields.index("function", out.function)
        .check(out.function < plan.functions.size() ||
                   (out.function == 0 && plan.functions.empty()),
               "function", "expected the index of a function");
    if (!fields.isOK())
      return false;
    readTensor(fields, out,
               plan.functions.empty() ? 0
                                      : plan.functions[out.function].points);
    fields.get("offset", out.offset)
        .check(!out.offset ||
                   (*out.offset >= 0 &&
                    endsWithin(*out.offset, out.bytes, plan.weightsBytes)),
               "offset", "expected a place among the weights");
    return fields.isOK();
  }
};

} // namespace

llvm::Expected<PlanDocument> parsePlanJSON(llvm::StringRef text) {
  if (nestsTooDeep(text))
    return llvm::createStringError("nests brackets more than %d deep",
                                   kMaxDepth);
  llvm::Expected<Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  Path::Root root("plan");
  Parser parser;
  if (!parser.run(*value, root))
    return root.getError();
  return std::move(parser.plan);
}

} // namespace memplan
