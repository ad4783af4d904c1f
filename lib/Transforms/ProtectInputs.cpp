//===- ProtectInputs.cpp - memplan-protect-inputs -------------------------===//

#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace memplan {
#define GEN_PASS_DEF_PROTECTINPUTS
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;

namespace {
struct ProtectInputs : public memplan::impl::ProtectInputsBase<ProtectInputs> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function.isPublic() || function.isDeclaration())
      return;
    StringRef name = bufferization::BufferizationDialect::kWritableAttrName;
    auto readOnly = BoolAttr::get(&getContext(), false);
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (isa<TensorType>(type) && !function.getArgAttr(index, name))
        function.setArgAttr(index, name, readOnly);
  }
};
} // namespace
