//===- MatMulOp.cpp - memplan.matmul to rt::Gemm --------------------------===//
//
// Strides decide: a matrix whose rows or columns are contiguous is a GEMM's
// operand as it lies, transposed or not. What is left of the batch after
// merging is GEMM's own batch dim, a loop over the outer ones, or, for
// layouts that no GEMM reads, a kernel of one thread a result.
//
//===----------------------------------------------------------------------===//

#include "CppText.h"
#include "MapKernel.h"
#include "memplan/Dialect/MatMulEpilogue.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

/// Numbers of the accesses in the nest of a product.
enum Access : unsigned { A = 0, B = 1, D = 2, C = 3 };

/// One GEMM, and how often: offsets of its operands in elements.
struct GemmPlan {
  int64_t m, n, k;
  bool transA, transB;
  int64_t lda, ldb, ldc, ldd;
  int64_t batch = 1;
  int64_t strideA = 0, strideB = 0, strideC = 0, strideD = 0;
  /// Extents of the loop around it, and per access its strides.
  LoopNest outer{{}, {}};
  bool swapped = false; ///< A and B changed places: D is stored [n, m].
};

class MatMulText {
public:
  MatMulText(Emitter &emitter, MatMulOp op) : emitter(emitter), op(op) {}

  LogicalResult read();
  LogicalResult emit();

private:
  LogicalResult readFactors();
  bool isLibraryType();
  std::optional<GemmPlan> planGemm(bool withC) const;
  bool planEpilogue();
  void emitGemm(const GemmPlan &plan);
  void emitEpilogueMap();
  void emitDot();

  Emitter &emitter;
  MatMulOp op;
  SmallVector<int64_t> extents; ///< batch..., m, n, k
  MapOperand a, b, d;
  std::optional<MapOperand> zeroOfA, zeroOfB;
  std::vector<std::optional<MapOperand>> extras; ///< Over the output's dims.
  std::vector<MapOperand> loopExtras;            ///< Over (batch..., m, n, k).
  ScalarFunction epilogue;
  std::optional<BufferRef> workspace;

  // What of the epilogue the GEMM does itself.
  std::string activation = "None";
  float alpha = 1, beta = 0;
  int bias = -1, c = -1; ///< Extras.
  int overwritten = -1;  ///< The extra that lies where the result goes.
  bool overwrittenTwice = false;
  bool fused = false;
};

/// Both matrices and their zero points, with the types that their bits mean.
LogicalResult MatMulText::readFactors() {
  auto setSign = [&](MapOperand &operand, bool isUnsigned) {
    if (isUnsigned)
      operand.ref.elementType = IntegerType::get(
          op.getContext(), operand.ref.elementType.getIntOrFloatBitWidth(),
          IntegerType::Unsigned);
  };
  auto makeFactor = [&](Value value, AffineMap map, Value zero,
                        AffineMap zeroMap, bool isUnsigned, StringRef name,
                        MapOperand &factor,
                        std::optional<MapOperand> &zeroPoint) {
    auto made = makeMapOperand(emitter, op, value, map, name);
    if (failed(made))
      return failure();
    factor = *made;
    setSign(factor, isUnsigned);
    if (!zero)
      return success();
    auto madeZero =
        makeMapOperand(emitter, op, zero, zeroMap, (name + "_zero").str());
    if (failed(madeZero))
      return failure();
    zeroPoint = *madeZero;
    setSign(*zeroPoint, isUnsigned);
    return success();
  };
  return success(succeeded(makeFactor(op.getLhs(), op.getLhsMap(),
                                      op.getLhsZero(), op.getLhsZeroMap(),
                                      op.getUnsignedLhs(), "a", a, zeroOfA)) &&
                 succeeded(makeFactor(op.getRhs(), op.getRhsMap(),
                                      op.getRhsZero(), op.getRhsZeroMap(),
                                      op.getUnsignedRhs(), "b", b, zeroOfB)));
}

