//===- RotaryOps.cpp - RotaryEmbedding ------------------------------------===//

#include "Indices.h"
#include "OpTable.h"
#include "Rotary.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

HeadTensor Rotary::apply(NodeBuilder &n, const HeadTensor &x,
                         DType dtype) const {
  auto type = cast<RankedTensorType>(x.value.getType());
  if (type.getNumElements() == 0 || size == 0)
    return x;
  DType wide = dtype.bits() < 32 ? DType::f32() : dtype;
  int64_t half = size / 2;
  bool isPartial = size < x.size;
  AffineMap identity = n.b.getMultiDimIdentityMap(4);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Scalars s(b, loc, wide);
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto less = [&](Value i, int64_t bound) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, i,
                                   index(bound));
    };
    SmallVector<Value> at;
    for (int64_t i = 0; i < 4; ++i)
      at.push_back(linalg::IndexOp::create(b, loc, i));
    Value batch = at[0], length = at[x.isLengthFirst ? 1 : 2], entry = at[3];
    Value isRotated = less(entry, size);
    if (isPartial)
      entry = s.select(isRotated, entry, index(0));
    Value isFirst, pair, partner;
    if (isInterleaved) {
      Value two = index(2);
      Value rest = arith::RemUIOp::create(b, loc, entry, two);
      pair = arith::DivUIOp::create(b, loc, entry, two);
      isFirst = less(rest, 1);
    } else {
      isFirst = less(entry, half);
      pair = s.select(isFirst, entry,
                      arith::SubIOp::create(b, loc, entry, index(half)));
    }
    Value step = index(isInterleaved ? 1 : half);
    partner = s.select(isFirst, arith::AddIOp::create(b, loc, entry, step),
                       arith::SubIOp::create(b, loc, entry, step));
    SmallVector<Value> row = {batch, length};
    if (position)
      row = {position(b, loc, batch, length)};
    row.push_back(pair);
    auto read = [&](Value tensor, ValueRange indices) {
      return toAccumulator(b, loc,
                           tensor::ExtractOp::create(b, loc, tensor, indices));
    };
    at[3] = partner;
    Value own = toAccumulator(b, loc, args[0]);
    Value sine = read(sines, row);
    Value turned =
        s.mul(s.select(isFirst, s.negate(sine), sine), read(x.value, at));
    Value y = s.add(s.mul(read(cosines, row), own), turned);
    if (scale != 1)
      y = s.mul(s.number(scale), y);
    if (isPartial)
      y = s.select(isRotated, y, own);
    return fromAccumulator(b, loc, y, type.getElementType());
  };
  HeadTensor y = x;
  y.value = mapElements(n, x.value, identity, type.getShape(),
                        type.getElementType(), body);
  return y;
}

static LogicalResult buildRotaryEmbedding(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  int64_t heads = n.intAttr("num_heads", 0);
  if (x.rank() != 4 && x.rank() != 3)
    return n.invalid() << n.inputText(0u) << ": rank 3 or 4 is accepted";
  if (x.rank() == 3 && (heads < 1 || x.dim(2) % heads != 0))
    return n.invalid() << n.inputText(0u) << " has a hidden dim that attribute "
                       << "'num_heads' = " << heads << " does not divide";
  HeadTensor parts =
      x.rank() == 3 ? splitHeads(n, n.value(0), heads) : headTensor(n.value(0));
  Rotary rotary;
  rotary.size = n.intAttr("rotary_embedding_dim", 0);
  if (rotary.size == 0)
    rotary.size = parts.size;
  if (rotary.size < 0 || rotary.size > parts.size || rotary.size % 2 != 0)
    return n.invalid() << "rotates " << rotary.size << " entries of heads of "
                       << parts.size
                       << "; an even number up to a head's is accepted";
  rotary.isInterleaved = n.intAttr("interleaved", 0) != 0;
  rotary.cosines = n.value(1);
  rotary.sines = n.value(2);
  SmallVector<int64_t> wanted = {parts.batch, parts.length, rotary.size / 2};
  if (n.hasInput(3))
    wanted = {n.input(1).rank() == 2 ? n.input(1).dim(0) : 0, rotary.size / 2};
  for (unsigned i : {1u, 2u})
    if (n.input(i).shape() != ArrayRef<int64_t>(wanted))
      return n.invalid() << n.inputText(i) << " is a table of angles; shape "
                         << shapeText(wanted) << " is accepted";
  if (n.hasInput(3)) {
    ImportedTensor &positions = n.input(3);
    if (!positions.dtype.isInteger() ||
        positions.shape() != ArrayRef<int64_t>({parts.batch, parts.length}))
      return n.invalid() << n.inputText(3)
                         << " has the positions: " << parts.batch << "x"
                         << parts.length << " integers are accepted";
    int64_t rows = wanted[0];
    if (rows == 0)
      return n.invalid() << n.inputText(1) << " has no rows";
    if (failed(checkKnownIndices(n, 3, rows)))
      return failure();
    Value tensor = n.value(3);
    rotary.position = [=](OpBuilder &b, Location loc, Value batch,
                          Value length) {
      Value position =
          tensor::ExtractOp::create(b, loc, tensor, ValueRange{batch, length});
      return safeIndex(b, loc, position, positions.dtype, rows);
    };
  }
  Value y = rotary.apply(n, parts, x.dtype).value;
  return n.result(reshape(n, y, x.shape()), x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> rotaryOps() {
  static const OpEntry kOps[] = {
      {"RotaryEmbedding", 23, kNewestOpset, 3, 4, 1, buildRotaryEmbedding},
  };
  return kOps;
}
} // namespace memplan::onnx
