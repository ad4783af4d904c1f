//===- HostCode.h - Control flow and scalars on the host --------*- C++ -*-===//
//
// What stands between launches: scf's loops and branches become those of C++,
// scalars outside of kernels become variables, and a scalar that lies in a
// buffer is read back from the device. Private to lib/Target/CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_HOSTCODE_H
#define MEMPLAN_LIB_TARGET_CUDA_HOSTCODE_H

#include "Emitter.h"
#include "memplan/Analysis/ProgramPoints.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace memplan {

class HostCode {
public:
  HostCode(Emitter &emitter, const ProgramPoints &points)
      : emitter(emitter), buffers(emitter.buffers), points(points) {}

  /// Emits the ops of a block but for its terminator. Reports all that it
  /// can't.
  mlir::LogicalResult emitBlock(mlir::Block &block);

private:
  /// A variable and what it gets.
  struct Assignment {
    std::string type, name, value;
  };

  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  mlir::LogicalResult emitSwitch(mlir::scf::IndexSwitchOp branch);
  /// One branch a region; `heads` begin them.
  mlir::LogicalResult emitBranches(mlir::Operation *op,
                                   llvm::ArrayRef<std::string> heads,
                                   llvm::ArrayRef<mlir::Region *> regions);
  mlir::LogicalResult emitExecuteRegion(mlir::scf::ExecuteRegionOp op);
  mlir::LogicalResult emitSelect(mlir::Operation *op);
  mlir::LogicalResult emitAssert(mlir::cf::AssertOp op);
  mlir::LogicalResult emitScalar(mlir::Operation *op);
  mlir::LogicalResult emitLoad(mlir::memref::LoadOp load);
  mlir::LogicalResult emitDivisorCheck(mlir::Operation *op,
                                       llvm::ArrayRef<std::string> operands);

  /// Makes the variable of `values`, which control flow carries. One that is a
  /// place of its own has none.
  mlir::LogicalResult makeVariable(mlir::Operation *op,
                                   llvm::ArrayRef<mlir::Value> values);
  /// Declares the variable of `value`, which gets its value later.
  void declareVariable(mlir::Value value);
  /// Makes and declares variables for a branch's results.
  mlir::LogicalResult declareResults(mlir::Operation *op);
  /// What `target`, which has a variable, gets from `source`; none if there is
  /// nothing to be done.
  mlir::FailureOr<std::optional<Assignment>>
  makeAssignment(mlir::Operation *op, mlir::Value target, mlir::Value source);
  /// Declares variables with their first values.
  mlir::LogicalResult initialize(mlir::Operation *op, mlir::ValueRange targets,
                                 mlir::ValueRange sources);
  /// Sets variables, all at once.
  mlir::LogicalResult assign(mlir::Operation *op, mlir::ValueRange targets,
                             mlir::ValueRange sources);

  std::string newName(llvm::StringRef prefix, unsigned &count) {
    return (prefix + llvm::Twine(count++)).str();
  }
  void add(HostStep::Kind kind, std::string text, std::string defines = "",
           int64_t point = 0);
  void addComment(mlir::Operation *op, const llvm::Twine &what);
  /// The point after the op's regions.
  int64_t getExit(mlir::Operation *op) const;

  Emitter &emitter;
  BufferTable &buffers;
  const ProgramPoints &points;
  unsigned numScalars = 0, numLoops = 0;
};

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_HOSTCODE_H
