//===- ReduceWindowOp.cpp - memplan.reduce_window: a thread an output -----===//

#include "CppText.h"
#include "MapKernel.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

class WindowText {
public:
  WindowText(Emitter &emitter, ReduceWindowOp op) : emitter(emitter), op(op) {}

  LogicalResult read();
  void emit();

private:
  bool isAverage() {
    return op.getKind() == WindowKind::Average ||
           op.getKind() == WindowKind::AverageIncludePad;
  }
  bool isInside(int64_t dim);
  bool isLarge();
  void emitLarge();
  void emitLines(int64_t line);
  void emitResult();
  void emitOrigins();
  void emitLoops();
  void emitCounts();
  std::string getHint();
  /// Types of 16 bits are reduced in float and rounded once.
  bool isNarrow() {
    Type type = map.resultTypes.front();
    return getAccumulatorType(type) != type;
  }
  std::string getAccumulator() {
    return *getCppType(getAccumulatorType(map.resultTypes.front()));
  }
  /// What `map` makes of an element, and what the epilogue gets.
  std::string callMap(const std::string &element) {
    std::string value = map.call([&](unsigned) { return element; });
    return isNarrow() ? getAccumulator() + "(" + value + ")" : value;
  }
  std::string getSum() {
    return isNarrow() ? *getCppType(map.resultTypes.front()) + "(acc)" : "acc";
  }

  Emitter &emitter;
  ReduceWindowOp op;
  BufferRef input;
  std::vector<MapOperand> operands; ///< Input, used extras, output.
  llvm::DenseMap<unsigned, unsigned> operandOfArgument; ///< Of the epilogue.
  ScalarFunction map, epilogue;
  SmallVector<int64_t> windowDims; ///< Those where the window does something.
  LoopNest nest{{}, {}};
  bool narrow = true;
  KernelText kernel;
  std::optional<IndexText> index;
};

LogicalResult WindowText::read() {
  auto x = emitter.buffers.resolve(op.getInput(), op);
  auto output = makeMapOperand(
      emitter, op, op.getInit(),
      AffineMap::getMultiDimIdentityMap(op.getWindow().size(), op.getContext()),
      "y");
  if (failed(x) || failed(output))
    return failure();
  input = *x;
  output->read = false;
  output->written = true;
  auto madeMap = makeScalarFunction(emitter, op, op.getMap(), {"e"});
  SmallVector<std::string> names = {"acc"};
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    names.push_back("e" + std::to_string(i));
  auto madeEpilogue = makeScalarFunction(emitter, op, op.getEpilogue(), names);
  if (failed(madeMap) || failed(madeEpilogue))
    return failure();
  map = *madeMap;
  epilogue = *madeEpilogue;

  int64_t rank = op.getWindow().size();
  LinearAccess plain; // of the input, in the dims without a window
  plain.coefficients.assign(rank, 0);
  for (int64_t dim = 0; dim < rank; ++dim) {
    // Only offset and stride then, and never outside.
    bool isPlain =
        op.getWindow()[dim] == 1 && op.getPadsBegin()[dim] == 0 &&
        (output->ref.shape[dim] - 1) * op.getStrides()[dim] < input.shape[dim];
    if (isPlain)
      plain.coefficients[dim] = input.strides[dim] * op.getStrides()[dim];
    else
      windowDims.push_back(dim);
  }
  operands.push_back({"x", input, plain});
  for (auto [i, extra, extraMap] :
       llvm::enumerate(op.getExtras(),
                       op.getExtraMaps().getAsValueRange<AffineMapAttr>())) {
    if (!epilogue.uses(i + 1))
      continue;
    auto operand = makeMapOperand(emitter, op, extra, extraMap, names[i + 1]);
    if (failed(operand))
      return failure();
    operandOfArgument[i + 1] = operands.size();
    operands.push_back(*operand);
  }
  operands.push_back(*output);
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : operands)
    accesses.push_back(operand.access);
  nest = LoopNest(output->ref.shape, accesses);
  int64_t span = 0;
  for (auto [extent, stride] : llvm::zip_equal(input.shape, input.strides))
    span += std::max<int64_t>(extent - 1, 0) * stride;
  narrow = nest.isNarrow() && span < (int64_t(1) << 31);
  nest.simplify(/*lead=*/operands.size() - 1, windowDims);
  return success();
}

