//===- BufferFlow.h - Where a buffer goes and who touches it ----*- C++ -*-===//
//
// May-alias analysis of memrefs by following uses: from the value that makes a
// buffer through views, selects, region arguments and results, block arguments
// and calls, transitively. What it does not understand is an escape.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_ANALYSIS_BUFFERFLOW_H
#define MEMPLAN_ANALYSIS_BUFFERFLOW_H

#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <optional>
#include <string>

namespace memplan {

/// An op that reads or writes the buffer, or both.
struct BufferAccess {
  mlir::Operation *op;
  bool reads;
  bool writes;
};

/// Why the buffer's life cannot be told from the function alone.
struct BufferEscape {
  mlir::Operation *op;
  std::string reason;
};

/// All that is known about one buffer.
struct BufferFlow {
  /// The value that makes the buffer: an alloc's result or an argument.
  mlir::Value root;
  /// All values that may be (views of) the buffer, the root first.
  llvm::SmallSetVector<mlir::Value, 4> aliases;
  llvm::SmallVector<BufferAccess> accesses;
  llvm::SmallVector<mlir::Operation *> deallocs;
  std::optional<BufferEscape> escape;
  /// For an argument: function results that may be it. (A returned alloc
  /// escapes.)
  llvm::SmallSetVector<unsigned, 2> returnedAs;
};

/// Computes flows. Keeps summaries of called functions, so one instance should
/// serve all functions of a module.
///
/// A call to a function without a body (an external kernel) is taken to touch
/// its memref arguments during the call only, as long as it returns no memref.
class BufferFlowAnalysis {
public:
  /// Follows the buffer that `root` makes.
  BufferFlow trace(mlir::Value root);

  /// The values of `function` that make buffers: results and arguments of
  /// memref type that are not themselves views of, or handed on from, others.
  /// In program order.
  static llvm::SmallVector<mlir::Value>
  collectRoots(mlir::FunctionOpInterface function);

private:
  struct ArgumentSummary {
    bool escapes = false;
    llvm::SmallVector<unsigned> returnedAs;
  };
  class Tracer;

  /// What the function does with its argument.
  const ArgumentSummary &summarize(mlir::BlockArgument argument);

  /// No entry: not yet computed. An empty entry: being computed (recursion).
  llvm::DenseMap<mlir::Value, std::optional<ArgumentSummary>> summaries;
  ArgumentSummary unknownArgument = {/*escapes=*/true, {}};
  mlir::SymbolTableCollection symbolTables;
};

/// Whether regions of `op` run one after another while the op itself runs, so
/// that a buffer made inside has one instance at a time: known control flow,
/// not parallel, and no token result that lets the op outlive its place.
bool hasSequentialRegions(mlir::Operation *op);

/// Whether `op` may still run after control has passed it: it yields a value
/// of a type that is neither data nor a buffer, such as an async token.
bool mayOutliveItsPlace(mlir::Operation *op);

/// Whether regions of `op` may be entered again, or in another order than they
/// stand in.
bool mayRepeatRegions(mlir::Operation *op);

} // namespace memplan

#endif // MEMPLAN_ANALYSIS_BUFFERFLOW_H
