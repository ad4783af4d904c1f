//===- GraphImporter.cpp - A decoded model to a module --------------------===//

#include "GraphImporter.h"

#include "Dims.h"
#include "Evaluate.h"
#include "GraphCheck.h"
#include "OpTable.h"
#include "memplan/Dialect/Signedness.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Path.h"

#include <deque>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

namespace {
class GraphImporter {
public:
  GraphImporter(const Model &model, ModelFile &file,
                const ImportOptions &options, Reporter &reporter)
      : model(model), graph(*model.graph), file(file), options(options),
        reporter(reporter), context(reporter.getContext()), builder(&context) {}

  FailureOr<OwningOpRef<ModuleOp>> run();

private:
  LogicalResult findOpset();
  LogicalResult checkSupport(ArrayRef<const Node *> nodes);
  LogicalResult addInitializers();
  LogicalResult addInputs();
  LogicalResult collectDeclared();
  LogicalResult importNode(const Node &node);
  LogicalResult buildNode(const Node &node, const std::string &text,
                          const OpEntry &entry,
                          ArrayRef<ImportedTensor *> inputs);
  LogicalResult addResult(ImportedTensor result, const std::string &text);
  LogicalResult addOutputs();
  void eraseDead();

  LogicalResult checkDeclared(const ValueInfo &declared,
                              const ImportedTensor &found);
  Value materialize(OpBuilder &b, ImportedTensor &tensor, bool isTrial);
  Value addWeight(OpBuilder &b, ImportedTensor &tensor);
  ImportedTensor *add(ImportedTensor tensor) {
    storage.push_back(std::move(tensor));
    return tensors[storage.back().name] = &storage.back();
  }
  Location nameLoc(StringRef name) {
    return NameLoc::get(StringAttr::get(&context, name));
  }

  const Model &model;
  const Graph &graph;
  ModelFile &file;
  const ImportOptions &options;
  Reporter &reporter;
  MLIRContext &context;
  OpBuilder builder;

  OwningOpRef<ModuleOp> module;
  func::FuncOp main;
  Dims dims;
  int64_t opset = 0;
  int64_t numWeights = 0;
  std::deque<ImportedTensor> storage;
  llvm::DenseMap<StringRef, ImportedTensor *> tensors;
  llvm::DenseMap<StringRef, const ValueInfo *> declarations;
};
} // namespace

static bool isDefaultDomain(StringRef domain) {
  return domain.empty() || domain == "ai.onnx";
}

LogicalResult GraphImporter::findOpset() {
  std::optional<int64_t> found;
  for (auto [domain, version] : model.opsets)
    if (isDefaultDomain(domain))
      found = version;
  if (!found) {
    // A model of other domains alone: every operator will be listed.
    opset = kNewestOpset;
    return success();
  }
  opset = *found;
  if (opset < kOldestOpset || opset > kNewestOpset)
    return reporter.error(ImportErrorKind::Unsupported)
           << "the model is of opset " << opset << "; opsets " << kOldestOpset
           << " to " << kNewestOpset << " are accepted";
  return success();
}

/// All operators that are not in the table, at once, before anything is built.
LogicalResult GraphImporter::checkSupport(ArrayRef<const Node *> nodes) {
  struct Missing {
    int64_t count = 0;
    std::string first;
  };
  llvm::MapVector<std::pair<StringRef, StringRef>, Missing> missing;
  for (const Node *node : nodes) {
    if (isDefaultDomain(node->domain) && findOp(node->opType, opset))
      continue;
    Missing &entry = missing[{node->domain, node->opType}];
    if (entry.count++ == 0)
      entry.first = nodeText(*node, node - graph.nodes.data());
  }
  if (missing.empty())
    return success();
  auto diagnostic = reporter.error(ImportErrorKind::Unsupported)
                    << missing.size() << " operator"
                    << (missing.size() == 1 ? " is" : "s are")
                    << " not supported (opset " << opset << "): ";
  llvm::interleaveComma(missing, diagnostic, [&](auto &entry) {
    auto [domain, name] = entry.first;
    if (!isDefaultDomain(domain))
      diagnostic << domain.str() << ".";
    if (entry.second.count == 1)
      diagnostic << name.str() << " (" << entry.second.first << ")";
    else
      diagnostic << name.str() << " (" << entry.second.count
                 << " nodes, the first " << entry.second.first << ")";
  });
  return failure();
}

