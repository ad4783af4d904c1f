//===- StateSpaceOps.cpp - LinearAttention, CausalConvWithState -----------===//
//
// Operators that carry a state from token to token, for decoding.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "OpTable.h"
#include "Scalars.h"
#include "Slices.h"
#include "TensorOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

//===----------------------------------------------------------------------===//
// LinearAttention
//===----------------------------------------------------------------------===//

namespace {
/// A step takes the state S (batch, heads, key size, value size) to
/// exp(decay) S + k v', where v' is the value, or beta (v - S' k) with the
/// decayed state S'; it reads scale * q' S.
class LinearAttention {
public:
  explicit LinearAttention(NodeBuilder &n) : n(n) {}
  LogicalResult build();

private:
  enum Input { Query, Key, Values, Past, Decay, Beta };

  LogicalResult readRule();
  LogicalResult readShapes();
  /// One step on `state`; gives the new one and the row of the output.
  std::pair<Value, Value> runStep(Value time, Value state);
  Value initialState();
  Value castTo(Value tensor, DType from, DType to);

  Value rowAt(unsigned input, ArrayRef<int64_t> shape, Value time) {
    SmallVector<int64_t> view = {batch, length};
    llvm::append_range(view, shape);
    return extractRow(n, reshape(n, n.value(input), view), time, /*axis=*/1);
  }
  AffineMap map(unsigned rank, ArrayRef<unsigned> dims) {
    SmallVector<AffineExpr> exprs;
    for (unsigned i : dims)
      exprs.push_back(n.b.getAffineDimExpr(i));
    return AffineMap::get(rank, 0, exprs, n.context());
  }

  NodeBuilder &n;
  DType dtype, wide;
  bool isGated = false, isDelta = false, hasDecayPerKey = false;
  int64_t batch = 0, length = 0, heads = 0, keyHeads = 0, keySize = 0,
          valueSize = 0, betaHeads = 0;
  double scale = 1;
};
} // namespace

LogicalResult LinearAttention::readRule() {
  StringRef rule = n.stringAttr("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" &&
      rule != "gated_delta")
    return n.invalid() << "attribute 'update_rule' is " << quoted(rule)
                       << "; linear, gated, delta and gated_delta are accepted";
  isGated = rule.starts_with("gated");
  isDelta = rule.ends_with("delta");
  if (n.hasInput(Decay) != isGated || n.hasInput(Beta) != isDelta)
    return n.invalid() << "attribute 'update_rule' is " << quoted(rule)
                       << ", which takes " << (isGated ? "a decay" : "no decay")
                       << " and " << (isDelta ? "a beta" : "no beta");
  return success();
}

LogicalResult LinearAttention::readShapes() {
  ImportedTensor &q = n.input(Query), &k = n.input(Key), &v = n.input(Values);
  heads = n.intAttr("q_num_heads", 0);
  keyHeads = n.intAttr("kv_num_heads", 0);
  n.ignoreAttr("chunk_size"); // how to compute it, not what
  if (keyHeads < 1 || heads < 1 || heads % keyHeads != 0)
    return n.invalid() << "attributes 'q_num_heads' = " << heads
                       << " and 'kv_num_heads' = " << keyHeads
                       << ": a positive multiple is accepted";
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 ||
      q.dim(2) % heads != 0 || k.dim(2) % keyHeads != 0 ||
      v.dim(2) % keyHeads != 0 || q.dim(2) / heads != k.dim(2) / keyHeads ||
      q.shape().take_front(2) != k.shape().take_front(2) ||
      q.shape().take_front(2) != v.shape().take_front(2))
    return n.invalid() << "queries, keys and values do not fit: "
                       << n.inputText(0u) << ", " << n.inputText(1) << " and "
                       << n.inputText(2);
  batch = q.dim(0);
  length = q.dim(1);
  keySize = q.dim(2) / heads;
  valueSize = v.dim(2) / keyHeads;
  if (batch == 0 || keySize == 0 || valueSize == 0)
    return n.invalid() << n.inputText(0u) << " or " << n.inputText(2)
                       << " has no elements";
  SmallVector<int64_t> stateShape = {batch, keyHeads, keySize, valueSize};
  if (n.hasInput(Past) &&
      n.input(Past).shape() != ArrayRef<int64_t>(stateShape))
    return n.invalid() << n.inputText(Past) << " is a past state; "
                       << shapeText(stateShape) << " is accepted";
  auto perHead = [&](unsigned i, int64_t otherSize) {
    ImportedTensor &x = n.input(i);
    return x.rank() == 3 &&
           x.shape().take_front(2) == q.shape().take_front(2) &&
           (x.dim(2) == keyHeads || x.dim(2) == otherSize);
  };
  for (unsigned i : {unsigned(Decay), unsigned(Beta)}) {
    if (n.hasInput(i) && !perHead(i, i == Beta ? 1 : keyHeads * keySize))
      return n.invalid() << n.inputText(i) << " does not fit keys of "
                         << keyHeads << " heads";
  }
  if (isGated)
    hasDecayPerKey = n.input(Decay).dim(2) != keyHeads;
  if (isDelta)
    betaHeads = n.input(Beta).dim(2);
  scale = n.floatAttr("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(keySize));
  return success();
}

