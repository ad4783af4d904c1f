//===- ExternalWeights.h - Weights stay in the model's files ----*- C++ -*-===//
//
// With `--weights=external` no weight is copied: emitted code reads each from
// where the model has it. Only what no file has (constants that the compiler
// made) goes into NAME.safetensors.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_EXTERNALWEIGHTS_H
#define MEMPLAN_LIB_TARGET_CUDA_EXTERNALWEIGHTS_H

#include "Safetensors.h"

namespace memplan {

/// A file that load reads weights from.
struct WeightSource {
  std::string name; ///< Relative to the folder that load is given.
  int64_t fileBytes = 0, headerBytes = 0;
  uint64_t headerHash = 0;
  /// Index of the weight, and its offset in the file.
  std::vector<std::pair<size_t, int64_t>> entries;
};

/// The weights that stand in no file of the model, in `layout`'s order.
WeightsLayout getConstants(const WeightsLayout &layout);

/// One source a file of the model, in the order in which weights name them,
/// and NAME.safetensors if there are constants; or an error that names the
/// weight and the file.
llvm::Expected<std::vector<WeightSource>>
findWeightSources(const WeightsLayout &layout, const CUDAEmitOptions &options,
                  llvm::StringRef modelName);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_EXTERNALWEIGHTS_H
