//===- ScanOps.cpp - Scan -------------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
class ScanBuilder {
public:
  explicit ScanBuilder(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  /// Along which dim a scanned tensor is cut, and from which end.
  struct Track {
    int64_t axis = 0;
    bool isReverse = false;
  };

  LogicalResult read();
  FailureOr<SmallVector<int64_t>> entries(StringRef name, size_t count);
  LogicalResult readTracks(StringRef prefix, SmallVectorImpl<Track> &tracks);
  LogicalResult readLength();
  LogicalResult buildBody(Region &region);
  LogicalResult checkStates();
  FailureOr<Value> makeOutput(unsigned i);
  LogicalResult finishEmpty(ArrayRef<Value> inits);
  Value position(Value number, const Track &track);

  NodeBuilder &n;
  const Graph *body = nullptr;
  unsigned numStates = 0;
  SmallVector<Track> ins, outs;
  int64_t length = 0;
  SmallVector<ImportedTensor *> states, rows;
};
} // namespace

/// A list with an entry for each scanned tensor; zeros when left out.
FailureOr<SmallVector<int64_t>> ScanBuilder::entries(StringRef name,
                                                     size_t count) {
  auto given = n.intsAttr(name);
  if (!given)
    return SmallVector<int64_t>(count, 0);
  if (given->size() != count)
    return n.invalid() << "attribute " << quoted(name) << " has "
                       << given->size() << " entries; " << count
                       << " are accepted";
  return *given;
}

LogicalResult ScanBuilder::readTracks(StringRef prefix,
                                      SmallVectorImpl<Track> &tracks) {
  std::string axesName = (prefix + "_axes").str();
  std::string directionsName = (prefix + "_directions").str();
  auto axes = entries(axesName, tracks.size());
  auto directions = entries(directionsName, tracks.size());
  if (failed(axes) || failed(directions))
    return failure();
  for (auto [track, axis, direction] :
       llvm::zip_equal(tracks, *axes, *directions)) {
    if (direction != 0 && direction != 1)
      return n.invalid() << "attribute " << quoted(directionsName)
                         << " has entry " << direction
                         << "; 0 and 1 are accepted";
    track = {axis, direction == 1};
  }
  return success();
}

LogicalResult ScanBuilder::read() {
  body = n.graphAttr("body");
  if (!body)
    return failure();
  int64_t numScanned = n.intAttr("num_scan_inputs", 0);
  if (numScanned < 1 || numScanned > static_cast<int64_t>(n.numInputs()))
    return n.invalid() << "attribute 'num_scan_inputs' is " << numScanned
                       << "; 1 to " << n.numInputs()
                       << ", the number of inputs, is accepted";
  numStates = n.numInputs() - static_cast<unsigned>(numScanned);
  if (n.numOutputs() < numStates)
    return n.invalid() << "has " << n.numOutputs() << " outputs, but "
                       << numStates << " initial states";
  if (failed(checkCounts(n, "body", *body, n.numInputs(), n.numOutputs())))
    return failure();
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (!n.hasInput(i))
      return n.invalid() << "has no input " << i << ", which its body needs";
  ins.resize(numScanned);
  outs.resize(n.numOutputs() - numStates);
  if (failed(readTracks("scan_input", ins)) ||
      failed(readTracks("scan_output", outs)))
    return failure();
  return readLength();
}

LogicalResult ScanBuilder::readLength() {
  for (auto [i, track] : llvm::enumerate(ins)) {
    ImportedTensor &input = n.input(numStates + i);
    FailureOr<int64_t> axis = n.axis(track.axis, input.rank());
    if (failed(axis))
      return failure();
    track.axis = *axis;
    if (i == 0)
      length = input.dim(track.axis);
    else if (input.dim(track.axis) != length)
      return n.invalid() << n.inputText(numStates + i) << " has extent "
                         << input.dim(track.axis) << " along its axis "
                         << track.axis << ", but the first scanned input has "
                         << length;
  }
  return success();
}

/// Where the row of iteration `number` is.
Value ScanBuilder::position(Value number, const Track &track) {
  if (!track.isReverse)
    return number;
  Value last = arith::ConstantIndexOp::create(n.b, n.loc, length - 1);
  return arith::SubIOp::create(n.b, n.loc, last, number);
}

