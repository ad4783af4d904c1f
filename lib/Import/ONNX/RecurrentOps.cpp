//===- RecurrentOps.cpp - RNN, GRU, LSTM ----------------------------------===//
//
// The products of all steps' inputs are one product before the loop. A step is
// one product with the state (a GRU that resets before its product needs two)
// and one kernel for all gates, which overwrites the state and writes the row
// of Y, so that nothing is copied from step to step.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "RecurrentActivation.h"
#include "RecurrentKernel.h"
#include "RecurrentProduct.h"
#include "TensorOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// What tells the three operators apart.
struct Kind {
  int64_t numGates;
  SmallVector<StringRef> activations; // of one direction
  bool hasCell;                       // initial_c, P and Y_c
  bool isQuantized = false;           // W and R, which are not transposed then
};

/// One direction at one step.
struct Step {
  Value time, h, c, y; // c, y: null if there is none
};

class RecurrentBuilder {
public:
  RecurrentBuilder(NodeBuilder &n, Kind kind) : n(n), kind(std::move(kind)) {}
  LogicalResult build();

private:
  LogicalResult readAttributes();
  LogicalResult readShapes();
  LogicalResult readLengths();
  LogicalResult checkShape(unsigned i, StringRef what, ArrayRef<int64_t> shape);

  void readDirection(int64_t direction);
  Value initialState(unsigned input, int64_t direction);
  void runDirection(int64_t direction);
  void runStep(Step &step);
  void runRNN(Step &step);
  void runLSTM(Step &step);
  void runGRU(Step &step);
  void finishStep(
      StepKernel &kernel, Step &step,
      function_ref<SmallVector<Value>(const Scalars &, ValueRange, ValueRange)>
          states);
  LogicalResult setStates(unsigned output, ArrayRef<Value> states);

  Value product(Value lhs, const GateWeights &weights, Value bias) {
    return multiplyGates(n, lhs, weights, bias, dtype);
  }
  Value slice(Value tensor, int64_t dim, int64_t offset, int64_t size);
  /// Gate `gate` of the inputs' products at the time of a step.
  Value inputGate(const Step &step, int64_t gate);
  Value gateOf(Value product, int64_t gate) {
    return slice(product, 1, gate * hidden, hidden);
  }
  /// Row `direction` of the first dim, or null for an input that is not there.
  Value directionOf(unsigned input, int64_t direction);
  Value clipped(const Scalars &s, Value x);
  Value activate(const Scalars &s, unsigned which, Value x) {
    return activation(which)(s, clipped(s, x));
  }
  const Activation &activation(unsigned which) {
    return activations[direction * kind.activations.size() + which];
  }
  int64_t timeDim() const { return isBatchFirst ? 1 : 0; }
  SmallVector<int64_t> stateShape() const {
    if (isBatchFirst)
      return {batch, numDirections, hidden};
    return {numDirections, batch, hidden};
  }

  NodeBuilder &n;
  Kind kind;
  DType dtype;
  Type element;
  int64_t length = 0, batch = 0, inputSize = 0, hidden = 0, numDirections = 1;
  bool isReverse = false, isBatchFirst = false, resetsAfterProduct = false,
       couplesForget = false, isMasked = false;
  std::optional<float> clip;
  SmallVector<Activation> activations;

  // Of the direction that is being built.
  int64_t direction = 0;
  Value inputProducts, recurrenceBias, peepholes, lengths;
  GateWeights recurrence;
  // Results so far.
  Value y;
  SmallVector<Value> lastH, lastC;
};
} // namespace

//===----------------------------------------------------------------------===//
// What the node says
//===----------------------------------------------------------------------===//

