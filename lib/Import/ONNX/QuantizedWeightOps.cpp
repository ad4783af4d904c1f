//===- QuantizedWeightOps.cpp - Products of com.microsoft -----------------===//

#include "Packing.h"
#include "Products.h"
#include "Quantize.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static constexpr const char *kMicrosoft = "com.microsoft";

//===----------------------------------------------------------------------===//
// Floats times integers of 8 bits
//===----------------------------------------------------------------------===//

/// Integers of 8 bits at input `i`; scale and zero point at the others.
static FailureOr<Factor> readOperand(NodeBuilder &n, unsigned i, unsigned scale,
                                     unsigned zero) {
  DType dtype = n.input(i).dtype;
  if (dtype != DType::u8() && dtype != DType::i8())
    return n.unsupported() << n.inputText(i) << "; uint8 and int8 are accepted";
  if (n.input(scale).dtype != DType::f32())
    return n.unsupported() << n.inputText(scale)
                           << " is a scale; float32 is accepted";
  if (failed(checkZeroPoint(n, i, zero)))
    return failure();
  return Factor{&n.input(i), n.hasInput(zero) ? &n.input(zero) : nullptr,
                &n.input(scale)};
}

/// Sum times scales, plus input `bias` (float32) if it is there.
static LogicalResult buildScaledProduct(NodeBuilder &n, Factor a, Factor b,
                                        unsigned bias) {
  SmallVector<ImportedTensor *> more;
  if (n.hasInput(bias)) {
    if (n.input(bias).dtype != DType::f32())
      return n.unsupported()
             << n.inputText(bias) << " is the bias; float32 is accepted";
    more.push_back(&n.input(bias));
  }
  Value y = buildMatrixProduct(
      n, a, b, DType::f32(),
      [&](OpBuilder &at, Location loc, Value sum, ArrayRef<Value> scalars) {
        Value scaled = scaleSum(at, loc, sum, scalars.take_front(2));
        if (more.empty())
          return scaled;
        return arith::AddFOp::create(at, loc, scaled, scalars[2]).getResult();
      },
      more);
  return n.result(y, DType::f32());
}

/// A, B, their scales, their zero points, bias.
static LogicalResult buildMatMulIntegerToFloat(NodeBuilder &n) {
  auto a = readOperand(n, 0, 2, 4), b = readOperand(n, 1, 3, 5);
  if (failed(a) || failed(b))
    return failure();
  return buildScaledProduct(n, *a, *b, 6);
}

/// A is quantized here, by the range of its numbers.
static LogicalResult buildDynamicQuantizeMatMul(NodeBuilder &n) {
  auto b = readOperand(n, 1, 2, 3);
  ImportedTensor &a = n.input(0);
  if (failed(b))
    return failure();
  if (a.dtype != DType::f32())
    return n.unsupported() << n.inputText(0u) << "; float32 is accepted";
  return buildScaledProduct(n, quantizeByRange(n, a), *b, 4);
}

/// A with scale and zero point, B the same, C (int32, quantized as the product
/// is), scale and zero point of the result: without those it is of floats.
static LogicalResult buildQGemm(NodeBuilder &n) {
  auto a = readOperand(n, 0, 1, 2), b = readOperand(n, 3, 4, 5);
  if (failed(a) || failed(b))
    return failure();
  double alpha = n.floatAttr("alpha", 1);
  bool transA = n.intAttr("transA", 0) != 0,
       transB = n.intAttr("transB", 0) != 0;
  if (n.input(0).rank() != 2 || n.input(3).rank() != 2)
    return n.invalid() << "matrices are accepted, found " << n.inputText(0u)
                       << " and " << n.inputText(3);
  bool hasC = n.hasInput(6), isQuantized = n.hasInput(7);
  DType to = n.hasInput(8) ? n.input(8).dtype
             : isQuantized ? n.input(0).dtype
                           : DType::f32();
  SmallVector<ImportedTensor *> more;
  if (hasC) {
    if (n.input(6).dtype != DType::i32())
      return n.invalid() << n.inputText(6) << " is C; int32 is accepted";
    more.push_back(&n.input(6));
  }
  if (isQuantized && failed(checkOneScale(n, 7, 8, to, /*isOptional=*/true)))
    return failure();
  for (unsigned i : {7u, 8u})
    if (n.hasInput(i))
      more.push_back(&n.input(i));
  Value y = buildMatrixProduct(
      n, *a, *b, to,
      [&](OpBuilder &at, Location loc, Value sum, ArrayRef<Value> scalars) {
        ArrayRef<Value> scales = scalars.take_front(2);
        scalars = scalars.drop_front(2);
        if (hasC) {
          sum = arith::AddIOp::create(at, loc, sum, scalars.front());
          scalars = scalars.drop_front();
        }
        Scalars s(at, loc, DType::f32());
        Value factor = s.mul(scales[0], scales[1]);
        if (alpha != 1)
          factor = s.mul(factor, s.number(alpha));
        if (!isQuantized)
          return scaleSum(at, loc, sum, {factor});
        factor = s.div(factor, castScalar(at, loc, scalars[0], n.input(7).dtype,
                                          DType::f32()));
        return roundToInteger(at, loc, scaleSum(at, loc, sum, {factor}),
                              n.hasInput(8) ? scalars[1] : Value(), to);
      },
      more, transA, transB);
  return n.result(y, to);
}

