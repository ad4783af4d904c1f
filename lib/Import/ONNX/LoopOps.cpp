//===- LoopOps.cpp - Loop -------------------------------------------------===//
//
// A loop stays a loop (scf.for, or scf.while where a condition must be read)
// unless its body can only be built with the iteration number known. In which
// buffers its values are carried is memplan-control-flow-destinations'
// business.
//
//===----------------------------------------------------------------------===//

#include "Attempt.h"
#include "ControlFlow.h"
#include "OpTable.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Constants with more elements are not joined at import, and loops of more
/// iterations not run.
static constexpr int64_t kMostElementsJoined = 1 << 10;
static constexpr int64_t kMostTripsEvaluated = 1 << 10;

namespace {
/// The body, built once for all iterations, in a region without an op.
struct RolledBody {
  Region region; // one block with arguments (index, states...)
  ImportedTensor *condition = nullptr;
  SmallVector<ImportedTensor *> states, scans;

  Block &block() { return region.front(); }
};

/// The iterations one after another, in a block without a place.
struct UnrolledBody {
  Region region; // one block without arguments
  int64_t numTrips = 0;
  SmallVector<ImportedTensor *> states, scans;

  bool isKnown() const {
    auto known = [](ImportedTensor *tensor) { return tensor->isKnown(); };
    return llvm::all_of(states, known) && llvm::all_of(scans, known);
  }
};

class LoopBuilder {
public:
  explicit LoopBuilder(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  unsigned numStates() const {
    return n.numInputs() > 2 ? n.numInputs() - 2 : 0;
  }
  unsigned numScans() const { return n.numOutputs() - numStates(); }
  LogicalResult read();
  LogicalResult buildNoTrip();
  bool canBeEvaluated();
  bool hasPlainStates();

  LogicalResult buildRolledBody(RolledBody &rolled);
  LogicalResult checkElementTypes(ArrayRef<ImportedTensor *> states);
  LogicalResult checkShapes(ArrayRef<ImportedTensor *> states);
  std::string boundsOrigin();
  LogicalResult checkScans();
  LogicalResult finishRolled(RolledBody &rolled);
  LogicalResult finishFor(RolledBody &rolled);
  LogicalResult finishWhile(RolledBody &rolled);
  SmallVector<Value> newStates(RolledBody &rolled);
  SmallVector<Value> initialStates();
  Value readTrips();

  LogicalResult tryUnrolled(UnrolledBody &unrolled);
  LogicalResult buildUnrolledBody(UnrolledBody &unrolled);
  FailureOr<ImportedTensor *> join(unsigned i, ArrayRef<ImportedTensor *> rows);
  LogicalResult finishUnrolled(UnrolledBody &unrolled);

  SmallVector<int64_t> scalarShape(unsigned input);
  ImportedTensor *trueTensor();

  NodeBuilder &n;
  const Graph *body = nullptr;
  SmallVector<const ValueInfo *> formals;
  /// Of the trip count: known, or given by a tensor, or not there at all.
  std::optional<int64_t> numTrips;
  bool hasTrips = false;
  /// The condition before the first iteration, if known.
  std::optional<bool> start = true;
};
} // namespace

LogicalResult LoopBuilder::read() {
  body = n.graphAttr("body");
  if (!body)
    return failure();
  if (n.numOutputs() < numStates())
    return n.invalid() << "has " << n.numOutputs() << " outputs, but "
                       << numStates() << " initial values";
  if (failed(
          checkCounts(n, "body", *body, 2 + numStates(), 1 + n.numOutputs())))
    return failure();
  for (unsigned i = 0; i < numStates(); ++i)
    if (!n.hasInput(2 + i))
      return n.invalid() << "has no input " << 2 + i
                         << ", an initial value that its body needs";
  formals = givenInputs(*body);
  for (unsigned i = 0; i < 2; ++i)
    if (n.hasInput(i) && failed(n.checkStatic(n.input(i))))
      return failure();
  if (n.hasInput(1)) {
    if (failed(checkCondition(n, n.input(1), "the condition")))
      return failure();
    start = knownBool(n.input(1));
  }
  hasTrips = n.hasInput(0);
  if (!hasTrips)
    return success();
  if (n.input(0).dtype != DType::i64() || n.input(0).numElements() != 1)
    return n.invalid() << "the trip count is " << n.inputText(0u)
                       << "; one int64 is accepted";
  if (auto known = dyn_cast_or_null<IntegerAttr>(knownElement(n.input(0)))) {
    numTrips = known.getInt();
    if (*numTrips < 0)
      return n.invalid() << "the trip count " << quoted(n.input(0).name)
                         << " is " << *numTrips << "; 0 and more are accepted";
  }
  return success();
}

/// The body's first two inputs are scalars; some models declare them with one
/// dim of extent 1.
SmallVector<int64_t> LoopBuilder::scalarShape(unsigned input) {
  const auto &shape = formals[input]->shape;
  return SmallVector<int64_t>(shape && shape->size() == 1 ? 1 : 0, 1);
}

/// While the body runs its condition is true.
ImportedTensor *LoopBuilder::trueTensor() {
  auto type = RankedTensorType::get(scalarShape(1), n.b.getI1Type());
  return keepConstant(n, DenseElementsAttr::get(type, true), DType::boolean(),
                      formals[1]->name);
}

//===----------------------------------------------------------------------===//
// As a loop
//===----------------------------------------------------------------------===//

LogicalResult
LoopBuilder::checkElementTypes(ArrayRef<ImportedTensor *> states) {
  for (auto [i, state] : llvm::enumerate(states))
    if (!state->isList() && !n.input(2 + i).isList() &&
        state->dtype != n.input(2 + i).dtype)
      return n.invalid() << "its body makes " << quoted(state->name) << " ("
                         << typeText(state->dtype, state->shape()) << ") of "
                         << n.inputText(2 + i)
                         << "; a carried value keeps its element type";
  return success();
}

LogicalResult LoopBuilder::checkShapes(ArrayRef<ImportedTensor *> states) {
  for (auto [i, state] : llvm::enumerate(states))
    if (state->type != n.input(2 + i).type)
      return n.unsupported()
             << "its body makes " << quoted(state->name) << " ("
             << typeText(*state) << ") of " << n.inputText(2 + i)
             << "; a shape that changes is accepted where the number of "
                "iterations is known at import";
  return success();
}

/// What the trip count and the first condition are computed from.
std::string LoopBuilder::boundsOrigin() {
  SmallVector<ImportedTensor *> bounds;
  for (unsigned i : {0u, 1u})
    if (n.hasInput(i))
      bounds.push_back(&n.input(i));
  return n.originText(bounds);
}

/// Scan outputs have a row for each iteration.
LogicalResult LoopBuilder::checkScans() {
  for (unsigned i = 0; i < numScans(); ++i)
    if (n.wantsOutput(numStates() + i))
      return n.unsupported()
             << "the length of the scan output "
             << quoted(n.outputName(numStates() + i)) << " depends on "
             << boundsOrigin()
             << "; a trip count that is known when compiling, and a condition "
                "that stays true, are accepted (see --input-value)";
  return success();
}

LogicalResult LoopBuilder::buildRolledBody(RolledBody &rolled) {
  SmallVector<Type> types = {n.b.getIndexType()};
  for (unsigned i = 0; i < numStates(); ++i)
    types.push_back(n.input(2 + i).type);
  return buildBlock(n, rolled.region, types, [&](Block &block) {
    Value number = arith::IndexCastOp::create(n.b, n.loc, n.b.getI64Type(),
                                              block.getArgument(0));
    Value iteration =
        linalg::FillOp::create(n.b, n.loc, number,
                               empty(n, scalarShape(0), n.b.getI64Type()))
            .getResult(0);
    SmallVector<ImportedTensor *> inputs = {
        keepValue(n, iteration, DType::i64(), formals[0]->name), trueTensor()};
    for (unsigned i = 0; i < numStates(); ++i)
      inputs.push_back(keepValue(n, block.getArgument(1 + i),
                                 n.input(2 + i).dtype, formals[2 + i]->name));
    auto outputs = n.importGraph("body", *body, inputs);
    if (failed(outputs))
      return failure();
    ArrayRef<ImportedTensor *> rest(*outputs);
    rolled.condition = rest.front();
    rest = rest.drop_front();
    rolled.states.assign(rest.begin(), rest.begin() + numStates());
    rest = rest.drop_front(numStates());
    rolled.scans.assign(rest.begin(), rest.end());
    if (failed(checkCondition(n, *rolled.condition, "the body's condition")))
      return failure();
    return success(succeeded(checkElementTypes(rolled.states)) &&
                   succeeded(checkShapes(rolled.states)));
  });
}

SmallVector<Value> LoopBuilder::initialStates() {
  SmallVector<Value> values;
  for (unsigned i = 0; i < numStates(); ++i)
    values.push_back(n.value(2 + i));
  return values;
}

SmallVector<Value> LoopBuilder::newStates(RolledBody &rolled) {
  SmallVector<Value> values;
  for (ImportedTensor *state : rolled.states)
    values.push_back(n.value(*state));
  return values;
}

Value LoopBuilder::readTrips() {
  if (numTrips)
    return arith::ConstantIndexOp::create(n.b, n.loc, *numTrips);
  return arith::IndexCastOp::create(n.b, n.loc, n.b.getIndexType(),
                                    readScalar(n, n.input(0)));
}

/// Scan outputs are filled in row by row; the trip count is known if there are
/// any.
LogicalResult LoopBuilder::finishFor(RolledBody &rolled) {
  SmallVector<Value> inits = initialStates();
  for (ImportedTensor *scan : rolled.scans) {
    SmallVector<int64_t> shape = {*numTrips};
    llvm::append_range(shape, scan->shape());
    if (!checkedProduct(shape))
      return n.invalid() << "its scan output of " << quoted(scan->name)
                         << " has shape " << shapeText(shape)
                         << ", which overflows";
    inits.push_back(empty(n, shape, scan->type.getElementType()));
    rolled.block().addArgument(inits.back().getType(), n.loc);
  }
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value trips = readTrips();
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(&rolled.block());
    SmallVector<Value> yielded = newStates(rolled);
    for (auto [i, scan] : llvm::enumerate(rolled.scans))
      yielded.push_back(insertRow(
          n, n.value(*scan), rolled.block().getArgument(1 + numStates() + i),
          rolled.block().getArgument(0)));
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  auto loop = scf::ForOp::create(n.b, n.loc, zero, trips, one, inits);
  loop.getRegion().takeBody(rolled.region);
  for (unsigned i = 0; i < n.numOutputs(); ++i) {
    DType dtype = i < numStates() ? rolled.states[i]->dtype
                                  : rolled.scans[i - numStates()]->dtype;
    if (failed(n.result(i, loop.getResult(i), dtype)))
      return failure();
  }
  return success();
}

/// while (condition && i < trips); the condition is read by the host.
LogicalResult LoopBuilder::finishWhile(RolledBody &rolled) {
  if (failed(checkScans()))
    return failure();
  Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
  Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
  Value trips = hasTrips ? readTrips() : Value();
  Value condition =
      start ? Value(arith::ConstantIntOp::create(n.b, n.loc, *start, 1))
            : readScalar(n, n.input(1));
  // What each iteration takes and hands on has the same order, so that a state
  // has one buffer: the number, the states, the condition.
  SmallVector<Value> inits = {zero};
  llvm::append_range(inits, initialStates());
  inits.push_back(condition);
  {
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToEnd(&rolled.block());
    Value next =
        arith::AddIOp::create(n.b, n.loc, rolled.block().getArgument(0), one);
    SmallVector<Value> yielded = {next};
    Value goesOn = readScalar(n, *rolled.condition);
    llvm::append_range(yielded, newStates(rolled));
    yielded.push_back(goesOn);
    scf::YieldOp::create(n.b, n.loc, yielded);
  }
  rolled.block().addArgument(n.b.getI1Type(), n.loc);
  auto types = llvm::to_vector(ValueRange(inits).getTypes());
  auto loop = scf::WhileOp::create(n.b, n.loc, types, inits);
  (void)buildBlock(n, loop.getBefore(), types, [&](Block &block) {
    Value goesOn = block.getArguments().back();
    if (trips) {
      Value isLess = arith::CmpIOp::create(
          n.b, n.loc, arith::CmpIPredicate::slt, block.getArgument(0), trips);
      goesOn = arith::AndIOp::create(n.b, n.loc, goesOn, isLess);
    }
    scf::ConditionOp::create(n.b, n.loc, goesOn, block.getArguments());
    return success();
  });
  loop.getAfter().takeBody(rolled.region);
  for (unsigned i = 0; i < numStates(); ++i)
    if (failed(n.result(i, loop.getResult(1 + i), rolled.states[i]->dtype)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Iteration by iteration
//===----------------------------------------------------------------------===//

LogicalResult LoopBuilder::buildUnrolledBody(UnrolledBody &unrolled) {
  for (unsigned i = 0; i < numStates(); ++i)
    unrolled.states.push_back(&n.input(2 + i));
  SmallVector<SmallVector<ImportedTensor *>> scans(numScans());
  auto iterate = [&](int64_t number) -> FailureOr<bool> {
    auto type = RankedTensorType::get(scalarShape(0), n.b.getI64Type());
    SmallVector<ImportedTensor *> inputs = {
        keepConstant(n, DenseElementsAttr::get(type, number), DType::i64(),
                     formals[0]->name),
        trueTensor()};
    llvm::append_range(inputs, unrolled.states);
    n.budget().countNode(); // of a body without nodes too
    auto outputs = n.importAnyGraph("body", *body, inputs,
                                    " (iteration " + Twine(number) + ")");
    if (failed(outputs))
      return failure();
    ImportedTensor &condition = *outputs->front();
    if (failed(n.checkStatic(condition)) ||
        failed(checkCondition(n, condition, "the body's condition")))
      return failure();
    ArrayRef<ImportedTensor *> states =
        ArrayRef(*outputs).slice(1, numStates());
    if (failed(checkElementTypes(states)))
      return failure();
    unrolled.states.assign(states.begin(), states.end());
    for (unsigned i = 0; i < numScans(); ++i) {
      scans[i].push_back((*outputs)[1 + numStates() + i]);
      if (failed(n.checkStatic(*scans[i].back())))
        return failure();
    }
    std::optional<bool> goesOn = knownBool(condition);
    if (!goesOn)
      return n.unsupported()
             << "the condition " << quoted(condition.name)
             << " after iteration " << number << " depends on "
             << n.originText(&condition)
             << "; one that is known when compiling is accepted here (see "
                "--input-value)";
    return *goesOn;
  };
  return buildBlock(n, unrolled.region, {}, [&](Block &) -> LogicalResult {
    while (!numTrips || unrolled.numTrips < *numTrips) {
      FailureOr<bool> goesOn = iterate(unrolled.numTrips);
      if (failed(goesOn))
        return failure();
      ++unrolled.numTrips;
      if (!*goesOn)
        break;
    }
    for (auto [i, rows] : llvm::enumerate(scans)) {
      FailureOr<ImportedTensor *> scan = join(i, rows);
      if (failed(scan))
        return failure();
      unrolled.scans.push_back(*scan);
    }
    return success();
  });
}

/// Scan output `i` of its rows: known if they all are.
FailureOr<ImportedTensor *> LoopBuilder::join(unsigned i,
                                              ArrayRef<ImportedTensor *> rows) {
  StringRef name = n.outputName(numStates() + i);
  ImportedTensor &first = *rows.front();
  for (auto [number, row] : llvm::enumerate(rows))
    if (row->type != first.type || row->dtype != first.dtype)
      return n.unsupported()
             << "rows of the scan output " << quoted(name)
             << " differ: " << typeText(first.dtype, first.shape())
             << " in iteration 0, " << typeText(row->dtype, row->shape())
             << " in iteration " << number << "; rows of one type are accepted";
  SmallVector<int64_t> shape = {static_cast<int64_t>(rows.size())};
  llvm::append_range(shape, first.shape());
  Type element = first.type.getElementType();
  if (!checkedProduct(shape))
    return n.invalid() << "the scan output " << quoted(name) << " of shape "
                       << shapeText(shape) << " overflows";
  if (llvm::all_of(rows, [](ImportedTensor *row) {
        return row->constant && row->numElements() <= kMostElementsJoined;
      })) {
    SmallVector<Attribute> elements;
    for (ImportedTensor *row : rows)
      llvm::append_range(elements, row->constant.getValues<Attribute>());
    return keepConstant(
        n,
        DenseElementsAttr::get(RankedTensorType::get(shape, element), elements),
        first.dtype, name);
  }
  Value joined = empty(n, shape, element);
  for (auto [number, row] : llvm::enumerate(rows))
    joined = insertRow(n, n.value(*row), joined, n.b.getIndexAttr(number));
  return keepValue(n, joined, first.dtype, name);
}

LogicalResult LoopBuilder::finishUnrolled(UnrolledBody &unrolled) {
  spliceBlock(n, unrolled.region.front());
  SmallVector<ImportedTensor *> outputs(unrolled.states);
  llvm::append_range(outputs, unrolled.scans);
  for (auto [i, output] : llvm::enumerate(outputs))
    if (failed(n.aliasResult(i, *output)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Which of the two
//===----------------------------------------------------------------------===//

LogicalResult LoopBuilder::finishRolled(RolledBody &rolled) {
  if (start != true || knownBool(*rolled.condition) != true)
    return finishWhile(rolled);
  if (!hasTrips)
    return n.invalid() << "has no trip count, and its condition stays true: it "
                          "never ends";
  if (!numTrips && failed(checkScans()))
    return failure();
  return finishFor(rolled);
}

/// The initial values come back; scan outputs have no rows, but the shape and
/// type of what the body would make.
LogicalResult LoopBuilder::buildNoTrip() {
  for (unsigned i = 0; i < numStates(); ++i)
    if (failed(n.aliasResult(i, n.input(2 + i))))
      return failure();
  if (numScans() == 0)
    return success();
  if (!hasPlainStates())
    return n.unsupported() << "makes no iteration, and what its scan outputs "
                              "would be depends on a sequence";
  RolledBody rolled;
  if (failed(buildRolledBody(rolled)))
    return failure();
  for (auto [i, scan] : llvm::enumerate(rolled.scans)) {
    SmallVector<int64_t> shape = {0};
    llvm::append_range(shape, scan->shape());
    auto type = RankedTensorType::get(shape, scan->type.getElementType());
    if (failed(
            n.constantResult(numStates() + i,
                             DenseElementsAttr::get(
                                 type, n.b.getZeroAttr(type.getElementType())),
                             scan->dtype)))
      return failure();
  }
  return success();
}

LogicalResult LoopBuilder::tryUnrolled(UnrolledBody &unrolled) {
  ++n.budget().unrolling;
  LogicalResult done = buildUnrolledBody(unrolled);
  --n.budget().unrolling;
  return done;
}

/// Whether the loop might compute shapes: all that goes in is small and known.
bool LoopBuilder::canBeEvaluated() {
  for (unsigned i = 0; i < numStates(); ++i)
    if (!n.input(2 + i).isKnown() ||
        n.input(2 + i).numElements() > kMostElementsJoined)
      return false;
  return numTrips && *numTrips <= kMostTripsEvaluated;
}

/// Whether all states are tensors of one shape, which a loop can carry.
bool LoopBuilder::hasPlainStates() {
  for (unsigned i = 0; i < numStates(); ++i)
    if (n.input(2 + i).isList() || !n.input(2 + i).runDims.empty())
      return false;
  return true;
}

LogicalResult LoopBuilder::build() {
  if (failed(read()))
    return failure();
  if (start == false || numTrips == 0)
    return buildNoTrip();

  SubgraphImporter::Budget &budget = n.budget();
  int64_t numBuilt = budget.numBuilt;
  RolledBody rolled;
  Attempt asLoop(n.getReporter());
  bool isRolled = false;
  if (hasPlainStates())
    isRolled = succeeded(buildRolledBody(rolled));
  else
    n.unsupported() << "a state is a sequence, or has an extent that only the "
                       "run tells; then a number of iterations that is known "
                       "at import is accepted";
  asLoop.stop();
  bool isCountable = start && (numTrips || !hasTrips);
  std::optional<bool> goesOn;
  if (isRolled)
    goesOn = knownBool(*rolled.condition);
  bool mustUnroll = !isRolled;
  if (mustUnroll && !isCountable)
    asLoop.note("the body could be built once for each iteration if the trip "
                "count or the condition, which depends on " +
                boundsOrigin() +
                ", were known when compiling (see --input-value)");
  if (!isCountable || budget.isSpent() ||
      (isRolled &&
       (budget.trialsLeft <= 0 || (goesOn == true && !canBeEvaluated()))))
    return isRolled ? finishRolled(rolled) : failure();

  // Where the loop could stay one, iterations are only built to learn their
  // number, or their results.
  if (mustUnroll)
    budget.left -= budget.numBuilt - numBuilt;
  int64_t left = budget.left;
  if (!mustUnroll)
    budget.left = std::min(left, budget.trialsLeft);
  int64_t allowed = budget.left;
  UnrolledBody unrolled;
  asLoop.forgetKind();
  Attempt inlined(n.getReporter());
  bool isUnrolled = succeeded(tryUnrolled(unrolled));
  inlined.stop();
  if (budget.isSpent())
    inlined.explain("it cannot stay a loop: ", asLoop);
  asLoop.clear();
  if (mustUnroll)
    return isUnrolled ? finishUnrolled(unrolled) : failure();
  budget.trialsLeft -= allowed - budget.left;
  budget.left = left;
  inlined.drop();
  if (isUnrolled && (unrolled.isKnown() || unrolled.numTrips == 1))
    return finishUnrolled(unrolled);
  if (!isUnrolled)
    return finishRolled(rolled);
  numTrips = unrolled.numTrips;
  return finishFor(rolled);
}

static LogicalResult buildLoop(NodeBuilder &n) {
  return LoopBuilder(n).build();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> loopOps() {
  static const OpEntry kOps[] = {
      {"Loop", 1, kNewestOpset, 0, kVariadic, kVariadic, buildLoop, "", true},
  };
  return kOps;
}
} // namespace memplan::onnx
