//===- PrefixOps.cpp - Running sums and products --------------------------===//
//
// By doubling: after step k each element holds the sum of the 2^k elements that
// end with it. That is a kernel for each power of two below the extent, all of
// whose threads are busy, and always adds in the same order.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Prefix.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
/// What each step needs to know.
struct Prefix {
  NodeBuilder &n;
  DType dtype;
  SmallVector<int64_t> shape;
  int64_t axis;
  bool isProduct, isReverse;

  Value identity(const Scalars &s) const {
    return s.integer(isProduct ? 1 : 0);
  }
  /// The element of `source` that is `distance` before the loops' one (after
  /// it, in reverse), or the identity.
  Value before(OpBuilder &b, Location loc, Value source,
               int64_t distance) const {
    Scalars s(b, loc, dtype), index(b, loc, DType::i64());
    Value place = arith::IndexCastOp::create(
        b, loc, b.getI64Type(), linalg::IndexOp::create(b, loc, axis));
    Value from =
        index.add(place, index.integer(isReverse ? distance : -distance));
    Value last = index.integer(shape[axis] - 1);
    Value isInside = isReverse ? index.lessOrEqual(from, last)
                               : index.lessOrEqual(index.integer(0), from);
    Value safe = index.max(index.integer(0), index.min(from, last));
    SmallVector<Value> at;
    for (size_t i = 0; i < shape.size(); ++i)
      at.push_back(linalg::IndexOp::create(b, loc, i));
    at[axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), safe);
    Value element = tensor::ExtractOp::create(b, loc, source, at);
    return s.select(isInside, element, identity(s));
  }
  /// Each element combined with the one `distance` before it.
  Value step(Value source, int64_t distance, bool keepsOwn) const {
    Type element = cast<RankedTensorType>(source.getType()).getElementType();
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    if (keepsOwn) {
      inputs.push_back(source);
      maps.push_back(n.b.getMultiDimIdentityMap(shape.size()));
    }
    return mapElements(n, inputs, maps, shape, element,
                       [&](OpBuilder &b, Location loc, ValueRange args) {
                         Scalars s(b, loc, dtype);
                         Value other = before(b, loc, source, distance);
                         if (!keepsOwn)
                           return other;
                         return isProduct ? s.mul(other, args[0])
                                          : s.add(other, args[0]);
                       });
  }
};
} // namespace

Value memplan::onnx::prefixSums(NodeBuilder &n, Value x, DType dtype,
                                int64_t axis) {
  auto type = cast<RankedTensorType>(x.getType());
  Prefix prefix{n,
                dtype,
                SmallVector<int64_t>(type.getShape()),
                axis,
                /*isProduct=*/false,
                /*isReverse=*/false};
  for (int64_t distance = 1; distance < type.getDimSize(axis); distance *= 2)
    x = prefix.step(x, distance, /*keepsOwn=*/true);
  return x;
}

/// Steps of powers of two, the largest first, as long as they stay before.
Value memplan::onnx::firstPlace(const Places &p, int64_t extent,
                                function_ref<Value(Value)> isBefore) {
  Value found = p.integer(0);
  for (int64_t step = llvm::bit_floor<uint64_t>(std::max<int64_t>(1, extent));
       step > 0; step /= 2) {
    Value next = p.add(found, p.integer(step));
    Value last = p.sub(next, p.integer(1));
    Value isInside = p.lessOrEqual(next, p.integer(extent));
    Value goesOn = p.both(isInside, isBefore(p.clamp(last, extent)));
    found = p.select(goesOn, next, found);
  }
  return found;
}

static LogicalResult buildPrefix(NodeBuilder &n, bool isProduct) {
  ImportedTensor &x = n.input(0);
  FailureOr<int64_t> given = n.scalarInt(1, "the axis");
  if (failed(given))
    return failure();
  FailureOr<int64_t> axis = n.axis(*given, x.rank());
  if (failed(axis))
    return failure();
  bool isExclusive = n.intAttr("exclusive", 0) != 0;
  bool isReverse = n.intAttr("reverse", 0) != 0;
  if (x.dtype.isBool())
    return n.invalid() << n.inputText(0u) << "; numbers are accepted";
  if (x.numElements() == 0)
    return n.aliasResult(0, x);
  Prefix prefix{n,     x.dtype,   SmallVector<int64_t>(x.shape()),
                *axis, isProduct, isReverse};
  Value y = n.value(0);
  if (isExclusive)
    y = prefix.step(y, 1, /*keepsOwn=*/false);
  for (int64_t distance = 1; distance < x.dim(*axis); distance *= 2)
    y = prefix.step(y, distance, /*keepsOwn=*/true);
  return n.result(y, x.dtype);
}

static LogicalResult buildCumSum(NodeBuilder &n) {
  return buildPrefix(n, /*isProduct=*/false);
}
static LogicalResult buildCumProd(NodeBuilder &n) {
  return buildPrefix(n, /*isProduct=*/true);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> prefixOps() {
  static const OpEntry kOps[] = {
      {"CumProd", 26, kNewestOpset, 2, 2, 1, buildCumProd},
      {"CumSum", 11, kNewestOpset, 2, 2, 1, buildCumSum},
  };
  return kOps;
}
} // namespace memplan::onnx