Value LinearAttention::castTo(Value tensor, DType from, DType to) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (from == to)
    return tensor;
  return mapElements(n, tensor, n.b.getMultiDimIdentityMap(type.getRank()),
                     type.getShape(), to.type(n.context()),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       return castScalar(b, loc, args[0], from, to);
                     });
}

Value LinearAttention::initialState() {
  if (n.hasInput(Past))
    return castTo(n.value(Past), n.input(Past).dtype, wide);
  return filled(n, {batch, keyHeads, keySize, valueSize},
                n.b.getZeroAttr(wide.type(n.context())));
}

std::pair<Value, Value> LinearAttention::runStep(Value time, Value state) {
  Type wideType = wide.type(n.context());
  int64_t group = heads / keyHeads;
  // Over (batch, head, key entry, value entry).
  AffineMap perState = n.b.getMultiDimIdentityMap(4);
  AffineMap perKey = map(4, {0, 1, 2}), perValue = map(4, {0, 1, 3}),
            perHead = map(4, {0, 1});
  SmallVector<Value> decay;
  SmallVector<AffineMap> decayMap;
  if (isGated) {
    SmallVector<int64_t> shape = {keyHeads};
    if (hasDecayPerKey)
      shape.push_back(keySize);
    decay.push_back(rowAt(Decay, shape, time));
    decayMap.push_back(hasDecayPerKey ? perKey : perHead);
  }
  auto widen = [&](OpBuilder &b, Location loc, Value x) {
    return toAccumulator(b, loc, x);
  };
  auto decayed = [&](const Scalars &s, Value element, Value exponent) {
    if (!isGated)
      return element;
    return s.mul(element, s.make<math::ExpOp>(widen(s.b, s.loc, exponent)));
  };
  Value k = rowAt(Key, {keyHeads, keySize}, time);
  Value v = rowAt(Values, {keyHeads, valueSize}, time);

  SmallVector<Value> inputs = {state, k, v};
  SmallVector<AffineMap> maps = {perState, perKey, perValue};
  if (isDelta) {
    SmallVector<Value> readInputs = {state, k};
    SmallVector<AffineMap> readMaps = {perState, perKey};
    llvm::append_range(readInputs, decay);
    llvm::append_range(readMaps, decayMap);
    readMaps.push_back(perValue);
    auto stage = [&](OpBuilder &b, Location loc, ValueRange args) {
      Scalars s(b, loc, wide);
      return s.mul(decayed(s, args[0], args.size() > 2 ? args[2] : Value()),
                   widen(b, loc, args[1]));
    };
    auto retrieved = RowwiseOp::create(
        n.b, n.loc, readInputs,
        empty(n, {batch, keyHeads, valueSize}, wideType), 2, Combiner::Sum,
        readMaps, RegionBuilder(stage),
        [](OpBuilder &, Location, ValueRange args) { return args.back(); });
    SmallVector<int64_t> betaShape;
    if (betaHeads == keyHeads)
      betaShape.push_back(keyHeads);
    inputs.push_back(retrieved.getResult());
    maps.push_back(perValue);
    inputs.push_back(reshape(n, rowAt(Beta, {betaHeads}, time),
                             betaHeads == keyHeads
                                 ? ArrayRef<int64_t>({batch, keyHeads})
                                 : ArrayRef<int64_t>({batch})));
    maps.push_back(betaHeads == keyHeads ? perHead : map(4, {0}));
  }
  llvm::append_range(inputs, decay);
  llvm::append_range(maps, decayMap);
  Value next =
      mapElements(n, inputs, maps, {batch, keyHeads, keySize, valueSize},
                  wideType, [&](OpBuilder &b, Location loc, ValueRange args) {
                    Scalars s(b, loc, wide);
                    Value value = widen(b, loc, args[2]);
                    if (isDelta)
                      value =
                          s.mul(widen(b, loc, args[4]), s.sub(value, args[3]));
                    return s.add(decayed(s, args[0], args.back()),
                                 s.mul(widen(b, loc, args[1]), value));
                  });

  // Over (batch, key head, query of the head, key entry, value entry).
  Value q = rowAt(Query, {keyHeads, group, keySize}, time);
  auto stage = [&](OpBuilder &b, Location loc, ValueRange args) {
    return Scalars(b, loc, wide).mul(widen(b, loc, args[0]), args[1]);
  };
  Type element = dtype.type(n.context());
  auto row = RowwiseOp::create(
      n.b, n.loc, {q, next},
      empty(n, {batch, keyHeads, group, valueSize}, element), 3, Combiner::Sum,
      {map(5, {0, 1, 2, 3}), map(5, {0, 1, 3, 4}), map(5, {0, 1, 2, 4})},
      RegionBuilder(stage), [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        return fromAccumulator(b, loc, s.mul(s.number(scale), args[2]),
                               element);
      });
  return {next, reshape(n, row.getResult(), {batch, heads * valueSize})};
}