LogicalResult GraphImporter::addInitializers() {
  if (graph.hasSparseInitializers)
    return reporter.error(ImportErrorKind::Unsupported)
           << "the graph has sparse initializers; dense ones are accepted";
  for (const Tensor &tensor : graph.initializers) {
    FailureOr<TensorData> data = checkTensor(
        tensor, "initializer " + quoted(tensor.name), file, reporter);
    if (failed(data))
      return failure();
    ImportedTensor imported;
    imported.name = tensor.name;
    imported.dtype = data->dtype;
    imported.type = data->type;
    imported.constant = data->values;
    imported.inFile = data->inFile;
    add(imported);
  }
  return success();
}

LogicalResult GraphImporter::addInputs() {
  SmallVector<const ValueInfo *> inputs;
  for (const ValueInfo &input : graph.inputs) {
    // An input with an initializer is optional: we take the default.
    if (tensors.count(input.name))
      continue;
    if (input.kind != "tensor")
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " is "
             << (input.kind.empty() ? "of no stated type"
                                    : ("a " + input.kind).str())
             << "; a tensor is accepted";
    if (!DType::fromCode(input.dataType))
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " has element type "
             << dtypeName(input.dataType)
             << "; float, double, float16, bfloat16, bool and integers of 8 to "
                "64 bits are accepted";
    if (!input.shape)
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name)
             << " has no shape; one with sizes or symbolic dims is accepted";
    inputs.push_back(&input);
  }
  FailureOr<Dims> bound = Dims::bind(inputs, options, reporter);
  if (failed(bound))
    return failure();
  dims = *bound;

  Block *entry = main.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  SmallVector<Type> types;
  for (const ValueInfo *input : inputs) {
    ImportedTensor imported;
    imported.name = input->name;
    imported.dtype = *DType::fromCode(input->dataType);
    SmallVector<int64_t> shape;
    for (auto [index, dim] : llvm::enumerate(*input->shape))
      shape.push_back(*dims.size(dim, input->name, index));
    auto count = checkedProduct(shape);
    if (!count || !checkedMul(*count, imported.dtype.bytes()))
      return reporter.invalid() << "graph input " << quoted(input->name)
                                << " of shape " << shapeText(shape)
                                << " overflows: 64 bits cannot count its bytes";
    imported.type = RankedTensorType::get(shape, imported.dtype.type(&context));
    types.push_back(imported.type);
    imported.value = entry->addArgument(imported.type, nameLoc(input->name));
    add(imported);
  }
  main.setFunctionType(builder.getFunctionType(types, {}));
  for (auto [index, input] : llvm::enumerate(inputs)) {
    main.setArgAttr(index, kNameAttr, builder.getStringAttr(input->name));
    if (tensors.lookup(input->name)->dtype.kind() == DType::Unsigned)
      main.setArgAttr(index, kUnsignedAttr, builder.getUnitAttr());
  }
  return success();
}

