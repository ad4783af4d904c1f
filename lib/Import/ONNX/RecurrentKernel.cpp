//===- RecurrentKernel.cpp - The kernel of a recurrent step ---------------===//

#include "RecurrentKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

unsigned StepKernel::add(Value tensor, ArrayRef<unsigned> dims) {
  ins.push_back(tensor);
  SmallVector<AffineExpr> exprs;
  for (unsigned dim : dims)
    exprs.push_back(n.b.getAffineDimExpr(dim));
  maps.push_back(AffineMap::get(2, 0, exprs, n.context()));
  return ins.size() - 1;
}

ResultRange StepKernel::build(DType dtype, Body body) {
  SmallVector<AffineMap> allMaps(maps);
  allMaps.append(outs.size(), n.b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      n.b, n.loc, ValueRange(outs).getTypes(), ins, outs, allMaps, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc,
                                body(Scalars(b, loc, dtype),
                                     args.take_front(ins.size()),
                                     args.drop_front(ins.size())));
      });
  return op.getResults();
}