//===----------------------------------------------------------------------===//
// Weights in blocks
//===----------------------------------------------------------------------===//

namespace {
/// MatMulNBits: A [..., K] times B' [N, K], of which each row is blocks of
/// bytes, each byte of one or two elements, each block with a scale and zero
/// point. The bytes are read as they are: each is a point of a sum over a row.
class BlockedProduct {
public:
  explicit BlockedProduct(NodeBuilder &n)
      : n(n), k(n.intAttr("K", 0)), columns(n.intAttr("N", 0)),
        bits(n.intAttr("bits", 4)), block(n.intAttr("block_size", 0)) {
    // How precisely a runtime may compute; this is the most precise.
    n.ignoreAttr("accuracy_level");
    n.ignoreAttr("weight_prepacked");
  }

  LogicalResult check();
  LogicalResult build();

private:
  SmallVector<Value> readActivations();
  Value readZeros();

  NodeBuilder &n;
  int64_t k, columns, bits, block;
  int64_t rows = 0, blocks = 0, perByte = 0, bytes = 0; ///< Of a block.
};
} // namespace

LogicalResult BlockedProduct::check() {
  ImportedTensor &a = n.input(0), &weights = n.input(1), &scales = n.input(2);
  if (bits != 4 && bits != 8)
    return n.unsupported() << "attribute 'bits' is " << bits
                           << "; 4 and 8 are accepted";
  if (block < 16 || !llvm::isPowerOf2_64(block) || k < 1 || columns < 1)
    return n.invalid() << "attributes K = " << k << ", N = " << columns
                       << ", block_size = " << block
                       << "; sizes, and blocks of a power of two from 16 on, "
                          "are accepted";
  if (n.hasInput(4))
    return n.unsupported() << n.inputText(4)
                           << " is g_idx, an order of rows; leave it out";
  perByte = 8 / bits;
  blocks = (k + block - 1) / block;
  bytes = block / perByte;
  if (a.rank() == 0 || a.shape().back() != k || failed(n.floatInput(0)))
    return n.invalid() << n.inputText(0u) << " does not have K = " << k
                       << " columns of floats";
  auto all = checkedMul(columns, blocks);
  auto size = all ? checkedMul(*all, bytes) : std::nullopt;
  if (!size || weights.dtype != DType::u8() || weights.numElements() != *size)
    return n.invalid() << n.inputText(1)
                       << " is not the uint8 weights of N = " << columns
                       << " rows of " << blocks << " blocks of " << bytes
                       << " bytes";
  if (scales.dtype != a.dtype || scales.numElements() != *all)
    return n.invalid() << n.inputText(2) << " is not one scale of type "
                       << dtypeName(a.dtype) << " for each of N = " << columns
                       << " rows of " << blocks << " blocks";
  rows = a.numElements() / k;
  if (n.hasInput(3)) {
    ImportedTensor &zeros = n.input(3);
    int64_t wanted =
        zeros.dtype == DType::u8() ? columns * ((blocks * bits + 7) / 8) : *all;
    if ((zeros.dtype != DType::u8() && zeros.dtype != a.dtype) ||
        zeros.numElements() != wanted)
      return n.invalid() << n.inputText(3) << " is not the zero points, "
                         << wanted << " elements of uint8 or of "
                         << dtypeName(a.dtype);
  }
  if (n.hasInput(5) && (n.input(5).dtype != a.dtype ||
                        n.input(5).shape() != ArrayRef<int64_t>(columns)))
    return n.invalid() << n.inputText(5) << " is the bias; " << columns
                       << " elements of type " << dtypeName(a.dtype)
                       << " are accepted";
  return success();
}

