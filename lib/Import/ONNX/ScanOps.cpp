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

/// Opset 8 has a batch dim and sequence lengths; opset 9 dropped both.
static LogicalResult refuseScan8(NodeBuilder &n) {
  return n.unsupported() << "Scan of opset 8 is not supported; opsets 9 to "
                         << kNewestOpset << " are accepted";
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> scanOps() {
  static const OpEntry kOps[] = {
      {"Scan", 8, 8, 0, kVariadic, kVariadic, refuseScan8},
      {"Scan", 9, kNewestOpset, 1, kVariadic, kVariadic, buildScan},
  };
  return kOps;
}
} // namespace memplan::onnx
