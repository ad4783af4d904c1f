//===- TransposedWindowOps.cpp - ConvTranspose and Col2Im -----------------===//
//
// Each output element sums up what reaches it. Which taps and inputs those are
// depends on the output's position alone and stands in tables, so that with
// strides no thread tries taps in vain.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Scalars.h"
#include "TensorOps.h"
#include "TransposedWindow.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static constexpr int64_t kMostTableEntries = int64_t(1) << 24;

FailureOr<Reaching> memplan::onnx::findReaching(NodeBuilder &n,
                                                const TransposedDim &d) {
  auto work = checkedMul(d.output, d.kernel);
  if (!work || *work > kMostTableEntries)
    return n.unsupported() << "a window of " << d.kernel << " over " << d.output
                           << " output positions is too large";
  SmallVector<SmallVector<std::pair<int32_t, int32_t>>> found(d.output);
  Reaching reaching;
  reaching.most = 1;
  for (int64_t o = 0; o < d.output; ++o) {
    for (int64_t k = 0; k < d.kernel; ++k) {
      int64_t from = o + d.pad - k * d.dilation;
      if (from >= 0 && from % d.stride == 0 && from / d.stride < d.input)
        found[o].push_back(
            {static_cast<int32_t>(k), static_cast<int32_t>(from / d.stride)});
    }
    reaching.most = std::max<int64_t>(reaching.most, found[o].size());
  }
  SmallVector<int32_t> taps, inputs;
  for (auto &pairs : found) {
    pairs.resize(reaching.most, {-1, 0});
    for (auto [tap, input] : pairs) {
      taps.push_back(tap);
      inputs.push_back(input);
    }
  }
  SmallVector<int64_t> shape = {d.output, reaching.most};
  Type type = n.b.getI32Type();
  reaching.taps = constantTensor(n, shape, ArrayRef(taps), type);
  reaching.inputs = constantTensor(n, shape, ArrayRef(inputs), type);
  return reaching;
}

namespace {
/// The tables of all spatial dims as operands of a generic whose loops are
/// `before` dims, the spatial ones, `between` reductions, and one for each
/// spatial dim's taps.
struct ReachingOperands {
  SmallVector<Value> tables;
  SmallVector<AffineMap> maps;

  LogicalResult add(NodeBuilder &n, ArrayRef<TransposedDim> dims,
                    unsigned before, unsigned between);
  /// Taps and inputs, as indices, from the block arguments of `tables`, and
  /// whether there is something.
  struct Places {
    SmallVector<Value> taps, inputs;
    Value isThere;
  };
  static Places read(OpBuilder &b, Location loc, ValueRange args);
};
} // namespace

LogicalResult ReachingOperands::add(NodeBuilder &n,
                                    ArrayRef<TransposedDim> dims,
                                    unsigned before, unsigned between) {
  unsigned loops = before + 2 * dims.size() + between;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    FailureOr<Reaching> reaching = findReaching(n, dim);
    if (failed(reaching))
      return failure();
    tables.append({reaching->taps, reaching->inputs});
    unsigned spatial = before + i;
    unsigned tap = before + dims.size() + between + i;
    maps.append(2, AffineMap::get(loops, 0,
                                  {n.b.getAffineDimExpr(spatial),
                                   n.b.getAffineDimExpr(tap)},
                                  n.context()));
  }
  return success();
}

ReachingOperands::Places ReachingOperands::read(OpBuilder &b, Location loc,
                                                ValueRange args) {
  Places places;
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  auto toIndex = [&](Value at) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
  };
  for (size_t i = 0; i < args.size(); i += 2) {
    Value valid =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, args[i], zero);
    places.isThere =
        places.isThere
            ? arith::AndIOp::create(b, loc, places.isThere, valid).getResult()
            : valid;
    places.taps.push_back(
        toIndex(arith::MaxSIOp::create(b, loc, args[i], zero)));
    places.inputs.push_back(toIndex(args[i + 1]));
  }
  return places;
}

