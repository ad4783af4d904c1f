//===- GraphImporter.cpp - A decoded model to a module --------------------===//

#include "GraphImporter.h"

#include "GraphImporterImpl.h"
#include "InputValues.h"
#include "Packing.h"
#include "memplan/Dialect/RunDims.h"
#include "memplan/Dialect/Signedness.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// The default domain's, if any.
static std::optional<int64_t> findOpset(const OpsetList &opsets,
                                        StringRef domain) {
  std::optional<int64_t> found;
  for (auto [imported, version] : opsets)
    if (imported == domain ||
        (isDefaultDomain(imported) && isDefaultDomain(domain)))
      found = version;
  return found;
}

LogicalResult GraphImporter::checkOpset(const OpsetList &opsets,
                                        const std::string &owner) {
  std::optional<int64_t> found = findOpset(opsets, "");
  if (found && (*found < kOldestOpset || *found > kNewestOpset))
    return reporter.error(ImportErrorKind::Unsupported)
           << owner << " is of opset " << *found << "; opsets " << kOldestOpset
           << " to " << kNewestOpset << " are accepted";
  return success();
}

/// A function that does not say means the model's.
int64_t GraphImporter::opsetOf(StringRef domain,
                               const Function *function) const {
  if (function)
    if (auto found = findOpset(function->opsets, domain))
      return *found;
  if (auto found = findOpset(model.opsets, domain))
    return *found;
  // A model of other domains alone: every operator will be listed.
  return isDefaultDomain(domain) ? kNewestOpset : 0;
}

namespace {
/// The operators of a graph and its subgraphs that are not in the table.
class MissingOps {
public:
  MissingOps(const CheckedGraphs &checked, const Functions &functions,
             int64_t opset,
             llvm::function_ref<bool(const Node &, const Function *)> isKnown)
      : checked(checked), functions(functions), opset(opset), isKnown(isKnown) {
  }

  /// Also of the functions that are called, each once.
  void collect(const Graph &graph, StringRef place = "",
               const Function *function = nullptr) {
    for (const Node *node : checked.find(&graph)->second.nodes) {
      std::string text =
          (nodeText(*node, node - graph.nodes.data()) + place).str();
      if (const Function *callee = functions.find(*node)) {
        if (seen.insert(callee).second)
          collect(callee->body, " in " + functionText(*callee), callee);
      } else if (!isKnown(*node, function)) {
        Entry &entry = entries[{node->domain, node->opType}];
        if (entry.count++ == 0)
          entry.first = text;
      }
      for (const NodeAttribute &attribute : node->attributes)
        if (attribute.g)
          collect(*attribute.g, subgraphText(attribute.name, text), function);
    }
  }

