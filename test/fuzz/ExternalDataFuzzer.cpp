//===- ExternalDataFuzzer.cpp - Any record of external data ---------------===//
//
// The input is the keys and values of a tensor's external_data, separated by
// NULs. Whatever they say, only files of the model's folder are read.
//
//===----------------------------------------------------------------------===//

#include "FuzzModel.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Import/ONNX/Import.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fstream>
#include <unistd.h>

using namespace mlir;
using namespace memplan;
using namespace memplan::fuzz;

namespace {
/// A model's folder with honest files, and ways out of it.
struct Folder {
  std::string root, model;

  Folder() {
    llvm::SmallString<128> path;
    if (llvm::sys::fs::createUniqueDirectory("memplan-fuzz", path))
      fail("no temporary folder");
    root = path.str().str();
    model = root + "/model";
    (void)llvm::sys::fs::create_directories(model + "/sub");
    for (const char *name : {"/w.bin", "/sub/w.bin"})
      std::ofstream(model + name) << std::string(64, 'w');
    std::ofstream(root + "/secret.bin") << std::string(64, 's');
    if (symlink("../secret.bin", (model + "/link.bin").c_str()) != 0 ||
        symlink("..", (model + "/linked").c_str()) != 0 ||
        link((root + "/secret.bin").c_str(), (model + "/hard.bin").c_str()) !=
            0)
      fail("symlink");
  }
  ~Folder() { (void)llvm::sys::fs::remove_directories(root); }
};
} // namespace

/// A length-delimited field of a protobuf message.
static std::string field(unsigned number, llvm::StringRef content) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  for (size_t size = content.size();; size >>= 7) {
    text += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
    if (size <= 127)
      break;
  }
  return text + content.str();
}

static std::string varint(unsigned number, unsigned value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

/// f32[4], and a graph that returns it.
static std::string makeModel(llvm::StringRef record) {
  std::string tensor = varint(1, 4) + varint(2, 1) + field(8, "w");
  while (!record.empty()) {
    auto [key, rest] = record.split('\0');
    auto [value, next] = rest.split('\0');
    tensor += field(13, field(1, key) + field(2, value));
    record = next;
  }
  tensor += std::string("\x70\x01", 2); // data_location: EXTERNAL
  std::string graph =
      field(1, field(1, "w") + field(2, "y") + field(4, "Neg")) +
      field(5, tensor) + field(12, field(1, "y"));
  return varint(1, 8) + field(7, graph) + field(8, varint(2, 17));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  llvm::StringRef record(reinterpret_cast<const char *>(data), size);
  if (size > 1000)
    return 0;
  std::string path = folder.model + "/m.onnx";
  {
    std::ofstream file(path, std::ios::binary);
    std::string model = makeModel(record);
    file.write(model.data(), model.size());
  }
  auto module = importONNX(path, getContext());
  if (failed(module))
    return 0;
  (*module)->walk([&](memref::GlobalOp global) {
    auto weight = global->getAttrOfType<WeightAttr>(kWeightAttr);
    if (!weight)
      return;
    llvm::SmallString<128> real, allowed;
    if (llvm::sys::fs::real_path(weight.getFile(), real) ||
        llvm::sys::fs::real_path(folder.model, allowed))
      fail("a weight's file is not there", weight.getFile().str());
    if (!real.starts_with((allowed + "/").str()) || real.ends_with("hard.bin"))
      fail("a file outside of the model's folder was read", real.str().str());
  });
  return 0;
}
