//===- Safetensors.cpp - Weights pass from their files to ours ------------===//

#include "Safetensors.h"

#include "CppText.h"
#include "ExternalWeights.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Support/MappedPages.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace memplan {

StringRef getModelName(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(kModelAttr);
  return name ? name.getValue() : StringRef();
}

SafetensorsFile layOutSafetensors(const WeightsLayout &weights,
                                  const CUDAEmitOptions &options,
                                  StringRef modelName) {
  SafetensorsFile file;
  llvm::raw_string_ostream os(file.header);
  int64_t end = 0;
  {
    llvm::json::OStream json(os);
    json.object([&] {
      json.attributeObject("__metadata__", [&] {
        json.attribute("producer", "memplan " MEMPLAN_VERSION);
        json.attribute("model", llvm::json::fixUTF8(modelName));
        json.attribute("model_hash", options.modelHash);
      });
      for (const Weight &weight : weights.weights) {
        MemRefType type = memref::GlobalOp(weight.global).getType();
        json.attributeObject(llvm::json::fixUTF8(weight.name), [&] {
          json.attribute("dtype", getSafetensorsName(type.getElementType()));
          json.attributeArray("shape", [&] {
            for (int64_t extent : type.getShape())
              json.value(extent);
          });
          json.attributeArray("data_offsets", [&] {
            json.value(end);
            json.value(end + weight.bytes);
          });
        });
        file.fileOffsets.push_back(end);
        end += weight.bytes;
      }
    });
  }
  while ((8 + file.header.size()) % 64 != 0)
    file.header += ' ';
  int64_t dataStart = 8 + static_cast<int64_t>(file.header.size());
  for (int64_t &offset : file.fileOffsets)
    offset += dataStart;
  file.fileBytes = dataStart + end;
  return file;
}

uint64_t hashHeader(StringRef header) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : header)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// The bytes of an initial value: once for a splat's element, else all.
static llvm::Error writeInitialValue(const Weight &weight,
                                     llvm::raw_ostream &os) {
  memref::GlobalOp global = weight.global;
  auto initial = global.getInitialValue();
  auto describe = [&](const char *problem) {
    return llvm::createStringError("weight '%s' (@%s) %s", weight.name.c_str(),
                                   global.getSymName().str().c_str(), problem);
  };
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(
          initial.value_or(nullptr))) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || static_cast<int64_t>(blob->getData().size()) != weight.bytes)
      return describe("has a resource of another size than its type");
    os.write(blob->getData().data(), blob->getData().size());
    return llvm::Error::success();
  }
  auto dense =
      dyn_cast_or_null<DenseIntOrFPElementsAttr>(initial.value_or(nullptr));
  if (!dense)
    return describe("has neither a place in a file nor dense contents");
  if (dense.getElementType().isInteger(1)) { // packed as bits
    for (bool value : dense.getValues<bool>())
      os << static_cast<char>(value);
    return llvm::Error::success();
  }
  ArrayRef<char> raw = dense.getRawData();
  int64_t copies = dense.isSplat() && !raw.empty()
                       ? weight.bytes / static_cast<int64_t>(raw.size())
                       : 1;
  if (static_cast<int64_t>(raw.size()) * copies != weight.bytes)
    return describe("has contents of another size than its type");
  for (int64_t i = 0; i < copies; ++i)
    os.write(raw.data(), raw.size());
  return llvm::Error::success();
}

namespace {
/// Files that weights lie in, mapped while they are needed.
class MappedFiles {
public:
  llvm::Expected<llvm::MemoryBuffer *> get(StringRef path) {
    auto &buffer = files[path];
    if (!buffer) {
      auto mapped =
          llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
      if (!mapped)
        return llvm::createStringError(
            mapped.getError(), "can't read weights from '%s': %s",
            path.str().c_str(), mapped.getError().message().c_str());
      buffer = std::move(*mapped);
    }
    return buffer.get();
  }

private:
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};
} // namespace

llvm::Error writeWeights(ModuleOp module, const CUDAEmitOptions &options,
                         llvm::raw_ostream &os) {
  auto layout = computeWeightsLayout(module);
  if (failed(layout))
    return llvm::createStringError("the weights have no layout");
  if (options.externalWeights)
    *layout = getConstants(*layout);
  SafetensorsFile file =
      layOutSafetensors(*layout, options, getModelName(module));
  llvm::support::endian::write<uint64_t>(os, file.header.size(),
                                         llvm::endianness::little);
  os << file.header;
  MappedFiles files;
  constexpr int64_t kMostMapped = 1 << 25;
  int64_t written = 0;
  for (Weight &weight : layout->weights) {
    auto place = weight.global->getAttrOfType<WeightAttr>(kWeightAttr);
    if (!place) {
      if (llvm::Error error = writeInitialValue(weight, os))
        return error;
      continue;
    }
    auto file = files.get(place.getFile());
    if (!file)
      return file.takeError();
    StringRef content = (*file)->getBuffer();
    int64_t size = static_cast<int64_t>(content.size());
    if (place.getBytes() != weight.bytes)
      return llvm::createStringError(
          "weight '%s' has %lld bytes in '%s', its type has %lld",
          weight.name.c_str(), static_cast<long long>(place.getBytes()),
          place.getFile().str().c_str(), static_cast<long long>(weight.bytes));
    if (place.getOffset() > size || weight.bytes > size - place.getOffset())
      return llvm::createStringError(
          "weight '%s' would lie at bytes %lld+%lld of '%s', which has %lld",
          weight.name.c_str(), static_cast<long long>(place.getOffset()),
          static_cast<long long>(weight.bytes), place.getFile().str().c_str(),
          static_cast<long long>(size));
    forEachPiece(**file, content.substr(place.getOffset(), weight.bytes),
                 [&](StringRef piece) { os << piece; });
    written += weight.bytes;
    if (written >= kMostMapped) {
      releasePages(**file);
      written = 0;
    }
  }
  return llvm::Error::success();
}

} // namespace memplan
