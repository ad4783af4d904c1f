//===- Driver.cpp - From a model to its emitted files ---------------------===//

#include "Driver.h"

#include "Fit.h"
#include "ImportFlags.h"
#include "MlirText.h"
#include "OutputFiles.h"
#include "Summary.h"
#include "memplan/Analysis/ArenaVerifier.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Import/ONNX/Import.h"
#include "memplan/Support/MappedPages.h"
#include "memplan/Target/CUDA/EmitCUDA.h"
#include "memplan/Target/Report/Peak.h"
#include "memplan/Target/Report/PlanReport.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <cstdlib>

using namespace mlir;

namespace memplan {

static InFlightDiagnostic error(MLIRContext &context) {
  return emitError(UnknownLoc::get(&context));
}

static ExitCode reportIO(MLIRContext &context, llvm::Error failure) {
  error(context) << llvm::toString(std::move(failure));
  return ExitCode::UsageOrIO;
}

/// A plan in the input is never believed: it is made anew.
static void dropPlan(ModuleOp module) {
  module.walk([](Operation *op) {
    op->removeDiscardableAttr(kSlotAttr);
    op->removeDiscardableAttr(kArenasAttr);
  });
}

bool isONNX(StringRef path) { return path.ends_with_insensitive(".onnx"); }

OwningOpRef<ModuleOp> loadModel(const DriverOptions &options,
                                MLIRContext &context, ExitCode &code) {
  auto importOptions = parseImportOptions(options, context);
  if (failed(importOptions)) {
    code = ExitCode::UsageOrIO;
    return nullptr;
  }
  if (isONNX(options.input)) {
    ImportErrorKind kind = ImportErrorKind::InvalidModel;
    auto module = importONNX(options.input, context, *importOptions, &kind);
    if (succeeded(module))
      return std::move(*module);
    code = static_cast<ExitCode>(kind);
    return nullptr;
  }
  if (failed(checkNoImportFlags(options, context))) {
    code = ExitCode::UsageOrIO;
    return nullptr;
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.input,
                                                   /*IsText=*/true);
  if (std::error_code failure = buffer.getError()) {
    error(context) << "cannot read '" << options.input
                   << "': " << failure.message();
    code = ExitCode::UsageOrIO;
    return nullptr;
  }
  bool isBroken = false;
  auto module =
      parseMlirText((*buffer)->getBuffer(), options.input, context, isBroken);
  if (isBroken)
    std::_Exit(static_cast<int>(ExitCode::InvalidModel));
  if (!module || failed(checkWeightFiles(*module, options))) {
    code = ExitCode::InvalidModel;
    return nullptr;
  }
  dropPlan(*module);
  return module;
}

/// SHA-256 of the model's own file, in hex.
static std::string hashFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return "unknown";
  llvm::SHA256 hash;
  forEachPiece(**buffer, (*buffer)->getBuffer(),
               [&](StringRef piece) { hash.update(piece); });
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// The settings that shape the emitted files, as a command line.
static std::string describeSettings(const DriverOptions &options) {
  std::string text;
  auto add = [&](const char *flag, const std::vector<std::string> &entries) {
    for (const std::string &entry : entries)
      text += std::string(flag) + " " + entry + " ";
  };
  add("--dim", options.dims);
  add("--input-shape", options.inputShapes);
  add("--input-value", options.inputValues);
  add("--sequence-length", options.sequenceLengths);
  add("--absent", options.absent);
  for (auto [isOff, flag] : {std::pair{options.noReuse, "--no-reuse "},
                             std::pair{options.noSchedule, "--no-schedule "},
                             std::pair{options.noForward, "--no-forward "},
                             std::pair{options.noInPlace, "--no-in-place "},
                             std::pair{options.noFusion, "--no-fusion "}})
    if (isOff)
      text += flag;
  if (options.externalWeights)
    text += "--weights external ";
  text += "--alignment " + std::to_string(options.alignment);
  text += " --effort " + std::to_string(options.effort);
  text += " --workspace-per-op " + std::to_string(options.workspacePerOp);
  if (options.workspaceTotal >= 0)
    text += " --workspace-total " + std::to_string(options.workspaceTotal);
  return text;
}

static LogicalResult
runPipeline(ModuleOp module, const DriverOptions &options, TimingScope &timing,
            void (*build)(OpPassManager &, const PipelineOptions &)) {
  PassManager pm(module.getContext());
  if (failed(applyPassManagerCLOptions(pm)))
    return failure();
  pm.enableTiming(timing);
  PipelineOptions pipelineOptions;
  pipelineOptions.noReuse = options.noReuse;
  pipelineOptions.noSchedule = options.noSchedule;
  pipelineOptions.noForward = options.noForward;
  pipelineOptions.noInPlace = options.noInPlace;
  pipelineOptions.noFusion = options.noFusion;
  pipelineOptions.alignment = options.alignment;
  pipelineOptions.effort = options.effort;
  pipelineOptions.workspacePerOp = options.workspacePerOp;
  pipelineOptions.workspaceTotal = options.workspaceTotal;
  build(pm, pipelineOptions);
  return pm.run(module);
}

static ExitCode plan(ModuleOp module, const DriverOptions &options,
                     TimingScope &timing) {
  // What the verifier would otherwise take for a fault of the plan.
  if (failed(verifyAccesses(module)))
    return isONNX(options.input) ? ExitCode::Internal : ExitCode::InvalidModel;
  // What the importer makes must pass; other IR may hold what upstream's passes
  // refuse.
  if (failed(runPipeline(module, options, timing, buildMemPlanPipeline)))
    return isONNX(options.input) ? ExitCode::Internal : ExitCode::Unsupported;
  return ExitCode::Done;
}

OwningOpRef<ModuleOp> loadAndPlan(const DriverOptions &options,
                                  MLIRContext &context, ExitCode &code) {
  OwningOpRef<ModuleOp> module = loadModel(options, context, code);
  if (!module)
    return nullptr;
  TimingScope noTiming;
  code = plan(*module, options, noTiming);
  if (code != ExitCode::Done)
    return nullptr;
  return module;
}

/// Where CUDA files go, without their suffix.
static std::string getPrefix(const DriverOptions &options) {
  if (options.output.empty())
    return llvm::sys::path::stem(options.input).str();
  return options.output;
}

/// A C identifier made of the prefix's last part. NAME_t must be no type of the
/// C library's or CUDA's.
std::string getIdentifier(StringRef prefix) {
  static constexpr StringLiteral kTaken[] = {
      "blkcnt",    "blksize",    "clock",   "clockid", "cudaError",
      "cudaEvent", "cudaStream", "dev",     "div",     "fpos",
      "gid",       "id",         "imaxdiv", "ino",     "int16",
      "int32",     "int64",      "int8",    "intmax",  "intptr",
      "key",       "ldiv",       "lldiv",   "locale",  "loff",
      "max_align", "mbstate",    "mode",    "nlink",   "nullptr",
      "off",       "pid",        "ptrdiff", "pthread", "quad",
      "register",  "sigset",     "size",    "ssize",   "suseconds",
      "time",      "timer",      "uid",     "uint16",  "uint32",
      "uint64",    "uint8",      "uintmax", "uintptr", "useconds",
      "wchar",     "wint"};
  std::string name;
  for (char c : llvm::sys::path::filename(prefix))
    name += llvm::isAlnum(c) ? c : '_';
  if (name.empty() || llvm::isDigit(name.front()) ||
      llvm::is_contained(kTaken, name))
    name = "model_" + name;
  return name;
}

static ExitCode emitCUDAFiles(ModuleOp module, const DriverOptions &options,
                              OutputFiles &files,
                              std::vector<std::string> &written) {
  MLIRContext &context = *module.getContext();
  bool toStdout = options.output == "-";
  std::string prefix = toStdout ? llvm::sys::path::stem(options.input).str()
                                : getPrefix(options);
  CUDAEmitOptions emitOptions;
  emitOptions.name = getIdentifier(prefix);
  emitOptions.headerName = llvm::sys::path::filename(prefix).str() + ".h";
  emitOptions.modelHash = hashFile(options.input);
  emitOptions.settings = describeSettings(options);
  emitOptions.externalWeights = options.externalWeights;
  emitOptions.modelFolder = llvm::sys::path::parent_path(options.input).str();
  emitOptions.weightsName =
      llvm::sys::path::filename(prefix).str() + ".safetensors";
  FailureOr<EmittedCUDA> emitted = emitCUDA(module, emitOptions);
  if (failed(emitted))
    return ExitCode::Unsupported;
  auto addText = [&](StringRef path, StringRef text) {
    written.push_back(path.str());
    return files.add(path, [&](raw_ostream &os) {
      os << text;
      return llvm::Error::success();
    });
  };
  if (toStdout) {
    if (llvm::Error failure = addText("-", emitted->source))
      return reportIO(context, std::move(failure));
    return ExitCode::Done;
  }
  if (llvm::Error failure = addText(prefix + ".cu", emitted->source))
    return reportIO(context, std::move(failure));
  if (llvm::Error failure = addText(prefix + ".h", emitted->header))
    return reportIO(context, std::move(failure));
  if (options.externalWeights && !emitted->hasOwnWeights)
    return ExitCode::Done;
  written.push_back(prefix + ".safetensors");
  llvm::Error failure = files.add(written.back(), [&](raw_ostream &os) {
    return writeWeights(module, emitOptions, os);
  });
  if (failure)
    return reportIO(context, std::move(failure));
  return ExitCode::Done;
}

/// The arena's bytes with other settings; none if that fails.
static std::optional<int64_t> planOtherwise(const DriverOptions &options,
                                            MLIRContext &context) {
  ExitCode code = ExitCode::Done;
  OwningOpRef<ModuleOp> module = loadAndPlan(options, context, code);
  if (!module)
    return std::nullopt;
  return summarize(*module).arenaBytes;
}

/// What each technique is worth: the arena without it.
static void explainTechniques(int64_t arenaBytes, const DriverOptions &options,
                              MLIRContext &context, raw_ostream &os) {
  if (options.input == "-" || options.noReuse)
    return;
  os << "what each technique saves (the arena without it):\n";
  struct Technique {
    const char *name;
    bool DriverOptions::*isOff;
  };
  constexpr Technique techniques[] = {
      {"scheduling", &DriverOptions::noSchedule},
      {"forwarding", &DriverOptions::noForward},
      {"overwriting", &DriverOptions::noInPlace},
      {"fusion", &DriverOptions::noFusion},
      {"any reuse", &DriverOptions::noReuse},
  };
  for (const Technique &technique : techniques) {
    DriverOptions without = options;
    without.*technique.isOff = true;
    os << llvm::format("  %-12s", technique.name);
    std::optional<int64_t> bytes;
    if (!(options.*technique.isOff))
      bytes = planOtherwise(without, context);
    if (options.*technique.isOff)
      os << " is switched off\n";
    else if (bytes)
      os << llvm::format("%14lld bytes  (%lld)\n",
                         static_cast<long long>(*bytes - arenaBytes),
                         static_cast<long long>(*bytes));
    else
      os << " can't be told: the model does not compile without it\n";
  }
}

static void explain(ModuleOp module, const DriverOptions &options,
                    raw_ostream &os) {
  printPeaks(module, os);
  explainTechniques(summarize(module).arenaBytes, options, *module.getContext(),
                    os);
}

/// Whether the output lies in the model's own folder.
static bool keepsFolder(const DriverOptions &options) {
  auto getFolder = [](StringRef path) {
    llvm::SmallString<128> folder(llvm::sys::path::parent_path(path));
    llvm::SmallString<128> real;
    if (llvm::sys::fs::real_path(folder.empty() ? StringRef(".") : folder.str(),
                                 real))
      return std::string();
    return real.str().str();
  };
  std::string folder = getFolder(options.input);
  return !options.output.empty() && options.output != "-" && !folder.empty() &&
         folder == getFolder(options.output);
}

static llvm::Error writeAnnotated(const PlanDocument &plan,
                                  const DriverOptions &options,
                                  raw_ostream &os) {
  auto buffer = llvm::MemoryBuffer::getFile(options.input, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (std::error_code failure = buffer.getError())
    return llvm::createStringError(failure, "cannot read '%s': %s",
                                   options.input.c_str(),
                                   failure.message().c_str());
  llvm::Error failure =
      emitAnnotatedONNX(plan, (*buffer)->getBuffer(), keepsFolder(options), os);
  if (!failure)
    return failure;
  return llvm::createStringError("'%s': %s", options.input.c_str(),
                                 llvm::toString(std::move(failure)).c_str());
}

/// What is made of a plan alone.
static llvm::Error writePlan(const PlanDocument &plan,
                             const DriverOptions &options, raw_ostream &os,
                             const PlanDocument *other = nullptr) {
  switch (options.emit) {
  case EmitKind::CSV:
    return emitPlanCSV(plan, os);
  case EmitKind::HTML:
    emitMemoryMap(plan, os, other);
    break;
  case EmitKind::SVG:
    emitMemoryMapSVG(plan, os);
    break;
  case EmitKind::Trace:
    emitChromeTrace(plan, os);
    break;
  case EmitKind::TorchSnapshot:
    return emitTorchSnapshot(plan, os);
  case EmitKind::ONNX:
    return writeAnnotated(plan, options, os);
  default:
    writePlanJSON(plan, os);
  }
  return llvm::Error::success();
}

static ExitCode emit(ModuleOp module, const DriverOptions &options,
                     OutputFiles &files, std::vector<std::string> &written) {
  if (options.emit == EmitKind::CUDA)
    return emitCUDAFiles(module, options, files, written);
  std::string path = options.output.empty() ? "-" : options.output;
  auto failure = files.add(path, [&](raw_ostream &os) -> llvm::Error {
    switch (options.emit) {
    case EmitKind::MLIR:
    case EmitKind::Planned: {
      OpPrintingFlags flags;
      module.print(os, flags);
      return llvm::Error::success();
    }
    case EmitKind::Plan:
    case EmitKind::CSV:
    case EmitKind::HTML:
    case EmitKind::SVG:
    case EmitKind::Trace:
    case EmitKind::TorchSnapshot:
    case EmitKind::ONNX:
      return writePlan(collectPlan(module), options, os);
    case EmitKind::Explanation:
      explain(module, options, os);
      return llvm::Error::success();
    case EmitKind::CUDA:
      break;
    }
    return llvm::Error::success();
  });
  if (failure)
    return reportIO(*module.getContext(), std::move(failure));
  if (path != "-")
    written.push_back(path);
  return ExitCode::Done;
}

LogicalResult checkPrefix(const DriverOptions &options, MLIRContext &context) {
  if (options.output == "-")
    return success();
  if (options.output.empty() && options.input == "-")
    return error(context)
           << "--emit=cuda of standard input needs a name: -o OUT, or -o - for "
              "the .cu alone";
  std::string prefix = getPrefix(options);
  // Not Path.h's: it takes the name of "a/" to be ".".
  StringRef name = StringRef(prefix).substr(prefix.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..")
    return error(context) << "-o " << prefix
                          << " names a folder; --emit=cuda needs the name that "
                             "its files begin with, as in -o FOLDER/NAME";
  for (unsigned char c : name)
    if (c == '"' || c == '\\' || c < ' ' || c == 0x7f)
      return error(context)
             << "emitted code cannot include a header called '" << name
             << ".h', which has a quote, a backslash or a control character; "
                "give another name with -o";
  return success();
}

bool isPlan(StringRef path) { return path.ends_with_insensitive(".json"); }

/// Reads a plan; reports why not.
static std::optional<PlanDocument> loadPlan(StringRef path,
                                            MLIRContext &context) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (std::error_code failure = buffer.getError()) {
    error(context) << "cannot read '" << path << "': " << failure.message();
    return std::nullopt;
  }
  llvm::Expected<PlanDocument> plan = parsePlanJSON((*buffer)->getBuffer());
  if (plan)
    return std::move(*plan);
  error(context) << "'" << path << "' is no plan as --emit=plan writes it: "
                 << llvm::toString(plan.takeError());
  return std::nullopt;
}

ExitCode drawPlan(const DriverOptions &options, MLIRContext &context) {
  bool isDrawn =
      options.emit == EmitKind::HTML || options.emit == EmitKind::SVG ||
      options.emit == EmitKind::Trace ||
      options.emit == EmitKind::TorchSnapshot || options.emit == EmitKind::CSV;
  if (options.compare.empty() ? !isDrawn : options.emit != EmitKind::HTML) {
    error(context) << (options.compare.empty()
                           ? "of a plan, --emit=html, svg, trace, "
                             "torch-snapshot and csv can be made"
                           : "--compare is for --emit=html");
    return ExitCode::UsageOrIO;
  }
  std::optional<PlanDocument> other;
  if (!options.compare.empty()) {
    other = loadPlan(options.compare, context);
    if (!other)
      return ExitCode::InvalidModel;
  }
  std::optional<PlanDocument> plan = loadPlan(options.input, context);
  if (!plan)
    return ExitCode::InvalidModel;
  // Two plans of one model are told apart by their files.
  auto addFile = [](PlanDocument &document, StringRef path) {
    std::string file = llvm::json::fixUTF8(llvm::sys::path::filename(path));
    document.model = document.model.value_or("plan") + " (" + file + ")";
  };
  if (other) {
    addFile(*other, options.compare);
    addFile(*plan, options.input);
  }
  OutputFiles files;
  llvm::Error failure = files.add(
      options.output.empty() ? "-" : options.output, [&](raw_ostream &os) {
        return writePlan(*plan, options, os, other ? &*other : nullptr);
      });
  if (!failure)
    failure = files.commit();
  if (failure)
    return reportIO(context, std::move(failure));
  return ExitCode::Done;
}

ExitCode compileInto(const DriverOptions &options, MLIRContext &context,
                     OutputFiles &files, std::vector<std::string> &written,
                     Summary &summary) {
  if (options.emit == EmitKind::CUDA && failed(checkPrefix(options, context)))
    return ExitCode::UsageOrIO;
  if (options.emit == EmitKind::ONNX && !isONNX(options.input)) {
    error(context) << "--emit=onnx annotates an .onnx file; the input is '"
                   << options.input << "'";
    return ExitCode::UsageOrIO;
  }
  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  TimingScope timing = timingManager.getRootScope();

  ExitCode code = ExitCode::Done;
  TimingScope importTiming = timing.nest("Import");
  OwningOpRef<ModuleOp> module = loadModel(options, context, code);
  importTiming.stop();
  if (!module)
    return code;
  if (options.emit != EmitKind::MLIR) {
    code = plan(*module, options, timing);
    if (code != ExitCode::Done)
      return code;
    if (failed(runPipeline(*module, options, timing, buildVerifyPipeline)))
      return ExitCode::Verifier;
    code = checkBudget(*module, options);
    if (code != ExitCode::Done)
      return code;
  }
  TimingScope emitTiming = timing.nest("Emit");
  summary = summarize(*module);
  code = emit(*module, options, files, written);
  emitTiming.stop();
  if (code != ExitCode::Done || !options.explain ||
      options.emit == EmitKind::MLIR || options.emit == EmitKind::Explanation)
    return code;
  explain(*module, options, llvm::errs());
  return ExitCode::Done;
}

ExitCode compile(const DriverOptions &options, MLIRContext &context) {
  OutputFiles files;
  std::vector<std::string> written;
  Summary summary;
  ExitCode code = compileInto(options, context, files, written, summary);
  if (code != ExitCode::Done)
    return code;
  if (llvm::Error failure = files.commit())
    return reportIO(context, std::move(failure));
  if (!options.quiet && options.emit != EmitKind::MLIR)
    printSummary(summary, options, written, llvm::errs());
  return ExitCode::Done;
}

} // namespace memplan
