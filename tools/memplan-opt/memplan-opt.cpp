//===- memplan-opt.cpp - The compiler and an mlir-opt with our passes -----===//
//
// With --emit, or given an .onnx or .json file, this is the compiler
// (Driver.h); otherwise it is mlir-opt with the dialect and the passes of
// memplan.
//
//===----------------------------------------------------------------------===//

#include "ByteSize.h"
#include "Driver.h"
#include "Fit.h"
#include "OutputFiles.h"
#include "SharedBlock.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Import/ONNX/Import.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace memplan;

namespace {

llvm::cl::OptionCategory category("memplan: from a model to its block");

llvm::cl::opt<EmitKind> emitKind(
    "emit", llvm::cl::desc("Compile the model (.onnx or .mlir) and emit:"),
    llvm::cl::values(
        clEnumValN(EmitKind::MLIR, "mlir", "the imported module"),
        clEnumValN(EmitKind::Planned, "mlir-planned",
                   "the module with every buffer placed in its arena"),
        clEnumValN(EmitKind::CUDA, "cuda",
                   "OUT.cu, OUT.h and OUT.safetensors (OUT is -o, or the "
                   "model's name); with -o - the .cu alone"),
        clEnumValN(EmitKind::Plan, "plan", "the plan as JSON"),
        clEnumValN(EmitKind::CSV, "csv",
                   "the plan as id,lower,upper,size,offset; lifetimes are "
                   "half-open"),
        clEnumValN(EmitKind::HTML, "html",
                   "the memory map, a page for a browser"),
        clEnumValN(EmitKind::SVG, "svg", "the memory map as a picture"),
        clEnumValN(EmitKind::Trace, "trace",
                   "Chrome trace events, for Perfetto"),
        clEnumValN(EmitKind::TorchSnapshot, "torch-snapshot",
                   "a pickle for PyTorch's memory_viz page"),
        clEnumValN(EmitKind::ONNX, "onnx",
                   "the model with the plan in its metadata, for Netron")),
    llvm::cl::cat(category));

llvm::cl::list<std::string>
    dims("dim", llvm::cl::desc("Extent of a symbolic dimension of the model"),
         llvm::cl::value_desc("NAME=N"), llvm::cl::cat(category));

llvm::cl::list<std::string> inputShapes(
    "input-shape",
    llvm::cl::desc("Shape of an input, or of a sequence's element NAME[I], "
                   "which binds its symbolic dimensions"),
    llvm::cl::value_desc("NAME=N0xN1x..."), llvm::cl::cat(category));

llvm::cl::list<std::string> inputValues(
    "input-value",
    llvm::cl::desc("Value of an input that must be known when compiling, such "
                   "as a shape; it is no input of the emitted code. @FILE has "
                   "a serialized TensorProto"),
    llvm::cl::value_desc("NAME=V0,V1,...|@FILE"), llvm::cl::cat(category));

llvm::cl::opt<std::string> externalDataRoot(
    "external-data-root",
    llvm::cl::desc("One more folder in which external data may lie, also "
                   "behind symbolic links in the model's own folder"),
    llvm::cl::value_desc("DIR"), llvm::cl::cat(category));

llvm::cl::list<std::string> sequenceLengths(
    "sequence-length",
    llvm::cl::desc("Length of an input that is a sequence; its elements become "
                   "the inputs NAME[0], NAME[1], ..."),
    llvm::cl::value_desc("NAME=N"), llvm::cl::cat(category));

llvm::cl::list<std::string>
    absent("absent", llvm::cl::desc("An optional input that has no value"),
           llvm::cl::value_desc("NAME"), llvm::cl::cat(category));

llvm::cl::opt<bool>
    noReuse("no-reuse",
            llvm::cl::desc(
                "Give every buffer bytes of its own; nothing is forwarded or "
                "overwritten. Results are bit-identical: compare when you "
                "suspect the planner"),
            llvm::cl::cat(category));

llvm::cl::opt<bool>
    noSchedule("no-schedule",
               llvm::cl::desc("Keep the order of the model's operations"),
               llvm::cl::cat(category));

llvm::cl::opt<bool> noForward(
    "no-forward",
    llvm::cl::desc("Keep the copies of concatenations, splits and outputs"),
    llvm::cl::cat(category));

llvm::cl::opt<bool>
    noInPlace("no-in-place",
              llvm::cl::desc("Let no operation overwrite its input"),
              llvm::cl::cat(category));

llvm::cl::opt<bool>
    noFusion("no-fusion",
             llvm::cl::desc("Keep the model's operations apart: one kernel and "
                            "one buffer each"),
             llvm::cl::cat(category));

enum class Weights { Copy, External };
llvm::cl::opt<Weights> weights(
    "weights", llvm::cl::desc("Where emitted code finds the weights:"),
    llvm::cl::values(
        clEnumValN(Weights::Copy, "copy", "all in OUT.safetensors"),
        clEnumValN(Weights::External, "external",
                   "in the model's own files, of whose folder load gets the "
                   "path; OUT.safetensors, in the same folder, has only "
                   "constants that the compiler made, if any")),
    llvm::cl::init(Weights::Copy), llvm::cl::cat(category));

llvm::cl::opt<bool> explain(
    "explain",
    llvm::cl::desc("Say where the bytes go: the buffers that live at the peak, "
                   "the one to change first, what each technique saves. On "
                   "standard output, or beside --emit on standard error"),
    llvm::cl::cat(category));

llvm::cl::opt<std::string> compareWith(
    "compare",
    llvm::cl::desc("With --emit=html: the plan of the input, side by side with "
                   "this one, as in --compare A.json B.json. Both are files "
                   "that --emit=plan wrote"),
    llvm::cl::value_desc("A.json"), llvm::cl::cat(category));

llvm::cl::opt<int64_t> alignment(
    "alignment",
    llvm::cl::desc("Alignment of every buffer of the arena, in bytes "
                   "(a power of two of at least 16); weights keep 256"),
    llvm::cl::init(256), llvm::cl::cat(category));

llvm::cl::opt<int64_t>
    effort("effort",
           llvm::cl::desc("Bound on the planner's search for each arena, in "
                          "steps of a few nanoseconds at most; 0 is one greedy "
                          "placement. More may find a smaller plan or prove "
                          "that there is none. The same steps give the same "
                          "plan on any machine"),
           llvm::cl::value_desc("N"), llvm::cl::init(PlanArenaOptions().effort),
           llvm::cl::cat(category));

llvm::cl::opt<int64_t> workspacePerOp(
    "workspace-per-op",
    llvm::cl::desc("The most bytes that one operation is offered as scratch "
                   "memory, of those that are free under the peak while it "
                   "runs. The arena doesn't grow for it; 0 offers none"),
    llvm::cl::value_desc("BYTES"),
    llvm::cl::init(OfferWorkspaceOptions().perOp), llvm::cl::cat(category));

llvm::cl::opt<int64_t> workspaceTotal(
    "workspace-total",
    llvm::cl::desc("The same for all operations together, the first ones "
                   "first (default: no bound)"),
    llvm::cl::value_desc("BYTES"), llvm::cl::cat(category));

llvm::cl::opt<std::string> memoryBudget(
    "memory-budget",
    llvm::cl::desc("Fail, with what is missing and what would fit, when "
                   "weights, arena, inputs and outputs need more, as in 8GiB "
                   "or 500MB. The CUDA driver's own memory comes on top"),
    llvm::cl::value_desc("SIZE"), llvm::cl::cat(category));

llvm::cl::opt<std::string> fitBatch(
    "fit-batch",
    llvm::cl::desc("Find the largest extent of a symbolic dimension that "
                   "--memory-budget allows, print what was tried, and emit "
                   "with it if --emit is given"),
    llvm::cl::value_desc("NAME"), llvm::cl::cat(category));

llvm::cl::opt<std::string>
    sweep("sweep",
          llvm::cl::desc("Print what a model needs with each of some extents "
                         "of a symbolic dimension"),
          llvm::cl::value_desc("NAME=N,N..N,..."), llvm::cl::cat(category));

llvm::cl::opt<bool> quiet("q", llvm::cl::desc("No summary on standard error"),
                          llvm::cl::cat(category));

llvm::cl::extrahelp exitCodes(R"(
EXIT STATUS of memplan-opt:

  0   done
  1   usage, or a file that cannot be read or written
  2   invalid model
  3   unsupported operator, attribute or type
  4   a symbolic dimension has no extent (see --dim)
  5   over --memory-budget
  6   the plan's verifier found a fault (please report it)
  70  internal error (please report it)
)");

/// Whether a flag that another library registered was given.
bool isGiven(llvm::StringRef flag) {
  auto *option = static_cast<llvm::cl::Option *>(
      llvm::cl::getRegisteredOptions().lookup(flag));
  return option && option->getNumOccurrences() > 0;
}

void printDiagnostic(mlir::Diagnostic &diagnostic, llvm::StringRef severity) {
  if (!llvm::isa<mlir::UnknownLoc>(diagnostic.getLocation()))
    llvm::errs() << diagnostic.getLocation() << ": ";
  llvm::errs() << severity << ": " << diagnostic << "\n";
}

/// Errors and warnings as MLIR prints them, one a line, and their notes, which
/// MLIR drops. The whole op would be a note too, and a function is one.
void printDiagnostics(mlir::MLIRContext &context) {
  if (!isGiven("mlir-print-op-on-diagnostic"))
    context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    if (!isError &&
        diagnostic.getSeverity() != mlir::DiagnosticSeverity::Warning)
      return;
    printDiagnostic(diagnostic, isError ? "error" : "warning");
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      printDiagnostic(note, "note");
  });
}

