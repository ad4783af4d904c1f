//===- Packing.cpp - Elements that share bytes ----------------------------===//

#include "Packing.h"

#include "Scalars.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan::onnx;

RankedTensorType memplan::onnx::packedType(MLIRContext *context, DType dtype,
                                           ArrayRef<int64_t> shape) {
  int64_t count = ShapedType::getNumElements(shape);
  return RankedTensorType::get({*dtype.fileBytes(count)},
                               IntegerType::get(context, 8));
}

/// An op of one point an element of the result, which `body` computes from the
/// loops' indices.
static Value generate(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                      Type element,
                      function_ref<Value(OpBuilder &, ValueRange)> body) {
  Value init = tensor::EmptyOp::create(b, loc, shape, element);
  SmallVector<utils::IteratorType> iterators(shape.size(),
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, loc, init.getType(), ValueRange(), init,
      b.getMultiDimIdentityMap(shape.size()), iterators,
      [&](OpBuilder &inner, Location, ValueRange) {
        SmallVector<Value> loops;
        for (size_t i = 0; i < shape.size(); ++i)
          loops.push_back(linalg::IndexOp::create(inner, loc, i));
        linalg::YieldOp::create(inner, loc, body(inner, loops));
      });
  return op.getResult(0);
}

static Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Row-major position of an element.
static Value linearize(OpBuilder &b, Location loc, ValueRange loops,
                       ArrayRef<int64_t> shape) {
  Value position;
  for (auto [loop, extent] : llvm::zip_equal(loops, shape)) {
    if (position)
      position = arith::AddIOp::create(
          b, loc,
          arith::MulIOp::create(b, loc, position, index(b, loc, extent)), loop);
    else
      position = loop;
  }
  return position ? position : index(b, loc, 0);
}

Value memplan::onnx::unpackElements(OpBuilder &b, Location loc, Value bytes,
                                    DType dtype, ArrayRef<int64_t> shape) {
  Type type = dtype.type(b.getContext());
  auto body = [&](OpBuilder &at, ValueRange loops) -> Value {
    Value position = linearize(at, loc, loops, shape);
    Value perByte = index(at, loc, dtype.perByte());
    Value place = arith::DivUIOp::create(at, loc, position, perByte);
    Value byte = tensor::ExtractOp::create(at, loc, bytes, place);
    Scalars s(at, loc, DType::u8());
    Value within = arith::RemUIOp::create(at, loc, position, perByte);
    Value shift = s.mul(arith::IndexCastOp::create(at, loc, s.type(), within),
                        s.integer(dtype.bits()));
    Value low = s.make<arith::ShRUIOp>(byte, shift);
    if (dtype.numbers() == DType::Float) {
      Type digits = at.getIntegerType(dtype.bits());
      Value code = arith::TruncIOp::create(at, loc, digits, low);
      return arith::BitcastOp::create(at, loc, type, code);
    }
    if (dtype.isUnsigned())
      return s.make<arith::AndIOp>(low, s.integer((1 << dtype.bits()) - 1));
    Value up = s.integer(8 - dtype.bits());
    return s.make<arith::ShRSIOp>(s.make<arith::ShLIOp>(low, up), up);
  };
  return generate(b, loc, shape, type, body);
}

Value memplan::onnx::packElements(OpBuilder &b, Location loc, Value elements,
                                  DType dtype) {
  auto type = cast<RankedTensorType>(elements.getType());
  int64_t count = type.getNumElements(), perByte = dtype.perByte();
  // In one dim, so that a byte's elements are neighbours.
  if (type.getRank() != 1) {
    SmallVector<ReassociationIndices> groups;
    if (type.getRank() != 0)
      groups.emplace_back(llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
    auto flat = RankedTensorType::get({count}, type.getElementType());
    if (type.getRank() == 0)
      elements = tensor::ExpandShapeOp::create(b, loc, flat, elements, groups);
    else
      elements =
          tensor::CollapseShapeOp::create(b, loc, flat, elements, groups);
  }
  RankedTensorType packed = packedType(b.getContext(), dtype, type.getShape());
  auto body = [&](OpBuilder &at, ValueRange loops) -> Value {
    Scalars s(at, loc, DType::u8());
    Value first =
        arith::MulIOp::create(at, loc, loops.front(), index(at, loc, perByte));
    Value byte;
    for (int64_t i = 0; i < perByte; ++i) {
      Value place = arith::AddIOp::create(at, loc, first, index(at, loc, i));
      Value last = index(at, loc, count - 1);
      Value clamped = arith::MinUIOp::create(at, loc, place, last);
      Value bits = tensor::ExtractOp::create(at, loc, elements, clamped);
      if (dtype.numbers() == DType::Float) {
        Type digits = at.getIntegerType(dtype.bits());
        bits = arith::BitcastOp::create(at, loc, digits, bits);
        bits = arith::ExtUIOp::create(at, loc, s.type(), bits);
      }
      bits = s.make<arith::AndIOp>(bits, s.integer((1 << dtype.bits()) - 1));
      if (count % perByte != 0) { // nothing beyond the end
        Value exists = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ule,
                                             place, last);
        bits = s.select(exists, bits, s.integer(0));
      }
      bits = s.make<arith::ShLIOp>(bits, s.integer(i * dtype.bits()));
      byte = byte ? s.make<arith::OrIOp>(byte, bits) : bits;
    }
    return byte;
  };
  return generate(b, loc, packed.getShape(), packed.getElementType(), body);
}