LogicalResult ScanBuilder::checkStates() {
  for (auto [i, state] : llvm::enumerate(states))
    if (state->dtype != n.input(i).dtype || state->type != n.input(i).type)
      return n.invalid() << "its body makes " << quoted(state->name) << " ("
                         << typeText(state->dtype, state->shape()) << ") of "
                         << n.inputText(i) << "; a state keeps its type";
  return success();
}

LogicalResult ScanBuilder::buildBody(Region &region) {
  SmallVector<Type> types = {n.b.getIndexType()};
  for (unsigned i = 0; i < numStates; ++i)
    types.push_back(n.input(i).type);
  SmallVector<const ValueInfo *> formals = givenInputs(*body);
  return buildBlock(n, region, types, [&](Block &block) {
    SmallVector<ImportedTensor *> inputs;
    for (unsigned i = 0; i < numStates; ++i)
      inputs.push_back(keepValue(n, block.getArgument(1 + i), n.input(i).dtype,
                                 formals[i]->name));
    for (auto [i, track] : llvm::enumerate(ins)) {
      Value row = extractRow(n, n.value(numStates + i),
                             position(block.getArgument(0), track), track.axis);
      inputs.push_back(keepValue(n, row, n.input(numStates + i).dtype,
                                 formals[numStates + i]->name));
    }
    auto made = n.importGraph("body", *body, inputs);
    if (failed(made))
      return failure();
    states.assign(made->begin(), made->begin() + numStates);
    rows.assign(made->begin() + numStates, made->end());
    return checkStates();
  });
}

/// The tensor that the rows of scan output `i` fill in.
FailureOr<Value> ScanBuilder::makeOutput(unsigned i) {
  FailureOr<int64_t> axis = n.axis(outs[i].axis, rows[i]->rank() + 1);
  if (failed(axis))
    return failure();
  outs[i].axis = *axis;
  SmallVector<int64_t> shape(rows[i]->shape());
  shape.insert(shape.begin() + *axis, length);
  if (!checkedProduct(shape))
    return n.invalid() << "its scan output of " << quoted(rows[i]->name)
                       << " has shape " << shapeText(shape)
                       << ", which overflows";
  return empty(n, shape, rows[i]->type.getElementType());
}

LogicalResult ScanBuilder::finishEmpty(ArrayRef<Value> inits) {
  for (unsigned i = 0; i < numStates; ++i)
    if (failed(n.aliasResult(i, n.input(i))))
      return failure();
  for (auto [i, row] : llvm::enumerate(rows)) {
    auto type = cast<RankedTensorType>(inits[numStates + i].getType());
    auto none =
        DenseElementsAttr::get(type, n.b.getZeroAttr(type.getElementType()));
    if (failed(n.constantResult(numStates + i, none, row->dtype)))
      return failure();
  }
  return success();
}

LogicalResult ScanBuilder::build() {
  if (failed(read()))
    return failure();
  Region region;
  if (failed(buildBody(region)))
    return failure();
  SmallVector<Value> inits;
  for (unsigned i = 0; i < numStates; ++i)
    inits.push_back(n.value(i));
  for (unsigned i = 0; i < outs.size(); ++i) {
    FailureOr<Value> output = makeOutput(i);
    if (failed(output))
      return failure();
    inits.push_back(*output);
  }
  Block &block = region.front();
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(&block);
    SmallVector<Value> yielded;
    for (ImportedTensor *state : states)
      yielded.push_back(n.value(*state));
    for (auto [row, track, init] :
         llvm::zip(rows, outs, ArrayRef(inits).drop_front(numStates)))
      yielded.push_back(
          insertRow(n, n.value(*row), block.addArgument(init.getType(), n.loc),
                    position(block.getArgument(0), track), track.axis));
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  // No row is read; what the body would make only tells shapes.
  if (length == 0)
    return finishEmpty(inits);
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value end = arith::ConstantIndexOp::create(n.b, n.loc, length);
  auto loop = scf::ForOp::create(n.b, n.loc, zero, end, one, inits);
  loop.getRegion().takeBody(region);
  for (unsigned i = 0; i < n.numOutputs(); ++i) {
    DType dtype = i < numStates ? states[i]->dtype : rows[i - numStates]->dtype;
    if (failed(n.result(i, loop.getResult(i), dtype)))
      return failure();
  }
  return success();
}

