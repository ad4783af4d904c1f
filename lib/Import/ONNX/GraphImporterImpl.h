//===- GraphImporterImpl.h - The state of one import ------------*- C++ -*-===//
//
// The function and its ends are in GraphImporter.cpp, tensors and nodes, at any
// depth of subgraphs, in NodeImporter.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTERIMPL_H
#define MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTERIMPL_H

#include "Dims.h"
#include "Functions.h"
#include "GraphCheck.h"
#include "GraphInputs.h"
#include "OpTable.h"
#include "Scope.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <deque>

namespace memplan::onnx {

class GraphImporter final : public SubgraphImporter {
public:
  GraphImporter(const Model &model, ModelFile &file,
                const ImportOptions &options, Reporter &reporter)
      : model(model), file(file), options(options), reporter(reporter),
        context(reporter.getContext()), builder(&context), scope(*model.graph) {
  }

  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> run();

  mlir::FailureOr<llvm::SmallVector<ImportedTensor *>>
  importSubgraph(const Graph &graph, std::string place,
                 llvm::ArrayRef<ImportedTensor *> inputs) override;
  ImportedTensor *keep(ImportedTensor tensor) override {
    storage.push_back(std::move(tensor));
    return &storage.back();
  }

private:
  mlir::LogicalResult checkOpset(const OpsetList &opsets,
                                 const std::string &owner);
  mlir::LogicalResult checkSupport();
  mlir::LogicalResult addInputs();
  ImportedTensor *gather(const GraphInputs::Input &input,
                         llvm::ArrayRef<ImportedTensor *> tensors);
  llvm::SmallVector<mlir::NamedAttribute>
  interfaceAttrs(const ImportedTensor &tensor);
  mlir::LogicalResult addOutputs();
  void eraseDead();

  mlir::LogicalResult addInitializers(Scope &scope);
  mlir::LogicalResult collectDeclared(Scope &scope);
  /// What is declared of a tensor is an error where its kind or element type
  /// is another; a shape that is another counts for nothing, as in runtimes.
  mlir::LogicalResult checkDeclared(const Scope &scope,
                                    const ValueInfo &declared,
                                    const ImportedTensor &found);
  void warnOfMisdeclared();
  mlir::LogicalResult importNodes(Scope &scope);
  mlir::LogicalResult importNode(Scope &scope, const Node &node);
  mlir::LogicalResult buildNode(Scope &scope, const Node &node,
                                const std::string &text, const OpEntry &entry,
                                llvm::ArrayRef<ImportedTensor *> inputs);
  mlir::LogicalResult importCall(Scope &scope, const Node &node,
                                 const std::string &text,
                                 const Function &function,
                                 llvm::ArrayRef<ImportedTensor *> inputs);
  mlir::LogicalResult addResult(Scope &scope, ImportedTensor result,
                                const std::string &text);

  mlir::Value materialize(mlir::OpBuilder &b, ImportedTensor &tensor,
                          bool isTrial);
  mlir::Value addWeight(mlir::OpBuilder &b, ImportedTensor &tensor);
  mlir::Value addSharedWeight(mlir::OpBuilder &b, ImportedTensor &tensor);
  mlir::Location nameLoc(llvm::StringRef name) {
    return mlir::NameLoc::get(mlir::StringAttr::get(&context, name));
  }

  const Model &model;
  ModelFile &file;
  const ImportOptions &options;
  Reporter &reporter;
  mlir::MLIRContext &context;
  /// Where the next op of the function goes; in a subgraph's region while the
  /// node that has it is built.
  mlir::OpBuilder builder;
  /// That of the model's graph, and the innermost: subgraphs have theirs on the
  /// call stack of importSubgraph.
  Scope scope;
  const Scope *current = &scope;
  CheckedGraphs checked;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp main;
  GraphInputs inputs;
  Dims dims;
  Functions functions;
  /// The call whose function is being built, or null.
  const FunctionCall *call = nullptr;
  /// The opset of a domain in the model, or in a function; 0 for one that is
  /// not imported.
  int64_t opsetOf(llvm::StringRef domain, const Function *function) const;
  int64_t opsetOf(llvm::StringRef domain) const {
    return opsetOf(domain, call ? &call->function : nullptr);
  }
  int64_t numWeights = 0;
  /// Names of tensors that don't have their declared shapes, and the first of
  /// them in words.
  llvm::StringSet<> misdeclared;
  std::string firstMisdeclared;
  std::deque<ImportedTensor> storage;
  /// Those of a subgraph are the same tensors each time it is built.
  llvm::DenseMap<const Graph *, llvm::SmallVector<ImportedTensor *>>
      initializers;
  /// Weights read in subgraphs, by their bytes and name.
  llvm::DenseMap<std::pair<const char *, llvm::StringRef>, mlir::Value>
      sharedWeights;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTERIMPL_H
