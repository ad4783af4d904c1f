//===- RecurrentActivation.cpp - Activations of RNN, GRU, LSTM ------------===//

#include "RecurrentActivation.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static Value affine(const Scalars &s, Value x, float alpha, float beta) {
  return s.add(s.mul(s.number(alpha), x), s.number(beta));
}

static Value relu(const Scalars &s, Value x, float, float) {
  return s.max(x, s.number(0));
}

static Value leakyRelu(const Scalars &s, Value x, float alpha, float) {
  return s.select(s.less(x, s.number(0)), s.mul(s.number(alpha), x), x);
}

static Value thresholdedRelu(const Scalars &s, Value x, float alpha, float) {
  return s.select(s.less(s.number(alpha), x), x, s.number(0));
}

static Value hyperbolicTangent(const Scalars &s, Value x, float, float) {
  return s.make<math::TanhOp>(x);
}

static Value scaledTanh(const Scalars &s, Value x, float alpha, float beta) {
  return s.mul(s.number(alpha), s.make<math::TanhOp>(s.mul(s.number(beta), x)));
}

static Value sigmoid(const Scalars &s, Value x, float, float) {
  Value one = s.number(1);
  return s.div(one, s.add(one, s.make<math::ExpOp>(s.negate(x))));
}

static Value hardSigmoid(const Scalars &s, Value x, float alpha, float beta) {
  return s.max(s.number(0), s.min(s.number(1), affine(s, x, alpha, beta)));
}

static Value elu(const Scalars &s, Value x, float alpha, float) {
  return s.select(s.less(x, s.number(0)),
                  s.mul(s.number(alpha), s.make<math::ExpM1Op>(x)), x);
}

static Value softsign(const Scalars &s, Value x, float, float) {
  return s.div(x, s.add(s.number(1), s.abs(x)));
}

/// log(1 + e^x), written so that e^x cannot overflow.
static Value softplus(const Scalars &s, Value x, float, float) {
  Value tail = s.make<math::Log1pOp>(s.make<math::ExpOp>(s.negate(s.abs(x))));
  return s.add(s.max(x, s.number(0)), tail);
}

namespace {
struct KnownActivation {
  const char *name;
  decltype(Activation::apply) apply;
  /// Defaults; nullopt for functions without that parameter.
  std::optional<float> alpha, beta;
};
} // namespace

static constexpr KnownActivation kActivations[] = {
    {"Affine", affine, 1.0f, 0.0f},
    {"Elu", elu, 1.0f, std::nullopt},
    {"HardSigmoid", hardSigmoid, 0.2f, 0.5f},
    {"LeakyRelu", leakyRelu, 0.01f, std::nullopt},
    {"Relu", relu, std::nullopt, std::nullopt},
    {"ScaledTanh", scaledTanh, 1.0f, 1.0f},
    {"Sigmoid", sigmoid, std::nullopt, std::nullopt},
    {"Softplus", softplus, std::nullopt, std::nullopt},
    {"Softsign", softsign, std::nullopt, std::nullopt},
    {"Tanh", hyperbolicTangent, std::nullopt, std::nullopt},
    {"ThresholdedRelu", thresholdedRelu, 1.0f, std::nullopt},
};

/// Takes the next entry of `values` for a function that has the parameter.
static float takeParameter(std::optional<float> otherwise,
                           ArrayRef<float> &values) {
  if (!otherwise || values.empty())
    return otherwise.value_or(0);
  float value = values.front();
  values = values.drop_front();
  return value;
}

FailureOr<SmallVector<Activation>>
memplan::onnx::readActivations(NodeBuilder &n, ArrayRef<StringRef> defaults,
                               int64_t numDirections) {
  SmallVector<StringRef> names;
  for (int64_t i = 0; i < numDirections; ++i)
    llvm::append_range(names, defaults);
  if (auto given = n.stringsAttr("activations")) {
    if (given->size() != names.size())
      return n.invalid() << "attribute 'activations' has " << given->size()
                         << " entries; " << names.size() << " are accepted";
    names = *given;
  }
  auto alphas = n.floatsAttr("activation_alpha").value_or(SmallVector<float>());
  auto betas = n.floatsAttr("activation_beta").value_or(SmallVector<float>());
  ArrayRef<float> alphasLeft(alphas), betasLeft(betas);
  SmallVector<Activation> activations;
  for (StringRef name : names) {
    const auto *known = llvm::find_if(kActivations, [&](const auto &entry) {
      return name.equals_insensitive(entry.name);
    });
    if (known == std::end(kActivations)) {
      auto diagnostic = n.invalid() << "attribute 'activations' names "
                                    << quoted(name) << "; accepted are ";
      llvm::interleaveComma(kActivations, diagnostic, [&](const auto &entry) {
        diagnostic << entry.name;
      });
      return failure();
    }
    Activation activation;
    activation.apply = known->apply;
    activation.alpha = takeParameter(known->alpha, alphasLeft);
    activation.beta = takeParameter(known->beta, betasLeft);
    activations.push_back(activation);
  }
  return activations;
}
