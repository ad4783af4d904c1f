//===- Safetensors.h - The weights file's layout ----------------*- C++ -*-===//
//
// github.com/huggingface/safetensors, "Format": 8 bytes with the length of the
// header (little-endian), the header (JSON), the data without holes.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_SAFETENSORS_H
#define MEMPLAN_LIB_TARGET_CUDA_SAFETENSORS_H

#include "memplan/Target/CUDA/EmitCUDA.h"
#include "memplan/Target/Report/WeightsLayout.h"

namespace memplan {

struct SafetensorsFile {
  std::string header;               ///< The JSON, padded with spaces.
  std::vector<int64_t> fileOffsets; ///< Per weight, from the file's start.
  int64_t fileBytes;
};

SafetensorsFile layOutSafetensors(const WeightsLayout &weights,
                                  const CUDAEmitOptions &options,
                                  llvm::StringRef modelName);

/// FNV-1a of 64 bits, as the runtime computes it over the header.
uint64_t hashHeader(llvm::StringRef header);

/// The model's name: `memplan.model`, else "".
llvm::StringRef getModelName(mlir::ModuleOp module);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_SAFETENSORS_H