LogicalResult RecurrentBuilder::readAttributes() {
  StringRef word = n.stringAttr("direction", "forward");
  if (word != "forward" && word != "reverse" && word != "bidirectional")
    return n.invalid() << "attribute 'direction' is " << quoted(word)
                       << "; forward, reverse and bidirectional are accepted";
  isReverse = word == "reverse";
  numDirections = word == "bidirectional" ? 2 : 1;
  if (n.opset < 7)
    n.ignoreAttr("output_sequence"); // says that Y is wanted, as a name does
  if (n.opset >= 14) {
    int64_t layout = n.intAttr("layout", 0);
    if (layout != 0 && layout != 1)
      return n.invalid() << "attribute 'layout' is " << layout
                         << "; 0 and 1 are accepted";
    isBatchFirst = layout == 1;
  }
  if (n.hasAttr("clip")) {
    clip = n.floatAttr("clip", 0);
    if (!(*clip > 0))
      return n.invalid() << "attribute 'clip' is not positive";
  }
  auto read = readActivations(n, kind.activations, numDirections);
  if (failed(read))
    return failure();
  activations = *read;
  if (kind.hasCell)
    couplesForget = n.intAttr("input_forget", 0) != 0;
  else if (kind.numGates == 3)
    resetsAfterProduct = n.intAttr("linear_before_reset", 0) != 0;
  return success();
}

LogicalResult RecurrentBuilder::checkShape(unsigned i, StringRef what,
                                           ArrayRef<int64_t> shape) {
  if (!n.hasInput(i) || n.input(i).shape() == shape)
    return success();
  return n.invalid() << what << " is " << n.inputText(i) << "; the shape "
                     << shapeText(shape) << " is accepted";
}

LogicalResult RecurrentBuilder::readShapes() {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 3, 5, 6, 7})) ||
      (!kind.isQuantized && failed(n.sameTypes({0, 1, 2}))))
    return failure();
  for (unsigned i : {0, 1, 2})
    if (n.input(i).rank() != 3)
      return n.invalid() << n.inputText(i) << "; rank 3 is accepted";
  ImportedTensor &x = n.input(0);
  dtype = x.dtype;
  element = x.type.getElementType();
  length = x.dim(timeDim());
  batch = x.dim(1 - timeDim());
  inputSize = x.dim(2);
  hidden = n.intAttr("hidden_size", n.input(2).dim(kind.isQuantized ? 1 : 2));
  if (hidden < 1 || hidden > (int64_t(1) << 32))
    return n.invalid() << "hidden_size is " << hidden
                       << "; 1 to 2^32 is accepted";
  int64_t rows = kind.numGates * hidden;
  SmallVector<int64_t> state = stateShape(),
                       w = {numDirections, rows, inputSize},
                       r = {numDirections, rows, hidden};
  if (kind.isQuantized) {
    if (failed(checkQuantizedGates(n, 1, 8, numDirections, rows)) ||
        failed(checkQuantizedGates(n, 2, 10, numDirections, rows)))
      return failure();
    std::swap(w[1], w[2]);
    std::swap(r[1], r[2]);
  }
  return success(succeeded(checkShape(1, "W", w)) &&
                 succeeded(checkShape(2, "R", r)) &&
                 succeeded(checkShape(3, "B", {numDirections, 2 * rows})) &&
                 succeeded(checkShape(4, "sequence_lens", batch)) &&
                 succeeded(checkShape(5, "initial_h", state)) &&
                 succeeded(checkShape(6, "initial_c", state)) &&
                 succeeded(checkShape(7, "P", {numDirections, 3 * hidden})));
}