/// at[0] * shape[1] * ... + ... of indices.
static Value linearIndex(OpBuilder &b, Location loc, ArrayRef<Value> at,
                         ArrayRef<int64_t> shape) {
  Value linear;
  for (auto [index, extent] : llvm::zip(at, shape)) {
    if (linear) {
      Value factor = arith::ConstantIndexOp::create(b, loc, extent);
      linear = arith::MulIOp::create(b, loc, linear, factor);
      linear = arith::AddIOp::create(b, loc, linear, index);
    } else {
      linear = index;
    }
  }
  return linear;
}

static FailureOr<SmallVector<int64_t>> entries(NodeBuilder &n, StringRef name,
                                               size_t count, int64_t least,
                                               int64_t otherwise) {
  auto given = n.intsAttr(name);
  if (!given || (given->empty() && count != 0))
    return SmallVector<int64_t>(count, otherwise);
  if (given->size() != count)
    return n.invalid() << "attribute '" << name << "' has " << given->size()
                       << " entries, expected " << count;
  for (int64_t entry : *given)
    if (entry < least || entry > (int64_t(1) << 30))
      return n.unsupported()
             << "attribute '" << name << "' has the entry " << entry << "; "
             << least << " to 2^30 is accepted";
  return *given;
}

//===----------------------------------------------------------------------===//
// ConvTranspose
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<TransposedDim>>
readTransposedDims(NodeBuilder &n, ArrayRef<int64_t> input,
                   ArrayRef<int64_t> kernel) {
  size_t rank = input.size();
  auto strides = entries(n, "strides", rank, 1, 1);
  auto dilations = entries(n, "dilations", rank, 1, 1);
  auto pads = entries(n, "pads", 2 * rank, 0, 0);
  auto extra = entries(n, "output_padding", rank, 0, 0);
  auto wanted = n.intsAttr("output_shape");
  StringRef autoPad = n.stringAttr("auto_pad", "NOTSET");
  if (failed(strides) || failed(dilations) || failed(pads) || failed(extra))
    return failure();
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID")
    return n.invalid() << "attribute 'auto_pad' is " << quoted(autoPad)
                       << "; NOTSET, SAME_UPPER, SAME_LOWER and VALID are "
                          "accepted";
  // Some exporters give the whole shape.
  if (wanted && wanted->size() == rank + 2)
    wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (wanted && !wanted->empty() && wanted->size() != rank)
    return n.invalid() << "attribute 'output_shape' has " << wanted->size()
                       << " entries, expected " << rank;
  SmallVector<TransposedDim> dims;
  for (size_t i = 0; i < rank; ++i) {
    TransposedDim d{input[i], 0, kernel[i], (*strides)[i], (*dilations)[i], 0};
    auto whole = checkedMul(d.stride, input[i] - 1);
    auto reach = checkedMul(d.dilation, kernel[i] - 1);
    if (kernel[i] < 1 || input[i] < 1 || !whole || !reach ||
        *whole > (int64_t(1) << 40) || *reach > (int64_t(1) << 40))
      return n.invalid() << "spatial dim " << i << " of extent " << input[i]
                         << " does not fit a window of " << kernel[i];
    int64_t full = *whole + (*extra)[i] + *reach + 1;
    if ((wanted && !wanted->empty()) || isSame) {
      d.output = isSame && (!wanted || wanted->empty()) ? input[i] * d.stride
                                                        : (*wanted)[i];
      if (d.output < 1)
        return n.invalid() << "the output has extent " << d.output
                           << " in spatial dim " << i;
      int64_t total = std::max<int64_t>(0, full - d.output);
      d.pad = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      bool isExplicit = autoPad == "NOTSET";
      d.pad = isExplicit ? (*pads)[i] : 0;
      d.output = full - d.pad - (isExplicit ? (*pads)[rank + i] : 0);
    }
    if (d.output < 1 || d.output > (int64_t(1) << 31))
      return n.invalid() << "the output has extent " << d.output
                         << " in spatial dim " << i;
    dims.push_back(d);
  }
  return dims;
}