/// Parses an .onnx input and hands the module on to mlir-opt's own main.
ExitCode runPassesOnModel(const DriverOptions &options,
                          mlir::DialectRegistry &registry) {
  std::string text;
  {
    mlir::MLIRContext context(registry);
    printDiagnostics(context);
    ExitCode code = ExitCode::Done;
    auto module = loadModel(options, context, code);
    if (!module)
      return code;
    llvm::raw_string_ostream os(text);
    mlir::OpPrintingFlags flags;
    flags.enableDebugInfo();
    module->print(os, flags);
  }
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, options.input);
  std::string result;
  llvm::raw_string_ostream os(result);
  if (mlir::failed(mlir::MlirOptMain(os, std::move(buffer), registry, config)))
    return ExitCode::UsageOrIO;
  OutputFiles files;
  llvm::Error failure = files.add(options.output.empty() ? "-" : options.output,
                                  [&](llvm::raw_ostream &file) {
                                    file << result;
                                    return llvm::Error::success();
                                  });
  if (!failure)
    failure = files.commit();
  if (!failure)
    return ExitCode::Done;
  llvm::errs() << "memplan-opt: " << llvm::toString(std::move(failure)) << "\n";
  return ExitCode::UsageOrIO;
}

/// A flag whose value is out of range.
ExitCode usageError(const llvm::Twine &message) {
  llvm::errs() << "memplan-opt: " << message << "\n";
  return ExitCode::UsageOrIO;
}

