//===- MlirFuzzer.cpp - Any text as MLIR with our dialect -----------------===//
//
// Our operations' verifiers own their invariants: what parses and verifies goes
// through planning and emission.
//
//===----------------------------------------------------------------------===//

#include "FuzzModel.h"
#include "MlirText.h"
#include "memplan/Target/CUDA/EmitCUDA.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // As files are read: MLIR's lexer looks at the NUL behind the end.
  const std::string copy(reinterpret_cast<const char *>(data), size);
  llvm::StringRef text = copy;
  // Where upstream's own parser and dialects end is not ours to find: text
  // without an operation of ours, or of what we plan, is left out.
  if (size > 4000 || !(text.contains("memplan") || text.contains("memref")))
    return 0;
  MLIRContext &context = getContext();
  bool isBroken = false;
  auto module = parseMlirText(text, "fuzz", context, isBroken);
  if (isBroken)
    abandonContext();
  if (!module)
    return 0;
  PassManager pm(&context);
  PipelineOptions options;
  options.effort = 10000;
  buildMemPlanPipeline(pm, options);
  if (failed(pm.run(*module)))
    return 0;
  CUDAEmitOptions emitOptions;
  emitOptions.name = "fuzz";
  emitOptions.headerName = "fuzz.h";
  (void)emitCUDA(*module, emitOptions);
  return 0;
}