static LogicalResult buildConvTranspose(NodeBuilder &n) {
  if (failed(n.floatInput(0)) || failed(n.sameTypes({0, 1, 2})))
    return failure();
  ImportedTensor &x = n.input(0), &w = n.input(1);
  int64_t rank = x.rank(), groups = n.intAttr("group", 1);
  if (rank < 3 || w.rank() != rank)
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << " must have the same rank, 3 or more";
  if (groups < 1 || x.dim(1) % groups != 0 || w.dim(0) != x.dim(1))
    return n.invalid() << "with " << groups << " groups, " << n.inputText(0u)
                       << " and " << n.inputText(1)
                       << " do not fit: the filter's first dim is the "
                          "channels, a multiple of the groups";
  ArrayRef<int64_t> kernel = w.shape().drop_front(2);
  if (auto declared = n.intsAttr("kernel_shape");
      declared && ArrayRef<int64_t>(*declared) != kernel)
    return n.invalid() << "attribute 'kernel_shape' is " << shapeText(*declared)
                       << ", but " << n.inputText(1) << " is the filter";
  auto dims = readTransposedDims(n, x.shape().drop_front(2), kernel);
  if (failed(dims))
    return failure();
  int64_t channels = x.dim(1) / groups, features = w.dim(1);
  SmallVector<int64_t> shape = {x.dim(0), features * groups};
  for (const TransposedDim &d : *dims)
    shape.push_back(d.output);
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  DType wide = x.dtype.bits() < 32 ? DType::f32() : x.dtype;
  Type wideType = wide.type(n.context());
  if (n.hasInput(2) && n.input(2).shape() != ArrayRef<int64_t>(shape[1]))
    return n.invalid() << n.inputText(2) << " is the bias; shape " << shape[1]
                       << " is accepted";

  // The sums begin with the bias.
  ElementwiseOperands bias(n);
  Value init;
  if (n.hasInput(2)) {
    bias.add(n.input(2), n.input(2).shape(),
             AffineMap::get(rank, 0, n.b.getAffineDimExpr(1)));
    init = bias.build(shape, wideType,
                      [&](OpBuilder &b, Location loc, ValueRange args) {
                        return castScalar(b, loc, args[0], x.dtype, wide);
                      });
  } else {
    init = filled(n, shape, n.b.getFloatAttr(wideType, 0.0));
  }
  if (channels == 0 || llvm::is_contained(shape, 0))
    return n.invalid() << n.inputText(0u) << " has no channels or no images";
  ReachingOperands operands;
  if (failed(operands.add(n, *dims, 2, 1)))
    return failure();
  // Gives the loop over channels its extent.
  int8_t none = 0;
  operands.tables.push_back(
      constantTensor(n, {channels}, ArrayRef(none), n.b.getI8Type()));
  operands.maps.push_back(
      AffineMap::get(2 * rank - 1, 0, n.b.getAffineDimExpr(rank)));
  Value source = n.value(0), filter = n.value(1);
  Value y = accumulate(
      n, operands.tables, operands.maps, init, rank - 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, wide);
        auto places =
            ReachingOperands::read(b, loc, args.take_front(2 * dims->size()));
        Value feature = linalg::IndexOp::create(b, loc, 1);
        Value channel = linalg::IndexOp::create(b, loc, rank);
        if (groups > 1) {
          auto constant = [&](int64_t value) {
            return arith::ConstantIndexOp::create(b, loc, value);
          };
          Value group =
              arith::DivUIOp::create(b, loc, feature, constant(features));
          channel = arith::AddIOp::create(
              b, loc, arith::MulIOp::create(b, loc, group, constant(channels)),
              channel);
          feature = arith::RemUIOp::create(b, loc, feature, constant(features));
        }
        SmallVector<Value> at = {linalg::IndexOp::create(b, loc, 0), channel};
        llvm::append_range(at, places.inputs);
        SmallVector<Value> tap = {channel, feature};
        llvm::append_range(tap, places.taps);
        Value element = tensor::ExtractOp::create(b, loc, source, at);
        Value weight = tensor::ExtractOp::create(b, loc, filter, tap);
        Value product = s.mul(castScalar(b, loc, element, x.dtype, wide),
                              castScalar(b, loc, weight, x.dtype, wide));
        return s.select(places.isThere, s.add(args.back(), product),
                        args.back());
      });
  if (wide != x.dtype)
    y = mapElements(n, y, n.b.getMultiDimIdentityMap(rank), shape,
                    x.type.getElementType(),
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      return castScalar(b, loc, args[0], wide, x.dtype);
                    });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