  LogicalResult report(Reporter &reporter) {
    if (entries.empty())
      return success();
    auto diagnostic = reporter.error(ImportErrorKind::Unsupported)
                      << entries.size() << " operator"
                      << (entries.size() == 1 ? " is" : "s are")
                      << " not supported (opset " << opset << "): ";
    llvm::interleaveComma(entries, diagnostic, [&](auto &entry) {
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

private:
  struct Entry {
    int64_t count = 0;
    std::string first;
  };
  const CheckedGraphs &checked;
  const Functions &functions;
  int64_t opset;
  llvm::function_ref<bool(const Node &, const Function *)> isKnown;
  llvm::DenseSet<const Function *> seen;
  llvm::MapVector<std::pair<StringRef, StringRef>, Entry> entries;
};
} // namespace

/// All that are missing at once, before anything is built.
LogicalResult GraphImporter::checkSupport() {
  auto isKnown = [&](const Node &node, const Function *function) {
    return node.overload.empty() &&
           findOp(node.domain, node.opType, opsetOf(node.domain, function)) !=
               nullptr;
  };
  MissingOps missing(checked, functions, opsetOf(""), isKnown);
  missing.collect(scope.graph);
  return missing.report(reporter);
}

/// What the IR's type of an input or output does not say of it.
SmallVector<NamedAttribute>
GraphImporter::interfaceAttrs(const ImportedTensor &tensor) {
  SmallVector<NamedAttribute> attrs;
  if (tensor.dtype.isUnsigned())
    attrs.push_back(builder.getNamedAttr(kUnsignedAttr, builder.getUnitAttr()));
  if (tensor.dtype.isPacked())
    attrs.push_back(builder.getNamedAttr(
        kPackedAttr,
        TypeAttr::get(RankedTensorType::get(
            tensor.shape(), tensor.dtype.declaredType(&context)))));
  return attrs;
}

LogicalResult GraphImporter::addInputs() {
  std::vector<const ValueInfo *> open;
  for (const ValueInfo *input : givenInputs(scope.graph)) {
    auto value = options.inputValues.find(input->name);
    if (value == options.inputValues.end()) {
      open.push_back(input);
      continue;
    }
    auto constant = readInputValue(*input, value->second, reporter);
    if (failed(constant))
      return failure();
    scope.tensors[input->name] = keep(std::move(*constant));
  }
  FailureOr<GraphInputs> read = GraphInputs::read(open, options, reporter);
  if (failed(read) ||
      failed(checkInputValues(givenInputs(scope.graph), options, reporter)))
    return failure();
  inputs = std::move(*read);
  FailureOr<Dims> bound = Dims::bind(inputs.tensors(), options, reporter);
  if (failed(bound))
    return failure();
  dims = *bound;

  Block *entry = main.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  SmallVector<ImportedTensor *> tensors;
  for (const ValueInfo *input : inputs.tensors()) {
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
    RankedTensorType type = imported.dtype.isPacked()
                                ? packedType(&context, imported.dtype, shape)
                                : imported.type;
    imported.value = entry->addArgument(type, nameLoc(input->name));
    if (imported.dtype.isPacked())
      imported.value = unpackElements(builder, nameLoc(input->name),
                                      imported.value, imported.dtype, shape);
    tensors.push_back(keep(imported));
  }
  main.setFunctionType(builder.getFunctionType(entry->getArgumentTypes(), {}));
  for (auto [index, tensor] : llvm::enumerate(tensors)) {
    main.setArgAttr(index, kNameAttr, builder.getStringAttr(tensor->name));
    for (NamedAttribute attr : interfaceAttrs(*tensor))
      main.setArgAttr(index, attr.getName(), attr.getValue());
  }
  for (const GraphInputs::Input &input : inputs.inputs())
    scope.tensors[input.declared->name] =
        gather(input, ArrayRef(tensors).slice(input.first, input.count));
  return success();
}

/// An input of the tensors that it is made of.
ImportedTensor *GraphImporter::gather(const GraphInputs::Input &input,
                                      ArrayRef<ImportedTensor *> tensors) {
  const ValueInfo &declared = *input.declared;
  if (declared.kind == "tensor")
    return tensors.front();
  auto keepList = [&](Form form, ArrayRef<ImportedTensor *> elements) {
    ImportedTensor list;
    list.name = declared.name;
    list.form = form;
    list.elements.assign(elements.begin(), elements.end());
    return keep(std::move(list));
  };
  if (declared.kind == "sequence")
    return keepList(Form::Sequence, tensors);
  if (!input.isPresent)
    return keepList(Form::Optional, {});
  if (declared.inner.front() == "tensor")
    return keepList(Form::Optional, tensors);
  return keepList(Form::Optional, keepList(Form::Sequence, tensors));
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

namespace {
/// A result of the function.
struct Result {
  std::string name;
  ImportedTensor *tensor;
};
} // namespace

/// The tensors that an output is made of: the elements of a list are outputs
/// of their own, NAME[0], NAME[1] and so on.
static void flatten(ImportedTensor &tensor, std::string name,
                    std::vector<Result> &results) {
  if (tensor.form == Form::Tensor)
    results.push_back({std::move(name), &tensor});
  else if (tensor.form == Form::Optional)
    for (ImportedTensor *element : tensor.elements)
      flatten(*element, name, results);
  else
    for (auto [i, element] : llvm::enumerate(tensor.elements))
      flatten(*element, name + "[" + std::to_string(i) + "]", results);
}

/// Extents that only the run tells follow the outputs.
LogicalResult GraphImporter::addOutputs() {
  std::vector<Result> results;
  for (const ValueInfo &output : scope.graph.outputs) {
    ImportedTensor &tensor = *scope.find(output.name);
    if (failed(checkDeclared(scope, output, tensor)))
      return failure();
    flatten(tensor, output.name.str(), results);
  }
  SmallVector<Value> values;
  SmallVector<std::pair<size_t, int64_t>> extents;
  for (Result &result : results) {
    Value value = materialize(builder, *result.tensor, /*isTrial=*/false);
    if (result.tensor->dtype.isPacked())
      value = packElements(builder, nameLoc(result.name), value,
                           result.tensor->dtype);
    values.push_back(value);
  }
  for (auto [i, result] : llvm::enumerate(results))
    for (const RunDim &entry : result.tensor->runDims) {
      values.push_back(entry.extent);
      extents.push_back({i, entry.dim});
    }
  func::ReturnOp::create(builder, main.getLoc(), values);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               ValueRange(values).getTypes()));
  for (auto [index, result] : llvm::enumerate(results)) {
    main.setResultAttr(index, kNameAttr, builder.getStringAttr(result.name));
    for (NamedAttribute attr : interfaceAttrs(*result.tensor))
      main.setResultAttr(index, attr.getName(), attr.getValue());
  }
  for (auto [i, extent] : llvm::enumerate(extents)) {
    auto [output, dim] = extent;
    std::string name =
        "extent of dim " + std::to_string(dim) + " of " + results[output].name;
    main.setResultAttr(results.size() + i, kNameAttr,
                       builder.getStringAttr(name));
    main.setResultAttr(
        results.size() + i, kRunDimAttr,
        builder.getI64ArrayAttr({static_cast<int64_t>(output), dim}));
  }
  return success();
}

/// What was only needed to know a shape.
void GraphImporter::eraseDead() {
  IRRewriter rewriter(&context);
  main.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != main && isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  });
  llvm::DenseSet<StringRef> used;
  main.walk([&](memref::GetGlobalOp op) { used.insert(op.getName()); });
  for (auto global :
       llvm::make_early_inc_range(module->getOps<memref::GlobalOp>()))
    if (!used.contains(global.getSymName()))
      global.erase();
}

FailureOr<OwningOpRef<ModuleOp>> GraphImporter::run() {
  if (failed(checkGraphs(scope.graph, "", checked, reporter)) ||
      failed(functions.check(model, checked, reporter)) ||
      failed(checkOpset(model.opsets, "the model")))
    return failure();
  for (const Function &function : model.functions)
    if (failed(checkOpset(function.opsets, functionText(function))))
      return failure();
  if (failed(checkSupport()))
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

  if (failed(addInitializers(scope)) || failed(addInputs()) ||
      failed(collectDeclared(scope)) || failed(importNodes(scope)) ||
      failed(addOutputs()))
    return failure();
  eraseDead();
  warnOfMisdeclared();
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>>
memplan::onnx::importGraph(const Model &model, ModelFile &file,
                           const ImportOptions &options, Reporter &reporter) {
  return GraphImporter(model, file, options, reporter).run();
}
