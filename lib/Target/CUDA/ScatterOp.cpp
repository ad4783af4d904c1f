//===- ScatterOp.cpp - memplan.scatter ------------------------------------===//
//
// The data is copied unless it is in place; then a thread makes all updates
// that may meet, one after another, and threads share out the others.
//
//===----------------------------------------------------------------------===//

#include "CppText.h"
#include "MapKernel.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

class ScatterText {
public:
  ScatterText(Emitter &emitter, ScatterOp op) : emitter(emitter), op(op) {}

  LogicalResult read();
  LogicalResult emitCopy();
  void emitUpdates();

private:
  void emitLoops(IndexText &outer, IndexText &inner, const LoopNest &innerNest);

  Emitter &emitter;
  ScatterOp op;
  std::vector<MapOperand> operands; ///< Output, updates, indices.
  ScalarFunction combine;
  KernelText kernel;
};

LogicalResult ScatterText::read() {
  auto output = emitter.buffers.resolve(op.getInit(), op);
  auto function =
      makeScalarFunction(emitter, op, op.getCombine(), {"old", "update"});
  if (failed(output) || failed(function))
    return failure();
  combine = *function;
  // How the output is walked in its dims that loops give.
  auto updatesType = cast<MemRefType>(op.getUpdates().getType());
  LinearAccess access;
  access.coefficients.assign(updatesType.getRank(), 0);
  ArrayRef<int64_t> loops = op.getLoops();
  for (auto [dim, stride] : llvm::enumerate(output->strides)) {
    if (llvm::is_contained(op.getAxes(), static_cast<int64_t>(dim)))
      continue;
    access.coefficients[loops.front()] = stride;
    loops = loops.drop_front();
  }
  operands.push_back({"y", *output, access, combine.uses(0), /*written=*/true});
  auto identity =
      AffineMap::getMultiDimIdentityMap(updatesType.getRank(), op.getContext());
  auto updates = makeMapOperand(emitter, op, op.getUpdates(), identity, "u");
  if (failed(updates))
    return failure();
  updates->read = combine.uses(1);
  operands.push_back(*updates);
  for (auto [i, index] : llvm::enumerate(op.getIndices())) {
    auto made = makeMapOperand(emitter, op, index, op.getIndexMap(i),
                               "index" + std::to_string(i));
    if (failed(made))
      return failure();
    operands.push_back(*made);
  }
  return success();
}

LogicalResult ScatterText::emitCopy() {
  auto data = emitter.buffers.resolve(op.getData(), op);
  if (failed(data))
    return failure();
  const BufferRef &output = operands.front().ref;
  if (areSamePlace(*data, output))
    return success();
  return emitCopyKernel(emitter, op, op.getData(), op.getInit(),
                        "memplan.scatter, its copy");
}

void ScatterText::emitLoops(IndexText &outer, IndexText &inner,
                            const LoopNest &innerNest) {
  SmallVector<std::string> dims;
  std::string indent = "  ";
  for (unsigned dim = 0; dim < innerNest.getNumDims(); ++dim) {
    std::string name = "r" + std::to_string(dim);
    dims.push_back(name);
    std::string extent =
        kernel.number(inner.type(), "extent_" + name, innerNest.extents[dim]);
    kernel.body += indent + "for (" + inner.type().str() + " " + name +
                   " = 0; " + name + " < " + extent + "; ++" + name + ") {\n";
    indent += "  ";
  }
  inner.setDims(dims);
  auto element = [&](unsigned number) {
    const std::string &name = operands[number].name;
    return name + "[" +
           sum({outer.offset(number, name), inner.offset(number, name)}) + "]";
  };
  const BufferRef &output = operands.front().ref;
  SmallVector<std::string> terms = {outer.offset(0, "y")}, tests;
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    std::string at = "at" + std::to_string(i);
    std::string size = kernel.number("int64_t", "size" + std::to_string(i),
                                     output.shape[axis]);
    kernel.body += indent + "int64_t " + at + " = " + element(2 + i) + ";\n" +
                   indent + at + " += " + at + " < 0 ? " + size + " : 0;\n";
    tests.push_back(at + " >= 0 && " + at + " < " + size);
    terms.push_back(output.strides[axis] == 1
                        ? at
                        : at + " * " +
                              kernel.number("int64_t",
                                            "y_stride" + std::to_string(i),
                                            output.strides[axis]));
  }
  kernel.body += indent + "if (" + llvm::join(tests, " && ") + ") {\n" +
                 indent + "  const int64_t place = " + sum(terms) + ";\n" +
                 indent + "  y[place] = " + combine.call([&](unsigned number) {
                   return number == 0 ? std::string("y[place]") : element(1);
                 }) +
                 ";\n" + indent + "}\n";
  for (size_t i = 0; i < dims.size(); ++i) {
    indent.resize(indent.size() - 2);
    kernel.body += indent + "}\n";
  }
}

void ScatterText::emitUpdates() {
  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : operands)
    accesses.push_back(operand.access);
  auto shape = cast<MemRefType>(op.getUpdates().getType()).getShape();
  LoopNest nest(shape, accesses);
  SmallVector<unsigned> shared, ordered;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    (llvm::is_contained(op.getLoops(), static_cast<int64_t>(dim)) ? shared
                                                                  : ordered)
        .push_back(dim);
  LoopNest outer = nest.select(shared), inner = nest.select(ordered);
  outer.simplify(/*lead=*/0);
  inner.simplify(/*lead=*/~0u);
  if (nest.getNumPoints() == 0)
    return;
  bool narrow = nest.isNarrow();
  IndexText outerIndex(kernel, outer, narrow, "d");
  IndexText innerIndex(kernel, inner, narrow, "r");
  std::string type = outerIndex.type().str();
  kernel.number(type, "count", outer.getNumPoints());
  kernel.body += "  const " + type +
                 " i = " + (narrow ? "blockIdx.x" : "int64_t(blockIdx.x)") +
                 " * blockDim.x + threadIdx.x;\n"
                 "  if (i >= count)\n    return;\n";
  outerIndex.decode("i");
  for (const MapOperand &operand : operands)
    if (operand.read || operand.written)
      kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  for (const PointerArgument &table : combine.tables)
    kernel.pointer(table.name, table.ref, /*read=*/true, /*written=*/false);
  emitLoops(outerIndex, innerIndex, inner);
  std::string name =
      kernel.define(emitter, "scatter_" + combine.hint,
                    "One thread makes all updates that may meet.");
  emitter.addLaunch(op, "memplan.scatter", kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()),
                                  gridFor(outer.getNumPoints()),
                                  "dim3(" + Twine(kMapThreads) + ")"));
}

} // namespace

LogicalResult emitScatter(Emitter &emitter, Operation *raw) {
  ScatterText text(emitter, cast<ScatterOp>(raw));
  if (failed(text.read()) || failed(text.emitCopy()))
    return failure();
  text.emitUpdates();
  return success();
}

} // namespace memplan