LogicalResult GraphImporter::checkDeclared(const ValueInfo &declared,
                                           const ImportedTensor &found) {
  auto mismatch = [&](const std::string &text) {
    return reporter.invalid()
           << "the model declares " << quoted(declared.name) << " as " << text
           << ", but it is " << typeText(found.dtype, found.shape());
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

LogicalResult GraphImporter::collectDeclared() {
  for (const ValueInfo &info : graph.valueInfos)
    declarations[info.name] = &info;
  for (const ValueInfo &info : graph.inputs) {
    auto found = tensors.find(info.name);
    if (found != tensors.end() && failed(checkDeclared(info, *found->second)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value GraphImporter::addWeight(OpBuilder &b, ImportedTensor &tensor) {
  Location loc = nameLoc(tensor.name);
  auto type = MemRefType::get(tensor.shape(), tensor.type.getElementType());
  std::string symbol = "w" + std::to_string(numWeights++);
  OpBuilder atModule(main);
  auto global = memref::GlobalOp::create(
      atModule, loc, symbol, b.getStringAttr("private"), type,
      /*initial_value=*/Attribute(), /*constant=*/true,
      /*alignment=*/IntegerAttr());
  const FileBytes &bytes = *tensor.inFile;
  global->setAttr(kNameAttr, b.getStringAttr(tensor.name));
  global->setAttr(kWeightAttr,
                  WeightAttr::get(&context, bytes.file, bytes.offset,
                                  static_cast<int64_t>(bytes.bytes.size())));
  Value memref = memref::GetGlobalOp::create(b, loc, type, symbol);
  return bufferization::ToTensorOp::create(b, loc, tensor.type, memref,
                                           /*restrict=*/true);
}

Value GraphImporter::materialize(OpBuilder &b, ImportedTensor &tensor,
                                 bool isTrial) {
  if (tensor.value)
    return tensor.value;
  DenseElementsAttr elements = tensor.constant;
  if (tensor.inFile && isTrial)
    elements = readElements(tensor.type, tensor.inFile->bytes);
  Value value;
  if (elements)
    value = arith::ConstantOp::create(b, nameLoc(tensor.name), elements);
  else
    value = addWeight(b, tensor);
  if (!isTrial)
    tensor.value = value;
  return value;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Whether computing with this tensor at import is worth its bytes in the IR:
/// shapes and scalars are, weights stay in their file.
static bool isSmall(const ImportedTensor &tensor) {
  if (tensor.constant && tensor.constant.isSplat())
    return true;
  return tensor.isKnown() &&
         tensor.numElements() <= (tensor.dtype.isFloat() ? 64 : 1 << 14);
}
static constexpr int64_t kEvaluationBudget = 1 << 19;

LogicalResult GraphImporter::buildNode(const Node &node,
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
    NodeBuilder n(node, text, opset, b, loc, reporter, file, inputs,
                  materializer);
    if (failed(entry.build(n)) || failed(n.finish()))
      return failure();
    results.assign(n.getResults().begin(), n.getResults().end());
    return success();
  };

  SmallVector<ImportedTensor> results;
  bool isEvaluated =
      llvm::all_of(inputs, [](ImportedTensor *t) { return !t || isSmall(*t); });
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
    if (!result.name.empty() && failed(addResult(result, text)))
      return failure();
  return success();
}

LogicalResult GraphImporter::addResult(ImportedTensor result,
                                       const std::string &text) {
  auto count = checkedProduct(result.shape());
  if (!count || !checkedMul(*count, result.dtype.bytes()))
    return reporter.invalid()
           << text << " makes " << quoted(result.name) << " of shape "
           << shapeText(result.shape())
           << ", which overflows: 64 bits cannot count its bytes";
  auto declared = declarations.find(result.name);
  if (declared != declarations.end() &&
      failed(checkDeclared(*declared->second, result)))
    return failure();
  if (result.aliasOf)
    tensors[result.name] = result.aliasOf;
  else
    add(std::move(result));
  return success();
}

LogicalResult GraphImporter::importNode(const Node &node) {
  const OpEntry &entry = *findOp(node.opType, opset);
  std::string text = nodeText(node, &node - graph.nodes.data());
  SmallVector<ImportedTensor *> inputs;
  for (StringRef name : node.inputs) {
    // Defined earlier in the order, unless its maker left it out, which
    // NodeBuilder::finish has refused.
    inputs.push_back(name.empty() ? nullptr : tensors.lookup(name));
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
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
  return buildNode(node, text, entry, inputs);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::addOutputs() {
  SmallVector<Value> values;
  for (const ValueInfo &output : graph.outputs) {
    ImportedTensor &tensor = *tensors.lookup(output.name);
    if (failed(checkDeclared(output, tensor)))
      return failure();
    values.push_back(materialize(builder, tensor, /*isTrial=*/false));
  }
  func::ReturnOp::create(builder, main.getLoc(), values);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               ValueRange(values).getTypes()));
  for (auto [index, output] : llvm::enumerate(graph.outputs)) {
    main.setResultAttr(index, kNameAttr, builder.getStringAttr(output.name));
    if (tensors.lookup(output.name)->dtype.kind() == DType::Unsigned)
      main.setResultAttr(index, kUnsignedAttr, builder.getUnitAttr());
  }
  return success();
}

/// What was only needed to know a shape.
void GraphImporter::eraseDead() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  llvm::DenseSet<StringRef> used;
  main.walk([&](memref::GetGlobalOp op) { used.insert(op.getName()); });
  for (auto global :
       llvm::make_early_inc_range(module->getOps<memref::GlobalOp>()))
    if (!used.contains(global.getSymName()))
      global.erase();
}

FailureOr<OwningOpRef<ModuleOp>> GraphImporter::run() {
  FailureOr<std::vector<const Node *>> nodes = sortGraph(graph, reporter);
  if (failed(nodes) || failed(findOpset()) || failed(checkSupport(*nodes)))
    return failure();

  std::string name = options.modelName;
  if (name.empty())
    name = llvm::sys::path::stem(reporter.file()).str();
  Location loc = nameLoc(name);
  module = ModuleOp::create(loc);
  (*module)->setAttr(kModelAttr, builder.getStringAttr(name));
  builder.setInsertionPointToEnd(module->getBody());
  main = func::FuncOp::create(builder, loc, "main",
                              builder.getFunctionType({}, {}));

  if (failed(addInitializers()) || failed(addInputs()) ||
      failed(collectDeclared()))
    return failure();
  for (const Node *node : *nodes)
    if (failed(importNode(*node)))
      return failure();
  if (failed(addOutputs()))
    return failure();
  eraseDead();
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>>
memplan::onnx::importGraph(const Model &model, ModelFile &file,
                           const ImportOptions &options, Reporter &reporter) {
  return GraphImporter(model, file, options, reporter).run();
}
