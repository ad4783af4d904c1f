//===- NodeBuilder.cpp - What an operator's builder works with ------------===//

#include "NodeBuilder.h"

#include "GraphCheck.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// More elements than this are never looked at during import: shapes, axes and
/// scalars are far smaller, weights are not our business.
static constexpr int64_t kMostElementsRead = 1 << 16;

SmallVector<const ValueInfo *> memplan::onnx::givenInputs(const Graph &graph) {
  llvm::DenseSet<StringRef> initialized;
  for (const Tensor &tensor : graph.initializers)
    initialized.insert(tensor.name);
  SmallVector<const ValueInfo *> inputs;
  for (const ValueInfo &input : graph.inputs)
    if (!initialized.contains(input.name))
      inputs.push_back(&input);
  return inputs;
}

std::string memplan::onnx::typeText(const ImportedTensor &tensor) {
  if (tensor.form == Form::Sequence)
    return "sequence of " + std::to_string(tensor.elements.size());
  if (tensor.form == Form::Optional)
    return tensor.elements.empty()
               ? "optional without a value"
               : "optional " + typeText(*tensor.elements.front());
  if (tensor.runDims.empty())
    return typeText(tensor.dtype, tensor.shape());
  std::string text;
  for (int64_t i = 0; i < tensor.rank(); ++i)
    text +=
        (tensor.runExtent(i) ? "<=" : "") + std::to_string(tensor.dim(i)) + "x";
  return text + typeText(tensor.dtype, {});
}

NodeBuilder::NodeBuilder(const Node &node, std::string text, int64_t opset,
                         OpBuilder &builder, Location loc, Reporter &reporter,
                         ModelFile &file, ArrayRef<ImportedTensor *> inputs,
                         Materializer materialize, SubgraphImporter &subgraphs)
    : b(builder), loc(loc), opset(opset), node(node), text(std::move(text)),
      reporter(reporter), file(file), inputs(inputs),
      results(node.outputs.size()), materialize(materialize),
      subgraphs(subgraphs) {
  for (auto [result, name] : llvm::zip(results, node.outputs))
    result.name = name;
  // Before opset 6: which inputs the operator may overwrite.
  if (opset < 6 && (node.domain.empty() || node.domain == "ai.onnx"))
    asked.insert("consumed_inputs");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

InFlightDiagnostic NodeBuilder::error(ImportErrorKind kind) {
  InFlightDiagnostic diagnostic = reporter.error(kind);
  diagnostic << text << " (" << node.opType.str() << ", opset " << opset
             << "): ";
  return diagnostic;
}

std::string NodeBuilder::inputText(ImportedTensor &tensor) {
  return quoted(tensor.name) + " (" + typeText(tensor) + ")";
}

std::string NodeBuilder::inputText(unsigned i) {
  return "input " + std::to_string(i) + " " + inputText(input(i));
}

std::string NodeBuilder::originText(ArrayRef<ImportedTensor *> tensors) {
  llvm::SetVector<Value> values;
  for (ImportedTensor *tensor : tensors)
    if (tensor && tensor->value)
      values.insert(tensor->value);
  SmallVector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *from = values[i].getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      from = argument.getOwner()->getParentOp();
      if (isa_and_nonnull<FunctionOpInterface>(from)) {
        if (auto loc = dyn_cast<NameLoc>(argument.getLoc()))
          names.push_back(quoted(loc.getName().getValue()));
        continue;
      }
    }
    if (from)
      from->walk([&](Operation *op) {
        values.insert(op->operand_begin(), op->operand_end());
      });
  }
  llvm::sort(names);
  return std::string("the model's inputs") + (names.empty() ? "" : " ") +
         llvm::join(names, ", ");
}

