//===- EmitCUDA.cpp - Planned memref IR to CUDA C++ text ------------------===//

#include "memplan/Target/CUDA/EmitCUDA.h"

#include "CppText.h"
#include "Emitter.h"
#include "HostCode.h"
#include "Safetensors.h"
#include "SourceWriter.h"
#include "memplan/Analysis/Liveness.h"
#include "memplan/Analysis/ProgramPoints.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Dialect/RunDims.h"
#include "memplan/Dialect/Signedness.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace memplan {

namespace {

/// The one public function with a body.
FailureOr<func::FuncOp> findEntry(ModuleOp module) {
  func::FuncOp entry;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isDeclaration())
      continue;
    if (entry) {
      InFlightDiagnostic diagnostic =
          function.emitError("a second public function; the CUDA target emits "
                             "one, make the others private");
      diagnostic.attachNote(entry.getLoc()) << "the first is here";
      return failure();
    }
    entry = function;
  }
  if (!entry) {
    module.emitError("has no public function to emit CUDA for");
    return failure();
  }
  if (!entry.getBody().hasOneBlock() || entry.getNumResults() != 0) {
    entry.emitError("is unsupported by the CUDA target, which takes one block "
                    "and results in arguments; run memplan-bufferize-pipeline");
    return failure();
  }
  return entry;
}

/// One emitter then serves all of linalg.
LogicalResult generalize(func::FuncOp entry) {
  SmallVector<linalg::LinalgOp> named;
  entry.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op))
      named.push_back(op);
  });
  IRRewriter rewriter(entry.getContext());
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitError()
             << op->getName() << " is unsupported by the CUDA target";
  }
  return success();
}

/// An extent that the run tells, of an output before it.
LogicalResult readRunDim(func::FuncOp entry, MemRefType type, ArrayAttr place,
                         ProgramText &program) {
  auto numbers = place.getAsRange<IntegerAttr>();
  bool fits = place.size() == 2 && type.getRank() == 0 &&
              type.getElementType().isInteger(64) &&
              llvm::all_of(place, llvm::IsaPred<IntegerAttr>);
  int64_t output = fits ? (*numbers.begin()).getInt() : -1;
  int64_t dim = fits ? (*std::next(numbers.begin())).getInt() : -1;
  if (output < 0 || output >= static_cast<int64_t>(program.outputs.size()) ||
      dim < 0 || dim >= program.outputs[output].type.getRank())
    return entry.emitError() << kRunDimAttr << " = " << place
                             << " names no dim of an output, or its argument "
                                "is no scalar i64";
  program.outputs[output].runDims.push_back({dim, program.extents.size()});
  program.extents.push_back(type);
  return success();
}

/// Whether the elements of `declared`, several a byte, are the bytes of
/// `bytes`.
bool fitsPacked(RankedTensorType declared, MemRefType bytes) {
  Type element = declared.getElementType();
  auto count = declared.hasStaticShape() && element.isIntOrFloat()
                   ? checkedProduct(declared.getShape())
                   : std::nullopt;
  if (!count || !bytes.getElementType().isInteger(8))
    return false;
  int64_t width = element.getIntOrFloatBitWidth();
  return (width == 2 || width == 4) &&
         bytes.getNumElements() ==
             *count / (8 / width) + (*count % (8 / width) != 0);
}

