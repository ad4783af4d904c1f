//===- ConvOp.cpp - memplan.conv to rt::conv ------------------------------===//

#include "CppText.h"
#include "LoopNest.h"
#include "MapKernel.h"
#include "ProductFactor.h"
#include "ScalarCode.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

/// The functor that rt::conv applies to each sum, as text: pointers and strides
/// are members, so that layers of one kind share it and thus the kernels.
class ConvEpilogue {
public:
  ConvEpilogue(ConvOp op, const ScalarFunction &function,
               ArrayRef<int64_t> outputShape)
      : op(op), function(function), outputShape(outputShape) {}

  void add(unsigned argument, const MapOperand &extra) {
    elements[argument] = extra.name + "[" + place(extra) + "]";
    members.insert(
        members.begin() + numPointers++,
        {"const " + *getCppType(extra.ref.elementType) + " *" + extra.name,
         extra.name});
  }

  /// Defines the functor and returns the text that makes one.
  std::string define(Emitter &emitter) {
    std::string result = function.call(
        [&](unsigned number) { return number ? elements[number] : "acc"; });
    std::string text = "// " + op->getName().getStringRef().str() +
                       ": from a sum to the output's element.\nstruct " +
                       Emitter::kName.str() + " {\n";
    SmallVector<std::string> values;
    for (const auto &[declaration, value] : members) {
      text += "  " + declaration + ";\n";
      values.push_back(value);
    }
    Type accumulator = op.getEpilogue().getArgument(0).getType();
    text += "  __device__ " + *getCppType(function.resultTypes.front()) +
            " operator()(" + *getCppType(accumulator) + " acc, int" +
            (usesImage ? " n" : "") + ", int" + (usesFilter ? " f" : "") +
            ", int" + (usesPixel ? " p" : "") + ") const {\n    return " +
            result + ";\n  }\n};\n";
    return emitter.define("epilogue_" + function.hint, text) + "{" +
           llvm::join(values, ", ") + "}";
  }

private:
  std::string term(StringRef variable, StringRef name, int64_t coefficient) {
    if (coefficient == 0)
      return "";
    if (coefficient == 1)
      return variable.str();
    members.push_back({std::string(isNarrow ? "int " : "int64_t ") + name.str(),
                       std::to_string(coefficient)});
    return variable.str() + " * " + name.str();
  }

  std::string place(const MapOperand &extra) {
    ArrayRef<int64_t> coefficients = extra.access.coefficients;
    SmallVector<std::string> terms;
    isNarrow = LoopNest(outputShape, {extra.access}).isNarrow();
    auto coefficientOf = [&](unsigned dim) {
      return outputShape[dim] == 1 ? 0 : coefficients[dim];
    };
    usesImage |= coefficientOf(0) != 0;
    usesFilter |= coefficientOf(1) != 0;
    terms.push_back(term("n", extra.name + "_n", coefficientOf(0)));
    terms.push_back(term("f", extra.name + "_f", coefficientOf(1)));
    appendSpatial(extra, terms);
    return sum(terms);
  }

  /// The output position is one number; mostly the extra is walked alike.
  void appendSpatial(const MapOperand &extra,
                     SmallVectorImpl<std::string> &terms) {
    SmallVector<unsigned> spatial;
    for (unsigned dim = 2; dim < outputShape.size(); ++dim)
      spatial.push_back(dim);
    LinearAccess output;
    output.coefficients.assign(outputShape.size(), 0);
    int64_t below = 1;
    for (unsigned dim : llvm::reverse(spatial)) {
      output.coefficients[dim] = below;
      below *= outputShape[dim];
    }
    LoopNest nest =
        LoopNest(outputShape, {output, extra.access}).select(spatial);
    nest.simplify(/*lead=*/0);
    for (unsigned dim = 0; dim < nest.getNumDims(); ++dim) {
      int64_t coefficient = nest.coefficients[1][dim];
      if (coefficient == 0)
        continue;
      usesPixel = true;
      std::string position = "p";
      if (nest.coefficients[0][dim] != 1)
        position += " / " + std::to_string(nest.coefficients[0][dim]);
      if (dim != 0)
        position += " % " + std::to_string(nest.extents[dim]);
      if (position.size() > 1)
        position = "(" + position + ")";
      terms.push_back(
          term(position, extra.name + "_p" + std::to_string(dim), coefficient));
    }
  }

