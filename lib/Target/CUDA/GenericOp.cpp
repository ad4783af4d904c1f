//===- GenericOp.cpp - linalg.generic and memref.copy ---------------------===//

#include "CppText.h"
#include "MapKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

/// The last argument of `map` is `value`: a literal, or a parameter `name`.
LogicalResult addScalar(Emitter &emitter, Operation *op, Value value,
                        StringRef name, MapKernel &map) {
  TypedAttr constant;
  std::optional<std::string> literal;
  if (matchPattern(value, m_Constant(&constant)))
    literal = getCppLiteral(constant);
  if (literal) {
    map.arguments.back().literal = *literal;
    return success();
  }
  auto type = getCppType(value.getType());
  if (!type)
    return op->emitError() << "scalar of type " << value.getType()
                           << " is unsupported by the CUDA target";
  auto found = emitter.getHostScalar(value, op);
  if (failed(found))
    return failure();
  map.scalars.push_back({*type, name.str(), *found});
  map.arguments.back().literal = name;
  return success();
}

/// The operands of a linalg.generic as a map's; reductions included.
FailureOr<MapKernel> readGeneric(Emitter &emitter, linalg::GenericOp op) {
  MapKernel map;
  map.op = op;
  map.title = "linalg.generic";
  map.extents = op.getStaticLoopRanges();
  if (llvm::any_of(map.extents, ShapedType::isDynamic)) {
    op.emitError("dynamic extents are unsupported by the CUDA target");
    return failure();
  }
  // Inputs are x0, x1, ...; outputs y or y0, y1, ...
  SmallVector<std::string> names;
  unsigned numInputs = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.isDpsInit(&operand))
      names.push_back("x" + std::to_string(numInputs++));
    else
      names.push_back(op.getNumDpsInits() == 1
                          ? "y"
                          : "y" + std::to_string(names.size() - numInputs));
  }
  auto function = makeScalarFunction(emitter, op, op.getRegion(), names);
  if (failed(function))
    return failure();
  map.function = *function;
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    bool read = map.function.uses(number), written = op.isDpsInit(&operand);
    map.arguments.emplace_back();
    if (!isa<MemRefType>(operand.get().getType())) {
      if (read &&
          failed(addScalar(emitter, op, operand.get(), names[number], map)))
        return failure();
      continue;
    }
    if (!read && !written)
      continue;
    auto made =
        makeMapOperand(emitter, op, operand.get(),
                       op.getMatchingIndexingMap(&operand), names[number]);
    if (failed(made))
      return failure();
    made->read = read;
    made->written = written;
    map.arguments.back().operand = map.operands.size();
    if (written)
      map.results.push_back(map.operands.size());
    map.operands.push_back(*made);
  }
  return map;
}

/// Loops over reduction dims in a thread per element of the result.
class ReductionText {
public:
  ReductionText(const MapKernel &map, const LoopNest &outer,
                const LoopNest &inner, bool narrow)
      : map(map), outer(outer), inner(inner), narrow(narrow),
        outerIndex(kernel, outer, narrow, "d"),
        innerIndex(kernel, inner, narrow, "r") {}

  KernelText &emit() {
    std::string type = outerIndex.type().str();
    kernel.number(type, "count", outer.getNumPoints());
    kernel.body += "  const " + type +
                   " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                   " * blockDim.x + threadIdx.x;\n"
                   "  if (i >= count)\n    return;\n";
    outerIndex.decode("i");
    addParameters(kernel, map);
    for (unsigned result : map.results) {
      const MapOperand &operand = map.operands[result];
      kernel.body += "  " + *getCppType(operand.ref.elementType) + " " +
                     operand.name + "_sum = " + operand.name + "[" +
                     outerIndex.offset(result, operand.name) + "];\n";
    }
    emitLoops();
    for (unsigned result : map.results) {
      const MapOperand &operand = map.operands[result];
      kernel.body += "  " + operand.name + "[" +
                     outerIndex.offset(result, operand.name) +
                     "] = " + operand.name + "_sum;\n";
    }
    return kernel;
  }

private:
  void emitLoops() {
    SmallVector<std::string> dims;
    std::string indent = "  ";
    for (unsigned dim = 0; dim < inner.getNumDims(); ++dim) {
      dims.push_back("r" + std::to_string(dim));
      std::string extent = kernel.number(
          innerIndex.type(), "extent_" + dims.back(), inner.extents[dim]);
      kernel.body += indent + "for (" + innerIndex.type().str() + " " +
                     dims.back() + " = 0; " + dims.back() + " < " + extent +
                     "; ++" + dims.back() + ")\n";
      indent += "  ";
    }
    innerIndex.setDims(dims);
    SmallVector<std::string> results;
    for (unsigned result : map.results)
      results.push_back(map.operands[result].name + "_sum");
    std::string call = map.function.call(
        [&](unsigned number) {
          const MapArgument &argument = map.arguments[number];
          if (argument.operand < 0)
            return argument.literal;
          const MapOperand &operand = map.operands[argument.operand];
          if (operand.written)
            return operand.name + "_sum";
          return operand.name + "[" +
                 sum({outerIndex.offset(argument.operand, operand.name),
                      innerIndex.offset(argument.operand, operand.name)}) +
                 "]";
        },
        [&](int64_t dim) {
          std::string found = outerIndex.dimOf(dim);
          return found == "0" ? innerIndex.dimOf(dim) : found;
        },
        results);
    kernel.body += indent +
                   (results.size() == 1 ? results.front() + " = " : "") + call +
                   ";\n";
  }