LogicalResult LinearAttention::build() {
  if (failed(n.floatInput(Query)) || failed(n.sameTypes({Query, Key, Values})))
    return failure();
  for (unsigned i : {unsigned(Past), unsigned(Decay), unsigned(Beta)})
    if (n.hasInput(i) && failed(n.floatInput(i)))
      return failure();
  dtype = n.input(Query).dtype;
  wide = dtype.bits() < 32 ? DType::f32() : dtype;
  if (failed(readRule()) || failed(readShapes()))
    return failure();
  Value y =
      empty(n, {batch, length, heads * valueSize}, dtype.type(n.context()));
  Value state = initialState();
  if (length != 0) {
    Value zero = arith::ConstantIndexOp::create(n.b, n.loc, 0);
    Value one = arith::ConstantIndexOp::create(n.b, n.loc, 1);
    Value end = arith::ConstantIndexOp::create(n.b, n.loc, length);
    auto loop =
        scf::ForOp::create(n.b, n.loc, zero, end, one, ValueRange{state, y});
    OpBuilder::InsertionGuard guard(n.b);
    n.b.setInsertionPointToStart(loop.getBody());
    Value time = loop.getInductionVar();
    auto [next, row] = runStep(time, loop.getRegionIterArg(0));
    Value all = insertRow(n, row, loop.getRegionIterArg(1), time, /*axis=*/1);
    scf::YieldOp::create(n.b, n.loc, ValueRange{next, all});
    state = loop.getResult(0);
    y = loop.getResult(1);
  }
  DType stateType = n.hasInput(Past) ? n.input(Past).dtype : dtype;
  if (failed(n.result(0, y, dtype)))
    return failure();
  if (!n.wantsOutput(1))
    return success();
  return n.result(1, castTo(state, wide, stateType), stateType);
}