/// Whether no window leaves the input in this dim.
bool WindowText::isInside(int64_t dim) {
  int64_t last = (operands.back().ref.shape[dim] - 1) * op.getStrides()[dim] +
                 (op.getWindow()[dim] - 1) * op.getDilations()[dim];
  return op.getPadsBegin()[dim] <= 0 &&
         last - op.getPadsBegin()[dim] < input.shape[dim];
}

/// Whether a warp should reduce one window: it is as wide as a warp, and no
/// position in it needs a test.
bool WindowText::isLarge() {
  int64_t size = 1;
  for (int64_t dim : windowDims) {
    if (!isInside(dim) || op.getPadsBegin()[dim] != 0)
      return false;
    size *= op.getWindow()[dim];
  }
  return size >= 32;
}

/// A warp a window: global pooling, mostly.
void WindowText::emitLarge() {
  constexpr int64_t kWarps = 8; // of a block
  SmallVector<int64_t> extents;
  LinearAccess access;
  for (int64_t dim : windowDims) {
    extents.push_back(op.getWindow()[dim]);
    access.coefficients.push_back(op.getDilations()[dim] * input.strides[dim]);
    operands.front().access.coefficients[dim] =
        op.getStrides()[dim] * input.strides[dim];
  }
  // Now the input's place is linear in the result's dims.
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : operands)
    accesses.push_back(operand.access);
  nest = LoopNest(operands.back().ref.shape, accesses);
  nest.simplify(/*lead=*/operands.size() - 1);
  LoopNest window(extents, {access});
  window.simplify(/*lead=*/0);

  index.emplace(kernel, nest, narrow, "d");
  IndexText windowIndex(kernel, window, narrow, "w");
  std::string type = index->type().str();
  std::string count = kernel.number(type, "count_all", nest.getNumPoints());
  std::string length = kernel.number(type, "length", window.getNumPoints());
  kernel.body += "  const " + type +
                 " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                 " * blockDim.y + threadIdx.y;\n  if (i >= " + count +
                 ")\n    return;\n";
  index->decode("i");
  for (const MapOperand &operand : operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  std::string scalar = getAccumulator();
  std::string reduction = op.getKind() == WindowKind::Max ? "MaxOp" : "SumOp";
  kernel.body += "  " + scalar + " acc = " + reduction + "::identity<" +
                 scalar + ">();\n  for (" + type + " j = threadIdx.x; j < " +
                 length + "; j += blockDim.x) {\n";
  windowIndex.decode("j", /*step=*/1, "    ");
  std::string place = sum({index->offset(0, "x"), windowIndex.offset(0, "x")});
  kernel.body += "    acc = " + reduction + "::combine(acc, " +
                 callMap("x[" + place + "]") + ");\n  }\n  acc = warpReduce<" +
                 reduction + ">(acc);\n  if (threadIdx.x != 0)\n    return;\n";
  if (isAverage())
    kernel.body += "  acc /= " + scalar + "(" + length + ");\n";
  emitResult();
  std::string name = kernel.define(emitter, getHint(), "One result a warp.");
  int64_t blocks = (nest.getNumPoints() + kWarps - 1) / kWarps;
  emitter.addLaunch(op, "memplan.reduce_window", kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()),
                                  "dim3(" + Twine(blocks) + ")",
                                  "dim3(32, " + Twine(kWarps) + ")",
                                  /*barriers=*/true));
}

