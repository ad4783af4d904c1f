//===- Fit.cpp - A model and the memory that there is ---------------------===//

#include "Fit.h"

#include "ByteSize.h"
#include "memplan/Analysis/Liveness.h"
#include "memplan/Target/Report/Peak.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace mlir;

namespace memplan {

namespace {

/// One extent's outcome.
struct Trial {
  ExitCode code = ExitCode::Done;
  std::string reason; ///< Why it has no plan.
  Summary summary;

  bool isPlanned() const { return code == ExitCode::Done; }
};

/// Plans a model with other extents of one dimension, each once.
class Trials {
public:
  Trials(const DriverOptions &options, StringRef dim, MLIRContext &context)
      : options(options), dim(dim), context(context) {
    llvm::erase_if(this->options.dims, [&](StringRef entry) {
      return entry.rsplit('=').first == dim;
    });
  }

  const Trial &at(int64_t extent) {
    auto [entry, isNew] = trials.try_emplace(extent);
    Trial &trial = entry->second;
    if (!isNew)
      return trial;
    DriverOptions with = options;
    with.dims.push_back(flag(extent));
    // The first error is the reason; none is shown.
    ScopedDiagnosticHandler silence(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
          trial.reason.empty())
        trial.reason = diagnostic.str();
    });
    if (OwningOpRef<ModuleOp> module = loadAndPlan(with, context, trial.code))
      trial.summary = summarize(*module);
    return trial;
  }

  bool fits(int64_t extent) {
    const Trial &trial = at(extent);
    return trial.isPlanned() &&
           trial.summary.getDeviceBytes() <= *options.memoryBudget;
  }

  std::string flag(int64_t extent) const {
    return dim + "=" + std::to_string(extent);
  }

  /// Columns of bytes; a row that has no plan says why.
  void print(llvm::raw_ostream &os) const {
    size_t width = std::max<size_t>(dim.size(), 8);
    os << llvm::right_justify(dim, width)
       << "         weights           arena          inputs         outputs"
          "           total";
    if (options.memoryBudget)
      os << "  fits";
    os << "\n";
    for (const auto &[extent, trial] : trials) {
      os << llvm::right_justify(std::to_string(extent), width);
      if (!trial.isPlanned()) {
        os << "  " << trial.reason << "\n";
        continue;
      }
      const Summary &s = trial.summary;
      for (int64_t bytes : {s.weightsBytes, s.arenaBytes, s.inputsBytes,
                            s.outputsBytes, s.getDeviceBytes()})
        os << llvm::format("%16lld", static_cast<long long>(bytes));
      if (options.memoryBudget)
        os << (s.getDeviceBytes() <= *options.memoryBudget ? "   yes"
                                                           : "    no");
      os << "\n";
    }
  }

private:
  DriverOptions options;
  std::string dim;
  MLIRContext &context;
  std::map<int64_t, Trial> trials;
};

/// The largest extent that fits, given that 1 does: bytes are nearly linear in
/// it, so the next one to try is where the line through two that are known
/// meets the budget. Where that gets nowhere, the middle is.
class LargestThatFits {
public:
  LargestThatFits(Trials &trials, int64_t budget)
      : trials(trials), budget(budget) {}

  /// 0 if all up to the largest one tried fit.
  int64_t find() {
    while (!tooMuch || *tooMuch - fit > 1) {
      if (!tooMuch && fit >= kMost)
        return 0;
      int64_t next = choose();
      bool isSlow = lastWidth && tooMuch && *tooMuch - fit > *lastWidth / 2;
      lastWidth = tooMuch ? std::optional(*tooMuch - fit) : std::nullopt;
      if (isSlow && lastWidth)
        next = fit + *lastWidth / 2;
      if (trials.fits(next)) {
        previous = fit;
        fit = next;
      } else {
        tooMuch = next;
      }
    }
    return fit;
  }

  static constexpr int64_t kMost = int64_t(1) << 31;

private:
  int64_t bytesOf(int64_t extent) {
    return trials.at(extent).summary.getDeviceBytes();
  }

