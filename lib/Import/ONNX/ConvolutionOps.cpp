//===- ConvolutionOps.cpp - Conv ------------------------------------------===//

#include "OpTable.h"
#include "Products.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "Window.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

LogicalResult memplan::onnx::buildConv(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &x = n.input(0), &w = n.input(1);
  int64_t rank = x.rank();
  if (rank < 3 || rank > 5)
    return n.unsupported() << n.inputText(0u) << " has " << rank - 2
                           << " spatial dims; 1 to 3 are accepted";
  if (w.rank() != rank)
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << " differ in rank";
  int64_t groups = n.intAttr("group", 1);
  if (groups < 1 || x.dim(1) % groups != 0 || w.dim(0) % groups != 0 ||
      w.dim(1) != x.dim(1) / groups)
    return n.invalid()
           << "with " << groups << " groups, " << n.inputText(0u) << " and "
           << n.inputText(1)
           << " do not fit: channels and features must be multiples "
              "of it, and the filter have channels / groups";
  ArrayRef<int64_t> kernel = w.shape().drop_front(2);
  if (auto declared = n.intsAttr("kernel_shape");
      declared && ArrayRef<int64_t>(*declared) != kernel)
    return n.invalid() << "attribute 'kernel_shape' is " << shapeText(*declared)
                       << ", but " << n.inputText(1) << " is the filter";
  FailureOr<Window> window =
      readWindow(n, x.shape().drop_front(2), kernel, /*canDilate=*/true,
                 /*canCeil=*/false);
  if (failed(window))
    return failure();

  SmallVector<int64_t> shape = {x.dim(0), w.dim(0)};
  shape.append(window->output.begin(), window->output.end());
  ElementwiseOperands extras(n);
  bool hasBias = n.hasInput(2);
  if (hasBias) {
    if (n.input(2).shape() != ArrayRef<int64_t>(w.dim(0)))
      return n.invalid() << n.inputText(2) << " is the bias; shape " << w.dim(0)
                         << " is accepted";
    extras.add(n.input(2), n.input(2).shape(),
               AffineMap::get(rank, 0, n.b.getAffineDimExpr(1)));
  }
  Type element = x.type.getElementType();
  auto op = ConvOp::create(
      n.b, n.loc, n.value(0), n.value(1), extras.values(),
      empty(n, shape, element), window->strides, window->dilations,
      window->padsBegin, window->padsEnd, groups, extras.maps(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = fromAccumulator(b, loc, args[0], element);
        auto scalars = extras.scalars(b, loc, args.drop_front());
        if (!hasBias)
          return sum;
        return Scalars(b, loc, x.dtype).add(sum, scalars[0]);
      });
  return n.result(op.getResult(), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> convolutionOps() {
  static const OpEntry kOps[] = {
      {"Conv", 1, kNewestOpset, 2, 3, 1, buildConv},
  };
  return kOps;
}
} // namespace memplan::onnx