/// For each place in a byte, the elements of A that multiply it: a view [rows,
/// blocks, bytes]. A is filled up to whole blocks with zeros, if need be.
SmallVector<Value> BlockedProduct::readActivations() {
  Value a = reshape(n, n.value(0), {rows, k});
  Type element = n.input(0).type.getElementType();
  int64_t padded = blocks * block;
  if (padded != k) {
    Value zeros = filled(n, {rows, padded}, n.b.getFloatAttr(element, 0));
    SmallVector<OpFoldResult> offsets(2, n.b.getIndexAttr(0)),
        strides(2, n.b.getIndexAttr(1));
    SmallVector<OpFoldResult> sizes = {n.b.getIndexAttr(rows),
                                       n.b.getIndexAttr(k)};
    a = tensor::InsertSliceOp::create(n.b, n.loc, a, zeros, offsets, sizes,
                                      strides);
  }
  if (perByte == 1)
    return {reshape(n, a, {rows, blocks, bytes})};
  a = reshape(n, a, {rows, blocks, bytes, perByte});
  SmallVector<Value> views;
  auto type = RankedTensorType::get({rows, blocks, bytes}, element);
  for (int64_t place = 0; place < perByte; ++place) {
    SmallVector<OpFoldResult> offsets(4, n.b.getIndexAttr(0)),
        strides(4, n.b.getIndexAttr(1)), sizes;
    offsets.back() = n.b.getIndexAttr(place);
    for (int64_t size : {rows, blocks, bytes, int64_t(1)})
      sizes.push_back(n.b.getIndexAttr(size));
    views.push_back(tensor::ExtractSliceOp::create(n.b, n.loc, type, a, offsets,
                                                   sizes, strides));
  }
  return views;
}

/// Zero points [N, blocks], of uint8 or of A's type. Rows of 4-bit ones begin
/// at whole bytes.
Value BlockedProduct::readZeros() {
  ImportedTensor &zeros = n.input(3);
  if (zeros.dtype != DType::u8() || perByte == 1)
    return reshape(n, n.value(3), {columns, blocks});
  int64_t filledRow = (blocks + perByte - 1) / perByte * perByte;
  DType u4 = *DType::fromCode(21);
  Value flat = reshape(n, n.value(3), {zeros.numElements()});
  Value all = unpackElements(n.b, n.loc, flat, u4, {columns, filledRow});
  if (filledRow == blocks)
    return all;
  SmallVector<OpFoldResult> offsets(2, n.b.getIndexAttr(0)),
      strides(2, n.b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = {n.b.getIndexAttr(columns),
                                     n.b.getIndexAttr(blocks)};
  return tensor::ExtractSliceOp::create(n.b, n.loc, all, offsets, sizes,
                                        strides);
}

LogicalResult BlockedProduct::build() {
  ImportedTensor &a = n.input(0);
  // Loops: row, column, block, byte.
  auto map = [&](ArrayRef<unsigned> dims) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dim : dims)
      exprs.push_back(n.b.getAffineDimExpr(dim));
    return AffineMap::get(4, 0, exprs, n.context());
  };
  SmallVector<Value> inputs = readActivations();
  SmallVector<AffineMap> maps(inputs.size(), map({0, 2, 3}));
  inputs.push_back(reshape(n, n.value(1), {columns, blocks, bytes}));
  maps.push_back(map({1, 2, 3}));
  inputs.push_back(reshape(n, n.value(2), {columns, blocks}));
  maps.push_back(map({1, 2}));
  bool hasZeros = n.hasInput(3), hasBias = n.hasInput(5);
  if (hasZeros) {
    inputs.push_back(readZeros());
    maps.push_back(map({1, 2}));
  }
  if (hasBias) {
    inputs.push_back(n.value(5));
    maps.push_back(map({1}));
  }
  maps.push_back(map({0, 1}));
  DType zeroType = hasZeros ? n.input(3).dtype : DType::u8();
  auto stage = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Scalars s(b, loc, DType::f32()), u(b, loc, DType::u8());
    Value byte = args[perByte], sum;
    Value zero =
        hasZeros ? castScalar(b, loc, args[perByte + 2], zeroType, DType::f32())
                 : s.number(1 << (bits - 1));
    for (int64_t place = 0; place < perByte; ++place) {
      Value code = byte;
      if (perByte > 1) {
        code = u.make<arith::ShRUIOp>(byte, u.integer(place * bits));
        code = u.make<arith::AndIOp>(code, u.integer((1 << bits) - 1));
      }
      Value weight =
          s.sub(castScalar(b, loc, code, DType::u8(), DType::f32()), zero);
      Value product =
          s.mul(castScalar(b, loc, args[place], a.dtype, DType::f32()), weight);
      sum = sum ? s.add(sum, product) : product;
    }
    return s.mul(sum,
                 castScalar(b, loc, args[perByte + 1], a.dtype, DType::f32()));
  };
  auto finish = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Scalars s(b, loc, DType::f32());
    Value sum = args.back();
    if (hasBias)
      sum = s.add(sum, castScalar(b, loc, args[perByte + 2 + hasZeros], a.dtype,
                                  DType::f32()));
    return castScalar(b, loc, sum, DType::f32(), a.dtype);
  };
  auto op = RowwiseOp::create(
      n.b, n.loc, inputs, empty(n, {rows, columns}, a.type.getElementType()),
      ArrayRef<int64_t>{2, 3}, ArrayRef<Combiner>{Combiner::Sum}, maps,
      ArrayRef<RegionBuilder>{stage}, finish);
  SmallVector<int64_t> shape(a.shape().drop_back());
  shape.push_back(columns);
  return n.result(reshape(n, op.getResult(), shape), a.dtype);
}

