//===- ClassicOps.cpp - Preprocessing and linear models -------------------===//
//
// Domain ai.onnx.ml, as far as it is about numbers: strings have no place on
// the device.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Places.h"
#include "PostTransform.h"
#include "Prefix.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

static LogicalResult numericInput(NodeBuilder &n, unsigned i) {
  if (!n.input(i).dtype.isBool())
    return success();
  return n.invalid() << n.inputText(i) << "; numbers are accepted";
}

/// A vector is one row.
static LogicalResult hasRows(NodeBuilder &n, unsigned i) {
  if (n.input(i).rank() == 1 || n.input(i).rank() == 2)
    return success();
  return n.invalid() << n.inputText(i) << "; rank 1 and 2 are accepted";
}

static SmallVector<int64_t> asRows(const ImportedTensor &x) {
  return {x.rank() == 2 ? x.dim(0) : 1, x.dim(x.rank() - 1)};
}

//===----------------------------------------------------------------------===//
// One element from one
//===----------------------------------------------------------------------===//

static LogicalResult buildBinarizer(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  double threshold = n.floatAttr("threshold", 0);
  if (failed(numericInput(n, 0)))
    return failure();
  Value y = broadcastElementwise(
      n, &x, x.type.getElementType(),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype), wide(b, loc, DType::f32());
        Value value = args[0];
        const Scalars &compare = x.dtype.isFloat() ? s : wide;
        if (!x.dtype.isFloat())
          value = castScalar(b, loc, value, x.dtype, wide.dtype);
        return s.select(compare.less(compare.number(threshold), value),
                        s.integer(1), s.integer(0));
      });
  return n.result(y, x.dtype);
}

/// A table with an entry for each place of the last dim, or one for all.
static FailureOr<SmallVector<float>>
readFeatures(NodeBuilder &n, StringRef name, float otherwise) {
  ImportedTensor &x = n.input(0);
  auto given = n.floatsAttr(name).value_or(SmallVector<float>{otherwise});
  int64_t count = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  if (given.size() == 1)
    given.assign(count, SmallVector<float>(given)[0]);
  if (static_cast<int64_t>(given.size()) != count)
    return n.invalid() << "attribute " << quoted(name) << " has "
                       << given.size() << " entries for " << n.inputText(0u);
  return given;
}

static AffineMap lastDim(NodeBuilder &n, int64_t rank) {
  return AffineMap::get(rank, 0, n.b.getAffineDimExpr(rank - 1));
}

static Value floatTable(NodeBuilder &n, ArrayRef<float> values) {
  return constantTensor<float>(n, static_cast<int64_t>(values.size()), values,
                               n.b.getF32Type());
}

static LogicalResult buildScaler(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  if (failed(numericInput(n, 0)))
    return failure();
  if (x.rank() < 1)
    return n.invalid() << n.inputText(0u) << " is a scalar";
  auto offset = readFeatures(n, "offset", 0),
       scale = readFeatures(n, "scale", 1);
  if (failed(offset) || failed(scale))
    return failure();
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, x.shape());
  operands.add(floatTable(n, *offset), lastDim(n, x.rank()));
  operands.add(floatTable(n, *scale), lastDim(n, x.rank()));
  Value y = operands.build(x.shape(), n.b.getF32Type(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, DType::f32());
                             Value value =
                                 castScalar(b, loc, args[0], x.dtype, s.dtype);
                             return s.mul(s.sub(value, args[1]), args[2]);
                           });
  return n.result(y, DType::f32());
}

