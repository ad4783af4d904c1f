//===- InPlace.cpp - Which input an op may overwrite ----------------------===//

#include "memplan/Analysis/InPlace.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

bool memplan::canOverwrite(OpOperand &input, OpOperand &init) {
  Operation *op = input.getOwner();
  if (auto inPlace = dyn_cast<InPlaceOpInterface>(op))
    return inPlace.canOverwrite(input, init);
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || !structured.isAllParallelLoops())
    return false;
  AffineMap from = structured.getMatchingIndexingMap(&input);
  return from.isPermutation() &&
         from == structured.getMatchingIndexingMap(&init);
}
