//===- ExternalWeights.cpp - Weights stay in the model's files ------------===//

#include "ExternalWeights.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace memplan {

static WeightAttr getPlace(const Weight &weight) {
  memref::GlobalOp global = weight.global;
  return global->getAttrOfType<WeightAttr>(kWeightAttr);
}

WeightsLayout getConstants(const WeightsLayout &layout) {
  WeightsLayout constants;
  for (const Weight &weight : layout.weights)
    if (!getPlace(weight))
      constants.weights.push_back(weight);
  return constants;
}

/// `file`, which was opened below `folder`, relative to it; or nullopt.
static std::optional<std::string> makeRelative(StringRef file,
                                               StringRef folder) {
  if (!folder.empty() &&
      !(file.consume_front(folder) && file.consume_front("/")))
    return std::nullopt;
  if (file.empty() || llvm::sys::path::is_absolute(file))
    return std::nullopt;
  return file.str();
}

llvm::Expected<std::vector<WeightSource>>
findWeightSources(const WeightsLayout &layout, const CUDAEmitOptions &options,
                  StringRef modelName) {
  llvm::MapVector<StringRef, WeightSource> files;
  for (auto [index, weight] : llvm::enumerate(layout.weights)) {
    WeightAttr place = getPlace(weight);
    if (!place)
      continue;
    StringRef path = place.getFile();
    WeightSource &source = files[path];
    if (source.name.empty()) {
      auto name = makeRelative(path, options.modelFolder);
      uint64_t size = 0;
      if (std::error_code error = llvm::sys::fs::file_size(path, size))
        return llvm::createStringError(
            error, "weight '%s' is in '%s', which cannot be read: %s",
            weight.name.c_str(), path.str().c_str(), error.message().c_str());
      if (!name)
        return llvm::createStringError(
            "weight '%s' is in '%s', which is not below the model's folder "
            "'%s'; --weights=copy takes it",
            weight.name.c_str(), path.str().c_str(),
            options.modelFolder.c_str());
      source.name = *name;
      source.fileBytes = static_cast<int64_t>(size);
    }
    source.entries.push_back({index, place.getOffset()});
  }
  std::vector<WeightSource> sources;
  for (auto &[path, source] : files)
    sources.push_back(std::move(source));

  WeightsLayout constants = getConstants(layout);
  if (constants.weights.empty())
    return sources;
  SafetensorsFile file = layOutSafetensors(constants, options, modelName);
  WeightSource own;
  own.name = options.weightsName;
  own.fileBytes = file.fileBytes;
  own.headerBytes = static_cast<int64_t>(file.header.size());
  own.headerHash = hashHeader(file.header);
  size_t next = 0;
  for (auto [index, weight] : llvm::enumerate(layout.weights))
    if (!getPlace(weight))
      own.entries.push_back({index, file.fileOffsets[next++]});
  sources.push_back(std::move(own));
  return sources;
}

} // namespace memplan