LogicalResult MatMulText::read() {
  extents = op.getLoopExtents();
  auto madeD =
      makeMapOperand(emitter, op, op.getInit(), op.getOutputMap(), "y");
  if (failed(readFactors()) || failed(madeD))
    return failure();
  d = *madeD;
  d.read = false;
  d.written = true;
  if (Value scratch = op.getWorkspace()) {
    auto ref = emitter.buffers.resolve(scratch, op);
    if (failed(ref))
      return failure();
    if (!ref->isAligned(256))
      return op.emitError("workspace is not aligned to 256 bytes, as cuBLASLt "
                          "demands; give its alloc alignment = 256");
    workspace = *ref;
  }
  SmallVector<std::string> names = {"acc"};
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    names.push_back("e" + std::to_string(i));
  auto made = makeScalarFunction(emitter, op, op.getEpilogue(), names);
  if (failed(made))
    return failure();
  epilogue = *made;
  for (auto [i, extra, map] :
       llvm::enumerate(op.getExtras(),
                       op.getExtraMaps().getAsValueRange<AffineMapAttr>())) {
    extras.emplace_back();
    loopExtras.emplace_back();
    if (!epilogue.uses(i + 1))
      continue;
    auto operand = makeMapOperand(emitter, op, extra, map, names[i + 1]);
    auto overLoops = makeMapOperand(
        emitter, op, extra, map.compose(op.getOutputMap()), names[i + 1]);
    if (failed(operand) || failed(overLoops))
      return failure();
    extras.back() = *operand;
    loopExtras.back() = *overLoops;
    if (overLoops->ref.base == d.ref.base &&
        overLoops->ref.number == d.ref.number &&
        overLoops->ref.byteOffset == d.ref.byteOffset) {
      overwrittenTwice |= overwritten >= 0;
      overwritten = i;
    }
  }
  return success();
}

SmallVector<unsigned> firstDims(unsigned count) {
  return llvm::to_vector(llvm::seq(0u, count));
}

/// Rows and columns of one operand as a GEMM stores it: not transposed when the
/// columns are contiguous.
std::optional<std::pair<bool, int64_t>> getLayout(int64_t rowStride,
                                                  int64_t columnStride,
                                                  int64_t rows,
                                                  int64_t columns) {
  if ((columnStride == 1 || columns == 1) &&
      (rows == 1 || rowStride >= columns))
    return {{false, rows == 1 ? columns : rowStride}};
  if ((rowStride == 1 || rows == 1) && (columns == 1 || columnStride >= rows))
    return {{true, columns == 1 ? rows : columnStride}};
  return std::nullopt;
}

