//===- NodeImporter.cpp - Tensors and nodes of a graph --------------------===//

#include "Evaluate.h"
#include "GraphImporterImpl.h"
#include "Packing.h"
#include "RunDims.h"
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
  auto describe = [&](const std::string &text) {
    return "the model declares " + quoted(declared.name) + scope.place +
           " as " + text + ", but it is " + typeText(found);
  };
  auto mismatch = [&](const std::string &text) {
    return reporter.invalid() << describe(text);
  };
  if (declared.kind.empty())
    return success();
  if (found.isList() || declared.kind != "tensor") {
    static constexpr StringRef kKinds[] = {"tensor", "sequence", "optional"};
    // What is never absent does for an optional.
    if (declared.kind == "optional" ||
        declared.kind == kKinds[static_cast<int>(found.form)])
      return success();
    return mismatch(declared.kind.str());
  }
  if (declared.dataType != 0 && declared.dataType != found.dtype.code())
    return mismatch(dtypeName(declared.dataType));
  if (!declared.shape)
    return success();
  bool agrees = static_cast<int64_t>(declared.shape->size()) == found.rank();
  std::string shape;
  for (auto [index, dim] : llvm::enumerate(*declared.shape)) {
    auto size = dims.size(dim, declared.name, index);
    // A declared size of a run's extent is its author's guess, unless it is
    // more than can be.
    if (agrees && size && *size != found.dim(index))
      agrees = found.runExtent(index) && *size < found.dim(index);
    shape += (index ? "x" : "") + (size ? std::to_string(*size) : "?");
  }
  if (agrees || !misdeclared.insert(declared.name).second)
    return success();
  if (misdeclared.size() == 1)
    firstMisdeclared = describe(shape + (shape.empty() ? "" : "x") +
                                typeText(found.dtype, {}));
  return success();
}

void GraphImporter::warnOfMisdeclared() {
  if (misdeclared.empty())
    return;
  auto warning = reporter.warning();
  warning << firstMisdeclared << ", which is what counts";
  if (misdeclared.size() > 1)
    warning << "; so it is with " << misdeclared.size() - 1
            << " other declared shape" << (misdeclared.size() > 2 ? "s" : "");
}

LogicalResult GraphImporter::collectDeclared(Scope &scope) {
  for (const ValueInfo &info : scope.graph.valueInfos)
    scope.declarations[info.name] = &info;
  // What is said of an output as such counts; converters forget the other one.
  for (const ValueInfo &info : scope.graph.outputs)
    scope.declarations.erase(info.name);
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
  // A trial has only what is known: a weight that an op of the function reads
  // already is a constant for it all the same.
  if (tensor.value && !(isTrial && tensor.isKnown()))
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

/// Makes constants of the values that a trial made; false if it can't.
static bool evaluateResults(Block &trial,
                            MutableArrayRef<ImportedTensor> results) {
  SmallVector<Value> values;
  for (ImportedTensor &result : results) {
    if (result.isList())
      return false;
    if (!result.value)
      continue;
    values.push_back(result.value);
    for (const RunDim &dim : result.runDims)
      values.push_back(dim.extent);
  }
  auto known = evaluate(trial, values, kEvaluationBudget);
  if (!known)
    return false;
  ArrayRef<DenseElementsAttr> rest(*known);
  for (ImportedTensor &result : results) {
    if (!result.value)
      continue;
    DenseElementsAttr elements = rest.consume_front();
    SmallVector<std::pair<int64_t, int64_t>> extents;
    for (const RunDim &dim : result.runDims)
      extents.push_back(
          {dim.dim,
           (*rest.consume_front().value_begin<APInt>()).getSExtValue()});
    result.constant = cutToExtents(elements, extents);
    result.type = cast<RankedTensorType>(result.constant.getType());
    result.value = {};
    result.runDims.clear();
    result.entries.clear();
  }
  return true;
}

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
    for (unsigned i = 0; i < n.numInputs(); ++i)
      if (!entry.takesLists && n.hasInput(i) && n.input(i).isList())
        return n.invalid() << n.inputText(i) << "; a tensor is accepted";
    if (failed(buildWithRunDims(n, entry)) || failed(n.finish()))
      return failure();
    results.assign(n.getResults().begin(), n.getResults().end());
    return success();
  };

  bool isNonZero = &entry == findOp("", "NonZero", opsetOf(""));
  if (isNonZero)
    if (ImportedTensor *before = scope.nonZeros.lookup(inputs.front())) {
      ImportedTensor same;
      same.name = node.outputs.front();
      same.aliasOf = before;
      same.type = before->type;
      same.dtype = before->dtype;
      return addResult(scope, std::move(same), text);
    }

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
    isEvaluated = evaluateResults(trial, results);
  }
  if (!isEvaluated) {
    results.clear();
    if (failed(build(builder, /*isTrial=*/false, results)))
      return failure();
  }
  for (ImportedTensor &result : results)
    if (!result.name.empty() && failed(addResult(scope, result, text)))
      return failure();
  if (isNonZero && !node.outputs.front().empty())
    scope.nonZeros[inputs.front()] = scope.tensors[node.outputs.front()];
  return success();
}

