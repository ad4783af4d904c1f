//===- FuseStructured.cpp - memplan-fuse ----------------------------------===//

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace memplan {
#define GEN_PASS_DEF_FUSESTRUCTURED
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {
struct FuseStructured
    : public memplan::impl::FuseStructuredBase<FuseStructured> {
  void runOnOperation() override {}
};
} // namespace