std::optional<GemmPlan> MatMulText::planGemm(bool withC) const {
  unsigned rank = extents.size(), m = rank - 3, n = rank - 2, k = rank - 1;
  SmallVector<LinearAccess> accesses = {a.access, b.access, d.access};
  if (withC)
    accesses.push_back(loopExtras[c].access);
  GemmPlan plan{};
  if (d.access.coefficients[n] != 1 && extents[n] != 1) {
    // D^T = B^T A^T: n becomes the rows.
    plan.swapped = true;
    std::swap(accesses[A], accesses[B]);
    std::swap(m, n);
  }
  LoopNest nest(extents, accesses);
  LoopNest batch = nest.select(firstDims(rank - 3));
  batch.simplify(/*lead=*/D);
  auto coefficient = [&](unsigned access, unsigned dim) {
    return nest.coefficients[access][dim];
  };
  plan.m = extents[m];
  plan.n = extents[n];
  plan.k = extents[k];
  // A batch that shares its B and whose rows follow each other is one matrix
  // of more rows: activations times weights.
  SmallVector<int64_t> rowStrides;
  for (unsigned access = 0; access < accesses.size(); ++access)
    rowStrides.push_back(coefficient(access, m));
  while (batch.getNumDims() != 0) {
    unsigned last = batch.getNumDims() - 1;
    bool follows = batch.coefficients[B][last] == 0;
    for (unsigned access = 0; access < accesses.size(); ++access)
      if (access != B && plan.m != 1)
        follows &=
            batch.coefficients[access][last] == rowStrides[access] * plan.m;
    if (!follows)
      break;
    if (plan.m == 1)
      for (unsigned access = 0; access < accesses.size(); ++access)
        rowStrides[access] = batch.coefficients[access][last];
    plan.m *= batch.extents[last];
    batch = batch.select(firstDims(last));
  }
  auto layoutA = getLayout(rowStrides[A], coefficient(A, k), plan.m, plan.k);
  auto layoutB =
      getLayout(coefficient(B, k), coefficient(B, n), plan.k, plan.n);
  auto layoutD = getLayout(rowStrides[D], coefficient(D, n), plan.m, plan.n);
  if (!layoutA || !layoutB || !layoutD || layoutD->first)
    return std::nullopt;
  std::tie(plan.transA, plan.lda) = *layoutA;
  std::tie(plan.transB, plan.ldb) = *layoutB;
  plan.ldd = layoutD->second;
  if (withC) {
    auto layoutC = getLayout(rowStrides[C], coefficient(C, n), plan.m, plan.n);
    if (!layoutC || layoutC->first)
      return std::nullopt;
    plan.ldc = layoutC->second;
  }
  if (batch.getNumDims() != 0) {
    // The largest dim is the GEMM's; the fewest calls are left.
    unsigned chosen = llvm::max_element(batch.extents) - batch.extents.begin();
    plan.batch = batch.extents[chosen];
    plan.strideA = batch.coefficients[A][chosen];
    plan.strideB = batch.coefficients[B][chosen];
    plan.strideD = batch.coefficients[D][chosen];
    if (withC)
      plan.strideC = batch.coefficients[C][chosen];
    SmallVector<unsigned> others = firstDims(batch.getNumDims());
    others.erase(others.begin() + chosen);
    batch = batch.select(others);
  }
  plan.outer = batch;
  constexpr int64_t kMost = INT32_MAX;
  if (std::max({plan.m, plan.n, plan.k, plan.batch}) > kMost)
    return std::nullopt;
  return plan;
}

/// Whether every address that the GEMM gets is a multiple of 16 bytes, which
/// its algorithms count on.
bool isAligned(const GemmPlan &plan, unsigned access, const BufferRef &ref) {
  if (!ref.isAligned(16))
    return false;
  for (int64_t stride : plan.outer.coefficients[access])
    if (stride * ref.getElementBytes() % 16 != 0)
      return false;
  return true;
}

bool MatMulText::planEpilogue() {
  auto matched = matchMatMulEpilogue(op, overwritten);
  if (!matched || overwrittenTwice)
    return false;
  alpha = matched->alpha;
  beta = matched->beta;
  bias = matched->bias;
  c = matched->c;
  switch (matched->activation) {
  case MatMulEpilogue::Activation::None:
    activation = bias < 0 ? "None" : "Bias";
    break;
  case MatMulEpilogue::Activation::Relu:
    activation = bias < 0 ? "Relu" : "BiasRelu";
    break;
  case MatMulEpilogue::Activation::GeluTanh:
    activation = bias < 0 ? "Gelu" : "BiasGelu";
    break;
  }
  return true;
}

/// Whether rt::Gemm has the product; the epilogue may be another kernel.
bool MatMulText::isLibraryType() {
  Type type = a.ref.elementType;
  return (type.isF32() || type.isF16() || type.isBF16()) &&
         b.ref.elementType == type && d.ref.elementType == type &&
         op.getEpilogue().getArgument(0).getType().isF32();
}

LogicalResult MatMulText::emit() {
  if (d.ref.getNumElements() == 0)
    return success();
  auto fits = [&](const std::optional<GemmPlan> &plan) {
    const MapOperand &first = plan && plan->swapped ? b : a;
    const MapOperand &second = plan && plan->swapped ? a : b;
    return plan && isAligned(*plan, A, first.ref) &&
           isAligned(*plan, B, second.ref) && isAligned(*plan, D, d.ref) &&
           // A swapped product's columns are m, along which no bias goes.
           !(plan->swapped && bias >= 0) &&
           (bias < 0 || loopExtras[bias].ref.isAligned(16)) &&
           (c < 0 || isAligned(*plan, C, loopExtras[c].ref));
  };
  bool isLibrary = isLibraryType();
  fused = isLibrary && planEpilogue();
  auto plan = fused ? planGemm(/*withC=*/c >= 0) : std::nullopt;
  if (!fits(plan) && overwritten < 0) {
    fused = false;
    alpha = 1, beta = 0, bias = -1, c = -1;
    activation = "None";
    plan = isLibrary ? planGemm(/*withC=*/false) : std::nullopt;
  }
  // Not the product first and then the epilogue, if that reads the same place.
  if (!fits(plan)) {
    emitDot();
    return success();
  }
  emitGemm(*plan);
  if (!fused)
    emitEpilogueMap();
  return success();
}