LogicalResult GraphImporter::addResult(Scope &scope, ImportedTensor result,
                                       const std::string &text) {
  auto count = result.isList() ? 1 : checkedProduct(result.shape());
  if (!count || (!result.isList() && !checkedMul(*count, result.dtype.bytes())))
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

LogicalResult GraphImporter::importNode(Scope &scope, const Node &stated) {
  std::string text =
      nodeText(stated, &stated - scope.graph.nodes.data()) + scope.place;
  budget.countNode();
  if (budget.isSpent())
    return reporter.error(ImportErrorKind::Unsupported)
           << text << ": the model's loops unroll to more than "
           << Budget::kMostRepeatedNodes
           << " nodes; loops of bodies that do not need the iteration number "
              "as a constant, and whose state keeps its shape, need no "
              "unrolling";
  bool hasReferences =
      llvm::any_of(stated.attributes, [](const NodeAttribute &attribute) {
        return !attribute.reference.empty();
      });
  std::optional<Node> resolved;
  if (hasReferences) {
    FailureOr<Node> made = resolveAttributes(stated, call, text, reporter);
    if (failed(made))
      return failure();
    resolved = std::move(*made);
  }
  const Node &node = resolved ? *resolved : stated;
  SmallVector<ImportedTensor *> inputs;
  for (StringRef name : node.inputs) {
    // Defined earlier in the order, unless its maker left it out, which
    // NodeBuilder::finish has refused, or it is an input of a function that
    // the call left out.
    inputs.push_back(name.empty() ? nullptr : scope.find(name));
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
  if (const Function *function = functions.find(node))
    return importCall(scope, node, text, *function, inputs);
  int64_t opset = opsetOf(node.domain);
  // All operators were looked up before the first was built.
  const OpEntry &entry = *findOp(node.domain, node.opType, opset);
  auto describe = [&]() {
    return reporter.invalid()
           << text << " (" << node.opType.str() << ", opset " << opset << ") ";
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

/// The function's nodes see its inputs alone, and are of its opsets.
LogicalResult GraphImporter::importCall(Scope &scope, const Node &node,
                                        const std::string &text,
                                        const Function &function,
                                        ArrayRef<ImportedTensor *> inputs) {
  const Graph &body = function.body;
  auto describe = [&] {
    return reporter.invalid() << text << " calls " << functionText(function);
  };
  if (inputs.size() > body.inputs.size() ||
      node.outputs.size() > body.outputs.size())
    return describe() << " with " << inputs.size() << " inputs and "
                      << node.outputs.size() << " outputs, which has "
                      << body.inputs.size() << " and " << body.outputs.size();
  for (const NodeAttribute &attribute : node.attributes) {
    bool isDeclared =
        llvm::is_contained(function.attributes, attribute.name) ||
        llvm::any_of(function.defaults, [&](const NodeAttribute &other) {
          return other.name == attribute.name;
        });
    if (!isDeclared)
      return describe() << " with attribute " << quoted(attribute.name)
                        << ", which is not one of the function's";
    if (attribute.g)
      return reporter.error(ImportErrorKind::Unsupported)
             << text << " gives " << functionText(function)
             << " a graph as attribute " << quoted(attribute.name)
             << "; numbers, strings and tensors are accepted";
  }
  FunctionCall made{function, node};
  Scope inner(body, nullptr, " in " + functionText(function) + " of " + text);
  llvm::SaveAndRestore<const Scope *> enter(current, &inner);
  llvm::SaveAndRestore<const FunctionCall *> enterCall(call, &made);
  for (auto [i, input] : llvm::enumerate(body.inputs))
    inner.tensors[input.name] = i < inputs.size() ? inputs[i] : nullptr;
  if (failed(importNodes(inner)))
    return failure();
  for (auto [name, output] : llvm::zip(node.outputs, body.outputs)) {
    if (name.empty())
      continue;
    ImportedTensor result;
    result.aliasOf = inner.find(output.name);
    if (!result.aliasOf)
      return describe() << ", whose output " << quoted(output.name)
                        << " is an input that the call leaves out";
    result.name = name;
    result.dtype = result.aliasOf->dtype;
    result.type = result.aliasOf->type;
    if (failed(addResult(scope, result, text)))
      return failure();
  }
  return success();
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
    if (!outputs.back())
      return reporter.invalid()
             << "the graph output " << quoted(output.name) << inner.place
             << " is an input of a function that its call leaves out";
    if (failed(checkDeclared(inner, output, *outputs.back())))
      return failure();
  }
  return outputs;
}
