// An mlir-opt with func, memref and memplan's passes.
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::memref::MemRefDialect>();
  memplan::registerMemPlanDialect(registry);
  memplan::registerMemPlanPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "user", registry));
}
