//===- TrainingOps.cpp - Steps of optimizers ------------------------------===//
//
// Domain ai.onnx.preview.training. Inputs are the learning rate, the number of
// updates so far, then lists as long as there are tensors to optimize.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// The scalars of one element: the rate, the number of updates (as a float),
/// then one of each list.
using Update =
    function_ref<SmallVector<Value>(const Scalars &s, ValueRange args)>;
} // namespace

/// Each output is a kernel of its own: it has as many lists as the inputs
/// without the gradients.
static LogicalResult buildUpdates(NodeBuilder &n, unsigned numLists,
                                  Update update) {
  unsigned rest = n.numInputs() - 2;
  if (rest == 0 || rest % numLists != 0 ||
      n.numOutputs() != rest / numLists * (numLists - 1))
    return n.invalid() << "has " << n.numInputs() << " inputs and "
                       << n.numOutputs() << " outputs; a rate, a count and "
                       << numLists << " inputs and " << numLists - 1
                       << " outputs a tensor are accepted";
  unsigned count = rest / numLists;
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (!n.hasInput(i) || (i != 1 && !n.input(i).dtype.isFloat()) ||
        (i < 2 && n.input(i).numElements() != 1))
      return n.invalid() << "input " << i
                         << " is none of: a rate, a count, float tensors";
  for (unsigned tensor = 0; tensor < count; ++tensor) {
    ImportedTensor &x = n.input(2 + tensor);
    for (unsigned list = 1; list < numLists; ++list) {
      ImportedTensor &other = n.input(2 + list * count + tensor);
      if (other.type != x.type || other.dtype != x.dtype)
        return n.invalid() << n.inputText(other) << " goes with "
                           << n.inputText(x) << "; one type is accepted";
    }
    for (unsigned out = 0; out + 1 < numLists; ++out) {
      ElementwiseOperands operands(n);
      operands.add(n.input(0), {}, AffineMap::get(x.rank(), 0, n.context()));
      operands.add(n.input(1), {}, AffineMap::get(x.rank(), 0, n.context()));
      for (unsigned list = 0; list < numLists; ++list)
        operands.addBroadcast(n.input(2 + list * count + tensor), x.shape());
      Value y = operands.build(
          x.shape(), x.type.getElementType(),
          [&](OpBuilder &b, Location loc, ValueRange args) {
            SmallVector<Value> scalars(args);
            scalars[0] = castScalar(b, loc, args[0], n.input(0).dtype, x.dtype);
            scalars[1] = castScalar(b, loc, args[1], n.input(1).dtype, x.dtype);
            return update(Scalars(b, loc, x.dtype), scalars)[out];
          });
      if (failed(n.result(out * count + tensor, y, x.dtype)))
        return failure();
    }
  }
  return success();
}

/// The gradient with that of the norm of what is optimized.
static Value regularized(const Scalars &s, double norm, Value x, Value g) {
  return s.add(s.mul(s.number(norm), x), g);
}

static LogicalResult buildAdagrad(NodeBuilder &n) {
  double norm = n.floatAttr("norm_coefficient", 0);
  double decay = n.floatAttr("decay_factor", 0);
  double epsilon = n.floatAttr("epsilon", 0);
  return buildUpdates(n, 3, [&](const Scalars &s, ValueRange args) {
    Value rate =
        s.div(args[0], s.add(s.number(1), s.mul(args[1], s.number(decay))));
    Value g = regularized(s, norm, args[2], args[3]);
    Value sum = s.add(args[4], s.mul(g, g));
    Value root = s.add(s.make<math::SqrtOp>(sum), s.number(epsilon));
    Value x = s.sub(args[2], s.div(s.mul(rate, g), root));
    return SmallVector<Value>{x, sum};
  });
}

static LogicalResult buildAdam(NodeBuilder &n) {
  double alpha = n.floatAttr("alpha", 0.9f), beta = n.floatAttr("beta", 0.999f);
  double epsilon = n.floatAttr("epsilon", 0);
  double norm = n.floatAttr("norm_coefficient", 0);
  double after = n.floatAttr("norm_coefficient_post", 0);
  return buildUpdates(n, 4, [&](const Scalars &s, ValueRange args) {
    Value one = s.number(1);
    Value g = regularized(s, norm, args[2], args[3]);
    auto average = [&](double keep, Value old, Value now) {
      return s.add(s.mul(s.number(keep), old), s.mul(s.number(1 - keep), now));
    };
    Value v = average(alpha, args[4], g);
    Value h = average(beta, args[5], s.mul(g, g));
    Value root = s.add(s.make<math::SqrtOp>(h), s.number(epsilon));
    // Averages that began with zeros are too small at first.
    auto missing = [&](double keep) {
      return s.sub(one, s.make<math::PowFOp>(s.number(keep), args[1]));
    };
    Value isFirst = s.lessOrEqual(args[1], s.number(0));
    Value corrected = s.div(s.mul(args[0], s.make<math::SqrtOp>(s.select(
                                               isFirst, one, missing(beta)))),
                            s.select(isFirst, one, missing(alpha)));
    Value x = s.sub(args[2], s.div(s.mul(corrected, v), root));
    return SmallVector<Value>{s.mul(s.number(1 - after), x), v, h};
  });
}

static LogicalResult buildMomentum(NodeBuilder &n) {
  double alpha = n.floatAttr("alpha", 0), beta = n.floatAttr("beta", 0);
  double norm = n.floatAttr("norm_coefficient", 0);
  StringRef mode = n.stringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; standard and nesterov are accepted";
  return buildUpdates(n, 3, [&](const Scalars &s, ValueRange args) {
    Value g = regularized(s, norm, args[2], args[3]);
    Value isFirst = s.lessOrEqual(args[1], s.number(0));
    Value share = s.select(isFirst, s.number(1), s.number(beta));
    Value v = s.add(s.mul(s.number(alpha), args[4]), s.mul(share, g));
    Value step = mode == "standard" ? v : s.add(g, s.mul(s.number(alpha), v));
    return SmallVector<Value>{s.sub(args[2], s.mul(args[0], step)), v};
  });
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> trainingOps() {
  static constexpr const char *kDomain = "ai.onnx.preview.training";
  static const OpEntry kOps[] = {
      {"Adagrad", 1, 1, 5, kVariadic, kVariadic, buildAdagrad, kDomain},
      {"Adam", 1, 1, 6, kVariadic, kVariadic, buildAdam, kDomain},
      {"Momentum", 1, 1, 5, kVariadic, kVariadic, buildMomentum, kDomain},
  };
  return kOps;
}
} // namespace memplan::onnx
