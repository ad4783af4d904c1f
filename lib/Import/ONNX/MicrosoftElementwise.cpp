//===- MicrosoftElementwise.cpp - Activations of com.microsoft ------------===//

#include "BatchedProduct.h"
#include "OpTable.h"
#include "Products.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static constexpr const char *kMicrosoft = "com.microsoft";

static Value gelu(const Scalars &s, Value x) {
  Value inner = s.make<math::ErfOp>(s.mul(x, s.number(std::sqrt(0.5))));
  return s.mul(s.mul(s.number(0.5), x), s.add(s.number(1), inner));
}

static Value tanhGelu(const Scalars &s, Value x) {
  Value cube = s.mul(s.mul(x, x), x);
  Value sum = s.add(x, s.mul(s.number(0.044715), cube));
  Value inner =
      s.make<math::TanhOp>(s.mul(s.number(std::sqrt(2.0 / M_PI)), sum));
  return s.mul(s.mul(s.number(0.5), x), s.add(s.number(1), inner));
}

static Value sigmoid(const Scalars &s, Value x) {
  return s.div(s.number(1),
               s.add(s.number(1), s.make<math::ExpOp>(s.negate(x))));
}

/// fn of the sum of all inputs, which broadcast to the first.
static LogicalResult
buildOfSum(NodeBuilder &n,
           llvm::function_ref<Value(const Scalars &, Value)> fn) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)))
    return failure();
  SmallVector<ImportedTensor *> inputs;
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      continue;
    auto fits = broadcastShapes({x.shape(), n.input(i).shape()});
    if (failed(n.sameTypes({0, i})))
      return failure();
    if (!fits || ArrayRef<int64_t>(*fits) != x.shape())
      return n.invalid() << n.inputText(i) << " does not broadcast to "
                         << n.inputText(0u);
    inputs.push_back(&n.input(i));
  }
  return n.result(
      broadcastElementwise(n, inputs, x.type.getElementType(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, x.dtype);
                             Value sum = args[0];
                             for (Value arg : args.drop_front())
                               sum = s.add(sum, arg);
                             return fn(s, sum);
                           }),
      x.dtype);
}

static LogicalResult buildGelu(NodeBuilder &n) { return buildOfSum(n, gelu); }
static LogicalResult buildFastGelu(NodeBuilder &n) {
  return buildOfSum(n, tanhGelu);
}
static LogicalResult buildBiasAdd(NodeBuilder &n) {
  return buildOfSum(n, [](const Scalars &, Value x) { return x; });
}
static LogicalResult buildQuickGelu(NodeBuilder &n) {
  float alpha = n.floatAttr("alpha", 1.702f);
  return buildOfSum(n, [&](const Scalars &s, Value x) {
    return s.mul(x, sigmoid(s, s.mul(s.number(alpha), x)));
  });
}

/// The first half of x + bias, times the gelu of the second.
static LogicalResult buildBiasSplitGelu(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &bias = n.input(1);
  int64_t rank = x.rank(), width = rank ? x.dim(rank - 1) : 0;
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1})))
    return failure();
  if (rank == 0 || width % 2 != 0 || bias.shape() != ArrayRef<int64_t>(width))
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << ": an even last dim, and a bias of it, are accepted";
  SmallVector<int64_t> split(x.shape().drop_back()), shape = split;
  split.append({2, width / 2});
  shape.push_back(width / 2);
  // Each half is a view of which one index of the dim of halves is read.
  auto half = [&](Value tensor, ArrayRef<int64_t> outer, int64_t which,
                  bool isBias) {
    SmallVector<AffineExpr> exprs;
    if (!isBias)
      for (int64_t i = 0; i < rank - 1; ++i)
        exprs.push_back(n.b.getAffineDimExpr(i));
    exprs.push_back(n.b.getAffineConstantExpr(which));
    exprs.push_back(n.b.getAffineDimExpr(rank - 1));
    return std::make_pair(reshape(n, tensor, outer),
                          AffineMap::get(rank, 0, exprs, n.context()));
  };
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (int64_t which : {0, 1}) {
    for (bool isBias : {false, true}) {
      auto [tensor, map] = half(n.value(isBias ? 1 : 0),
                                isBias ? ArrayRef<int64_t>({2, width / 2})
                                       : ArrayRef<int64_t>(split),
                                which, isBias);
      inputs.push_back(tensor);
      maps.push_back(map);
    }
  }
  Value y = mapElements(n, inputs, maps, shape, x.type.getElementType(),
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          Scalars s(b, loc, x.dtype);
                          return s.mul(s.add(args[0], args[1]),
                                       gelu(s, s.add(args[2], args[3])));
                        });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// Products and convolutions with an activation
//===----------------------------------------------------------------------===//