/// A block holds lines in shared memory that lie side by side, so that each
/// element is loaded once and mapped once, in whole sectors, and the result may
/// lie over the input. 256 threads with 48 KiB at most: a multiprocessor has
/// four such blocks or more, as many as hide the latency of one load each.
void WindowText::emitLines(int64_t line) {
  constexpr int64_t kPerLine = 8; // threads
  ArrayRef<int64_t> shape = input.shape;
  std::string length = std::to_string(shape[line]);
  // The nest without the line; its stride is written out.
  operands.front().access.coefficients[line] = 0;
  SmallVector<LinearAccess> accesses;
  SmallVector<std::string> strides;
  for (MapOperand &operand : operands) {
    bool isInput = &operand == &operands.front();
    int64_t stride =
        isInput ? input.strides[line] : operand.access.coefficients[line];
    strides.push_back(std::to_string(stride));
    operand.access.coefficients[line] = 0;
    accesses.push_back(operand.access);
  }
  SmallVector<int64_t> extents(shape);
  extents[line] = 1;
  nest = LoopNest(extents, accesses);
  nest.simplify(/*lead=*/operands.size() - 1);
  index.emplace(kernel, nest, narrow, "d");

  std::string type = index->type().str();
  std::string lines = std::to_string(kWindowLines);
  std::string held = getAccumulator();
  std::string count = kernel.number(type, "count_all", nest.getNumPoints());
  auto at = [&](unsigned operand, StringRef name) {
    return (name + "[" +
            sum({index->offset(operand, name),
                 type + "(j) * " +
                     kernel.number(type, (name + "_line").str(),
                                   std::stoll(strides[operand]))}) +
            "]")
        .str();
  };
  kernel.body += "  __shared__ " + held + " held[" + length + "][" + lines +
                 "];\n  const " + type +
                 " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                 " * " + lines + " + threadIdx.x;\n  const bool exists = i < " +
                 count + ";\n";
  index->decode("i");
  for (const MapOperand &operand : operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  kernel.body +=
      "  for (int j = int(threadIdx.y); exists && j < " + length +
      "; j += " + std::to_string(kPerLine) +
      ")\n    held[j][threadIdx.x] = " + callMap(at(0, "x")) +
      ";\n  __syncthreads();\n  for (int j = int(threadIdx.y); exists "
      "&& j < " +
      length + "; j += " + std::to_string(kPerLine) + ") {\n";
  std::string reduction = op.getKind() == WindowKind::Max ? "MaxOp" : "SumOp";
  std::string step = op.getDilations()[line] == 1
                         ? "w"
                         : "w * " + std::to_string(op.getDilations()[line]);
  kernel.body += "    " + held + " acc = " + reduction + "::identity<" + held +
                 ">();\n" + (isAverage() ? "    int count = 0;\n" : "") +
                 "    for (int w = 0; w < " +
                 std::to_string(op.getWindow()[line]) +
                 "; ++w) {\n      const int at = j - " +
                 std::to_string(op.getPadsBegin()[line]) + " + " + step +
                 ";\n      if (at < 0 || at >= " + length +
                 ")\n        continue;\n      acc = " + reduction +
                 "::combine(acc, held[at][threadIdx.x]);\n" +
                 (isAverage() ? "      ++count;\n" : "") + "    }\n";
  if (isAverage())
    kernel.body += "    if (count > 0)\n      acc /= " + held + "(count);\n";
  unsigned output = operands.size() - 1;
  std::string value = epilogue.call([&](unsigned number) -> std::string {
    if (number == 0)
      return getSum();
    unsigned operand = operandOfArgument[number];
    return at(operand, operands[operand].name);
  });
  kernel.body += "    " + at(output, "y") + " = " + value + ";\n  }\n";
  std::string name =
      kernel.define(emitter, getHint() + "_lines", "Whole lines a block.");
  int64_t blocks = (nest.getNumPoints() + kWindowLines - 1) / kWindowLines;
  emitter.addLaunch(
      op, "memplan.reduce_window", kernel.pointers,
      kernel.launch(name, getNodeName(op.getLoc()),
                    "dim3(" + Twine(blocks) + ")",
                    "dim3(" + lines + ", " + Twine(kPerLine) + ")",
                    /*barriers=*/true));
}

void WindowText::emitOrigins() {
  for (int64_t dim : windowDims) {
    std::string d = std::to_string(dim);
    std::string origin = index->dimOf(dim);
    if (origin != "0")
      origin = "int(" + origin + ")";
    if (op.getStrides()[dim] != 1)
      origin += " * " + std::to_string(op.getStrides()[dim]);
    if (op.getPadsBegin()[dim] != 0)
      origin += " - " + std::to_string(op.getPadsBegin()[dim]);
    kernel.body += "  const int origin" + d + " = " + origin + ";\n";
  }
}

/// Averages with padding count positions, which is a product over the dims.
void WindowText::emitCounts() {
  if (op.getKind() != WindowKind::AverageIncludePad)
    return;
  SmallVector<std::string> factors;
  for (int64_t dim : windowDims) {
    std::string d = std::to_string(dim);
    std::string end = kernel.number("int", "padded" + d,
                                    input.shape[dim] + op.getPadsEnd()[dim]);
    kernel.body += "  int inside" + d + " = 0;\n  for (int w = 0; w < " +
                   std::to_string(op.getWindow()[dim]) + "; ++w)\n    inside" +
                   d + " += origin" + d + " + w * " +
                   std::to_string(op.getDilations()[dim]) + " < " + end + ";\n";
    factors.push_back("inside" + d);
  }
  kernel.body += "  const int count = " +
                 (factors.empty() ? "1" : llvm::join(factors, " * ")) + ";\n";
}

void WindowText::emitLoops() {
  std::string indent = "  ";
  std::string type = index->type().str();
  SmallVector<std::string> terms = {index->offset(0, "x")};
  for (int64_t dim : windowDims) {
    std::string d = std::to_string(dim), w = "w" + d, at = "at" + d;
    std::string step = op.getDilations()[dim] == 1
                           ? w
                           : w + " * " + std::to_string(op.getDilations()[dim]);
    kernel.body += indent + "for (int " + w + " = 0; " + w + " < " +
                   std::to_string(op.getWindow()[dim]) + "; ++" + w + ") {\n";
    indent += "  ";
    kernel.body +=
        indent + "const int " + at + " = origin" + d + " + " + step + ";\n";
    if (!isInside(dim))
      kernel.body +=
          indent + "if (" + at + " < 0 || " + at +
          " >= " + kernel.number("int", "size" + d, input.shape[dim]) + ")\n" +
          indent + "  continue;\n";
    if (input.strides[dim] == 1)
      terms.push_back(type + "(" + at + ")");
    else if (input.shape[dim] > 1)
      terms.push_back(type + "(" + at + ") * " +
                      kernel.number(type, "x_stride" + d, input.strides[dim]));
  }
  std::string element = callMap("x[" + sum(terms) + "]");
  std::string reduction = op.getKind() == WindowKind::Max ? "MaxOp" : "SumOp";
  kernel.body +=
      indent + "acc = " + reduction + "::combine(acc, " + element + ");\n";
  if (op.getKind() == WindowKind::Average)
    kernel.body += indent + "++count;\n";
  for (size_t i = 0; i < windowDims.size(); ++i) {
    indent.resize(indent.size() - 2);
    kernel.body += indent + "}\n";
  }
}

std::string WindowText::getHint() {
  std::string name = op.getKind() == WindowKind::Sum   ? "window_sum"
                     : op.getKind() == WindowKind::Max ? "window_max"
                                                       : "window_average";
  return epilogue.hint == "copy" ? name : name + "_" + epilogue.hint;
}

void WindowText::emitResult() {
  unsigned output = operands.size() - 1;
  std::string value = epilogue.call([&](unsigned number) -> std::string {
    if (number == 0)
      return getSum();
    unsigned operand = operandOfArgument[number];
    const std::string &name = operands[operand].name;
    return name + "[" + index->offset(operand, name) + "]";
  });
  kernel.body += "  y[" + index->offset(output, "y") + "] = " + value + ";\n";
}

void WindowText::emit() {
  if (nest.getNumPoints() == 0)
    return;
  if (auto line = getWindowLine(op))
    return emitLines(*line);
  if (isLarge())
    return emitLarge();
  index.emplace(kernel, nest, narrow, "d");
  std::string type = index->type().str();
  kernel.number(type, "count_all", nest.getNumPoints());
  kernel.body += "  const " + type +
                 " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                 " * blockDim.x + threadIdx.x;\n"
                 "  if (i >= count_all)\n    return;\n";
  index->decode("i");
  for (const MapOperand &operand : operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  emitOrigins();
  emitCounts();
  std::string scalar = getAccumulator();
  std::string reduction = op.getKind() == WindowKind::Max ? "MaxOp" : "SumOp";
  if (op.getKind() == WindowKind::Average)
    kernel.body += "  int count = 0;\n";
  kernel.body +=
      "  " + scalar + " acc = " + reduction + "::identity<" + scalar + ">();\n";
  emitLoops();
  if (isAverage())
    kernel.body += "  if (count > 0)\n    acc /= " + scalar + "(count);\n";
  emitResult();
  std::string name = kernel.define(emitter, getHint(), "One result a thread.");
  emitter.addLaunch(op, "memplan.reduce_window", kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()),
                                  gridFor(nest.getNumPoints()),
                                  "dim3(" + Twine(kMapThreads) + ")"));
}

} // namespace

LogicalResult emitReduceWindow(Emitter &emitter, Operation *raw) {
  WindowText text(emitter, cast<ReduceWindowOp>(raw));
  if (failed(text.read()))
    return failure();
  text.emit();
  return success();
}

} // namespace memplan