static LogicalResult buildImputer(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  bool isFloat = x.dtype.isFloat();
  n.ignoreAttr(isFloat ? "imputed_value_int64s" : "imputed_value_floats");
  n.ignoreAttr(isFloat ? "replaced_value_int64" : "replaced_value_float");
  if (failed(numericInput(n, 0)))
    return failure();
  if (x.rank() < 1)
    return n.invalid() << n.inputText(0u) << " is a scalar";
  SmallVector<double> given;
  double replaced;
  if (isFloat) {
    for (float value :
         n.floatsAttr("imputed_value_floats").value_or(SmallVector<float>()))
      given.push_back(value);
    replaced = n.floatAttr("replaced_value_float", 0);
  } else {
    for (int64_t value :
         n.intsAttr("imputed_value_int64s").value_or(SmallVector<int64_t>()))
      given.push_back(static_cast<double>(value));
    replaced = static_cast<double>(n.intAttr("replaced_value_int64", 0));
  }
  int64_t count = x.dim(x.rank() - 1);
  if (given.size() == 1)
    given.assign(count, double(given[0]));
  if (given.empty() || static_cast<int64_t>(given.size()) != count)
    return n.invalid() << "the imputed values are " << given.size() << " for "
                       << n.inputText(0u);
  Type type = x.type.getElementType();
  SmallVector<Attribute> entries;
  for (double value : given)
    entries.push_back(isFloat ? Attribute(n.b.getFloatAttr(type, value))
                              : n.b.getIntegerAttr(type, int64_t(value)));
  Value table = arith::ConstantOp::create(
      n.b, n.loc,
      DenseElementsAttr::get(RankedTensorType::get(count, type), entries));
  ElementwiseOperands operands(n);
  operands.addBroadcast(x, x.shape());
  operands.add(table, lastDim(n, x.rank()));
  bool isNaN = replaced != replaced;
  Value y = operands.build(
      x.shape(), type, [&](OpBuilder &b, Location loc, ValueRange args) {
        Scalars s(b, loc, x.dtype);
        Value goes = isNaN ? s.notEqual(args[0], args[0])
                           : s.equal(args[0], s.number(replaced));
        return s.select(goes, args[1], args[0]);
      });
  return n.result(y, x.dtype);
}

//===----------------------------------------------------------------------===//
// Rearranging
//===----------------------------------------------------------------------===//

static LogicalResult buildArrayFeatureExtractor(NodeBuilder &n) {
  ImportedTensor &x = n.input(0), &places = n.input(1);
  if (x.rank() < 1 || x.dim(x.rank() - 1) < 1 || !places.dtype.isInteger())
    return n.invalid() << n.inputText(0u) << " and " << n.inputText(1)
                       << "; features and integer places are accepted";
  int64_t count = places.numElements(), extent = x.dim(x.rank() - 1);
  SmallVector<int64_t> from(x.shape()), shape;
  if (x.rank() == 1)
    from.insert(from.begin(), 1);
  shape = from;
  shape.back() = count;
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  int64_t rank = shape.size();
  Value source = reshape(n, n.value(0), from);
  Value y =
      mapElements(n, reshape(n, n.value(1), count), lastDim(n, rank), shape,
                  x.type.getElementType(),
                  [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                    Places p(b, loc);
                    SmallVector<Value> at = p.indices(rank);
                    Value place =
                        castScalar(b, loc, args[0], places.dtype, p.dtype);
                    at.back() = p.index(p.wrap(place, extent));
                    return tensor::ExtractOp::create(b, loc, source, at);
                  });
  return n.result(y, x.dtype);
}

static LogicalResult buildFeatureVectorizer(NodeBuilder &n) {
  auto widths = n.intsAttr("inputdimensions");
  SmallVector<int64_t> shape = {0, 0};
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    if (!n.hasInput(i))
      return n.invalid() << "input " << i << " is left out";
    if (failed(hasRows(n, i)) || failed(numericInput(n, i)))
      return failure();
    SmallVector<int64_t> rows = asRows(n.input(i));
    auto sum = checkedAdd(shape[1], rows[1]);
    if (!sum || (i > 0 && rows[0] != shape[0]) ||
        (widths && (widths->size() <= i || (*widths)[i] != rows[1])))
      return n.invalid() << n.inputText(i)
                         << " does not fit the inputs before it, or attribute "
                            "'inputdimensions'";
    shape = {rows[0], *sum};
  }
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  Value joined = empty(n, shape, n.b.getF32Type());
  int64_t begin = 0;
  auto entries = [&](ArrayRef<int64_t> list) {
    return getAsIndexOpFoldResult(n.context(), list);
  };
  for (unsigned i = 0; i < n.numInputs(); ++i) {
    ImportedTensor &x = n.input(i);
    SmallVector<int64_t> rows = asRows(x);
    if (x.numElements() == 0)
      continue;
    Value part = mapElements(
        n, reshape(n, n.value(i), rows), n.b.getMultiDimIdentityMap(2), rows,
        n.b.getF32Type(), [&](OpBuilder &b, Location loc, ValueRange args) {
          return castScalar(b, loc, args[0], x.dtype, DType::f32());
        });
    joined = tensor::InsertSliceOp::create(n.b, n.loc, part, joined,
                                           entries({0, begin}), entries(rows),
                                           entries({1, 1}));
    begin += rows[1];
  }
  return n.result(joined, DType::f32());
}