static LogicalResult buildLinearAttention(NodeBuilder &n) {
  return LinearAttention(n).build();
}

//===----------------------------------------------------------------------===//
// CausalConvWithState
//===----------------------------------------------------------------------===//

/// The last `count` positions of x after that many of zeros.
static Value lastPositions(NodeBuilder &n, Value x, int64_t count) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t length = type.getDimSize(2);
  SmallVector<int64_t> shape = {type.getDimSize(0), type.getDimSize(1), count};
  if (length >= count)
    return extractSlice(n, x, {0, 0, length - count}, shape, {1, 1, 1});
  Value zeros = filled(n, shape, n.b.getZeroAttr(type.getElementType()));
  return type.getNumElements() == 0
             ? zeros
             : insertSlice(n, x, zeros, {0, 0, count - length});
}

/// A convolution of each channel with its past; the state is the last
/// positions, which the next call needs.
static LogicalResult buildCausalConvWithState(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &w = n.input(1);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2, 3})))
    return failure();
  StringRef activation = n.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.invalid() << "attribute 'activation' is " << quoted(activation)
                       << "; none, silu and swish are accepted";
  if (x.rank() != 3 || w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 ||
      w.dim(2) < 1)
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << ": (batch, channels, length) and (channels, 1, "
                          "kernel) are accepted";
  int64_t before = w.dim(2) - 1, channels = x.dim(1);
  SmallVector<int64_t> stateShape = {x.dim(0), channels, before};
  if (n.hasInput(3) && n.input(3).shape() != ArrayRef<int64_t>(stateShape))
    return n.invalid() << n.inputText(3) << " is the past state; "
                       << shapeText(stateShape) << " is accepted";
  if (n.hasInput(2) && n.input(2).shape() != ArrayRef<int64_t>(channels))
    return n.invalid() << n.inputText(2) << " is the bias; shape " << channels
                       << " is accepted";
  Type element = x.type.getElementType();
  Value padded = n.value(0);
  bool hasPast = n.hasInput(3) && before != 0;
  if (hasPast) {
    padded = n.value(3);
    if (x.numElements() != 0) {
      padded = empty(n, {x.dim(0), channels, before + x.dim(2)}, element);
      padded = insertSlice(n, n.value(3), padded, {0, 0, 0});
      padded = insertSlice(n, n.value(0), padded, {0, 0, before});
    }
  }
  if (n.wantsOutput(1) &&
      failed(n.result(1, lastPositions(n, padded, before), x.dtype)))
    return failure();
  if (x.numElements() == 0)
    return n.aliasResult(0, x);
  ElementwiseOperands extras(n);
  if (n.hasInput(2))
    extras.add(n.input(2), n.input(2).shape(),
               AffineMap::get(3, 0, n.b.getAffineDimExpr(1)));
  auto op = ConvOp::create(
      n.b, n.loc, padded, n.value(1), extras.values(),
      empty(n, x.shape(), element), {1}, {1}, {hasPast ? 0 : before}, {0},
      channels, extras.maps(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = args[0];
        Scalars s(b, loc, x.dtype.bits() < 32 ? DType::f32() : x.dtype);
        auto scalars = extras.scalars(b, loc, args.drop_front());
        if (!scalars.empty())
          sum = s.add(sum, toAccumulator(b, loc, scalars[0]));
        if (activation != "none")
          sum = s.div(sum,
                      s.add(s.number(1), s.make<math::ExpOp>(s.negate(sum))));
        return fromAccumulator(b, loc, sum, element);
      });
  return n.result(0, op.getResult(), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> stateSpaceOps() {
  static const OpEntry kOps[] = {
      {"CausalConvWithState", 27, kNewestOpset, 2, 4, 2,
       buildCausalConvWithState},
      {"LinearAttention", 27, kNewestOpset, 3, 6, 2, buildLinearAttention},
  };
  return kOps;
}
} // namespace memplan::onnx