  /// Strictly between what fits and what doesn't.
  int64_t choose() {
    int64_t other = tooMuch && trials.at(*tooMuch).isPlanned() ? *tooMuch
                    : previous                                 ? previous
                                                               : 0;
    int64_t most = tooMuch ? *tooMuch - 1 : std::min(kMost, fit * 64);
    int64_t guess = fit * 2;
    if (other) {
      double slope = static_cast<double>(bytesOf(other) - bytesOf(fit)) /
                     static_cast<double>(other - fit);
      if (slope > 0)
        guess = fit + static_cast<int64_t>(std::min(
                          static_cast<double>(budget - bytesOf(fit)) / slope,
                          static_cast<double>(kMost)));
      // What the line says fits did: whether one more does ends the search.
      if (guess <= fit)
        guess = fit + 1;
    }
    return std::max(fit + 1, std::min(guess, most));
  }

  Trials &trials;
  int64_t budget;
  int64_t fit = 1, previous = 0;
  std::optional<int64_t> tooMuch, lastWidth;
};

/// The values of "1,2,4..8"; none if it is something else.
std::optional<std::vector<int64_t>> parseExtents(StringRef text) {
  std::vector<int64_t> extents;
  constexpr int64_t kMostValues = 100000;
  if (text.empty())
    return std::nullopt;
  for (StringRef part : llvm::split(text, ',')) {
    auto [first, last] = part.split("..");
    int64_t from, to;
    if (first.getAsInteger(10, from) || from < 0)
      return std::nullopt;
    to = from;
    if (part.contains("..") && (last.getAsInteger(10, to) || to < from))
      return std::nullopt;
    if (to - from >= kMostValues - static_cast<int64_t>(extents.size()))
      return std::nullopt;
    for (int64_t extent = from; extent <= to; ++extent)
      extents.push_back(extent);
  }
  return extents;
}

InFlightDiagnostic error(MLIRContext &context) {
  return emitError(UnknownLoc::get(&context));
}

ExitCode needsOnnx(StringRef flag, const DriverOptions &options,
                   MLIRContext &context) {
  error(context) << flag << " is about the dimensions of an ONNX model in a "
                 << "file; '" << options.input << "' is none";
  return ExitCode::UsageOrIO;
}

/// The dimension of `options.dims` with the largest extent for which less of it
/// would fit, as a --dim; empty if none would.
std::string findSmaller(const DriverOptions &options, MLIRContext &context) {
  for (StringRef entry : options.dims) {
    auto [name, text] = entry.rsplit('=');
    int64_t extent;
    if (text.getAsInteger(10, extent) || extent < 2)
      continue;
    Trials trials(options, name, context);
    if (!trials.fits(1))
      continue;
    if (int64_t fit = LargestThatFits(trials, *options.memoryBudget).find())
      return trials.flag(fit);
  }
  return "";
}

} // namespace

ExitCode checkBudget(ModuleOp module, const DriverOptions &options) {
  Summary s = summarize(module);
  if (!options.memoryBudget || s.getDeviceBytes() <= *options.memoryBudget)
    return ExitCode::Done;
  MLIRContext &context = *module.getContext();
  InFlightDiagnostic diagnostic = error(context);
  diagnostic << "the model needs " << describeBytes(s.getDeviceBytes()) << ", "
             << describeBytes(s.getDeviceBytes() - *options.memoryBudget)
             << " more than --memory-budget: " << s.weightsBytes
             << " of weights, " << s.arenaBytes << " of arena, "
             << s.inputsBytes << " of inputs and " << s.outputsBytes
             << " of outputs";
  constexpr size_t kMostShown = 5;
  for (const ArenaPeak &peak : findPeaks(module)) {
    Diagnostic &note = diagnostic.attachNote();
    note << "at the peak of the arena, " << peak.liveBytes << " bytes live in "
         << peak.buffers.size() << " buffers; the largest are";
    for (const PeakBuffer &buffer :
         ArrayRef(peak.buffers).take_front(kMostShown))
      note << (&buffer == &peak.buffers.front() ? " " : ", ") << buffer.bytes
           << " bytes of '" << getBufferName(buffer.op->getLoc()) << "'";
  }
  std::string smaller;
  if (isONNX(options.input) && options.input != "-")
    smaller = findSmaller(options, context);
  int64_t rest = s.getDeviceBytes() - s.arenaBytes;
  if (!smaller.empty())
    diagnostic.attachNote() << "it fits with --dim " << smaller;
  else if (rest > *options.memoryBudget)
    diagnostic.attachNote() << "no arena is small enough: weights, inputs and "
                               "outputs alone are "
                            << describeBytes(rest);
  else if (rest + s.lowerBoundBytes > *options.memoryBudget)
    diagnostic.attachNote()
        << "no placement of these lifetimes fits: " << s.lowerBoundBytes
        << " bytes of arena are the least; --explain says what to change first";
  else
    diagnostic.attachNote()
        << "a better plan may fit, since the arena's lower "
           "bound is "
        << s.lowerBoundBytes << " bytes; try a larger --effort";
  diagnostic.attachNote() << "the CUDA driver's own memory (its context and "
                             "loaded kernels, some hundred MiB a process) "
                             "comes on top";
  return ExitCode::OverBudget;
}

