//===- EmitCUDA.h - Planned memref IR to CUDA C++ text ----------*- C++ -*-===//
//
// Turns a module whose @main is planned (after memplan-materialize-arena) into
// one CUDA C++ source, a C header and a weights file. What the files promise is
// in docs/EmittedCode.md. One emitter a family of ops, see lib/Target/CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TARGET_CUDA_EMITCUDA_H
#define MEMPLAN_TARGET_CUDA_EMITCUDA_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace memplan {

/// What the emitted files say about themselves.
struct CUDAEmitOptions {
  /// A C identifier: the prefix of every public function.
  std::string name = "model";
  /// How the source includes its header; `name` + ".h" when empty.
  std::string headerName;
  /// Hash of the model's own file, in hex; part of the stamp.
  std::string modelHash;
  /// The settings of the compile as a command line; part of the stamp.
  std::string settings;
  /// Leave weights in the model's files, which load then finds by their paths
  /// relative to `modelFolder`, beside `weightsName`, the file of what
  /// `writeWeights` writes: constants that are in no file.
  bool externalWeights = false;
  std::string modelFolder, weightsName;
};

struct EmittedCUDA {
  std::string source; ///< NAME.cu
  std::string header; ///< NAME.h
  /// Whether `writeWeights` has anything to write; always unless weights are
  /// external.
  bool hasOwnWeights = true;
};

/// Emits the code of the module's one public function. Every op that the target
/// does not have is reported as an error at its location, then this fails.
/// Leaves `module` as it is.
mlir::FailureOr<EmittedCUDA> emitCUDA(mlir::ModuleOp module,
                                      const CUDAEmitOptions &options);

/// Writes the weights as a safetensors file, the one that the emitted source
/// expects (same module, same options). Weights are mapped from their files and
/// pass through one by one.
llvm::Error writeWeights(mlir::ModuleOp module, const CUDAEmitOptions &options,
                         llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TARGET_CUDA_EMITCUDA_H
