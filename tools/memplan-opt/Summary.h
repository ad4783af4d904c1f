//===- Summary.h - What a compile tells its user ----------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_SUMMARY_H
#define MEMPLAN_TOOLS_MEMPLANOPT_SUMMARY_H

#include "Driver.h"

namespace memplan {

/// The figures of a planned module, in bytes.
struct Summary {
  int64_t weightsBytes = 0;
  int64_t noReuseBytes = 0;
  int64_t arenaBytes = 0;
  int64_t lowerBoundBytes = 0;
  bool optimal = true;
  /// Whether an arena's lower bound is more than its live bytes.
  bool isBoundBySearch = false;
  /// The caller's own memory.
  int64_t inputsBytes = 0, outputsBytes = 0;
  int64_t buffers = 0;
  /// Ops that were offered scratch memory inside of the arena.
  int64_t workspaces = 0, largestWorkspace = 0;

  /// All that a run needs on the device, but for the driver's own.
  int64_t getDeviceBytes() const {
    return weightsBytes + arenaBytes + inputsBytes + outputsBytes;
  }
};

/// Adds up the arenas that `memplan.arenas` describes and the weights.
Summary summarize(mlir::ModuleOp module);

/// A line of it.
void printBytes(llvm::StringRef label, int64_t bytes, llvm::raw_ostream &os);

/// Half a screen for a person.
void printSummary(const Summary &summary, const DriverOptions &options,
                  llvm::ArrayRef<std::string> written, llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_SUMMARY_H