/// Takes the second .onnx file and those after it out of the arguments, for
/// MLIR's command line has one input.
std::vector<std::string> takeFurtherModels(std::vector<char *> &arguments) {
  std::vector<std::string> models;
  std::vector<char *> kept;
  bool isValue = false, hasModel = false;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    llvm::StringRef text = argument;
    bool isModel = i > 0 && !isValue && isONNX(text) && !text.starts_with("-");
    if (isModel && hasModel)
      models.push_back(text.str());
    else
      kept.push_back(argument);
    hasModel |= isModel;
    // Whether the next argument belongs to this one, as in --dim N=4.
    llvm::StringRef flag = text.ltrim('-');
    auto *option = static_cast<llvm::cl::Option *>(
        llvm::cl::getRegisteredOptions().lookup(flag));
    isValue = text.starts_with("-") &&
              (flag == "o" || (option && option->getValueExpectedFlag() ==
                                             llvm::cl::ValueRequired));
  }
  arguments = std::move(kept);
  return models;
}

ExitCode runDriver(llvm::StringRef input, llvm::StringRef output,
                   const std::vector<std::string> &more,
                   mlir::DialectRegistry &registry) {
  DriverOptions options;
  options.input = input.str();
  // mlir-opt's -o defaults to standard output, the driver's depends on --emit.
  if (isGiven("o"))
    options.output = output.str();
  options.dims = dims;
  options.inputShapes = inputShapes;
  options.inputValues = inputValues;
  options.externalDataRoot = externalDataRoot;
  options.sequenceLengths = sequenceLengths;
  options.absent = absent;
  options.noReuse = noReuse;
  options.noSchedule = noSchedule;
  options.noForward = noForward;
  options.noInPlace = noInPlace;
  options.noFusion = noFusion;
  options.externalWeights = weights == Weights::External;
  options.alignment = alignment;
  options.effort = effort;
  options.quiet = quiet;
  if (workspacePerOp < 0)
    return usageError("--workspace-per-op must not be negative");
  options.workspacePerOp = workspacePerOp;
  if (workspaceTotal.getNumOccurrences() > 0) {
    if (workspaceTotal < 0)
      return usageError("--workspace-total must not be negative");
    options.workspaceTotal = workspaceTotal;
  }
  if (memoryBudget.getNumOccurrences() > 0) {
    options.memoryBudget = parseByteSize(memoryBudget);
    if (!options.memoryBudget)
      return usageError("--memory-budget=" + memoryBudget + " is not " +
                        kByteSizeForms);
  }
  if (alignment < 16 || alignment > (int64_t(1) << 30) ||
      !llvm::isPowerOf2_64(alignment))
    return usageError("--alignment must be a power of two from 16 to 2^30");
  if (effort < 0)
    return usageError("--effort must not be negative");
  options.explain = explain;
  options.compare = compareWith;
  options.fitBatch = fitBatch;
  options.sweep = sweep;
  bool isEmitting = emitKind.getNumOccurrences() > 0 || explain;
  bool isFitting = fitBatch.getNumOccurrences() > 0,
       isSweeping = sweep.getNumOccurrences() > 0;
  if (isSweeping && (isFitting || isEmitting))
    return usageError("--sweep prints its table alone; leave out " +
                      llvm::Twine(isFitting ? "--fit-batch"
                                            : "--emit and "
                                              "--explain"));
  if (!more.empty() && (isSweeping || isFitting || !options.compare.empty() ||
                        emitKind.getNumOccurrences() == 0))
    return usageError("several models go together with --emit=cuda alone; give "
                      "one for anything else");
  options.more = more;
  if (isSweeping || isFitting) {
    mlir::MLIRContext context(registry);
    printDiagnostics(context);
    if (isSweeping)
      return sweepDim(options, context, llvm::outs());
    // With -o -, or what goes to standard output, the table makes way.
    ExitCode code =
        fitDim(options, context, isEmitting ? llvm::errs() : llvm::outs());
    if (code != ExitCode::Done || !isEmitting)
      return code;
  } else if (!isEmitting && isONNX(input)) {
    return runPassesOnModel(options, registry);
  }
  options.emit = emitKind.getNumOccurrences() > 0
                     ? static_cast<EmitKind>(emitKind)
                     : EmitKind::Explanation;
  mlir::MLIRContext context(registry);
  printDiagnostics(context);
  if (isPlan(options.input) || !options.compare.empty())
    return drawPlan(options, context);
  return more.empty() ? compile(options, context)
                      : compileTogether(options, context);
}

} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  registerMemPlanDialect(registry);
  registerMemPlanPasses();
  registerMemPlanPipelines();
  registerImportDialects(registry);

  std::vector<char *> arguments(argv, argv + argc);
  std::vector<std::string> more = takeFurtherModels(arguments);
  arguments.push_back(nullptr);
  argc = static_cast<int>(arguments.size()) - 1;
  argv = arguments.data();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "memplan: plan a model's memory and emit CUDA", registry);
  if (emitKind.getNumOccurrences() > 0 || explain || isONNX(input) ||
      isPlan(input) || compareWith.getNumOccurrences() > 0 ||
      fitBatch.getNumOccurrences() > 0 || sweep.getNumOccurrences() > 0)
    return static_cast<int>(runDriver(input, output, more, registry));
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
