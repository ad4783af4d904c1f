//===- PlanDocument.h - All that reports say of a plan ----------*- C++ -*-===//
//
// The data of `--emit=plan`, and of every drawing and trace made from it. It is
// read from a module, or from such a file; nothing else analyzes a plan.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TARGET_REPORT_PLANDOCUMENT_H
#define MEMPLAN_TARGET_REPORT_PLANDOCUMENT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memplan {

/// A tensor that the model or its plan names.
struct PlanTensor {
  std::string name;
  int64_t bytes = 0;
  std::string type; ///< Of its elements.
  std::vector<int64_t> shape;
  /// Points of the ops that do so, each once, ascending.
  std::vector<int64_t> writtenAt, readAt;
};

/// A range of a buffer's bytes and its half-open life.
struct PlanPart {
  int64_t offset = 0, bytes = 0, lower = 0, upper = 0;
};

struct PlanBuffer : PlanTensor {
  size_t arena = 0;
  /// "activation" or "workspace".
  std::string cause;
  int64_t lower = 0, upper = 0, offset = 0;
  /// In ascending order; empty if all bytes live as long as the buffer.
  std::vector<PlanPart> parts;
  std::string node;

  bool isWorkspace() const { return cause == "workspace"; }
};

/// A weight, an input or an output. Weights have an offset in their part of the
/// block.
struct PlanValue : PlanTensor {
  size_t function = 0;
  std::optional<int64_t> offset;
};

/// What happens at the points [point, end) of a function.
struct PlanOperation {
  int64_t point = 0, end = 0;
  std::string op;
  /// Of the model, several if they were fused.
  std::vector<std::string> nodes;
};

struct PlanFunction {
  std::string name;
  int64_t points = 0;
  std::vector<PlanOperation> operations;
};

struct PlanArena {
  size_t function = 0;
  std::string memorySpace; ///< Empty for the default one.
  int64_t bytes = 0, noReuseBytes = 0, lowerBoundBytes = 0, alignment = 1;
  std::string lowerBoundProof;
  bool optimal = false;
  /// From the first point on, so many bytes live, until the next entry.
  std::vector<std::pair<int64_t, int64_t>> live;
};

/// The first time at which most bytes of an arena live.
struct PlanPeak {
  std::string function;
  int64_t point = 0;
  std::string node;
  int64_t liveBytes = 0;
  struct Entry {
    std::string name, firstWrittenBy, lastUsedBy;
    int64_t liveBytesWithout = 0;
  };
  std::vector<Entry> buffers; ///< Largest first.
  std::optional<std::string> changeFirst;
};

struct PlanDocument {
  std::optional<std::string> model;
  int64_t arenaBytes = 0, weightsBytes = 0, noReuseBytes = 0,
          lowerBoundBytes = 0, alignment = 1;
  std::string lowerBoundProof;
  bool optimal = true;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanPeak> peaks; ///< One for each arena.
  std::vector<PlanArena> arenas;
  std::vector<PlanFunction> functions;
  std::vector<PlanValue> weights, inputs, outputs;
};

/// Reads plans before and after materialization: those of the public functions,
/// since those of private ones are inside them.
PlanDocument collectPlan(mlir::ModuleOp module);

/// As `--emit=plan` writes it, see docs/MemoryMap.md. `indent` is that of each
/// level, 0 for one line.
void writePlanJSON(const PlanDocument &plan, llvm::raw_ostream &os,
                   unsigned indent = 2);

/// Reads what `writePlanJSON` wrote, from whomever the file may come: each
/// number and reference is checked, and an error names its place in the file.
llvm::Expected<PlanDocument> parsePlanJSON(llvm::StringRef text);

/// Ranges of bytes and their lives as a plan's solver had them: each buffer, or
/// its parts. Offsets are the arena's.
struct PlanRange {
  size_t buffer = 0;
  int64_t offset = 0, bytes = 0, lower = 0, upper = 0;
};
std::vector<PlanRange> listRanges(const PlanDocument &plan, size_t arena);

/// The operation that a point belongs to, the innermost; null if there is none.
const PlanOperation *findOperation(const PlanFunction &function, int64_t point);

/// The nodes of an operation with "+" between them, else the op.
std::string getTitle(const PlanOperation &operation);

} // namespace memplan

#endif // MEMPLAN_TARGET_REPORT_PLANDOCUMENT_H
