//===- Resample.cpp - Weighted sums of neighbours along axes --------------===//

#include "Resample.h"

#include "Scalars.h"
#include "TensorOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Up to so many taps in all, the same input elements are rather read several
/// times than an intermediate result is stored.
static constexpr int64_t kMostJointTaps = 64;

static SmallVector<int64_t> outputShape(Value x, ArrayRef<AxisTaps> axes) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  for (const AxisTaps &taps : axes)
    shape[taps.axis] = taps.output;
  return shape;
}

/// The loop indices, but for the axes in `axes`, which tables give.
static SmallVector<Value> placeOf(OpBuilder &b, Location loc, int64_t rank,
                                  ArrayRef<AxisTaps> axes,
                                  ArrayRef<Value> fromTables) {
  SmallVector<Value> place;
  for (int64_t i = 0; i < rank; ++i)
    place.push_back(linalg::IndexOp::create(b, loc, i));
  for (auto [taps, at] : llvm::zip(axes, fromTables))
    place[taps.axis] = arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
  return place;
}

Value memplan::onnx::resampleNearest(NodeBuilder &n, Value x,
                                     ArrayRef<AxisTaps> axes) {
  auto type = cast<RankedTensorType>(x.getType());
  int64_t rank = type.getRank();
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;
  for (const AxisTaps &taps : axes) {
    tables.push_back(
        constantTensor(n, {taps.output}, ArrayRef(taps.at), n.b.getI32Type()));
    maps.push_back(AffineMap::get(rank, 0, n.b.getAffineDimExpr(taps.axis)));
  }
  return mapElements(n, tables, maps, outputShape(x, axes),
                     type.getElementType(),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       SmallVector<Value> at(args);
                       return tensor::ExtractOp::create(
                                  b, loc, x, placeOf(b, loc, rank, axes, at))
                           .getResult();
                     });
}

static Value weightTable(NodeBuilder &n, const AxisTaps &taps, DType dtype) {
  SmallVector<APFloat> values;
  Type type = dtype.type(n.context());
  for (double weight : taps.weights) {
    APFloat value(weight);
    bool losesInfo;
    value.convert(cast<FloatType>(type).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &losesInfo);
    values.push_back(value);
  }
  return constantTensor(n, {taps.output, taps.taps}, ArrayRef(values), type);
}

static Value resampleJointly(NodeBuilder &n, Value x, DType from, DType wide,
                             ArrayRef<AxisTaps> axes) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;
  for (auto [i, taps] : llvm::enumerate(axes)) {
    tables.push_back(constantTensor(n, {taps.output, taps.taps},
                                    ArrayRef(taps.at), n.b.getI32Type()));
    tables.push_back(weightTable(n, taps, wide));
    maps.append(2, AffineMap::get(rank + axes.size(), 0,
                                  {n.b.getAffineDimExpr(taps.axis),
                                   n.b.getAffineDimExpr(rank + i)},
                                  n.context()));
  }
  Value init = filled(n, outputShape(x, axes),
                      n.b.getFloatAttr(wide.type(n.context()), 0.0));
  return accumulate(n, tables, maps, init, axes.size(),
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      Scalars s(b, loc, wide);
                      SmallVector<Value> at;
                      Value weight;
                      for (size_t i = 0; i < axes.size(); ++i) {
                        at.push_back(args[2 * i]);
                        weight = weight ? s.mul(weight, args[2 * i + 1])
                                        : args[2 * i + 1];
                      }
                      Value element = tensor::ExtractOp::create(
                          b, loc, x, placeOf(b, loc, rank, axes, at));
                      element = castScalar(b, loc, element, from, wide);
                      return s.add(args.back(), s.mul(weight, element));
                    });
}

Value memplan::onnx::resampleWeighted(NodeBuilder &n, Value x, DType dtype,
                                      ArrayRef<AxisTaps> axes) {
  DType wide = dtype.isFloat() && dtype.bits() == 64 ? dtype : DType::f32();
  int64_t taps = 1;
  for (const AxisTaps &axis : axes)
    taps = std::min(taps * std::min(axis.taps, kMostJointTaps + 1),
                    kMostJointTaps + 1);
  Value y = x;
  if (taps <= kMostJointTaps) {
    y = resampleJointly(n, x, dtype, wide, axes);
  } else {
    // The axis that shrinks most goes first, so that the others do less.
    SmallVector<AxisTaps> sorted(axes);
    auto growth = [&](const AxisTaps &taps) {
      return static_cast<double>(taps.output) /
             cast<RankedTensorType>(x.getType()).getDimSize(taps.axis);
    };
    llvm::stable_sort(sorted, [&](const AxisTaps &a, const AxisTaps &b) {
      return growth(a) < growth(b);
    });
    DType from = dtype;
    for (const AxisTaps &axis : sorted) {
      y = resampleJointly(n, y, from, wide, axis);
      from = wide;
    }
  }
  if (dtype == wide)
    return y;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(y.getType()).getShape();
  return mapElements(n, y, n.b.getMultiDimIdentityMap(shape.size()), shape,
                     dtype.type(n.context()),
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, wide), narrow(b, loc, dtype);
                       Value sum = args[0];
                       if (!dtype.isFloat()) {
                         auto bound = [&](Value limit) {
                           return castScalar(b, loc, limit, dtype, wide);
                         };
                         sum = s.max(bound(narrow.lowest()),
                                     s.min(sum, bound(narrow.highest())));
                       }
                       return castScalar(b, loc, sum, wide, dtype);
                     });
}

Value memplan::onnx::fillOutside(NodeBuilder &n, Value y, DType dtype,
                                 ArrayRef<AxisTaps> axes, double value) {
  auto type = cast<RankedTensorType>(y.getType());
  int64_t rank = type.getRank();
  SmallVector<Value> inputs = {y};
  SmallVector<AffineMap> maps = {n.b.getMultiDimIdentityMap(rank)};
  for (const AxisTaps &taps : axes) {
    if (taps.inside.empty())
      continue;
    inputs.push_back(constantTensor(n, {taps.output}, ArrayRef(taps.inside),
                                    n.b.getI8Type()));
    maps.push_back(AffineMap::get(rank, 0, n.b.getAffineDimExpr(taps.axis)));
  }
  if (inputs.size() == 1)
    return y;
  return mapElements(
      n, inputs, maps, type.getShape(), type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, dtype);
        Value all = args[1];
        for (Value inside : args.drop_front(2))
          all = arith::MinSIOp::create(b, loc, all, inside);
        Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
        Value isInside =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, all, zero);
        return s.select(isInside, args[0],
                        dtype.isFloat()
                            ? s.number(value)
                            : s.integer(static_cast<int64_t>(value)));
      });
}