static LogicalResult buildCol2Im(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<SmallVector<int64_t>> image = n.ints(1, "the image's shape");
  FailureOr<SmallVector<int64_t>> block = n.ints(2, "the block's shape");
  if (failed(image) || failed(block))
    return failure();
  size_t rank = image->size();
  auto strides = entries(n, "strides", rank, 1, 1);
  auto dilations = entries(n, "dilations", rank, 1, 1);
  auto pads = entries(n, "pads", 2 * rank, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  if (x.rank() != 3 || block->size() != rank || rank == 0 || x.dtype.isBool())
    return n.invalid() << n.inputText(0u)
                       << " is a batch of columns of numbers; rank 3 and lists "
                          "of equal length are accepted";
  SmallVector<TransposedDim> dims;
  SmallVector<int64_t> counts, shape = {x.dim(0), 0};
  for (size_t i = 0; i < rank; ++i) {
    TransposedDim d{
        0,         (*image)[i], (*block)[i], (*strides)[i], (*dilations)[i],
        (*pads)[i]};
    auto reach = checkedMul(d.dilation, d.kernel - 1);
    if (d.output < 1 || d.output > (int64_t(1) << 31) || d.kernel < 1 || !reach)
      return n.invalid() << "image " << shapeText(*image) << " and block "
                         << shapeText(*block) << " do not fit";
    d.input =
        (d.output + d.pad + (*pads)[rank + i] - *reach - 1) / d.stride + 1;
    if (d.input < 1)
      return n.invalid() << "a block reaches farther than the image "
                         << shapeText(*image);
    dims.push_back(d);
    counts.push_back(d.input);
    shape.push_back(d.output);
  }
  auto taps = checkedProduct(*block), columns = checkedProduct(counts);
  if (!taps || !columns || x.dim(1) % *taps != 0 || x.dim(2) != *columns)
    return n.invalid() << n.inputText(0u) << " does not hold the blocks "
                       << shapeText(*block) << " of an image "
                       << shapeText(*image);
  shape[1] = x.dim(1) / *taps;
  auto elements = checkedProduct(shape);
  if (!elements || *elements == 0)
    return n.invalid() << "the result has no elements, or too many";
  ReachingOperands operands;
  if (failed(operands.add(n, dims, 2, 0)))
    return failure();
  Type element = x.type.getElementType();
  Value source = n.value(0);
  Value y = accumulate(
      n, operands.tables, operands.maps,
      filled(n, shape, cast<TypedAttr>(n.b.getZeroAttr(element))), rank,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype);
        auto places = ReachingOperands::read(b, loc, args.drop_back());
        Value row = linearIndex(b, loc, places.taps, *block);
        Value base = arith::MulIOp::create(
            b, loc, linalg::IndexOp::create(b, loc, 1),
            arith::ConstantIndexOp::create(b, loc, *taps));
        SmallVector<Value> at = {linalg::IndexOp::create(b, loc, 0),
                                 arith::AddIOp::create(b, loc, base, row),
                                 linearIndex(b, loc, places.inputs, counts)};
        Value value = tensor::ExtractOp::create(b, loc, source, at);
        return s.select(places.isThere, s.add(args.back(), value), args.back());
      });
  return n.result(y, x.dtype);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> transposedWindowOps() {
  static const OpEntry kOps[] = {
      {"Col2Im", 18, kNewestOpset, 3, 3, 1, buildCol2Im},
      {"ConvTranspose", 1, kNewestOpset, 2, 3, 1, buildConvTranspose},
  };
  return kOps;
}
} // namespace memplan::onnx