  ConvOp op;
  const ScalarFunction &function;
  ArrayRef<int64_t> outputShape;
  llvm::DenseMap<unsigned, std::string> elements;
  std::vector<std::pair<std::string, std::string>> members;
  unsigned numPointers = 0;
  bool isNarrow = true; ///< Offsets of the present extra fit int.
  bool usesImage = false, usesFilter = false, usesPixel = false;
};

/// "{1, 3, 3}" of the spatial entries, lifted to three.
std::string lift(ArrayRef<int64_t> spatial, int64_t filler) {
  SmallVector<std::string> entries(3 - spatial.size(), std::to_string(filler));
  for (int64_t entry : spatial)
    entries.push_back(std::to_string(entry));
  return "{" + llvm::join(entries, ", ") + "}";
}

bool hasDenseSpatialDims(const BufferRef &ref) {
  BufferRef channel = ref;
  channel.shape.erase(channel.shape.begin(), channel.shape.begin() + 2);
  channel.strides.erase(channel.strides.begin(), channel.strides.begin() + 2);
  return channel.isDense();
}

std::string describeShape(ConvOp op, const BufferRef &x, const BufferRef &w,
                          const BufferRef &y) {
  ArrayRef<int64_t> in = x.shape, kernel = w.shape;
  SmallVector<int64_t> out = op.getUnpooledShape();
  std::string text = "ConvShape{";
  text += std::to_string(in[0]) + ", " + std::to_string(in[1]) + ", " +
          std::to_string(out[1]) + ", " + std::to_string(op.getGroups());
  text += ", /*in=*/" + lift(in.drop_front(2), 1);
  text += ", /*kernel=*/" + lift(kernel.drop_front(2), 1);
  text += ", /*out=*/" + lift(ArrayRef(out).drop_front(2), 1);
  text += ", /*stride=*/" + lift(op.getStrides(), 1);
  text += ", /*dilation=*/" + lift(op.getDilations(), 1);
  text += ", /*pad=*/" + lift(op.getPadsBegin(), 0);
  text += ", /*strides of x and y=*/" + std::to_string(x.strides[0]) + ", " +
          std::to_string(x.strides[1]) + ", " + std::to_string(y.strides[0]) +
          ", " + std::to_string(y.strides[1]);
  bool isStrided = !hasDenseSpatialDims(x);
  if (!op.yieldsOutput() || op.getUpsample() || isStrided) {
    SmallVector<int64_t> ones(op.getSpatialRank(), 1);
    text += ", /*pool=*/" + lift(op.getPoolWindow().value_or(ones), 1);
    text += op.getInterleaved() ? ", /*interleaved=*/true"
                                : ", /*interleaved=*/false";
    text += ", /*upsample=*/" + lift(op.getUpsample().value_or(ones), 1);
    if (isStrided)
      text += ", /*xStride=*/" + lift(ArrayRef(x.strides).drop_front(2), 0);
  }
  return text + "}";
}

/// Whether an operand's elements aren't simply what is multiplied.
bool isQuantized(ConvOp op) { return op.getInputZero() || op.getFilterZero(); }

/// The function that does it, instantiated for what it does besides.
std::string nameFunction(ConvOp op) {
  std::string name = isQuantized(op) ? "convQuantized" : "conv";
  if (op.getUpsample())
    name += "Upsampled";
  if (!op.getPool())
    return name;
  ArrayRef<int64_t> window = *op.getPoolWindow();
  int64_t area = 1;
  for (int64_t extent : window)
    area *= extent;
  name += *op.getPool() == WindowKind::Max ? "<MaxPool<" : "<AveragePool<";
  return name + std::to_string(area) + ">>";
}

