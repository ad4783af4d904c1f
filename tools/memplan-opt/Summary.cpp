//===- Summary.cpp - What a compile tells its user ------------------------===//

#include "Summary.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Target/Report/Peak.h"
#include "memplan/Target/Report/PlanReport.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace memplan {

Summary summarize(ModuleOp module) {
  Summary summary;
  summary.weightsBytes = getWeightsBytes(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPublic() && !function.isExternal()) {
      summary.inputsBytes += getArgumentBytes(function, /*outputs=*/false);
      summary.outputsBytes += getArgumentBytes(function, /*outputs=*/true);
    }
    auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr);
    if (!arenas || !function.isPublic())
      continue;
    for (auto arena : arenas.getAsRange<ArenaAttr>()) {
      summary.noReuseBytes += arena.getNoReuse();
      summary.arenaBytes += arena.getBytes();
      summary.lowerBoundBytes += arena.getLowerBound();
      summary.optimal &= arena.getOptimal();
      summary.isBoundBySearch |=
          arena.getLowerBoundProof() == BoundProof::Search;
    }
    function.walk([&](Operation *op) {
      if (!op->hasAttr(kSlotAttr))
        return;
      if (!op->hasAttr(kWorkspaceAttr)) {
        ++summary.buffers;
        return;
      }
      ++summary.workspaces;
      auto type = cast<MemRefType>(op->getResult(0).getType());
      summary.largestWorkspace =
          std::max(summary.largestWorkspace, type.getNumElements());
    });
  }
  return summary;
}

void printBytes(StringRef label, int64_t bytes, llvm::raw_ostream &os) {
  os << "  " << llvm::left_justify(label, 28)
     << llvm::format("%14lld bytes", static_cast<long long>(bytes));
  if (bytes >= 1024 * 1024)
    os << llvm::format("  (%.1f MiB)", bytes / (1024.0 * 1024.0));
  os << "\n";
}

void printSummary(const Summary &summary, const DriverOptions &options,
                  ArrayRef<std::string> written, llvm::raw_ostream &os) {
  os << options.input << "\n";
  printBytes("weights", summary.weightsBytes, os);
  printBytes("sum of the buffers", summary.noReuseBytes, os);
  printBytes("arena", summary.arenaBytes, os);
  printBytes("lower bound", summary.lowerBoundBytes, os);
  os << "  " << summary.buffers << " buffers, ";
  if (options.noReuse)
    os << "each with bytes of its own (--no-reuse)\n";
  else if (summary.optimal)
    os << "proved optimal" << (summary.isBoundBySearch ? " by search" : "")
       << ": no placement of these lifetimes needs less\n";
  else
    os << "not proved optimal: at most "
       << summary.arenaBytes - summary.lowerBoundBytes
       << " bytes above the best\n";
  if (summary.workspaces > 0)
    os << "  " << summary.workspaces
       << (summary.workspaces == 1 ? " operation has" : " operations have")
       << " a workspace inside of the arena, of " << summary.largestWorkspace
       << " bytes at most\n";
  for (const std::string &path : written)
    os << "  wrote " << path << "\n";
}

} // namespace memplan