static LogicalResult buildOneHotEncoder(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  auto categories = n.intsAttr("cats_int64s");
  // A value of no category is an error unless 'zeros' is set, which no kernel
  // can report: it has zeros all the same.
  n.ignoreAttr("zeros");
  if (n.hasAttr("cats_strings") || !categories)
    return n.unsupported() << "has no attribute 'cats_int64s', which is what "
                              "is accepted";
  if (failed(numericInput(n, 0)))
    return failure();
  SmallVector<int64_t> shape(x.shape());
  shape.push_back(categories->size());
  if (!checkedProduct(shape))
    return n.invalid() << "the result has too many elements";
  int64_t rank = shape.size();
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i + 1 < rank; ++i)
    exprs.push_back(n.b.getAffineDimExpr(i));
  ElementwiseOperands operands(n);
  operands.add(x, x.shape(), AffineMap::get(rank, 0, exprs, n.context()));
  operands.add(
      constantTensor<int64_t>(n, shape.back(), *categories, n.b.getI64Type()),
      lastDim(n, rank));
  Value y = operands.build(shape, n.b.getF32Type(),
                           [&](OpBuilder &b, Location loc, ValueRange args) {
                             Scalars s(b, loc, DType::i64());
                             Value value =
                                 castScalar(b, loc, args[0], x.dtype, s.dtype);
                             return castScalar(b, loc, s.equal(value, args[1]),
                                               DType::boolean(), DType::f32());
                           });
  return n.result(y, DType::f32());
}

//===----------------------------------------------------------------------===//
// LabelEncoder
//===----------------------------------------------------------------------===//

namespace {
/// Keys or values: numbers of one type.
struct Labels {
  DType dtype;
  SmallVector<Attribute> entries;
};
} // namespace

/// Attributes `prefix`_int64s, _floats or _tensor.
static FailureOr<Labels> readLabels(NodeBuilder &n, const std::string &prefix) {
  Labels labels;
  auto add = [&](Attribute entry) { labels.entries.push_back(entry); };
  if (auto ints = n.intsAttr(prefix + "_int64s")) {
    labels.dtype = DType::i64();
    for (int64_t value : *ints)
      add(n.b.getI64IntegerAttr(value));
    return labels;
  }
  if (auto floats = n.floatsAttr(prefix + "_floats")) {
    labels.dtype = DType::f32();
    for (float value : *floats)
      add(n.b.getF32FloatAttr(value));
    return labels;
  }
  const Tensor *tensor = n.tensorAttr(prefix + "_tensor");
  if (!tensor || tensor->hasStrings || tensor->dataType == 8)
    return n.unsupported() << "has no attributes " << quoted(prefix + "_int64s")
                           << ", " << quoted(prefix + "_floats") << " or "
                           << quoted(prefix + "_tensor")
                           << " of numbers, which are what is accepted";
  FailureOr<TensorData> data = n.tensorData(*tensor);
  if (failed(data))
    return failure();
  labels.dtype = data->dtype;
  DenseElementsAttr values = data->values;
  if (!values && data->inFile)
    values = readElements(data->dtype, data->type, data->inFile->bytes);
  for (Attribute entry : values.getValues<Attribute>())
    add(entry);
  return labels;
}

/// -1, or what attribute default_* of the values' type says.
static FailureOr<Attribute> readDefault(NodeBuilder &n, DType dtype) {
  n.ignoreAttr("default_string");
  float asFloat = n.floatAttr("default_float", 0);
  int64_t asInt = n.intAttr("default_int64", -1);
  Type type = dtype.type(n.context());
  if (const Tensor *tensor = n.tensorAttr("default_tensor")) {
    FailureOr<TensorData> data = n.tensorData(*tensor);
    if (failed(data))
      return failure();
    DenseElementsAttr values = data->values;
    if (!values && data->inFile)
      values = readElements(data->dtype, data->type, data->inFile->bytes);
    if (data->dtype != dtype || values.getNumElements() != 1)
      return n.invalid() << "attribute 'default_tensor' is no "
                         << dtypeName(dtype);
    return *values.value_begin<Attribute>();
  }
  if (dtype.isFloat())
    return Attribute(n.b.getFloatAttr(type, asFloat));
  return Attribute(n.b.getIntegerAttr(type, asInt));
}

/// Whether key a comes before key b; a NaN comes last.
static bool isBefore(Attribute a, Attribute b, DType dtype) {
  if (auto x = dyn_cast<FloatAttr>(a)) {
    double p = x.getValueAsDouble(), q = cast<FloatAttr>(b).getValueAsDouble();
    return p < q || (p == p && q != q);
  }
  APInt p = cast<IntegerAttr>(a).getValue(),
        q = cast<IntegerAttr>(b).getValue();
  return dtype.isSigned() ? p.slt(q) : p.ult(q);
}

