//===- OnnxFuzzer.cpp - Any bytes as an ONNX model ------------------------===//
//
// The importer gives a verified module or an error of a documented kind. Some
// of the modules go on through planning and emission.
//
//===----------------------------------------------------------------------===//

#include "FuzzModel.h"
#include "memplan/Import/ONNX/Import.h"
#include "memplan/Target/CUDA/EmitCUDA.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::fuzz;

static int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

static void compile(ModuleOp module) {
  PassManager pm(module.getContext());
  PipelineOptions options;
  options.effort = 10000;
  buildMemPlanPipeline(pm, options);
  if (failed(pm.run(module)))
    return;
  CUDAEmitOptions emitOptions;
  emitOptions.name = "fuzz";
  emitOptions.headerName = "fuzz.h";
  (void)emitCUDA(module, emitOptions);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file;
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  file.write(bytes);
  ImportErrorKind kind = ImportErrorKind::InvalidModel;
  auto module = importONNX(file.path(), getContext(), {}, &kind);
  if (failed(module)) {
    if (kind == ImportErrorKind::Internal)
      fail("the importer made invalid IR");
    return 0;
  }
  // A sixteenth of them, since that takes ten times as long.
  constexpr int64_t kMostOps = 400;
  if (llvm::xxh3_64bits(bytes) % 16 == 0 && countOps(**module) < kMostOps)
    compile(**module);
  return 0;
}