  const MapKernel &map;
  const LoopNest &outer, &inner;
  bool narrow;
  KernelText kernel;
  IndexText outerIndex, innerIndex;
};

LogicalResult emitReduction(Emitter &emitter, linalg::GenericOp op,
                            MapKernel &map) {
  SmallVector<unsigned> parallel, reduction;
  for (auto [dim, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    (kind == utils::IteratorType::parallel ? parallel : reduction)
        .push_back(dim);
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : map.operands) {
    accesses.push_back(operand.access);
    if (operand.written)
      for (unsigned dim : reduction)
        if (operand.access.coefficients[dim] != 0)
          return op.emitError("a result that depends on a reduction dim is "
                              "unsupported by the CUDA target");
  }
  LoopNest nest(map.extents, accesses);
  LoopNest outer = nest.select(parallel), inner = nest.select(reduction);
  outer.simplify(map.results.front(), map.function.indices);
  // The order of a sum is that of the op's dims, so they are only merged.
  inner.simplify(/*lead=*/~0u, map.function.indices);
  if (outer.getNumPoints() == 0 || inner.getNumPoints() == 0)
    return success(); // an empty reduction leaves its result as it was
  // Reading a result makes it an operand that is read.
  for (unsigned result : map.results)
    map.operands[result].read = true;
  ReductionText text(map, outer, inner, nest.isNarrow());
  KernelText &kernel = text.emit();
  std::string name = kernel.define(emitter, "reduce_" + map.function.hint,
                                   "One result a thread.");
  emitter.addLaunch(op, map.title, kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()),
                                  gridFor(outer.getNumPoints()),
                                  "dim3(" + Twine(kMapThreads) + ")"));
  return success();
}

} // namespace

LogicalResult emitGeneric(Emitter &emitter, Operation *raw) {
  auto op = cast<linalg::GenericOp>(raw);
  if (op.getNumDpsInits() == 0)
    return op.emitError("has no result, which is unsupported by the CUDA "
                        "target");
  auto map = readGeneric(emitter, op);
  if (failed(map))
    return failure();
  if (op.getNumReductionLoops() != 0)
    return emitReduction(emitter, op, *map);
  emitMapKernel(emitter, *map);
  return success();
}

LogicalResult emitCopy(Emitter &emitter, Operation *raw) {
  auto op = cast<memref::CopyOp>(raw);
  return emitCopyKernel(emitter, op, op.getSource(), op.getTarget(),
                        "memref.copy");
}

LogicalResult emitStore(Emitter &emitter, Operation *raw) {
  auto op = cast<memref::StoreOp>(raw);
  auto ref = emitter.buffers.resolve(op.getMemRef(), op);
  if (failed(ref))
    return failure();
  MapKernel map;
  map.op = op;
  map.title = "memref.store";
  MapOperand to{"y", *ref, {}, /*read=*/false, /*written=*/true};
  if (failed(moveToElement(to.ref, op.getIndices(), op)))
    return failure();
  map.operands = {to};
  map.function = ScalarFunction::argument(0);
  map.arguments.emplace_back();
  map.results = {0};
  if (failed(addScalar(emitter, op, op.getValueToStore(), "x0", map)))
    return failure();
  emitMapKernel(emitter, map);
  return success();
}

} // namespace memplan