ExitCode sweepDim(const DriverOptions &options, MLIRContext &context,
                  llvm::raw_ostream &os) {
  if (!isONNX(options.input) || options.input == "-")
    return needsOnnx("--sweep", options, context);
  auto [name, text] = StringRef(options.sweep).rsplit('=');
  auto extents = parseExtents(text);
  if (name.empty() || !extents) {
    error(context) << "--sweep=" << options.sweep
                   << " is not NAME=N,N,... with whole numbers of at least 0, "
                      "or ranges FIRST..LAST of up to 100000 in all";
    return ExitCode::UsageOrIO;
  }
  Trials trials(options, name, context);
  const Trial *failed = nullptr;
  bool isAnyPlanned = false;
  for (int64_t extent : *extents) {
    const Trial &trial = trials.at(extent);
    isAnyPlanned |= trial.isPlanned();
    if (!trial.isPlanned() && !failed)
      failed = &trial;
  }
  if (!isAnyPlanned) {
    error(context) << failed->reason;
    return failed->code;
  }
  trials.print(os);
  return ExitCode::Done;
}

ExitCode fitDim(DriverOptions &options, MLIRContext &context,
                llvm::raw_ostream &os) {
  if (!isONNX(options.input) || options.input == "-")
    return needsOnnx("--fit-batch", options, context);
  StringRef dim = options.fitBatch;
  if (!options.memoryBudget) {
    error(context) << "--fit-batch=" << dim
                   << " needs --memory-budget, which it is to fit";
    return ExitCode::UsageOrIO;
  }
  int64_t budget = *options.memoryBudget;
  llvm::erase_if(options.dims, [&](StringRef entry) {
    return entry.rsplit('=').first == dim;
  });
  Trials trials(options, dim, context);
  const Trial &least = trials.at(1);
  if (!least.isPlanned()) {
    error(context) << "with " << trials.flag(1) << ": " << least.reason;
    return least.code;
  }
  if (!trials.fits(1)) {
    error(context) << "not even " << trials.flag(1) << " fits: it needs "
                   << describeBytes(least.summary.getDeviceBytes()) << ", "
                   << describeBytes(least.summary.getDeviceBytes() - budget)
                   << " more than --memory-budget";
    return ExitCode::OverBudget;
  }
  int64_t fit = LargestThatFits(trials, budget).find();
  if (!fit) {
    error(context) << "--fit-batch=" << dim << ": every extent up to "
                   << LargestThatFits::kMost
                   << " fits; is it a dimension that the model's bytes depend "
                      "on?";
    return ExitCode::UsageOrIO;
  }
  trials.print(os);
  const Trial &above = trials.at(fit + 1);
  os << trials.flag(fit) << " is the largest that fits in "
     << describeBytes(budget) << "; ";
  if (!above.isPlanned())
    os << "the model isn't valid with " << trials.flag(fit + 1) << ": "
       << above.reason << "\n";
  else if (above.summary.getDeviceBytes() - above.summary.arenaBytes +
               above.summary.lowerBoundBytes >
           budget)
    os << "no plan of " << trials.flag(fit + 1) << " does\n";
  else
    os << "the plan of " << trials.flag(fit + 1)
       << " doesn't, which a better one might\n";
  options.dims.push_back(trials.flag(fit));
  return ExitCode::Done;
}

} // namespace memplan