LogicalResult RecurrentBuilder::readLengths() {
  if (!n.hasInput(4))
    return success();
  if (!n.input(4).dtype.isSigned())
    return n.invalid() << "sequence_lens is " << n.inputText(4)
                       << "; int32 is accepted";
  isMasked = true;
  if (!n.input(4).isKnown())
    return success();
  FailureOr<SmallVector<int64_t>> known = n.ints(4, "sequence_lens");
  if (failed(known))
    return failure();
  for (int64_t entry : *known)
    if (entry < 0 || entry > length)
      return n.invalid() << "sequence_lens " << quoted(n.input(4).name)
                         << " has entry " << entry << "; 0 to " << length
                         << ", the length of the input, is accepted";
  isMasked = llvm::any_of(*known, [&](int64_t at) { return at < length; });
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value RecurrentBuilder::slice(Value tensor, int64_t dim, int64_t offset,
                              int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (size == type.getDimSize(dim))
    return tensor;
  SmallVector<OpFoldResult> offsets(type.getRank(), n.b.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(n.context(), type.getShape()),
      strides(type.getRank(), n.b.getIndexAttr(1));
  offsets[dim] = n.b.getIndexAttr(offset);
  sizes[dim] = n.b.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(n.b, n.loc, tensor, offsets, sizes,
                                        strides);
}

Value RecurrentBuilder::directionOf(unsigned input, int64_t direction) {
  if (!n.hasInput(input))
    return {};
  Value tensor = n.value(input);
  if (numDirections == 1)
    return reshape(n, tensor, n.input(input).shape().drop_front());
  return extractRow(n, tensor, n.b.getIndexAttr(direction));
}

Value RecurrentBuilder::inputGate(const Step &step, int64_t gate) {
  SmallVector<OpFoldResult> offsets(3, n.b.getIndexAttr(0)), sizes,
      strides(3, n.b.getIndexAttr(1));
  offsets[timeDim()] = step.time;
  offsets[2] = n.b.getIndexAttr(gate * hidden);
  SmallVector<int64_t> extents = {batch, batch, hidden};
  extents[timeDim()] = 1;
  sizes = getAsIndexOpFoldResult(n.context(), extents);
  return tensor::ExtractSliceOp::create(
      n.b, n.loc, RankedTensorType::get({batch, hidden}, element),
      inputProducts, offsets, sizes, strides);
}

Value RecurrentBuilder::clipped(const Scalars &s, Value x) {
  if (!clip)
    return x;
  return s.max(s.number(-*clip), s.min(s.number(*clip), x));
}

/// Zeros unless given.
Value RecurrentBuilder::initialState(unsigned input, int64_t direction) {
  if (!n.hasInput(input))
    return mapElements(n, {}, {}, {batch, hidden}, element,
                       [&](OpBuilder &b, Location loc, ValueRange) {
                         return Scalars(b, loc, dtype).number(0);
                       });
  if (numDirections == 1)
    return reshape(n, n.value(input), {batch, hidden});
  return extractRow(n, n.value(input), n.b.getIndexAttr(direction),
                    isBatchFirst ? 1 : 0);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Adds the outputs that all have: `states` makes the new h, and c if there is
/// one. Past the end of its sequence a sample keeps its state and its Y is 0.
void RecurrentBuilder::finishStep(
    StepKernel &kernel, Step &step,
    function_ref<SmallVector<Value>(const Scalars &, ValueRange, ValueRange)>
        states) {
  unsigned lengthAt = isMasked ? kernel.readPerBatch(lengths) : 0;
  kernel.write(step.h);
  if (step.c)
    kernel.write(step.c);
  if (step.y)
    kernel.write(step.y);
  ResultRange results = kernel.build(
      dtype, [&](const Scalars &s, ValueRange ins, ValueRange old) {
        SmallVector<Value> made = states(s, ins, old);
        Value row = made.front();
        if (isMasked) {
          Value end = ins[lengthAt];
          Value time =
              arith::IndexCastOp::create(s.b, s.loc, end.getType(), step.time);
          Value isInside =
              s.make<arith::CmpIOp>(arith::CmpIPredicate::slt, time, end);
          row = s.select(isInside, row, s.number(0));
          for (auto [now, before] : llvm::zip(made, old))
            now = s.select(isInside, now, before);
        }
        if (step.y)
          made.push_back(row);
        return made;
      });
  step.h = results.front();
  if (step.c)
    step.c = results[1];
  if (step.y)
    step.y = results.back();
}

void RecurrentBuilder::runRNN(Step &step) {
  StepKernel kernel(n);
  unsigned x = kernel.read(inputGate(step, 0));
  unsigned h = kernel.read(product(step.h, recurrence, recurrenceBias));
  finishStep(kernel, step, [&](const Scalars &s, ValueRange in, ValueRange) {
    return SmallVector<Value>{activate(s, 0, s.add(in[x], in[h]))};
  });
}

void RecurrentBuilder::runLSTM(Step &step) {
  enum Gate { In, Out, Forget, Cell };
  StepKernel kernel(n);
  Value recurrent = product(step.h, recurrence, recurrenceBias);
  unsigned x[4], h[4], p[3];
  for (int gate = 0; gate < 4; ++gate) {
    if (gate == Forget && couplesForget)
      continue;
    x[gate] = kernel.read(inputGate(step, gate));
    h[gate] = kernel.read(gateOf(recurrent, gate));
    if (peepholes && gate != Cell)
      p[gate] =
          kernel.readPerHidden(slice(peepholes, 0, gate * hidden, hidden));
  }
  finishStep(
      kernel, step, [&](const Scalars &s, ValueRange in, ValueRange old) {
        auto preactivation = [&](Gate gate, Value cell) {
          Value sum = s.add(in[x[gate]], in[h[gate]]);
          if (peepholes && gate != Cell)
            sum = s.add(sum, s.mul(in[p[gate]], cell));
          return sum;
        };
        Value before = old[1];
        Value input = activate(s, 0, preactivation(In, before));
        Value forget = couplesForget
                           ? s.sub(s.number(1), input)
                           : activate(s, 0, preactivation(Forget, before));
        Value candidate = activate(s, 1, preactivation(Cell, before));
        Value cell = s.add(s.mul(forget, before), s.mul(input, candidate));
        Value output = activate(s, 0, preactivation(Out, cell));
        // The cell is not clipped: onnxruntime clips sums of products alone.
        Value shown = activation(2)(s, cell);
        return SmallVector<Value>{s.mul(output, shown), cell};
      });
}

/// The update gate is computed where it is used: that is cheaper than storing
/// it.
void RecurrentBuilder::runGRU(Step &step) {
  enum Gate { Update, Reset, Hidden };
  auto gate = [&](const Scalars &s, Value x, Value h) {
    return activate(s, 0, s.add(x, h));
  };
  Value products, hiddenProduct;
  if (resetsAfterProduct) {
    products = product(step.h, recurrence, recurrenceBias);
    hiddenProduct = gateOf(products, Hidden);
  } else {
    auto part = [&](Value tensor, int64_t first, int64_t count) {
      return tensor ? slice(tensor, 0, first * hidden, count * hidden) : tensor;
    };
    products = product(step.h, {part(recurrence.floats, 0, 2), {}},
                       part(recurrenceBias, 0, 2));
    StepKernel kernel(n);
    unsigned x = kernel.read(inputGate(step, Reset));
    unsigned r = kernel.read(gateOf(products, Reset));
    unsigned h = kernel.read(step.h);
    kernel.write(empty(n, {batch, hidden}, element));
    Value kept =
        kernel.build(dtype, [&](const Scalars &s, ValueRange in, ValueRange) {
          return SmallVector<Value>{s.mul(gate(s, in[x], in[r]), in[h])};
        })[0];
    hiddenProduct = product(kept, {part(recurrence.floats, 2, 1), {}},
                            part(recurrenceBias, 2, 1));
  }
  StepKernel kernel(n);
  unsigned xz = kernel.read(inputGate(step, Update));
  unsigned hz = kernel.read(gateOf(products, Update));
  unsigned xh = kernel.read(inputGate(step, Hidden));
  unsigned hh = kernel.read(hiddenProduct);
  unsigned xr = 0, hr = 0;
  if (resetsAfterProduct) {
    xr = kernel.read(inputGate(step, Reset));
    hr = kernel.read(gateOf(products, Reset));
  }
  finishStep(kernel, step,
             [&](const Scalars &s, ValueRange in, ValueRange old) {
               Value update = gate(s, in[xz], in[hz]);
               Value product = in[hh];
               if (resetsAfterProduct)
                 product = s.mul(gate(s, in[xr], in[hr]), product);
               Value candidate = activate(s, 1, s.add(in[xh], product));
               Value fresh = s.mul(s.sub(s.number(1), update), candidate);
               return SmallVector<Value>{s.add(fresh, s.mul(update, old[0]))};
             });
}

void RecurrentBuilder::runStep(Step &step) {
  if (kind.hasCell)
    runLSTM(step);
  else if (kind.numGates == 3)
    runGRU(step);
  else
    runRNN(step);
}

//===----------------------------------------------------------------------===//
// Directions
//===----------------------------------------------------------------------===//

/// The products of all steps, and views of the weights, before the loop.
void RecurrentBuilder::readDirection(int64_t at) {
  direction = at;
  int64_t rows = kind.numGates * hidden;
  Value bias = directionOf(3, at), inputBias;
  recurrenceBias = {};
  if (bias) {
    inputBias = slice(bias, 0, 0, rows);
    recurrenceBias = slice(bias, 0, rows, rows);
  }
  GateWeights weights;
  if (kind.isQuantized) {
    weights = readQuantizedGates(n, 1, 8, at);
    recurrence = readQuantizedGates(n, 2, 10, at);
  } else {
    weights = {directionOf(1, at), {}};
    recurrence = {directionOf(2, at), {}};
  }
  peepholes = directionOf(7, at);
  if (isMasked)
    lengths = n.value(4);
  Value x = reshape(n, n.value(0), {length * batch, inputSize});
  Value all = product(x, weights, inputBias);
  SmallVector<int64_t> shape = {length, batch, rows};
  if (isBatchFirst)
    std::swap(shape[0], shape[1]);
  inputProducts = reshape(n, all, shape);
}

/// The row of Y of a step: offsets, sizes and strides.
static tensor::ExtractSliceOp rowOfY(NodeBuilder &n, Value y, Value time,
                                     int64_t direction, bool isBatchFirst) {
  auto type = cast<RankedTensorType>(y.getType());
  int64_t timeDim = isBatchFirst ? 1 : 0, directionDim = timeDim + 1;
  SmallVector<OpFoldResult> offsets(4, n.b.getIndexAttr(0)),
      sizes = getAsIndexOpFoldResult(n.context(), type.getShape()),
      strides(4, n.b.getIndexAttr(1));
  offsets[timeDim] = time;
  offsets[directionDim] = n.b.getIndexAttr(direction);
  sizes[timeDim] = sizes[directionDim] = n.b.getIndexAttr(1);
  auto row = RankedTensorType::get(
      {type.getDimSize(isBatchFirst ? 0 : 2), type.getDimSize(3)},
      type.getElementType());
  return tensor::ExtractSliceOp::create(n.b, n.loc, row, y, offsets, sizes,
                                        strides);
}

void RecurrentBuilder::runDirection(int64_t at) {
  Value h = initialState(5, at);
  Value c = kind.hasCell ? initialState(6, at) : Value();
  if (length == 0) {
    lastH.push_back(h);
    lastC.push_back(c);
    return;
  }
  readDirection(at);
  bool goesBack = isReverse || at == 1;
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value end = arith::ConstantIndexOp::create(n.b, n.loc, length);
  Value last = arith::ConstantIndexOp::create(n.b, n.loc, length - 1);
  SmallVector<Value> inits = {h};
  if (c)
    inits.push_back(c);
  if (y)
    inits.push_back(y);
  auto loop = scf::ForOp::create(n.b, n.loc, zero, end, one, inits);
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToStart(loop.getBody());
    Step step;
    step.time = loop.getInductionVar();
    // Samples that are shorter begin where their sequence ends, with their
    // initial state, since padding leaves it alone.
    if (goesBack)
      step.time = arith::SubIOp::create(n.b, n.loc, last, step.time);
    step.h = loop.getRegionIterArg(0);
    if (c)
      step.c = loop.getRegionIterArg(1);
    tensor::ExtractSliceOp row;
    if (y) {
      row = rowOfY(n, loop.getRegionIterArgs().back(), step.time, at,
                   isBatchFirst);
      step.y = row;
    }
    runStep(step);
    SmallVector<Value> yielded = {step.h};
    if (c)
      yielded.push_back(step.c);
    if (y)
      yielded.push_back(tensor::InsertSliceOp::create(
          n.b, n.loc, step.y, row.getSource(), row.getMixedOffsets(),
          row.getMixedSizes(), row.getMixedStrides()));
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  lastH.push_back(loop.getResult(0));
  lastC.push_back(c ? loop.getResult(1) : Value());
  if (y)
    y = loop.getResults().back();
}

/// Y_h and Y_c, of the last states of all directions.
LogicalResult RecurrentBuilder::setStates(unsigned output,
                                          ArrayRef<Value> states) {
  if (!n.wantsOutput(output))
    return success();
  if (numDirections == 1)
    return n.result(output, reshape(n, states.front(), stateShape()), dtype);
  Value all = empty(n, stateShape(), element);
  for (auto [at, state] : llvm::enumerate(states))
    all = insertRow(n, state, all, n.b.getIndexAttr(at), isBatchFirst ? 1 : 0);
  return n.result(output, all, dtype);
}

LogicalResult RecurrentBuilder::build() {
  if (failed(readAttributes()) || failed(readShapes()) || failed(readLengths()))
    return failure();
  if (n.wantsOutput(0)) {
    SmallVector<int64_t> shape = {length, numDirections, batch, hidden};
    if (isBatchFirst)
      shape = {batch, length, numDirections, hidden};
    y = empty(n, shape, element);
  }
  for (int64_t at = 0; at < numDirections; ++at)
    runDirection(at);
  if (y && failed(n.result(0, y, dtype)))
    return failure();
  if (failed(setStates(1, lastH)))
    return failure();
  return kind.hasCell ? setStates(2, lastC) : success();
}

static LogicalResult buildRNN(NodeBuilder &n) {
  return RecurrentBuilder(n, {1, {"Tanh"}, false}).build();
}

static LogicalResult buildGRU(NodeBuilder &n) {
  return RecurrentBuilder(n, {3, {"Sigmoid", "Tanh"}, false}).build();
}

static LogicalResult buildLSTM(NodeBuilder &n) {
  return RecurrentBuilder(n, {4, {"Sigmoid", "Tanh", "Tanh"}, true}).build();
}

/// The LSTM that ONNX Runtime's dynamic quantization makes.
static LogicalResult buildQuantizedLSTM(NodeBuilder &n) {
  if (n.input(0).dtype != DType::f32())
    return n.unsupported() << n.inputText(0u) << "; float32 is accepted";
  return RecurrentBuilder(n, {4, {"Sigmoid", "Tanh", "Tanh"}, true, true})
      .build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> recurrentOps() {
  static const OpEntry kOps[] = {
      {"DynamicQuantizeLSTM", 1, 1, 3, 12, 3, buildQuantizedLSTM,
       "com.microsoft"},
      {"GRU", 1, kNewestOpset, 3, 6, 2, buildGRU},
      {"LSTM", 1, kNewestOpset, 3, 8, 3, buildLSTM},
      {"RNN", 1, kNewestOpset, 3, 6, 2, buildRNN},
  };
  return kOps;
}
} // namespace memplan::onnx
