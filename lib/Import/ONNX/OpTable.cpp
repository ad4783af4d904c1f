//===- OpTable.cpp - The operators that can be imported -------------------===//

#include "OpTable.h"

using namespace memplan::onnx;

llvm::SmallVector<llvm::ArrayRef<OpEntry>> memplan::onnx::allOps() {
  return {conditionalOps(),   constantOps(),
          convolutionOps(),   einsumOps(),
          elementwiseOps(),   gatherOps(),
          generatorOps(),     indexOps(),
          layoutOps(),        loopOps(),
          lossOps(),          matrixOps(),
          normalizationOps(), padOps(),
          poolingOps(),       prefixOps(),
          recurrentOps(),     reductionOps(),
          resizeOps(),        rowNormOps(),
          samplingOps(),      scanOps(),
          scatterOps(),       selectionOps(),
          sortOps(),          transposedWindowOps(),
          unaryOps()};
}

const OpEntry *memplan::onnx::findOp(llvm::StringRef name, int64_t opset) {
  for (llvm::ArrayRef<OpEntry> family : allOps())
    for (const OpEntry &entry : family)
      if (name == entry.name && opset >= entry.firstOpset &&
          opset <= entry.lastOpset)
        return &entry;
  return nullptr;
}
