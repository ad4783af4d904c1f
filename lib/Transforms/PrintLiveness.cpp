//===- PrintLiveness.cpp - Lifetimes as text ------------------------------===//

#include "memplan/Analysis/Liveness.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace memplan {
#define GEN_PASS_DEF_PRINTLIVENESS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

class PrintLivenessPass
    : public memplan::impl::PrintLivenessBase<PrintLivenessPass> {
public:
  void runOnOperation() override {
    BufferFlowAnalysis flowAnalysis;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        print(function, flowAnalysis);
    markAllAnalysesPreserved();
  }

private:
  static void print(func::FuncOp function, BufferFlowAnalysis &flowAnalysis) {
    BufferLiveness liveness(function, flowAnalysis);
    llvm::raw_ostream &os = llvm::outs();
    os << "@" << function.getName() << ": " << liveness.getPoints().size()
       << " points\n";
    for (const LiveBuffer &buffer : liveness.getBuffers())
      os << "  " << getBufferName(buffer.flow.root.getLoc()) << ": "
         << buffer.bytes << " bytes, [" << buffer.lower << ", " << buffer.upper
         << "), " << buffer.flow.aliases.size() - 1 << " aliases, "
         << buffer.flow.accesses.size() << " accesses\n";
    for (const LeftAlone &left : liveness.getLeftAlone())
      os << "  " << getBufferName(left.alloc->getLoc()) << ": left alone, "
         << left.reason << "\n";
  }
};

} // namespace
