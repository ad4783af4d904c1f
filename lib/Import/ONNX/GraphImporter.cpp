//===- GraphImporter.cpp - A decoded model to a module --------------------===//

#include "GraphImporter.h"

#include "GraphImporterImpl.h"
#include "Packing.h"
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

int64_t GraphImporter::opsetOf(StringRef domain) const {
  if (isDefaultDomain(domain))
    return opset;
  for (auto [imported, version] : model.opsets)
    if (imported == domain)
      return version;
  return 0;
}

const OpEntry *GraphImporter::entryOf(const Node &node) const {
  return findOp(node.domain, node.opType, opsetOf(node.domain));
}

namespace {
/// The operators of a graph and its subgraphs that are not in the table.
class MissingOps {
public:
  MissingOps(const CheckedGraphs &checked, int64_t opset,
             llvm::function_ref<bool(const Node &)> isKnown)
      : checked(checked), opset(opset), isKnown(isKnown) {}

  void collect(const Graph &graph, StringRef place = "") {
    for (const Node *node : checked.find(&graph)->second.nodes) {
      std::string text =
          (nodeText(*node, node - graph.nodes.data()) + place).str();
      if (!isKnown(*node)) {
        Entry &entry = entries[{node->domain, node->opType}];
        if (entry.count++ == 0)
          entry.first = text;
      }
      for (const NodeAttribute &attribute : node->attributes)
        if (attribute.g)
          collect(*attribute.g, subgraphText(attribute.name, text));
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
  int64_t opset;
  llvm::function_ref<bool(const Node &)> isKnown;
  llvm::MapVector<std::pair<StringRef, StringRef>, Entry> entries;
};
} // namespace

/// All that are missing at once, before anything is built.
LogicalResult GraphImporter::checkSupport() {
  auto isKnown = [&](const Node &node) { return entryOf(node) != nullptr; };
  MissingOps missing(checked, opset, isKnown);
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
  SmallVector<const ValueInfo *> inputs;
  for (const ValueInfo *given : givenInputs(scope.graph)) {
    const ValueInfo &input = *given;
    if (input.kind != "tensor")
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " is "
             << (input.kind.empty() ? "of no stated type"
                                    : ("a " + input.kind).str())
             << "; a tensor is accepted";
    if (!DType::fromCode(input.dataType))
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " has element type "
             << dtypeName(input.dataType) << "; " << kAcceptedTypes;
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
    RankedTensorType type = imported.dtype.isPacked()
                                ? packedType(&context, imported.dtype, shape)
                                : imported.type;
    types.push_back(type);
    imported.value = entry->addArgument(type, nameLoc(input->name));
    if (imported.dtype.isPacked())
      imported.value = unpackElements(builder, nameLoc(input->name),
                                      imported.value, imported.dtype, shape);
    scope.tensors[input->name] = keep(imported);
  }
  main.setFunctionType(builder.getFunctionType(types, {}));
  for (auto [index, input] : llvm::enumerate(inputs)) {
    main.setArgAttr(index, kNameAttr, builder.getStringAttr(input->name));
    for (NamedAttribute attr : interfaceAttrs(*scope.find(input->name)))
      main.setArgAttr(index, attr.getName(), attr.getValue());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult GraphImporter::addOutputs() {
  SmallVector<Value> values;
  for (const ValueInfo &output : scope.graph.outputs) {
    ImportedTensor &tensor = *scope.find(output.name);
    if (failed(checkDeclared(scope, output, tensor)))
      return failure();
    Value value = materialize(builder, tensor, /*isTrial=*/false);
    if (tensor.dtype.isPacked())
      value = packElements(builder, nameLoc(output.name), value, tensor.dtype);
    values.push_back(value);
  }
  func::ReturnOp::create(builder, main.getLoc(), values);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               ValueRange(values).getTypes()));
  for (auto [index, output] : llvm::enumerate(scope.graph.outputs)) {
    main.setResultAttr(index, kNameAttr, builder.getStringAttr(output.name));
    for (NamedAttribute attr : interfaceAttrs(*scope.find(output.name)))
      main.setResultAttr(index, attr.getName(), attr.getValue());
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
  FailureOr<CheckedGraphs> graphs = checkGraphs(scope.graph, reporter);
  if (failed(graphs))
    return failure();
  checked = std::move(*graphs);
  if (failed(findOpset()) || failed(checkSupport()))
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
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>>
memplan::onnx::importGraph(const Model &model, ModelFile &file,
                           const ImportOptions &options, Reporter &reporter) {
  return GraphImporter(model, file, options, reporter).run();
}