static LogicalResult buildScan(NodeBuilder &n) {
  return ScanBuilder(n).build();
}

//===----------------------------------------------------------------------===//
// Opset 8
//===----------------------------------------------------------------------===//

namespace {
/// Scan of opset 8 has sequence lengths, and a batch dim in front: a loop over
/// samples around that over steps.
class BatchedScanBuilder {
public:
  explicit BatchedScanBuilder(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  LogicalResult read();
  FailureOr<SmallVector<Value>> buildSteps(Value sample,
                                           ArrayRef<Value> states);
  ImportedTensor &input(unsigned i) { return n.input(1 + i); }

  NodeBuilder &n;
  const Graph *body = nullptr;
  unsigned numInputs = 0, numStates = 0;
  SmallVector<int64_t> directions;
  int64_t samples = 0, steps = 0;
  SmallVector<ImportedTensor *> made;
};
} // namespace

LogicalResult BatchedScanBuilder::read() {
  body = n.graphAttr("body");
  if (!body)
    return failure();
  numInputs = n.numInputs() - 1;
  int64_t numScanned = n.intAttr("num_scan_inputs", 0);
  if (numScanned < 1 || numScanned > static_cast<int64_t>(numInputs))
    return n.invalid() << "attribute 'num_scan_inputs' is " << numScanned
                       << "; 1 to " << numInputs << " is accepted";
  numStates = numInputs - static_cast<unsigned>(numScanned);
  directions =
      n.intsAttr("directions").value_or(SmallVector<int64_t>(numScanned, 0));
  if (static_cast<int64_t>(directions.size()) != numScanned ||
      n.numOutputs() < numStates)
    return n.invalid() << "attribute 'directions', or the number of outputs, "
                          "does not fit "
                       << numScanned << " scanned inputs and " << numStates
                       << " states";
  if (failed(checkCounts(n, "body", *body, numInputs, n.numOutputs())))
    return failure();
  for (unsigned i = 0; i < numInputs; ++i) {
    bool isScanned = i >= numStates;
    if (!n.hasInput(1 + i) || input(i).rank() < (isScanned ? 2 : 1))
      return n.invalid() << "input " << 1 + i << " has no batch dim"
                         << (isScanned ? " and sequence" : "");
    if (i == 0)
      samples = input(i).dim(0);
    if (i == numStates)
      steps = input(i).dim(1);
    if (input(i).dim(0) != samples || (isScanned && input(i).dim(1) != steps))
      return n.invalid() << n.inputText(1 + i)
                         << " differs from the inputs before it in extent";
  }
  if (samples == 0 || steps == 0)
    return n.unsupported() << "scans nothing";
  if (!n.hasInput(0))
    return success();
  FailureOr<SmallVector<int64_t>> lengths = n.ints(0, "the list of lengths");
  if (failed(lengths))
    return failure();
  for (int64_t length : *lengths)
    if (length != steps)
      return n.unsupported() << "a sequence has length " << length
                             << "; that of all, " << steps << ", is accepted";
  return success();
}

/// The loop over one sample's steps; gives its states and rows.
FailureOr<SmallVector<Value>>
BatchedScanBuilder::buildSteps(Value sample, ArrayRef<Value> states) {
  SmallVector<const ValueInfo *> formals = givenInputs(*body);
  Value last = arith::ConstantIndexOp::create(n.b, n.loc, steps - 1);
  SmallVector<Value> tracks;
  for (unsigned i = numStates; i < numInputs; ++i)
    tracks.push_back(extractRow(n, n.value(input(i)), sample));
  Region region;
  SmallVector<Type> types = {n.b.getIndexType()};
  for (Value state : states)
    types.push_back(state.getType());
  LogicalResult done = buildBlock(n, region, types, [&](Block &block) {
    SmallVector<ImportedTensor *> inputs;
    for (unsigned i = 0; i < numStates; ++i)
      inputs.push_back(keepValue(n, block.getArgument(1 + i), input(i).dtype,
                                 formals[i]->name));
    for (auto [i, track] : llvm::enumerate(tracks)) {
      Value at = block.getArgument(0);
      if (directions[i] != 0)
        at = arith::SubIOp::create(n.b, n.loc, last, at);
      inputs.push_back(keepValue(n, extractRow(n, track, at),
                                 input(numStates + i).dtype,
                                 formals[numStates + i]->name));
    }
    auto outputs = n.importGraph("body", *body, inputs);
    if (failed(outputs))
      return failure();
    made = *outputs;
    for (unsigned i = 0; i < numStates; ++i)
      if (made[i]->dtype != input(i).dtype ||
          made[i]->type != states[i].getType())
        return LogicalResult(
            n.invalid() << "its body makes " << quoted(made[i]->name) << " ("
                        << typeText(*made[i]) << ") of " << n.inputText(1 + i)
                        << "; a state keeps its type");
    return success();
  });
  if (failed(done))
    return failure();
  SmallVector<Value> inits(states);
  Block &block = region.front();
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(&block);
    SmallVector<Value> yielded;
    for (auto [i, output] : llvm::enumerate(made)) {
      Value value = n.value(*output);
      if (i >= numStates) {
        SmallVector<int64_t> shape = {steps};
        llvm::append_range(shape, output->shape());
        auto type = RankedTensorType::get(shape, output->type.getElementType());
        value = insertRow(n, value, block.addArgument(type, n.loc),
                          block.getArgument(0));
      }
      yielded.push_back(value);
    }
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  for (unsigned i = numStates; i < made.size(); ++i) {
    auto type = cast<RankedTensorType>(block.getArgument(1 + i).getType());
    inits.push_back(empty(n, type.getShape(), type.getElementType()));
  }
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value end = arith::ConstantIndexOp::create(n.b, n.loc, steps);
  auto loop = scf::ForOp::create(n.b, n.loc, zero, end, one, inits);
  loop.getRegion().takeBody(region);
  return SmallVector<Value>(loop.getResults());
}

LogicalResult BatchedScanBuilder::build() {
  if (failed(read()))
    return failure();
  for (unsigned i = 0; i < numInputs; ++i)
    (void)n.value(input(i)); // made outside of the loops
  Region region;
  SmallVector<Value> results;
  LogicalResult done =
      buildBlock(n, region, n.b.getIndexType(), [&](Block &block) {
        SmallVector<Value> states;
        for (unsigned i = 0; i < numStates; ++i)
          states.push_back(
              extractRow(n, n.value(input(i)), block.getArgument(0)));
        auto rows = buildSteps(block.getArgument(0), states);
        if (failed(rows))
          return failure();
        results = *rows;
        return success();
      });
  if (failed(done))
    return failure();
  Block &block = region.front();
  SmallVector<Value> inits;
  for (Value result : results) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<int64_t> shape = {samples};
    llvm::append_range(shape, type.getShape());
    if (!checkedProduct(shape))
      return n.invalid() << "a scan output of shape " << shapeText(shape)
                         << " overflows";
    inits.push_back(empty(n, shape, type.getElementType()));
  }
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(&block);
    SmallVector<Value> yielded;
    for (auto [result, init] : llvm::zip(results, inits))
      yielded.push_back(insertRow(n, result,
                                  block.addArgument(init.getType(), n.loc),
                                  block.getArgument(0)));
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value end = arith::ConstantIndexOp::create(n.b, n.loc, samples);
  auto loop = scf::ForOp::create(n.b, n.loc, zero, end, one, inits);
  loop.getRegion().takeBody(region);
  for (auto [i, output] : llvm::enumerate(made))
    if (failed(n.result(i, loop.getResult(i), output->dtype)))
      return failure();
  return success();
}

static LogicalResult buildBatchedScan(NodeBuilder &n) {
  return BatchedScanBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> scanOps() {
  static const OpEntry kOps[] = {
      {"Scan", 8, 8, 0, kVariadic, kVariadic, buildBatchedScan},
      {"Scan", 9, kNewestOpset, 1, kVariadic, kVariadic, buildScan},
  };
  return kOps;
}
} // namespace memplan::onnx
