//===- PadOps.cpp - Pad ---------------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// Entries per dim; negative ones cut off elements.
struct Pads {
  SmallVector<int64_t> begin, end;
};
} // namespace

/// Attributes before opset 11, inputs since; a list of axes from 18 on.
static FailureOr<Pads> readPads(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  SmallVector<int64_t> given,
      axes = llvm::to_vector(llvm::seq<int64_t>(x.rank()));
  if (n.opset < 11) {
    given = n.intsAttr(n.opset < 2 ? "paddings" : "pads")
                .value_or(SmallVector<int64_t>());
  } else {
    FailureOr<SmallVector<int64_t>> input = n.ints(1, "the list of pads");
    if (failed(input))
      return failure();
    given = *input;
  }
  if (n.hasInput(3)) {
    FailureOr<SmallVector<int64_t>> input = n.ints(3, "the list of axes");
    if (failed(input))
      return failure();
    FailureOr<SmallVector<int64_t>> wrapped = n.axes(*input, x.rank());
    if (failed(wrapped))
      return failure();
    axes = *wrapped;
  }
  if (given.size() != 2 * axes.size())
    return n.invalid() << "has " << given.size() << " pads, expected "
                       << 2 * axes.size();
  Pads pads;
  pads.begin.assign(x.rank(), 0);
  pads.end.assign(x.rank(), 0);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    pads.begin[axis] = given[i];
    pads.end[axis] = given[axes.size() + i];
  }
  return pads;
}

/// Fills a new tensor, then writes what is left of the input into it.
static LogicalResult buildConstantPad(NodeBuilder &n, const Pads &pads,
                                      ArrayRef<int64_t> shape) {
  ImportedTensor &x = n.input(0);
  ElementwiseOperands fill(n);
  float valueAttr = n.opset < 11 ? n.floatAttr("value", 0) : 0;
  if (n.hasInput(2)) {
    if (failed(n.sameTypes({0, 2})))
      return failure();
    if (n.input(2).numElements() != 1)
      return n.invalid() << n.inputText(2)
                         << " is the padding; a scalar is accepted";
    fill.add(n.input(2), {}, AffineMap::get(shape.size(), 0, n.context()));
  }
  Value filled =
      fill.build(shape, x.type.getElementType(),
                 [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                   if (n.hasInput(2))
                     return args[0];
                   return Scalars(b, loc, x.dtype).number(valueAttr);
                 });
  SmallVector<int64_t> from, sizes, to, ones(x.rank(), 1);
  for (int64_t i = 0; i < x.rank(); ++i) {
    from.push_back(std::max<int64_t>(0, -pads.begin[i]));
    to.push_back(std::max<int64_t>(0, pads.begin[i]));
    int64_t last = x.dim(i) - std::max<int64_t>(0, -pads.end[i]);
    sizes.push_back(last - from.back());
    if (sizes.back() <= 0)
      return n.result(filled, x.dtype);
  }
  auto attrs = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(n.context(), values);
  };
  Value kept = n.value(0);
  if (ArrayRef<int64_t>(sizes) != x.shape())
    kept = tensor::ExtractSliceOp::create(n.b, n.loc, kept, attrs(from),
                                          attrs(sizes), attrs(ones));
  Value result = tensor::InsertSliceOp::create(
      n.b, n.loc, kept, filled, attrs(to), attrs(sizes), attrs(ones));
  return n.result(result, x.dtype);
}

/// The input's index for index `at` (counted from the input's first element)
/// of a padded dim.
static Value padIndex(OpBuilder &b, Location loc, Value at, int64_t extent,
                      StringRef mode) {
  Scalars s(b, loc, DType::i64());
  auto modulo = [&](Value x, int64_t by) {
    Value rest = s.make<arith::RemSIOp>(x, s.integer(by));
    return s.select(s.less(rest, s.integer(0)), s.add(rest, s.integer(by)),
                    rest);
  };
  if (mode == "edge")
    return s.max(s.integer(0), s.min(at, s.integer(extent - 1)));
  if (mode == "wrap")
    return modulo(at, extent);
  // reflect: 0 1 2 1 0 1 2 ..., a period of 2 * extent - 2.
  int64_t period = std::max<int64_t>(1, 2 * extent - 2);
  Value phase = modulo(at, period);
  return s.min(phase, s.sub(s.integer(period), phase));
}

static LogicalResult buildPad(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<Pads> pads = readPads(n);
  if (failed(pads))
    return failure();
  StringRef mode = n.stringAttr("mode", "constant");
  bool isConstant = mode == "constant";
  if (!isConstant && mode != "edge" && mode != "reflect" && mode != "wrap")
    return n.invalid() << "attribute 'mode' is " << quoted(mode)
                       << "; constant, edge, reflect and wrap are accepted";
  SmallVector<int64_t> shape;
  bool isSame = true;
  for (int64_t i = 0; i < x.rank(); ++i) {
    auto sum = checkedAdd(pads->begin[i], pads->end[i]);
    auto extent = sum ? checkedAdd(x.dim(i), *sum) : std::nullopt;
    if (!extent || *extent < 0)
      return n.invalid() << "pads " << pads->begin[i] << " and " << pads->end[i]
                         << " do not fit extent " << x.dim(i) << " of dim "
                         << i;
    if (!isConstant && x.dim(i) == 0 && *extent != 0)
      return n.invalid() << "dim " << i << " has no element to pad with";
    shape.push_back(*extent);
    isSame &= pads->begin[i] == 0 && pads->end[i] == 0;
  }
  if (!checkedProduct(shape))
    return n.invalid() << "the result overflows 64 bits";
  if (isSame) {
    if (isConstant)
      n.ignoreAttr("value");
    return n.aliasResult(0, x);
  }
  if (isConstant)
    return buildConstantPad(n, *pads, shape);
  n.ignoreAttr("value");
  Value source = n.value(0);
  Value result = gatherElements(
      n, source, shape, [&](OpBuilder &b, Location loc, ValueRange loops) {
        SmallVector<Value> index;
        for (int64_t i = 0; i < x.rank(); ++i) {
          if (pads->begin[i] == 0 && pads->end[i] == 0) {
            index.push_back(loops[i]);
            continue;
          }
          Scalars s(b, loc, DType::i64());
          Value at =
              arith::IndexCastOp::create(b, loc, b.getI64Type(), loops[i]);
          at = s.sub(at, s.integer(pads->begin[i]));
          index.push_back(arith::IndexCastOp::create(
              b, loc, b.getIndexType(), padIndex(b, loc, at, x.dim(i), mode)));
        }
        return index;
      });
  return n.result(result, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> padOps() {
  static const OpEntry kOps[] = {
      {"Pad", 1, 10, 1, 1, 1, buildPad},
      {"Pad", 11, 17, 2, 3, 1, buildPad},
      {"Pad", 18, kNewestOpset, 2, 4, 1, buildPad},
  };
  return kOps;
}
} // namespace memplan::onnx
