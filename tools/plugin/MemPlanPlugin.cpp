//===- MemPlanPlugin.cpp - The passes and the dialect for mlir-opt --------===//
//
//   mlir-opt-22 --load-pass-plugin=MemPlanPlugin.so
//               --load-dialect-plugin=MemPlanPlugin.so
//               --pass-pipeline='builtin.module(memplan-plan-arena, ...)'
//
// mlir-opt knows a plugin's passes inside of --pass-pipeline only.
//
//===----------------------------------------------------------------------===//

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

// Both entry points are looked up by name in the loaded file.
extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "MemPlanPasses", LLVM_VERSION_STRING, [] {
            memplan::registerMemPlanPasses();
            memplan::registerMemPlanPipelines();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
    mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "MemPlanDialect", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            memplan::registerMemPlanDialect(*registry);
          }};
}