std::string formatFloat(float value) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  return *getCppLiteral(FloatAttr::get(Float32Type::get(&context), value));
}

void MatMulText::emitGemm(const GemmPlan &plan) {
  auto list = [](std::initializer_list<int64_t> numbers) {
    return llvm::join(
        llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }),
        ", ");
  };
  auto flag = [](bool b) { return b ? "true" : "false"; };
  GemmObject gemm;
  gemm.type = *getCppType(a.ref.elementType);
  gemm.node = getNodeName(op.getLoc());
  gemm.arguments =
      "GemmShape{/*m n k=*/" + list({plan.m, plan.n, plan.k}) +
      ", /*transposed=*/" + flag(plan.transA) + ", " + flag(plan.transB) +
      ", /*rows of a b y=*/" + list({plan.lda, plan.ldb, plan.ldd}) +
      ", /*batch=*/" +
      list({plan.batch, plan.strideA, plan.strideB, plan.strideD}) +
      ", /*c=*/" + list({plan.ldc, plan.strideC}) +
      "}, GemmEpilogue::" + activation + ", /*usesC=*/" + flag(c >= 0);
  if (workspace)
    gemm.arguments +=
        ", /*workspace=*/" + std::to_string(workspace->getNumElements());
  std::string object = "run.model." + emitter.addGemm(gemm);

  std::vector<PointerArgument> pointers = {{"y", d.ref, false, true},
                                           {"a", a.ref, true, false},
                                           {"b", b.ref, true, false}};
  for (int extra : {bias, c})
    if (extra >= 0)
      pointers.push_back(
          {loopExtras[extra].name, loopExtras[extra].ref, true, false});
  if (workspace)
    pointers.push_back({"workspace", *workspace, false, true, true});
  // One call a point of the outer loop, which is short: an unrolled list.
  SmallVector<std::string> calls;
  SmallVector<int64_t> point(plan.outer.getNumDims(), 0);
  auto at = [&](StringRef name, unsigned access) {
    int64_t offset = 0;
    for (auto [index, stride] :
         llvm::zip_equal(point, plan.outer.coefficients[access]))
      offset += index * stride;
    return offset ? name.str() + " + " + std::to_string(offset) : name.str();
  };
  for (bool more = true; more;) {
    std::string call = object + ".run(run.stream, ";
    call += at(plan.swapped ? "b" : "a", A) + ", " +
            at(plan.swapped ? "a" : "b", B) + ", " + at("y", D);
    if (workspace || bias >= 0 || c >= 0 || alpha != 1)
      call += ", " + (bias < 0 ? "nullptr" : loopExtras[bias].name);
    if (workspace || c >= 0 || alpha != 1)
      call += ", " + formatFloat(alpha);
    if (workspace || c >= 0)
      call += ", " + (c < 0 ? "nullptr" : at(loopExtras[c].name, C)) + ", " +
              formatFloat(beta);
    if (workspace)
      call += ", workspace";
    calls.push_back(call + ")");
    more = false;
    for (unsigned dim = point.size(); dim-- > 0 && !more;) {
      more = ++point[dim] < plan.outer.extents[dim];
      if (!more)
        point[dim] = 0;
    }
  }
  for (std::string &call : calls)
    emitter.addLaunch(op, "memplan.matmul", pointers, std::move(call));
}

