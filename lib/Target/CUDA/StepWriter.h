//===- StepWriter.h - The functions that launch -----------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_STEPWRITER_H
#define MEMPLAN_LIB_TARGET_CUDA_STEPWRITER_H

#include "SourceWriter.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// Writes the steps as functions of some launches each.
class StepWriter {
public:
  StepWriter(const ProgramText &program, llvm::raw_ostream &os)
      : program(program), steps(program.emitter.steps), os(os) {}

  /// Returns the number of functions, `launches0` and so on.
  size_t write();

private:
  /// What lives where: at a program point.
  struct Lives {
    std::vector<const BufferLife *> alive;
    int64_t point = -1;
  };
  /// An open loop or branch.
  struct Frame {
    Lives before;
    bool needsElse; ///< Of a branch: it may be skipped.
    int64_t exit;   ///< Of a loop: the point it is left at.
  };

  void writeFunction(size_t first, size_t last);
  void writeStep(const HostStep &step);
  void writeLaunch(const Launch &launch, int64_t point);
  void writeBreak(const HostStep &step);
  void closeBranch(const HostStep &step);
  void writeText(const HostStep &step);
  void bringTo(int64_t point);
  void writeBegin(const BufferLife &life);
  bool changesAt(int64_t point) const;
  bool isCutBefore(size_t first, size_t step) const;
  void findLastUses();
  std::string listRanges(const Launch &launch, bool written);
  std::string indent() const { return std::string(2 * depth, ' '); }

  const ProgramText &program;
  llvm::ArrayRef<HostStep> steps;
  llvm::raw_ostream &os;
  Lives lives;
  std::vector<Frame> frames;
  size_t depth = 1;
  size_t numLaunches = 0;
  /// The last step that uses a variable of the host code.
  llvm::StringMap<size_t> lastUses;
};

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_STEPWRITER_H
