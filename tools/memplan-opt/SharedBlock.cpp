//===- SharedBlock.cpp - Several models, one arena ------------------------===//

#include "SharedBlock.h"

#include "ByteSize.h"
#include "OutputFiles.h"
#include "Summary.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace memplan {

namespace {

struct Member {
  DriverOptions options;
  std::string name;   ///< Its C identifier.
  std::string header; ///< As included by its neighbour.
  Summary summary;
};

InFlightDiagnostic error(MLIRContext &context) {
  return emitError(UnknownLoc::get(&context));
}

/// One compile a model, under names of their own.
LogicalResult makeMembers(const DriverOptions &options, MLIRContext &context,
                          std::vector<Member> &members) {
  llvm::StringMap<std::string> inputs;
  std::vector<std::string> paths = {options.input};
  llvm::append_range(paths, options.more);
  for (const std::string &path : paths) {
    Member member;
    member.options = options;
    member.options.more.clear();
    member.options.memoryBudget.reset(); // of all together
    member.options.input = path;
    member.options.output =
        options.output + "_" + llvm::sys::path::stem(path).str();
    member.name = getIdentifier(member.options.output);
    member.header =
        llvm::sys::path::filename(member.options.output).str() + ".h";
    auto [other, isNew] = inputs.try_emplace(member.name, path);
    if (!isNew)
      return error(context) << "'" << other->second << "' and '" << path
                            << "' would both be called " << member.name
                            << " in C; rename one of the files";
    members.push_back(std::move(member));
  }
  return success();
}

/// A flag that names something in no model is a mistake.
LogicalResult checkFlags(const DriverOptions &options,
                         const llvm::StringSet<> &used, MLIRContext &context) {
  auto check = [&](StringRef flag, ArrayRef<std::string> entries,
                   bool splitsFirst) -> LogicalResult {
    for (StringRef entry : entries) {
      StringRef name =
          (splitsFirst ? entry.split('=') : entry.rsplit('=')).first;
      if (!used.contains((flag + " " + name).str()))
        return error(context)
               << flag << " " << name << " names nothing in any of the models";
    }
    return success();
  };
  return success(
      succeeded(check("--dim", options.dims, false)) &&
      succeeded(check("--input-shape", options.inputShapes, false)) &&
      succeeded(check("--input-value", options.inputValues, true)) &&
      succeeded(check("--sequence-length", options.sequenceLengths, false)) &&
      succeeded(check("--absent", options.absent, false)));
}

std::string makeHeader(StringRef name, ArrayRef<Member> members) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string guard = "MEMPLAN_" + name.upper() + "_H";
  os << "/* Made by memplan: " << members.size()
     << " models that run one after another, on one stream, in one arena. "
        "What\n"
        " * one leaves there the next one overwrites; inputs and outputs are "
        "the caller's.\n"
        " *\n"
        " * The block: [";
  for (const Member &member : members)
    os << " weights of " << member.name << " |";
  os << " arena ]\n */\n\n#ifndef " << guard << "\n#define " << guard << "\n\n";
  for (const Member &member : members)
    os << "#include \"" << member.header << "\"\n";
  os << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\ntypedef struct {\n";
  for (const Member &member : members)
    os << "  " << member.name << "_t *" << member.name << ";\n";
  os << "} " << name << "_t;\n\n";

  os << "/* Of all weights; each model's begin at a multiple of 256. */\n"
     << "static inline size_t " << name << "_weights_bytes(void) {\n"
     << "  size_t bytes = 0;\n";
  for (const Member &member : members)
    os << "  bytes = (bytes + 255) / 256 * 256 + " << member.name
       << "_weights_bytes();\n";
  os << "  return (bytes + 255) / 256 * 256;\n}\n\n"
     << "/* Of the largest arena. */\n"
     << "static inline size_t " << name << "_arena_bytes(void) {\n"
     << "  size_t bytes = 0;\n";
  for (const Member &member : members)
    os << "  if (" << member.name
       << "_arena_bytes() > bytes)\n    bytes = " << member.name
       << "_arena_bytes();\n";
  os << "  return bytes;\n}\n\n";

  os << "static inline void " << name << "_free(" << name << "_t *models) {\n";
  for (const Member &member : members)
    os << "  " << member.name << "_free(models->" << member.name << ");\n"
       << "  models->" << member.name << " = NULL;\n";
  os << "}\n\n"
     << "/* Loads all: `weights_paths` in the order of the struct, `weights` "
        "and "
        "`arena`\n * device memory of the sizes above, aligned to 256. On an "
        "error nothing stays\n * loaded. */\n"
     << "static inline memplan_status " << name << "_load(" << name
     << "_t *models,\n    const char *const *weights_paths, void *weights, "
        "void "
        "*arena) {\n"
     << "  char *next = (char *)weights;\n"
     << "  memplan_status status = MEMPLAN_OK;\n";
  for (const Member &member : members)
    os << "  models->" << member.name << " = NULL;\n";
  for (auto [i, member] : llvm::enumerate(members))
    os << "  if (status == MEMPLAN_OK)\n    status = " << member.name
       << "_load_parts(&models->" << member.name << ", weights_paths[" << i
       << "], next, arena);\n"
       << "  next += (" << member.name
       << "_weights_bytes() + 255) / 256 * 256;\n";
  os << "  (void)next;\n  if (status != MEMPLAN_OK)\n    " << name
     << "_free(models);\n  return status;\n}\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

struct Totals {
  int64_t weights = 0, largestArena = 0, separateArenas = 0, caller = 0;

  explicit Totals(ArrayRef<Member> members) {
    for (const Member &member : members) {
      weights += member.summary.weightsBytes;
      separateArenas += member.summary.arenaBytes;
      largestArena = std::max(largestArena, member.summary.arenaBytes);
      caller += member.summary.inputsBytes + member.summary.outputsBytes;
    }
  }
  int64_t shared() const { return weights + largestArena + caller; }
};

} // namespace

ExitCode compileTogether(const DriverOptions &options, MLIRContext &context) {
  if (options.emit != EmitKind::CUDA) {
    error(context) << "several models go together with --emit=cuda alone; give "
                      "one for anything else";
    return ExitCode::UsageOrIO;
  }
  if (options.output.empty() || options.output == "-") {
    error(context) << "several models need the name that their files begin "
                      "with: -o OUT";
    return ExitCode::UsageOrIO;
  }
  std::vector<Member> members;
  if (failed(checkPrefix(options, context)) ||
      failed(makeMembers(options, context, members)))
    return ExitCode::UsageOrIO;
  OutputFiles files;
  std::vector<std::string> written;
  llvm::StringSet<> used;
  for (Member &member : members) {
    member.options.usedNames = &used;
    ExitCode code =
        compileInto(member.options, context, files, written, member.summary);
    if (code != ExitCode::Done)
      return code;
  }
  if (failed(checkFlags(options, used, context)))
    return ExitCode::UsageOrIO;
  Totals totals(members);
  if (options.memoryBudget && totals.shared() > *options.memoryBudget) {
    error(context) << "the models need " << describeBytes(totals.shared())
                   << " together, "
                   << describeBytes(totals.shared() - *options.memoryBudget)
                   << " more than --memory-budget: " << totals.weights
                   << " of weights, " << totals.largestArena
                   << " of the one arena, " << totals.caller
                   << " of inputs and outputs";
    return ExitCode::OverBudget;
  }
  std::string header = makeHeader(getIdentifier(options.output), members);
  written.push_back(options.output + ".h");
  llvm::Error failure = files.add(written.back(), [&](llvm::raw_ostream &os) {
    os << header;
    return llvm::Error::success();
  });
  if (!failure)
    failure = files.commit();
  if (failure) {
    error(context) << llvm::toString(std::move(failure));
    return ExitCode::UsageOrIO;
  }
  if (options.quiet)
    return ExitCode::Done;
  for (const Member &member : members)
    printSummary(member.summary, member.options, {}, llvm::errs());
  llvm::errs() << members.size() << " models, one after another\n";
  printBytes("weights", totals.weights, llvm::errs());
  printBytes("an arena each", totals.separateArenas, llvm::errs());
  printBytes("one arena for all", totals.largestArena, llvm::errs());
  for (const std::string &path : written)
    llvm::errs() << "  wrote " << path << "\n";
  return ExitCode::Done;
}

} // namespace memplan