LogicalResult NodeBuilder::finish() {
  if (wrongAttribute)
    return failure();
  for (const NodeAttribute &attribute : node.attributes)
    if (!asked.contains(attribute.name))
      return unsupported() << "attribute " << quoted(attribute.name)
                           << " is not one of this operator's";
  for (const ImportedTensor &result : results)
    if (!result.name.empty() && !result.type && !result.isList())
      return unsupported() << "the output " << quoted(result.name)
                           << " is not supported; leave it out";
  return success();
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

LogicalResult NodeBuilder::sameTypes(ArrayRef<unsigned> which) {
  unsigned first = which.front();
  for (unsigned i : which.drop_front())
    if (hasInput(i) && input(i).dtype != input(first).dtype)
      return invalid() << "inputs differ in element type: " << inputText(first)
                       << " and " << inputText(i);
  return success();
}

LogicalResult NodeBuilder::floatInput(unsigned i) {
  if (input(i).dtype.isFloat())
    return success();
  return unsupported() << inputText(i)
                       << " is not of a floating-point type, which is what is "
                          "accepted";
}

FailureOr<DenseElementsAttr> NodeBuilder::constant(unsigned i, StringRef what) {
  ImportedTensor &tensor = input(i);
  if (tensor.constant)
    return tensor.constant;
  if (!tensor.inFile)
    return unsupported() << what << " comes from " << inputText(i)
                         << ", which depends on " << originText(&tensor)
                         << "; a value that is known when compiling is "
                            "accepted (see --input-value)";
  if (tensor.numElements() > kMostElementsRead)
    return unsupported() << what << " comes from " << inputText(i)
                         << ", which has more than " << kMostElementsRead
                         << " elements";
  return readElements(tensor.dtype, tensor.type, tensor.inFile->bytes);
}

FailureOr<SmallVector<int64_t>> NodeBuilder::ints(unsigned i, StringRef what) {
  if (!input(i).dtype.isInteger())
    return invalid() << what << " comes from " << inputText(i)
                     << "; an integer tensor is accepted";
  FailureOr<DenseElementsAttr> elements = constant(i, what);
  if (failed(elements))
    return failure();
  SmallVector<int64_t> values;
  for (APInt value : elements->getValues<APInt>())
    values.push_back(input(i).dtype.isSigned()
                         ? value.getSExtValue()
                         : static_cast<int64_t>(value.getZExtValue()));
  return values;
}

FailureOr<int64_t> NodeBuilder::scalarInt(unsigned i, StringRef what) {
  FailureOr<SmallVector<int64_t>> values = ints(i, what);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return invalid() << what << " comes from " << inputText(i)
                     << "; one element is accepted";
  return values->front();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

const NodeAttribute *NodeBuilder::find(StringRef name) {
  asked.insert(name);
  for (const NodeAttribute &attribute : node.attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

const NodeAttribute *NodeBuilder::findOfType(StringRef name,
                                             NodeAttribute::Type type) {
  const NodeAttribute *attribute = find(name);
  // Files of IR version 1 have no types.
  if (attribute && attribute->type != type &&
      attribute->type != NodeAttribute::Undefined) {
    auto text = [](int64_t code) -> StringRef {
      static constexpr const char *kTypes[] = {
          "undefined", "float",  "int",  "string", "tensor",
          "graph",     "floats", "ints", "strings"};
      if (code == NodeAttribute::TypeProto)
        return "type";
      return code > 0 && code < 9 ? kTypes[code] : "unknown";
    };
    invalid() << "attribute " << quoted(name) << " has type "
              << text(attribute->type) << ", expected " << text(type);
    wrongAttribute = true;
    return nullptr;
  }
  return attribute;
}

int64_t NodeBuilder::intAttr(StringRef name, int64_t otherwise) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Int);
  return attribute ? attribute->i : otherwise;
}

float NodeBuilder::floatAttr(StringRef name, float otherwise) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Float);
  return attribute ? attribute->f : otherwise;
}

StringRef NodeBuilder::stringAttr(StringRef name, StringRef otherwise) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::String);
  return attribute ? attribute->s : otherwise;
}

std::optional<SmallVector<int64_t>> NodeBuilder::intsAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Ints);
  if (!attribute)
    return std::nullopt;
  return attribute->ints;
}

std::optional<SmallVector<float>> NodeBuilder::floatsAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Floats);
  if (!attribute)
    return std::nullopt;
  return attribute->floats;
}

StringRef NodeBuilder::opName() const { return node.opType; }

const ValueInfo *NodeBuilder::typeAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::TypeProto);
  return attribute ? attribute->tp.get() : nullptr;
}

