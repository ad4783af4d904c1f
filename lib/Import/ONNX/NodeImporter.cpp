//===- NodeImporter.cpp - Tensors and nodes of a graph --------------------===//

#include "Evaluate.h"
#include "GraphImporterImpl.h"
#include "Packing.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

LogicalResult GraphImporter::addInitializers(Scope &scope) {
  const Graph &graph = scope.graph;
  auto [known, isNew] = initializers.try_emplace(&graph);
  if (!isNew) {
    for (ImportedTensor *tensor : known->second)
      scope.tensors[tensor->name] = tensor;
    return success();
  }
  if (graph.hasSparseInitializers)
    return reporter.error(ImportErrorKind::Unsupported)
           << "the graph" << scope.place
           << " has sparse initializers; dense ones are accepted";
  for (const Tensor &tensor : graph.initializers) {
    FailureOr<TensorData> data =
        checkTensor(tensor, "initializer " + quoted(tensor.name) + scope.place,
                    file, reporter);
    if (failed(data))
      return failure();
    ImportedTensor imported;
    imported.name = tensor.name;
    imported.dtype = data->dtype;
    imported.type = data->type;
    imported.constant = data->values;
    imported.inFile = data->inFile;
    known->second.push_back(keep(imported));
    scope.tensors[tensor.name] = known->second.back();
  }
  return success();
}

LogicalResult GraphImporter::checkDeclared(const Scope &scope,
                                           const ValueInfo &declared,
                                           const ImportedTensor &found) {
  auto mismatch = [&](const std::string &text) {
    return reporter.invalid() << "the model declares " << quoted(declared.name)
                              << scope.place << " as " << text << ", but it is "
                              << typeText(found.dtype, found.shape());
  };
  if (declared.kind.empty())
    return success();
  if (declared.kind != "tensor")
    return mismatch(declared.kind.str());
  if (declared.dataType != 0 && declared.dataType != found.dtype.code())
    return mismatch(dtypeName(declared.dataType));
  if (!declared.shape)
    return success();
  bool agrees = static_cast<int64_t>(declared.shape->size()) == found.rank();
  std::string shape;
  for (auto [index, dim] : llvm::enumerate(*declared.shape)) {
    auto size = dims.size(dim, declared.name, index);
    if (agrees && size && *size != found.dim(index))
      agrees = false;
    shape += (index ? "x" : "") + (size ? std::to_string(*size) : "?");
  }
  if (agrees)
    return success();
  return mismatch(shape + (shape.empty() ? "" : "x") +
                  typeText(found.dtype, {}));
}

