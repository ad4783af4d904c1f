//===- OpTable.cpp - The operators that can be imported -------------------===//

#include "OpTable.h"

namespace memplan::onnx {

#define MEMPLAN_ONNX_FAMILY(FUNCTION) llvm::ArrayRef<OpEntry> FUNCTION();
#include "OpFamilies.def"
#undef MEMPLAN_ONNX_FAMILY

llvm::SmallVector<llvm::ArrayRef<OpEntry>> allOps() {
  return {
#define MEMPLAN_ONNX_FAMILY(FUNCTION) FUNCTION(),
#include "OpFamilies.def"
#undef MEMPLAN_ONNX_FAMILY
  };
}

bool isDefaultDomain(llvm::StringRef domain) {
  return domain.empty() || domain == "ai.onnx";
}

const OpEntry *findOp(llvm::StringRef domain, llvm::StringRef name,
                      int64_t opset) {
  if (isDefaultDomain(domain))
    domain = "";
  for (llvm::ArrayRef<OpEntry> family : allOps())
    for (const OpEntry &entry : family)
      if (name == entry.name && domain == entry.domain &&
          opset >= entry.firstOpset && opset <= entry.lastOpset)
        return &entry;
  return nullptr;
}

} // namespace memplan::onnx
