//===- WeightsLayout.h - Where each weight lies in the block ----*- C++ -*-===//

#ifndef MEMPLAN_TARGET_REPORT_WEIGHTSLAYOUT_H
#define MEMPLAN_TARGET_REPORT_WEIGHTSLAYOUT_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace memplan {

/// Alignment of every weight and of both parts of the block, in bytes.
inline constexpr int64_t kWeightAlignment = 256;

struct Weight {
  mlir::memref::GlobalOp global;
  std::string name;    ///< The model's name for it; unique in the layout.
  int64_t bytes;       ///< Of its contents.
  int64_t blockOffset; ///< From the start of the weights, in bytes.
};

/// The weights part of the block: all globals that some op reads, in the
/// module's order, each at the next multiple of kWeightAlignment.
struct WeightsLayout {
  std::vector<Weight> weights;
  llvm::StringMap<size_t> indexOfSymbol; ///< Into `weights`.
  int64_t bytes = 0;                     ///< A multiple of kWeightAlignment.
};

/// Reports a weight without a static size, or sizes that overflow, at the
/// global.
mlir::FailureOr<WeightsLayout> computeWeightsLayout(mlir::ModuleOp module);

/// Bytes of one element in memory: bool is 1, index 8; nullopt for types that
/// memory does not hold element by element.
std::optional<int64_t> getElementBytes(mlir::Type type);

/// Bytes of the dense contents of a memref of static shape.
std::optional<int64_t> getContentBytes(mlir::MemRefType type);

} // namespace memplan

#endif // MEMPLAN_TARGET_REPORT_WEIGHTSLAYOUT_H