/// Whether the kernels have these types. Those of 64 bits aren't pooled.
LogicalResult checkTypes(ConvOp op, const BufferRef &x, const BufferRef &w) {
  if (op.getEpilogue().getArgument(0).getType() !=
      getProductType(x.elementType, w.elementType))
    return op.emitError() << "sums of " << x.elementType << " times "
                          << w.elementType << " kept as "
                          << op.getEpilogue().getArgument(0).getType()
                          << " are unsupported by the CUDA target";
  if (op.hasWideTypes() && op.getPool())
    return op.emitError("a convolution of 64-bit types that pools is "
                        "unsupported by the CUDA target; pool with "
                        "memplan.reduce_window");
  return success();
}

} // namespace

FailureOr<std::string> addFactor(Emitter &emitter, Operation *op,
                                 const ProductFactor &factor,
                                 std::vector<PointerArgument> &pointers) {
  auto ref = emitter.buffers.resolve(factor.value, op);
  if (failed(ref))
    return failure();
  auto setSign = [&](BufferRef &buffer) {
    if (factor.isUnsigned)
      buffer.elementType = IntegerType::get(
          op->getContext(), buffer.elementType.getIntOrFloatBitWidth(),
          IntegerType::Unsigned);
  };
  setSign(*ref);
  pointers.push_back({factor.name.str(), *ref, true, false});
  if (!factor.zero)
    return std::string("AsItIs()");
  auto zero = emitter.buffers.resolve(factor.zero, op);
  if (failed(zero))
    return failure();
  setSign(*zero);
  std::string name = (factor.name + "_zero").str();
  pointers.push_back({name, *zero, true, false});
  int64_t stride = zero->strides.empty() || zero->shape.back() == 1
                       ? 0
                       : zero->strides.back();
  return "LessZeroPoint<" + *getCppType(zero->elementType) + ">{" + name +
         ", " + std::to_string(stride) + "}";
}

LogicalResult emitConv(Emitter &emitter, Operation *raw) {
  auto op = cast<ConvOp>(raw);
  auto x = emitter.buffers.resolve(op.getInput(), op);
  auto w = emitter.buffers.resolve(op.getFilter(), op);
  auto y = emitter.buffers.resolve(op.getInit(), op);
  if (failed(x) || failed(w) || failed(y))
    return failure();
  if (y->getNumElements() == 0)
    return success();
  if (!hasDenseSpatialDims(*y) || !w->isDense())
    return op.emitError("strides within a filter or an output's channel are "
                        "unsupported by the CUDA target; copy them");
  if (failed(checkTypes(op, *x, *w)))
    return failure();
  SmallVector<std::string> names = {"acc"};
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    names.push_back("e" + std::to_string(i));
  auto function = makeScalarFunction(emitter, op, op.getEpilogue(), names);
  if (failed(function))
    return failure();
  std::vector<PointerArgument> pointers = {{"y", *y, false, true}};
  auto loadX = addFactor(
      emitter, op,
      {"x", op.getInput(), op.getInputZero(), op.getUnsignedInput()}, pointers);
  auto loadW = addFactor(
      emitter, op,
      {"w", op.getFilter(), op.getFilterZero(), op.getUnsignedFilter()},
      pointers);
  if (failed(loadX) || failed(loadW))
    return failure();
  SmallVector<int64_t> unpooled = op.getUnpooledShape();
  ConvEpilogue epilogue(op, *function, unpooled);
  for (auto [i, extra, map] :
       llvm::enumerate(op.getExtras(),
                       op.getExtraMaps().getAsValueRange<AffineMapAttr>())) {
    if (!function->uses(i + 1))
      continue;
    auto operand = makeMapOperand(emitter, op, extra, map, names[i + 1]);
    if (failed(operand))
      return failure();
    epilogue.add(i + 1, *operand);
    pointers.push_back({operand->name, operand->ref, true, false});
  }
  std::string factors =
      isQuantized(op) ? "x, " + *loadX + ", w, " + *loadW : "x, w";
  std::string call = nameFunction(op) + "(" +
                     quoteForString(getNodeName(op.getLoc())) + ", " +
                     describeShape(op, *x, *w, *y) + ", " + factors + ", y, " +
                     epilogue.define(emitter) + ", run.stream)";
  emitter.addLaunch(op, "memplan.conv", pointers, call);
  return success();
}

} // namespace memplan