/// Applies the function `name` to the node's only result.
static LogicalResult activate(NodeBuilder &n, StringRef name,
                              ArrayRef<float> given) {
  if (name.empty())
    return success();
  struct Known {
    const char *name;
    SmallVector<float, 2> defaults;
  };
  static const Known kKnown[] = {
      {"Relu", {}},           {"Tanh", {}},     {"Sigmoid", {}},
      {"LeakyRelu", {0.01f}}, {"Clip", {0, 0}}, {"HardSigmoid", {0.2f, 0.5f}},
  };
  const Known *known =
      llvm::find_if(kKnown, [&](const Known &k) { return name == k.name; });
  if (known == std::end(kKnown) || given.size() > known->defaults.size() ||
      (name == "Clip" && given.size() != 2))
    return n.unsupported() << "attribute 'activation' is " << quoted(name)
                           << " with " << given.size()
                           << " parameters; Relu, Tanh, Sigmoid, LeakyRelu "
                              "(alpha), Clip (min, max) and HardSigmoid "
                              "(alpha, beta) are accepted";
  SmallVector<float, 2> p(known->defaults);
  llvm::copy(given, p.begin());
  ImportedTensor &y = n.getResults()[0];
  Value tensor = y.value;
  y.value = mapElements(
      n, tensor, n.b.getMultiDimIdentityMap(y.rank()), y.shape(),
      y.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, y.dtype);
        Value x = args[0], zero = s.number(0);
        if (name == "Relu")
          return s.max(x, zero);
        if (name == "Tanh")
          return s.make<math::TanhOp>(x);
        if (name == "Sigmoid")
          return sigmoid(s, x);
        if (name == "LeakyRelu")
          return s.select(s.less(x, zero), s.mul(s.number(p[0]), x), x);
        if (name == "Clip")
          return s.min(s.max(x, s.number(p[0])), s.number(p[1]));
        Value line = s.add(s.mul(s.number(p[0]), x), s.number(p[1]));
        return s.min(s.max(line, zero), s.number(1));
      });
  return success();
}

static LogicalResult buildFusedMatMul(NodeBuilder &n) {
  ProductOptions options;
  options.transA = n.intAttr("transA", 0) != 0;
  options.transB = n.intAttr("transB", 0) != 0;
  options.transBatchA = n.intAttr("transBatchA", 0) != 0;
  options.transBatchB = n.intAttr("transBatchB", 0) != 0;
  options.alpha = n.floatAttr("alpha", 1);
  return buildProduct(n, options);
}

static LogicalResult buildFusedGemm(NodeBuilder &n) {
  if (failed(buildGemm(n, /*limitsBroadcast=*/false)))
    return failure();
  SmallVector<float> parameters;
  for (StringRef name :
       {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.hasAttr(name))
      parameters.push_back(n.floatAttr(name, 0));
  return activate(n, n.stringAttr("activation", ""), parameters);
}

/// The sum with input 3 comes before the activation.
static LogicalResult buildFusedConv(NodeBuilder &n) {
  if (failed(buildConv(n)))
    return failure();
  ImportedTensor &y = n.getResults()[0];
  if (n.hasInput(3)) {
    if (failed(n.sameTypes({0, 3})))
      return failure();
    if (n.input(3).shape() != y.shape())
      return n.invalid() << n.inputText(3) << " is added to a result of shape "
                         << shapeText(y.shape())
                         << "; the same shape is accepted";
    AffineMap identity = n.b.getMultiDimIdentityMap(y.rank());
    Value sum = y.value;
    y.value =
        mapElements(n, {sum, n.value(3)}, {identity, identity}, y.shape(),
                    y.type.getElementType(),
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      return Scalars(b, loc, y.dtype).add(args[0], args[1]);
                    });
  }
  return activate(
      n, n.stringAttr("activation", ""),
      n.floatsAttr("activation_params").value_or(SmallVector<float>()));
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> microsoftElementwise() {
  static const OpEntry kOps[] = {
      {"BiasAdd", 1, kNewestOpset, 3, 3, 1, buildBiasAdd, kMicrosoft},
      {"BiasGelu", 1, kNewestOpset, 2, 2, 1, buildGelu, kMicrosoft},
      {"BiasSplitGelu", 1, kNewestOpset, 2, 2, 1, buildBiasSplitGelu,
       kMicrosoft},
      {"FastGelu", 1, kNewestOpset, 1, 2, 1, buildFastGelu, kMicrosoft},
      {"FusedConv", 1, kNewestOpset, 2, 4, 1, buildFusedConv, kMicrosoft},
      {"FusedGemm", 1, kNewestOpset, 2, 3, 1, buildFusedGemm, kMicrosoft},
      {"FusedMatMul", 1, kNewestOpset, 2, 2, 1, buildFusedMatMul, kMicrosoft},
      {"Gelu", 1, kNewestOpset, 1, 1, 1, buildGelu, kMicrosoft},
      {"TransposeMatMul", 1, kNewestOpset, 2, 2, 1, buildFusedMatMul,
       kMicrosoft},
      {"QuickGelu", 1, kNewestOpset, 1, 1, 1, buildQuickGelu, kMicrosoft},
  };
  return kOps;
}
} // namespace memplan::onnx
