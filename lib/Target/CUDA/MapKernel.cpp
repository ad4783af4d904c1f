//===- MapKernel.cpp - One thread an element ------------------------------===//

#include "MapKernel.h"

#include "CppText.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

FailureOr<MapOperand> makeMapOperand(Emitter &emitter, Operation *op,
                                     Value value, AffineMap map,
                                     StringRef name) {
  auto ref = emitter.buffers.resolve(value, op);
  if (failed(ref))
    return failure();
  auto access = linearize(map, ref->strides);
  if (!access) {
    op->emitError() << "indexing map " << AffineMapAttr::get(map)
                    << " is unsupported by the CUDA target, which needs linear "
                       "ones";
    return failure();
  }
  MapOperand operand{name.str(), *ref, *access};
  operand.ref.byteOffset += access->constant * ref->getElementBytes();
  operand.access.constant = 0;
  return operand;
}

void addParameters(KernelText &kernel, const MapKernel &map) {
  for (const MapOperand &operand : map.operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  for (const PointerArgument &table : map.function.tables)
    kernel.pointer(table.name, table.ref, /*read=*/true, /*written=*/false);
  for (const MapScalar &scalar : map.scalars)
    kernel.scalar(scalar.type, scalar.name, scalar.value);
  for (const ScalarFunction::Capture &capture : map.function.captures)
    kernel.scalar(capture.type, capture.name, capture.value);
}

namespace {

/// Elements that one thread can load and store at once; 1 if it can't.
int64_t getVectorWidth(const MapKernel &map, const LoopNest &nest) {
  if (nest.getNumDims() == 0 || !map.function.indices.empty() ||
      !map.function.tables.empty() || !nest.isNarrow() ||
      map.results.size() != 1)
    return 1;
  int64_t widest = 1;
  for (const MapOperand &operand : map.operands)
    widest = std::max(widest, operand.ref.getElementBytes());
  int64_t width = std::min<int64_t>(4, 16 / widest);
  if (nest.extents.back() % width != 0)
    return 1;
  for (auto [operand, coefficients] :
       llvm::zip_equal(map.operands, nest.coefficients)) {
    if (coefficients.back() == 0 && !operand.written)
      continue; // one element for all lanes
    if (coefficients.back() != 1 ||
        !operand.ref.isAligned(width * operand.ref.getElementBytes()))
      return 1;
    for (int64_t coefficient : ArrayRef(coefficients).drop_back())
      if (coefficient % width != 0)
        return 1;
  }
  return width;
}

/// The kernel of one map; `width` elements a thread.
class MapText {
public:
  MapText(const MapKernel &map, const LoopNest &nest, int64_t width)
      : map(map), nest(nest), width(width), narrow(nest.isNarrow()),
        index(kernel, nest, narrow, "d") {}

  KernelText &emit() {
    std::string type = index.type().str();
    kernel.number(type, "count", nest.getNumPoints() / width);
    kernel.body += "  const " + type +
                   " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                   " * blockDim.x + threadIdx.x;\n"
                   "  if (i >= count)\n    return;\n";
    index.decode("i", width);
    addParameters(kernel, map);
    for (unsigned i = 0; i < map.operands.size(); ++i)
      places.push_back(index.offset(i, map.operands[i].name));
    if (width == 1)
      emitScalar();
    else
      emitVector();
    return kernel;
  }

private:
  std::string element(unsigned operand) const {
    return map.operands[operand].name + "[" + places[operand] + "]";
  }

  static std::string castTo(const std::string &type, std::string text) {
    return type.empty() ? text : type + "(" + text + ")";
  }

  void emitScalar() {
    SmallVector<std::string> results;
    for (unsigned result : map.results)
      results.push_back(element(result));
    std::string call = map.function.call(
        [&](unsigned number) {
          const MapArgument &argument = map.arguments[number];
          return argument.operand < 0
                     ? argument.literal
                     : castTo(argument.cast, element(argument.operand));
        },
        [&](int64_t dim) { return index.dimOf(dim); }, results);
    kernel.body += "  " + (results.size() == 1 ? results.front() + " = " : "") +
                   call + ";\n";
  }

  void emitVector() {
    std::string lanes = std::to_string(width);
    SmallVector<std::string> loaded(map.operands.size());
    for (unsigned i = 0; i < map.operands.size(); ++i) {
      const MapOperand &operand = map.operands[i];
      if (!operand.read)
        continue;
      std::string type = *getCppType(operand.ref.elementType);
      std::string name = operand.name + "_in";
      loaded[i] = name;
      if (nest.coefficients[i].back() == 0) {
        kernel.body +=
            "  const " + type + " " + name + " = " + element(i) + ";\n";
      } else {
        kernel.body += "  const Vec<" + type + ", " + lanes + "> " + name +
                       " = loadVec<" + lanes + ">(&" + element(i) + ");\n";
        loaded[i] += "[lane]";
      }
    }
    unsigned result = map.results.front();
    const MapOperand &output = map.operands[result];
    std::string value = output.name + "_out";
    std::string call = map.function.call([&](unsigned number) {
      const MapArgument &argument = map.arguments[number];
      return argument.operand < 0
                 ? argument.literal
                 : castTo(argument.cast, loaded[argument.operand]);
    });
    kernel.body += "  Vec<" + *getCppType(output.ref.elementType) + ", " +
                   lanes + "> " + value + ";\n  MEMPLAN_UNROLL\n" +
                   "  for (int lane = 0; lane < " + lanes + "; ++lane)\n    " +
                   value + "[lane] = " + call + ";\n  storeVec(&" +
                   element(result) + ", " + value + ");\n";
  }

  const MapKernel &map;
  const LoopNest &nest;
  int64_t width;
  bool narrow;
  KernelText kernel;
  IndexText index;
  SmallVector<std::string> places;
};

} // namespace

void emitMapKernel(Emitter &emitter, const MapKernel &map) {
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : map.operands)
    accesses.push_back(operand.access);
  LoopNest nest(map.extents, accesses);
  nest.simplify(map.results.front(), map.function.indices);
  if (nest.getNumPoints() == 0)
    return;
  int64_t width = getVectorWidth(map, nest);
  MapText text(map, nest, width);
  KernelText &kernel = text.emit();
  std::string name =
      kernel.define(emitter, "map_" + map.function.hint,
                    width == 1 ? "One element a thread."
                               : std::to_string(width) + " elements a thread.");
  emitter.addLaunch(map.op, map.title, kernel.pointers,
                    kernel.launch(name, getNodeName(map.op->getLoc()),
                                  gridFor(nest.getNumPoints() / width),
                                  "dim3(" + Twine(kMapThreads) + ")"));
}

LogicalResult emitCopyKernel(Emitter &emitter, Operation *op, Value source,
                             Value target, StringRef title) {
  auto type = cast<MemRefType>(target.getType());
  auto identity =
      AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext());
  auto from = makeMapOperand(emitter, op, source, identity, "x0");
  auto to = makeMapOperand(emitter, op, target, identity, "y");
  if (failed(from) || failed(to))
    return failure();
  to->read = false;
  to->written = true;
  MapKernel map;
  map.op = op;
  map.title = title.str();
  map.extents.assign(type.getShape().begin(), type.getShape().end());
  map.operands = {*from, *to};
  map.function = ScalarFunction::argument(0);
  map.arguments = {MapArgument{0, ""}};
  map.results = {1};
  emitMapKernel(emitter, map);
  return success();
}

} // namespace memplan