static LogicalResult buildMatMulNBits(NodeBuilder &n) {
  BlockedProduct product(n);
  if (failed(product.check()))
    return failure();
  return product.build();
}

//===----------------------------------------------------------------------===//
// NhwcConv
//===----------------------------------------------------------------------===//

/// Conv of an input, and to a result, whose channels come last.
static LogicalResult buildNhwcConv(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  if (x.rank() < 3 || x.rank() > 5)
    return n.unsupported() << n.inputText(0u) << " has " << x.rank() - 2
                           << " spatial dims; 1 to 3 are accepted";
  SmallVector<int64_t> toSecond = {0, x.rank() - 1}, toLast = {0};
  for (int64_t dim = 1; dim + 1 < x.rank(); ++dim) {
    toSecond.push_back(dim);
    toLast.push_back(dim + 1);
  }
  toLast.push_back(1);
  ImportedTensor moved = x;
  moved.constant = {};
  moved.inFile.reset();
  moved.quantized.reset();
  moved.value = transpose(n, n.value(0), toSecond);
  moved.type = cast<RankedTensorType>(moved.value.getType());
  bool hasBias = n.hasInput(2);
  SmallVector<ImportedTensor *> more;
  if (hasBias)
    more.push_back(&n.input(2));
  Type element = x.type.getElementType();
  Value y = buildConvolution(
      n, Factor{n.keep(moved)}, Factor{&n.input(1)}, x.dtype,
      [&](OpBuilder &b, Location loc, Value sum, ArrayRef<Value> scalars) {
        if (hasBias)
          sum = arith::AddFOp::create(b, loc, sum,
                                      toAccumulator(b, loc, scalars[0]));
        return fromAccumulator(b, loc, sum, element);
      },
      more);
  return y ? n.result(transpose(n, y, toLast), x.dtype) : failure();
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> quantizedWeightOps() {
  static const OpEntry kOps[] = {
      {"DynamicQuantizeMatMul", 1, 1, 3, 5, 1, buildDynamicQuantizeMatMul,
       kMicrosoft},
      {"MatMulIntegerToFloat", 1, 1, 4, 7, 1, buildMatMulIntegerToFloat,
       kMicrosoft},
      {"MatMulNBits", 1, 1, 3, 6, 1, buildMatMulNBits, kMicrosoft},
      {"NhwcConv", 1, 1, 2, 3, 1, buildNhwcConv, kMicrosoft},
      {"QGemm", 1, 1, 6, 9, 1, buildQGemm, kMicrosoft},
  };
  return kOps;
}
} // namespace memplan::onnx