/// Looks each element up in the sorted keys; of equal keys the last one counts.
static LogicalResult buildLabelEncoder(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  FailureOr<Labels> keys = readLabels(n, "keys"), values = failure();
  if (succeeded(keys))
    values = readLabels(n, "values");
  if (failed(keys) || failed(values))
    return failure();
  FailureOr<Attribute> otherwise = readDefault(n, values->dtype);
  if (failed(otherwise))
    return failure();
  if (keys->entries.size() != values->entries.size() || keys->entries.empty() ||
      keys->dtype != x.dtype || x.dtype.isBool())
    return n.invalid() << keys->entries.size() << " keys and "
                       << values->entries.size() << " values do not fit "
                       << n.inputText(0u);
  std::vector<std::pair<Attribute, Attribute>> pairs;
  for (auto [key, value] : llvm::zip(keys->entries, values->entries))
    pairs.push_back({key, value});
  auto before = [&](const auto &a, const auto &b) {
    return isBefore(a.first, b.first, x.dtype);
  };
  llvm::stable_sort(pairs, before);
  SmallVector<Attribute> sorted, images;
  for (auto &pair : pairs) {
    if (!sorted.empty() && !isBefore(sorted.back(), pair.first, x.dtype)) {
      images.back() = pair.second;
      continue;
    }
    sorted.push_back(pair.first);
    images.push_back(pair.second);
  }
  int64_t count = sorted.size();
  Type type = values->dtype.type(n.context());
  auto table = [&](ArrayRef<Attribute> entries, Type element) -> Value {
    return arith::ConstantOp::create(
        n.b, n.loc,
        DenseElementsAttr::get(RankedTensorType::get(count, element), entries));
  };
  Value keyTable = table(sorted, x.type.getElementType());
  Value imageTable = table(images, type);
  Value y = broadcastElementwise(
      n, &x, type, [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        Places p(b, loc);
        Scalars s(b, loc, x.dtype);
        Value isOrdered = s.equal(args[0], args[0]);
        // Keys before a NaN are those that are numbers.
        Value found = firstPlace(p, count, [&](Value place) {
          Value key = p.read(keyTable, place);
          return p.select(isOrdered, s.less(key, args[0]), s.equal(key, key));
        });
        Value safe = p.clamp(found, count), key = p.read(keyTable, safe);
        Value isNone =
            p.both(s.notEqual(key, key), s.notEqual(args[0], args[0]));
        Value isIt =
            p.both(p.less(found, p.integer(count)),
                   p.make<arith::OrIOp>(s.equal(key, args[0]), isNone));
        Value other =
            arith::ConstantOp::create(b, loc, cast<TypedAttr>(*otherwise));
        return p.select(isIt, p.read(imageTable, safe), other);
      });
  return n.result(y, values->dtype);
}

//===----------------------------------------------------------------------===//
// Normalizer and linear models
//===----------------------------------------------------------------------===//

static LogicalResult buildNormalizer(NodeBuilder &n) {
  ImportedTensor &x = n.input(0);
  StringRef norm = n.stringAttr("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return n.invalid() << "attribute 'norm' is " << quoted(norm)
                       << "; MAX, L1 and L2 are accepted";
  if (failed(hasRows(n, 0)) || failed(numericInput(n, 0)))
    return failure();
  if (x.numElements() == 0)
    return n.result(empty(n, x.shape(), n.b.getF32Type()), DType::f32());
  SmallVector<int64_t> shape = asRows(x);
  DType dtype = DType::f32();
  Value rows = mapElements(
      n, reshape(n, n.value(0), shape), n.b.getMultiDimIdentityMap(2), shape,
      n.b.getF32Type(), [&](OpBuilder &b, Location loc, ValueRange args) {
        return castScalar(b, loc, args[0], x.dtype, dtype);
      });
  auto measure = [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
    Scalars s(b, loc, dtype);
    return norm == "L2"   ? s.mul(args[0], args[0])
           : norm == "L1" ? s.abs(args[0])
                          : args[0];
  };
  RegionBuilder stages[] = {measure};
  Value sizes =
      reduceRows(n, rows, 1, n.b.getF32Type(),
                 norm == "MAX" ? Combiner::Max : Combiner::Sum, stages,
                 [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                   if (norm == "L2")
                     return math::SqrtOp::create(b, loc, args[1]).getResult();
                   return args[1];
                 });
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(2),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(0))};
  Value y = mapElements(n, {rows, sizes}, maps, shape, n.b.getF32Type(),
                        [&](OpBuilder &b, Location loc, ValueRange args) {
                          Scalars s(b, loc, dtype);
                          Value isZero = s.equal(args[1], s.number(0));
                          Value divisor =
                              s.select(isZero, s.number(1), args[1]);
                          return s.div(args[0], divisor);
                        });
  return n.result(reshape(n, y, x.shape()), dtype);
}