const Tensor *NodeBuilder::tensorAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Tensor_);
  return attribute && attribute->t ? &*attribute->t : nullptr;
}

std::optional<SmallVector<StringRef>> NodeBuilder::stringsAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Strings);
  if (!attribute)
    return std::nullopt;
  return attribute->strings;
}

const Graph *NodeBuilder::graphAttr(StringRef name) {
  const NodeAttribute *attribute = findOfType(name, NodeAttribute::Graph_);
  if (attribute && attribute->g)
    return attribute->g.get();
  if (!wrongAttribute)
    invalid() << "has no attribute " << quoted(name)
              << ", the graph that is required";
  return nullptr;
}

LogicalResult NodeBuilder::checkStatic(const ImportedTensor &output) {
  if (!output.isList() && output.runDims.empty())
    return success();
  return unsupported() << quoted(output.name) << " (" << typeText(output)
                       << ") is not accepted here; a tensor whose shape is "
                          "known at import is";
}

FailureOr<SmallVector<ImportedTensor *>>
NodeBuilder::importGraph(StringRef name, const Graph &graph,
                         ArrayRef<ImportedTensor *> inputs,
                         const Twine &suffix) {
  auto outputs = importAnyGraph(name, graph, inputs, suffix);
  if (failed(outputs))
    return failure();
  for (ImportedTensor *output : *outputs)
    if (failed(checkStatic(*output)))
      return failure();
  return outputs;
}

FailureOr<SmallVector<ImportedTensor *>>
NodeBuilder::importAnyGraph(StringRef name, const Graph &graph,
                            ArrayRef<ImportedTensor *> inputs,
                            const Twine &suffix) {
  return subgraphs.importSubgraph(
      graph, (subgraphText(name, text) + suffix).str(), inputs);
}

FailureOr<TensorData> NodeBuilder::tensorData(const Tensor &tensor) {
  return checkTensor(tensor, text + ": its tensor", file, reporter);
}

FailureOr<int64_t> NodeBuilder::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return invalid() << "axis " << axis << " is outside [" << -rank << ", "
                     << rank - 1 << "] of a tensor of rank " << rank;
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> NodeBuilder::axes(ArrayRef<int64_t> axes,
                                                  int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t entry : axes) {
    FailureOr<int64_t> wrapped = axis(entry, rank);
    if (failed(wrapped))
      return failure();
    if (llvm::is_contained(result, *wrapped))
      return invalid() << "axis " << entry << " is named twice";
    result.push_back(*wrapped);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

bool NodeBuilder::wantsOutput(unsigned i) const {
  return i < results.size() && !results[i].name.empty();
}

LogicalResult NodeBuilder::result(unsigned i, Value value, DType dtype) {
  if (!value)
    return failure();
  if (!wantsOutput(i))
    return success();
  results[i].dtype = dtype;
  results[i].type = cast<RankedTensorType>(value.getType());
  results[i].value = value;
  return success();
}

LogicalResult NodeBuilder::constantResult(unsigned i, DenseElementsAttr value,
                                          DType dtype) {
  if (!wantsOutput(i))
    return success();
  results[i].dtype = dtype;
  results[i].type = cast<RankedTensorType>(value.getType());
  results[i].constant = value;
  return success();
}

LogicalResult NodeBuilder::dataResult(const TensorData &data) {
  results.front().dtype = data.dtype;
  results.front().type = data.type;
  results.front().constant = data.values;
  results.front().inFile = data.inFile;
  return success();
}

LogicalResult NodeBuilder::aliasResult(unsigned i, ImportedTensor &tensor) {
  if (!wantsOutput(i))
    return success();
  results[i].aliasOf = &tensor;
  results[i].form = tensor.form;
  results[i].dtype = tensor.dtype;
  results[i].type = tensor.type;
  return success();
}

LogicalResult NodeBuilder::listResult(unsigned i, Form form,
                                      ArrayRef<ImportedTensor *> elements) {
  if (!wantsOutput(i))
    return success();
  results[i].form = form;
  results[i].elements.assign(elements.begin(), elements.end());
  return success();
}
