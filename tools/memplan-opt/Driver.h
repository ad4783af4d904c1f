//===- Driver.h - From a model to its emitted files -------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_DRIVER_H
#define MEMPLAN_TOOLS_MEMPLANOPT_DRIVER_H

#include "ExitCode.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/StringSet.h"

#include <optional>
#include <string>
#include <vector>

namespace memplan {

class OutputFiles;
struct Summary;

/// What `--emit` can name.
enum class EmitKind {
  MLIR,
  Planned,
  CUDA,
  Plan,
  CSV,
  HTML,
  SVG,
  Trace,
  TorchSnapshot,
  ONNX,
  Explanation
};

/// The settings of one compile.
struct DriverOptions {
  std::string input;
  /// Further models, for one arena with the first (SharedBlock.h).
  std::vector<std::string> more;
  /// See ImportOptions.
  llvm::StringSet<> *usedNames = nullptr;
  /// `-o`: a file, `-` for standard output, or for CUDA the common prefix of
  /// the files. Empty: standard output, for CUDA the model's stem.
  std::string output;
  EmitKind emit = EmitKind::MLIR;
  /// `--dim NAME=N`, as given.
  std::vector<std::string> dims;
  /// `--input-shape NAME=N0xN1`, `--input-value NAME=V0,V1`,
  /// `--sequence-length NAME=N` and `--absent NAME`, as given.
  std::vector<std::string> inputShapes, inputValues, sequenceLengths, absent;
  /// One more folder of external data.
  std::string externalDataRoot;
  bool noReuse = false;
  /// Techniques that are switched off.
  bool noSchedule = false, noForward = false, noInPlace = false,
       noFusion = false;
  /// Emitted code reads weights from the model's own files.
  bool externalWeights = false;
  /// In bytes.
  int64_t alignment = 256;
  /// Bound on the planner's search for each arena, in steps.
  int64_t effort = PlanArenaOptions().effort;
  /// The most bytes that an op, and all together, are offered as workspace;
  /// negative for no bound.
  int64_t workspacePerOp = OfferWorkspaceOptions().perOp;
  int64_t workspaceTotal = OfferWorkspaceOptions().total;
  /// Largest allowed sum of weights, arena, inputs and outputs in bytes.
  std::optional<int64_t> memoryBudget;
  /// `--fit-batch NAME`, `--sweep NAME=N,N,..`, as given.
  std::string fitBatch, sweep;
  bool quiet = false;
  /// Say where the bytes go: on standard output if nothing else is emitted,
  /// else on standard error.
  bool explain = false;
  /// A plan (`--emit=plan`) that the input, another, is compared with.
  std::string compare;
};

/// Whether a path is read as a plan that `--emit=plan` wrote.
bool isPlan(llvm::StringRef path);

/// Draws the plan in `options.input`, or compares it with `options.compare`.
ExitCode drawPlan(const DriverOptions &options, mlir::MLIRContext &context);

/// Whether a path is read as an ONNX model.
bool isONNX(llvm::StringRef path);

/// Reads a model (`.onnx` imported, anything else parsed as MLIR). On failure
/// the reason has been reported and `code` says of which class it is.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(const DriverOptions &options,
                                            mlir::MLIRContext &context,
                                            ExitCode &code);

/// The same, planned but not verified.
mlir::OwningOpRef<mlir::ModuleOp> loadAndPlan(const DriverOptions &options,
                                              mlir::MLIRContext &context,
                                              ExitCode &code);

/// Whether emitted code can include a header of OUT's name, and OUT names files
/// at all. Reports why not.
mlir::LogicalResult checkPrefix(const DriverOptions &options,
                                mlir::MLIRContext &context);

/// A C identifier made of the prefix's last part.
std::string getIdentifier(llvm::StringRef prefix);

/// Compiles one model, and adds its files to `files`.
ExitCode compileInto(const DriverOptions &options, mlir::MLIRContext &context,
                     OutputFiles &files, std::vector<std::string> &written,
                     Summary &summary);

/// Compiles as the options say; reports errors to the context's diagnostics.
ExitCode compile(const DriverOptions &options, mlir::MLIRContext &context);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_DRIVER_H