/// X times the transposed coefficients, plus the intercepts.
static FailureOr<Value> linearScores(NodeBuilder &n, int64_t targets) {
  ImportedTensor &x = n.input(0);
  auto coefficients = n.floatsAttr("coefficients");
  auto intercepts = n.floatsAttr("intercepts").value_or(SmallVector<float>());
  if (failed(hasRows(n, 0)) || failed(numericInput(n, 0)))
    return failure();
  SmallVector<int64_t> rows = asRows(x);
  auto size = checkedMul(targets, rows[1]);
  if (!coefficients || targets < 1 || !size ||
      static_cast<int64_t>(coefficients->size()) != *size ||
      (!intercepts.empty() &&
       static_cast<int64_t>(intercepts.size()) != targets))
    return n.invalid() << "attributes 'coefficients' and 'intercepts' do not "
                          "fit "
                       << targets << " targets of " << n.inputText(0u);
  intercepts.resize(targets, 0);
  SmallVector<int64_t> shape = {rows[0], targets};
  Value table = constantTensor<float>(n, {targets, rows[1]}, *coefficients,
                                      n.b.getF32Type());
  Value start = mapElements(
      n, floatTable(n, intercepts), lastDim(n, 2), shape, n.b.getF32Type(),
      [](OpBuilder &, Location, ValueRange args) { return args[0]; });
  auto dim = [&](unsigned i) { return n.b.getAffineDimExpr(i); };
  AffineMap maps[] = {AffineMap::get(3, 0, {dim(0), dim(2)}, n.context()),
                      AffineMap::get(3, 0, {dim(1), dim(2)}, n.context())};
  return accumulate(n, {reshape(n, n.value(0), rows), table}, maps, start, 1,
                    [&](OpBuilder &b, Location loc, ValueRange args) {
                      Scalars s(b, loc, DType::f32());
                      Value value =
                          castScalar(b, loc, args[0], x.dtype, s.dtype);
                      return s.add(args[2], s.mul(value, args[1]));
                    });
}

static LogicalResult buildLinearRegressor(NodeBuilder &n) {
  auto transform = readPostTransform(n);
  auto scores = linearScores(n, n.intAttr("targets", 1));
  if (failed(transform) || failed(scores))
    return failure();
  return n.result(postTransform(n, *scores, DType::f32(), *transform),
                  DType::f32());
}

static LogicalResult buildLinearClassifier(NodeBuilder &n) {
  n.ignoreAttr("multi_class"); // says how it was trained
  auto transform = readPostTransform(n);
  auto labels = readClassLabels(n, "classlabels_ints");
  if (failed(transform) || failed(labels))
    return failure();
  auto scores = linearScores(n, labels->size());
  if (failed(scores))
    return failure();
  return classify(n, *scores, *labels, *transform);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> classicOps() {
  static constexpr const char *kDomain = "ai.onnx.ml";
  static const OpEntry kOps[] = {
      {"ArrayFeatureExtractor", 1, 5, 2, 2, 1, buildArrayFeatureExtractor,
       kDomain},
      {"Binarizer", 1, 5, 1, 1, 1, buildBinarizer, kDomain},
      {"FeatureVectorizer", 1, 5, 1, kVariadic, 1, buildFeatureVectorizer,
       kDomain},
      {"Imputer", 1, 5, 1, 1, 1, buildImputer, kDomain},
      {"LabelEncoder", 2, 5, 1, 1, 1, buildLabelEncoder, kDomain},
      {"LinearClassifier", 1, 5, 1, 1, 2, buildLinearClassifier, kDomain},
      {"LinearRegressor", 1, 5, 1, 1, 1, buildLinearRegressor, kDomain},
      {"Normalizer", 1, 5, 1, 1, 1, buildNormalizer, kDomain},
      {"OneHotEncoder", 1, 5, 1, 1, 1, buildOneHotEncoder, kDomain},
      {"Scaler", 1, 5, 1, 1, 1, buildScaler, kDomain},
  };
  return kOps;
}
} // namespace memplan::onnx