LogicalResult GraphImporter::collectDeclared(Scope &scope) {
  for (const ValueInfo &info : scope.graph.valueInfos)
    scope.declarations[info.name] = &info;
  for (const ValueInfo &info : scope.graph.inputs) {
    ImportedTensor *found = scope.tensors.lookup(info.name);
    if (found && failed(checkDeclared(scope, info, *found)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value GraphImporter::addWeight(OpBuilder &b, ImportedTensor &tensor) {
  Location loc = nameLoc(tensor.name);
  RankedTensorType read = tensor.type;
  if (tensor.dtype.isPacked())
    read = packedType(&context, tensor.dtype, tensor.shape());
  auto type = MemRefType::get(read.getShape(), read.getElementType());
  const FileBytes &bytes = *tensor.inFile;
  std::string symbol = "w" + std::to_string(numWeights++);
  OpBuilder atModule(main);
  auto global = memref::GlobalOp::create(
      atModule, loc, symbol, b.getStringAttr("private"), type,
      /*initial_value=*/Attribute(), /*constant=*/true,
      /*alignment=*/IntegerAttr());
  global->setAttr(kNameAttr, b.getStringAttr(tensor.name));
  global->setAttr(kWeightAttr,
                  WeightAttr::get(&context, bytes.file, bytes.offset,
                                  static_cast<int64_t>(bytes.bytes.size())));
  Value memref = memref::GetGlobalOp::create(b, loc, type, symbol);
  Value value = bufferization::ToTensorOp::create(b, loc, read, memref,
                                                  /*restrict=*/true);
  if (tensor.dtype.isPacked())
    return unpackElements(b, loc, value, tensor.dtype, tensor.shape());
  return value;
}

/// Constants of a body that is built many times are read once.
Value GraphImporter::addSharedWeight(OpBuilder &b, ImportedTensor &tensor) {
  Value &shared = sharedWeights[{tensor.inFile->bytes.data(), tensor.name}];
  if (!shared || shared.getType() != tensor.type)
    shared = addWeight(b, tensor);
  return shared;
}

Value GraphImporter::materialize(OpBuilder &b, ImportedTensor &tensor,
                                 bool isTrial) {
  if (tensor.value)
    return tensor.value;
  DenseElementsAttr elements = tensor.constant;
  if (tensor.inFile && isTrial)
    elements = readElements(tensor.dtype, tensor.type, tensor.inFile->bytes);
  // What a subgraph reads is made at the start of the function, where it serves
  // all subgraphs and is not made again by each iteration.
  bool isInSubgraph = !isTrial && b.getInsertionBlock() != &main.front();
  OpBuilder atStart(&main.front(), main.front().begin());
  OpBuilder &at = isInSubgraph ? atStart : b;
  Value value;
  if (elements)
    value = arith::ConstantOp::create(at, nameLoc(tensor.name), elements);
  else if (isInSubgraph)
    value = addSharedWeight(at, tensor);
  else
    value = addWeight(at, tensor);
  if (!isTrial)
    tensor.value = value;
  return value;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Whether computing with this tensor at import is worth its bytes in the IR:
/// shapes and scalars are, weights stay in their file.
/// What is quantized is a weight too.
static bool isSmall(const Node &node, const ImportedTensor &tensor) {
  if (tensor.constant && tensor.constant.isSplat())
    return true;
  bool isWeight = tensor.dtype.isFloat() || tensor.dtype.isStorage() ||
                  node.opType == "DequantizeLinear";
  return tensor.isKnown() && tensor.numElements() <= (isWeight ? 64 : 1 << 14);
}
static constexpr int64_t kEvaluationBudget = 1 << 19;

LogicalResult GraphImporter::buildNode(Scope &scope, const Node &node,
                                       const std::string &text,
                                       const OpEntry &entry,
                                       ArrayRef<ImportedTensor *> inputs) {
  Location loc = nameLoc(node.name);
  if (node.name.empty())
    for (StringRef output : llvm::reverse(node.outputs))
      if (!output.empty())
        loc = nameLoc(output);

  auto build = [&](OpBuilder &b, bool isTrial,
                   SmallVectorImpl<ImportedTensor> &results) -> LogicalResult {
    auto materializer = [&](OpBuilder &at, ImportedTensor &tensor) {
      return materialize(at, tensor, isTrial);
    };
    NodeBuilder n(node, text, opsetOf(node.domain), b, loc, reporter, file,
                  inputs, materializer, *this);
    if (failed(entry.build(n)) || failed(n.finish()))
      return failure();
    results.assign(n.getResults().begin(), n.getResults().end());
    return success();
  };

  SmallVector<ImportedTensor> results;
  // What is in a subgraph is evaluated node by node.
  bool hasSubgraph = llvm::any_of(
      node.attributes, [](const NodeAttribute &a) { return bool(a.g); });
  bool isEvaluated =
      !hasSubgraph && llvm::all_of(inputs, [&](ImportedTensor *t) {
        return !t || isSmall(node, *t);
      });
  if (isEvaluated) {
    Block trial;
    OpBuilder b(&context);
    b.setInsertionPointToEnd(&trial);
    if (failed(build(b, /*isTrial=*/true, results)))
      return failure();
    SmallVector<Value> values;
    for (ImportedTensor &result : results)
      if (result.value)
        values.push_back(result.value);
    auto known = evaluate(trial, values, kEvaluationBudget);
    isEvaluated = known.has_value();
    if (known)
      for (ImportedTensor &result : results)
        if (result.value) {
          result.constant = known->front();
          result.value = {};
          known->erase(known->begin());
        }
  }
  if (!isEvaluated) {
    results.clear();
    if (failed(build(builder, /*isTrial=*/false, results)))
      return failure();
  }
  for (ImportedTensor &result : results)
    if (!result.name.empty() && failed(addResult(scope, result, text)))
      return failure();
  return success();
}

LogicalResult GraphImporter::addResult(Scope &scope, ImportedTensor result,
                                       const std::string &text) {
  auto count = checkedProduct(result.shape());
  if (!count || !checkedMul(*count, result.dtype.bytes()))
    return reporter.invalid()
           << text << " makes " << quoted(result.name) << " of shape "
           << shapeText(result.shape())
           << ", which overflows: 64 bits cannot count its bytes";
  auto declared = scope.declarations.find(result.name);
  if (declared != scope.declarations.end() &&
      failed(checkDeclared(scope, *declared->second, result)))
    return failure();
  if (result.aliasOf)
    scope.tensors[result.name] = result.aliasOf;
  else
    scope.tensors[result.name] = keep(std::move(result));
  return success();
}

/// Whether an operator of ONNX takes what is only stored: it moves elements as
/// they are, or casts or quantizes.
static bool takesStorage(const Node &node) {
  static const llvm::StringSet<> kNames = {
      "BitCast", "Cast",    "CastLike", "Concat",        "DequantizeLinear",
      "Dropout", "Expand",  "Flatten",  "Gather",        "Identity",
      "If",      "Loop",    "Pad",      "QLinearMatMul", "QuantizeLinear",
      "Reshape", "Scan",    "Shape",    "Size",          "Slice",
      "Split",   "Squeeze", "Tile",     "Transpose",     "Unsqueeze",
      "Where"};
  return isDefaultDomain(node.domain) && kNames.contains(node.opType);
}

LogicalResult GraphImporter::importNode(Scope &scope, const Node &node) {
  const OpEntry &entry = *entryOf(node);
  std::string text =
      nodeText(node, &node - scope.graph.nodes.data()) + scope.place;
  budget.countNode();
  if (budget.isSpent())
    return reporter.error(ImportErrorKind::Unsupported)
           << text << ": the model's loops unroll to more than "
           << Budget::kMostRepeatedNodes
           << " nodes; loops of bodies that do not need the iteration number "
              "as a constant, and whose state keeps its shape, need no "
              "unrolling";
  SmallVector<ImportedTensor *> inputs;
  for (StringRef name : node.inputs) {
    // Defined earlier in the order, unless its maker left it out, which
    // NodeBuilder::finish has refused.
    inputs.push_back(name.empty() ? nullptr : scope.find(name));
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
  auto describe = [&]() {
    return reporter.invalid() << text << " (" << node.opType.str() << ", opset "
                              << opsetOf(node.domain) << ") ";
  };
  for (unsigned i = 0; i < entry.minInputs; ++i)
    if (i >= inputs.size() || !inputs[i])
      return describe() << "has no input " << i << ", which is required";
  if (inputs.size() > entry.maxInputs)
    return describe() << "has " << inputs.size() << " inputs; at most "
                      << entry.maxInputs << " are accepted";
  if (node.outputs.empty() || node.outputs.size() > entry.maxOutputs)
    return describe() << "has " << node.outputs.size() << " outputs; 1 to "
                      << entry.maxOutputs << " are accepted";
  for (ImportedTensor *input : inputs)
    if (input && input->dtype.isStorage() && !takesStorage(node))
      return describe() << "takes no elements of type "
                        << dtypeName(input->dtype) << ", which "
                        << quoted(input->name)
                        << " has; cast or dequantize them first";
  return buildNode(scope, node, text, entry, inputs);
}

LogicalResult GraphImporter::importNodes(Scope &scope) {
  for (const Node *node : checked.find(&scope.graph)->second.nodes)
    if (failed(importNode(scope, *node)))
      return failure();
  return success();
}

FailureOr<SmallVector<ImportedTensor *>>
GraphImporter::importSubgraph(const Graph &graph, std::string place,
                              ArrayRef<ImportedTensor *> inputs) {
  Scope inner(graph, current, std::move(place));
  llvm::SaveAndRestore<const Scope *> enter(current, &inner);
  if (failed(addInitializers(inner)))
    return failure();
  for (auto [input, tensor] : llvm::zip_equal(givenInputs(graph), inputs))
    inner.tensors[input->name] = tensor;
  if (failed(collectDeclared(inner)) || failed(importNodes(inner)))
    return failure();
  SmallVector<ImportedTensor *> outputs;
  for (const ValueInfo &output : graph.outputs) {
    outputs.push_back(inner.find(output.name));
    if (failed(checkDeclared(inner, output, *outputs.back())))
      return failure();
  }
  return outputs;
}
