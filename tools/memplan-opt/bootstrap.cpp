#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  memplan::registerMemPlanDialect(registry);
  memplan::registerMemPlanPasses();
  memplan::registerMemPlanPipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "memplan", registry));
}