/// The epilogue on the product, in place.
void MatMulText::emitEpilogueMap() {
  if (epilogue.isArgument() && epilogue.uses(0))
    return;
  MapKernel map;
  map.op = op;
  map.title = "epilogue of memplan.matmul";
  map.extents = d.ref.shape;
  MapOperand output = d;
  output.access = *linearize(
      AffineMap::getMultiDimIdentityMap(d.ref.shape.size(), op.getContext()),
      d.ref.strides);
  output.read = epilogue.uses(0);
  map.operands.push_back(output);
  map.results = {0};
  map.function = epilogue;
  map.arguments = {MapArgument{0, ""}};
  if (!d.ref.elementType.isF32()) // the library has rounded its sums to it
    map.arguments.front().cast = "float";
  for (const auto &extra : extras) {
    map.arguments.emplace_back();
    if (!extra)
      continue;
    map.arguments.back().operand = map.operands.size();
    map.operands.push_back(*extra);
  }
  emitMapKernel(emitter, map);
}

/// One thread a result, whatever the layout.
void MatMulText::emitDot() {
  std::vector<MapOperand> operands = {d, a, b};
  int numberOfZeroA = -1, numberOfZeroB = -1;
  for (auto [zero, number] : {std::pair(&zeroOfA, &numberOfZeroA),
                              std::pair(&zeroOfB, &numberOfZeroB)})
    if (*zero) {
      *number = operands.size();
      operands.push_back(**zero);
    }
  llvm::DenseMap<unsigned, unsigned> operandOfArgument;
  for (auto [i, extra] : llvm::enumerate(extras))
    if (extra) {
      operandOfArgument[i + 1] = operands.size();
      operands.push_back(loopExtras[i]);
    }
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : operands)
    accesses.push_back(operand.access);
  LoopNest nest(extents, accesses);
  bool narrow = nest.isNarrow();
  LoopNest outer = nest.select(firstDims(extents.size() - 1));
  LoopNest inner = nest.select({unsigned(extents.size() - 1)});
  outer.simplify(/*lead=*/0);

  KernelText kernel;
  IndexText outerIndex(kernel, outer, narrow, "d");
  IndexText innerIndex(kernel, inner, narrow, "k");
  innerIndex.setDims({"k"});
  std::string type = outerIndex.type().str();
  kernel.number(type, "count", outer.getNumPoints());
  std::string length = kernel.number(type, "length", extents.back());
  kernel.body += "  const " + type +
                 " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                 " * blockDim.x + threadIdx.x;\n"
                 "  if (i >= count)\n    return;\n";
  outerIndex.decode("i");
  for (const MapOperand &operand : operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  Type scalar = op.getEpilogue().getArgument(0).getType();
  auto place = [&](unsigned operand) {
    return operands[operand].name + "[" +
           sum({outerIndex.offset(operand, operands[operand].name),
                innerIndex.offset(operand, operands[operand].name)}) +
           "]";
  };
  std::string accumulator = *getCppType(scalar);
  auto factor = [&](unsigned operand, int zero) {
    std::string element = place(operand);
    if (zero >= 0)
      element = "int32_t(" + element + ") - int32_t(" + place(zero) + ")";
    return accumulator + "(" + element + ")";
  };
  kernel.body += "  " + accumulator + " acc = 0;\n  for (" + type +
                 " k = 0; k < " + length +
                 "; ++k)\n    acc += " + factor(1, numberOfZeroA) + " * " +
                 factor(2, numberOfZeroB) + ";\n";
  std::string value = epilogue.call([&](unsigned number) -> std::string {
    return number == 0 ? "acc" : place(operandOfArgument[number]);
  });
  // As of what is subtracted from itself.
  if (!epilogue.uses(0))
    kernel.body += "  (void)acc;\n";
  kernel.body += "  " + place(0) + " = " + value + ";\n";
  std::string name =
      kernel.define(emitter, "matmul_strided", "One result a thread.");
  emitter.addLaunch(op, "memplan.matmul", kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()),
                                  gridFor(outer.getNumPoints()),
                                  "dim3(" + Twine(kMapThreads) + ")"));
}

} // namespace

LogicalResult emitMatMul(Emitter &emitter, Operation *raw) {
  MatMulText text(emitter, cast<MatMulOp>(raw));
  if (failed(text.read()))
    return failure();
  return text.emit();
}

} // namespace memplan
