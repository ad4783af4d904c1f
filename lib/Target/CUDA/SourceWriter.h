//===- SourceWriter.h - Launches and definitions to files -------*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_SOURCEWRITER_H
#define MEMPLAN_LIB_TARGET_CUDA_SOURCEWRITER_H

#include "Emitter.h"
#include "ExternalWeights.h"
#include "memplan/Target/CUDA/EmitCUDA.h"

namespace memplan {

/// One input or output of the emitted API.
struct TensorInfo {
  std::string name;
  mlir::MemRefType type; ///< What the function takes.
  bool isUnsigned = false;
  /// Dims whose extent the run tells, by the number of the extent.
  llvm::SmallVector<std::pair<int64_t, size_t>, 0> runDims;
  /// What its caller sees: several elements may share a byte.
  mlir::ShapedType declared = type;
};

/// A planned buffer's life, for the checked mode.
struct BufferLife {
  std::string name;
  int64_t offset, bytes;
  int64_t lower, upper; ///< In program points.
};

/// All that the files are written from.
struct ProgramText {
  const CUDAEmitOptions &options;
  std::string modelName;
  std::vector<TensorInfo> inputs, outputs;
  const WeightsLayout &weights;
  int64_t arenaBytes = 0, arenaAlignment = 256;
  std::vector<BufferLife> lives;
  const Emitter &emitter;
  /// Types of the extents that a run tells. They are kept behind the arena and
  /// follow the outputs in the table that launches see.
  std::vector<mlir::MemRefType> extents;

  /// With external weights: where they are.
  std::vector<WeightSource> weightSources;

  /// How often a value is read back from the device, in places of the code.
  size_t countReadbacks() const;
};

std::string writeHeader(const ProgramText &program);
/// What `load` reads, as tables.
std::string formatWeightTables(const ProgramText &program);
mlir::FailureOr<std::string> writeSource(const ProgramText &program,
                                         mlir::ModuleOp module);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_SOURCEWRITER_H
