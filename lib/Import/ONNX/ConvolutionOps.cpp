//===- ConvolutionOps.cpp - Conv ------------------------------------------===//

#include "Products.h"
#include "Scalars.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

LogicalResult memplan::onnx::buildConv(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &x = n.input(0), &w = n.input(1);
  bool hasBias = n.hasInput(2);
  if (hasBias &&
      (w.rank() == 0 || n.input(2).shape() != ArrayRef<int64_t>(w.dim(0))))
    return n.invalid() << n.inputText(2) << " is the bias; shape "
                       << (w.rank() == 0 ? 0 : w.dim(0)) << " is accepted";
  int64_t depth = 1;
  for (int64_t extent : w.shape().drop_front(w.rank() != 0))
    depth *= std::max<int64_t>(extent, 1);
  auto [input, filter] = readFactors(n, /*axisA=*/-2, /*axisB=*/0, depth);
  SmallVector<ImportedTensor *> more;
  if (hasBias)
    more.push_back(&n.input(2));
  Type element = x.type.getElementType();
  Value y = buildConvolution(
      n, input, filter, x.dtype,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scalars) {
        sum = scaleSum(b, loc, sum, scalars.drop_back(hasBias));
        if (hasBias)
          sum = arith::AddFOp::create(b, loc, sum,
                                      toAccumulator(b, loc, scalars.back()));
        return fromAccumulator(b, loc, sum, element);
      },
      more);
  return n.result(y, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> convolutionOps() {
  static const OpEntry kOps[] = {
      {"Conv", 1, kNewestOpset, 2, 3, 1, buildConv},
  };
  return kOps;
}
} // namespace memplan::onnx
