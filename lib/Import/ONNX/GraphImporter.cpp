//===- GraphImporter.cpp - A decoded model to a module --------------------===//

#include "GraphImporter.h"

#include "GivenInputs.h"
#include "GraphImporterImpl.h"
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

LogicalResult GraphImporter::addInputs() {
  SmallVector<const ValueInfo *> all = givenInputs(scope.graph);
  if (failed(checkInputNames(all, options, reporter)))
    return failure();
  std::vector<ValueInfo> inputs;
  for (const ValueInfo *given : all) {
    ValueInfo input = *given;
    if (input.kind != "tensor")
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " is "
             << (input.kind.empty() ? "of no stated type"
                                    : ("a " + input.kind).str())
             << "; a tensor is accepted";
    auto value = options.inputValues.find(input.name);
    if (value != options.inputValues.end()) {
      auto constant = readInputValue(input, value->second, reporter);
      if (failed(constant))
        return failure();
      scope.tensors[input.name] = keep(std::move(*constant));
      continue;
    }
    if (!DType::fromCode(input.dataType))
      return reporter.error(ImportErrorKind::Unsupported)
             << "graph input " << quoted(input.name) << " has element type "
             << dtypeName(input.dataType)
             << "; float, double, float16, bfloat16, bool and integers of 8 to "
                "64 bits are accepted";
    auto shape = options.inputShapes.find(input.name);
    if (!input.shape && shape != options.inputShapes.end())
      input.shape.emplace(shape->second.size());
    if (!input.shape)
      return reporter.error(ImportErrorKind::UnboundShape)
             << "graph input " << quoted(input.name)
             << " has no shape; give --input-shape " << input.name.str()
             << "=N0xN1x...";
    inputs.push_back(std::move(input));
  }
  FailureOr<Dims> bound = Dims::bind(inputs, options, reporter);
  if (failed(bound))
    return failure();
  dims = *bound;

  Block *entry = main.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  SmallVector<Type> types;
  for (const ValueInfo &input : inputs) {
    ImportedTensor imported;
    imported.name = input.name;
    imported.dtype = *DType::fromCode(input.dataType);
    SmallVector<int64_t> shape;
    for (auto [index, dim] : llvm::enumerate(*input.shape))
      shape.push_back(*dims.size(dim, input.name, index));
    auto count = checkedProduct(shape);
    if (!count || !checkedMul(*count, imported.dtype.bytes()))
      return reporter.invalid() << "graph input " << quoted(input.name)
                                << " of shape " << shapeText(shape)
                                << " overflows: 64 bits cannot count its bytes";
    imported.type = RankedTensorType::get(shape, imported.dtype.type(&context));
    types.push_back(imported.type);
    imported.value = entry->addArgument(imported.type, nameLoc(input.name));
    scope.tensors[input.name] = keep(imported);
  }
  main.setFunctionType(builder.getFunctionType(types, {}));
  for (auto [index, input] : llvm::enumerate(inputs)) {
    main.setArgAttr(index, kNameAttr, builder.getStringAttr(input.name));
    if (scope.find(input.name)->dtype.kind() == DType::Unsigned)
      main.setArgAttr(index, kUnsignedAttr, builder.getUnitAttr());
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
    values.push_back(materialize(builder, tensor, /*isTrial=*/false));
  }
  func::ReturnOp::create(builder, main.getLoc(), values);
  main.setFunctionType(builder.getFunctionType(main.getArgumentTypes(),
                                               ValueRange(values).getTypes()));
  for (auto [index, output] : llvm::enumerate(scope.graph.outputs)) {
    main.setResultAttr(index, kNameAttr, builder.getStringAttr(output.name));
    if (scope.find(output.name)->dtype.kind() == DType::Unsigned)
      main.setResultAttr(index, kUnsignedAttr, builder.getUnitAttr());
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
  return std::move(module);
}

FailureOr<OwningOpRef<ModuleOp>>
memplan::onnx::importGraph(const Model &model, ModelFile &file,
                           const ImportOptions &options, Reporter &reporter) {
  return GraphImporter(model, file, options, reporter).run();
}