LogicalResult readInterface(func::FuncOp entry, ProgramText &program) {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || !type.hasStaticShape() || !getCppType(type.getElementType()) ||
        !type.getLayout().isIdentity() || !getContentBytes(type))
      return entry.emitError()
             << "argument " << number << " of type " << argument.getType()
             << " is unsupported by the CUDA target, which takes memrefs of "
                "static shape, identity layout and elements of index, i1, i8, "
                "i16, i32, i64, f64, f32, f16, bf16 or the 8-bit and 4-bit "
                "floats of ONNX";
    if (isArenaArgument(argument))
      continue;
    bool isOutput = isOutputArgument(argument);
    if (auto place = entry.getArgAttrOfType<ArrayAttr>(number, kRunDimAttr)) {
      if (failed(readRunDim(entry, type, place, program)))
        return failure();
      continue;
    }
    if (isOutput && !program.extents.empty())
      return entry.emitError() << "argument " << number
                               << " is an output behind extents of outputs";
    auto &list = isOutput ? program.outputs : program.inputs;
    auto given = entry.getArgAttrOfType<StringAttr>(number, kNameAttr);
    list.push_back(
        {given ? given.str()
               : (isOutput ? "output" : "input") + std::to_string(list.size()),
         type,
         entry.getArgAttr(number, kUnsignedAttr) != nullptr,
         {}});
    auto packed = entry.getArgAttrOfType<TypeAttr>(number, kPackedAttr);
    if (!packed)
      continue;
    auto declared = dyn_cast<RankedTensorType>(packed.getValue());
    if (!declared || !fitsPacked(declared, type))
      return entry.emitError()
             << "argument " << number << " of type " << type << " has "
             << kPackedAttr << " = " << packed
             << "; a tensor of 2-bit or 4-bit elements of static shape that "
                "fills these bytes is accepted";
    list.back().declared = declared;
  }
  if (auto arenas = entry->getAttrOfType<ArrayAttr>(kArenasAttr)) {
    if (arenas.size() > 1)
      return entry.emitError()
             << "has " << arenas.size()
             << " arenas; the CUDA target takes one, in global memory";
    for (auto arena : arenas.getAsRange<ArenaAttr>()) {
      program.arenaBytes = arena.getBytes();
      program.arenaAlignment = arena.getAlignment();
    }
  }
  return success();
}

void readLives(func::FuncOp entry, ProgramText &program) {
  entry.walk([&](Operation *op) {
    auto slot = op->getAttrOfType<SlotAttr>(kSlotAttr);
    if (!slot || op->getNumResults() != 1)
      return;
    auto type = dyn_cast<MemRefType>(op->getResult(0).getType());
    auto bytes = type ? getContentBytes(type) : std::nullopt;
    if (!bytes)
      return;
    std::string name = getNodeName(op->getLoc());
    if (!slot.getParts()) {
      program.lives.push_back(
          {name, slot.getOffset(), *bytes, slot.getLower(), slot.getUpper()});
      return;
    }
    for (auto part : slot.getParts().getAsRange<PartAttr>())
      program.lives.push_back({name, slot.getOffset() + part.getOffset(),
                               part.getBytes(), part.getLower(),
                               part.getUpper()});
  });
  llvm::stable_sort(program.lives, [](const auto &a, const auto &b) {
    return a.lower < b.lower;
  });
}

} // namespace

FailureOr<EmittedCUDA> emitCUDA(ModuleOp original,
                                const CUDAEmitOptions &options) {
  OwningOpRef<ModuleOp> module(original.clone());
  auto entry = findEntry(*module);
  if (failed(entry))
    return failure();
  auto weights = computeWeightsLayout(*module);
  if (failed(weights) || failed(generalize(*entry)))
    return failure();
  BufferTable buffers(*entry, *weights);
  buffers.getCarried().analyze();
  Emitter emitter(buffers);
  ProgramText program{options,  getModelName(*module).str(),
                      {},       {},
                      *weights, 0,
                      256,      {},
                      emitter,  {},
                      {}};
  if (options.externalWeights) {
    auto sources = findWeightSources(*weights, options, program.modelName);
    if (!sources)
      return entry->emitError() << llvm::toString(sources.takeError());
    program.weightSources = std::move(*sources);
  }
  if (failed(readInterface(*entry, program)))
    return failure();
  readLives(*entry, program);
  // Numbered after generalization: an op takes one point before and after it.
  ProgramPoints points(*entry);
  if (failed(HostCode(emitter, points).emitBlock(entry->getBody().front())))
    return failure();
  emitter.pruneSteps();
  emitter.pruneDefinitions();
  auto source = writeSource(program, *module);
  if (failed(source))
    return failure();
  bool hasOwnWeights =
      !options.externalWeights || !getConstants(*weights).weights.empty();
  return EmittedCUDA{*source, writeHeader(program), hasOwnWeights};
}

} // namespace memplan
