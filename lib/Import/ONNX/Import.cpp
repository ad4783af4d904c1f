//===- Import.cpp - ONNX models to linalg on tensors ----------------------===//

#include "memplan/Import/ONNX/Import.h"

#include "Decode.h"
#include "GraphImporter.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

void memplan::registerImportDialects(DialectRegistry &registry) {
  registry
      .insert<arith::ArithDialect, bufferization::BufferizationDialect,
              cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
              math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
              tensor::TensorDialect, MemPlanDialect>();
}

/// Decodes the file and checks that it is a model at all.
static FailureOr<Model> readModel(const ModelFile &file, Reporter &reporter) {
  if (file.bytes().empty())
    return reporter.invalid() << "the file is empty; an ONNX model is expected";
  Model model;
  if (failed(decodeModel(file.bytes(), model)))
    return reporter.invalid() << "the file is not a protobuf of an ONNX model, "
                                 "or it is truncated";
  if (model.nestsTooDeep)
    return reporter.error(ImportErrorKind::Unsupported)
           << "subgraphs are nested more than " << kDeepestSubgraph
           << " deep; up to " << kDeepestSubgraph << " are accepted";
  // Nearly any text decodes as some protobuf of unknown fields.
  StringRef missing = !model.irVersion       ? "ir_version"
                      : !model.graph         ? "graph"
                      : model.opsets.empty() ? "opset_import"
                                             : "";
  if (!missing.empty())
    return reporter.invalid() << "the file is not an ONNX model, or it is "
                                 "truncated: it has no field "
                              << missing;
  return model;
}

FailureOr<OwningOpRef<ModuleOp>>
memplan::importONNX(StringRef path, MLIRContext &context,
                    const ImportOptions &options,
                    ImportErrorKind *kindOnFailure) {
  DialectRegistry registry;
  registerImportDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();

  Reporter reporter(context, path);
  auto run = [&]() -> FailureOr<OwningOpRef<ModuleOp>> {
    FailureOr<ModelFile> file =
        ModelFile::open(reporter, options.externalDataRoot);
    if (failed(file))
      return failure();
    FailureOr<Model> model = readModel(*file, reporter);
    if (failed(model))
      return failure();
    auto module = importGraph(*model, *file, options, reporter);
    if (succeeded(module) && failed(verify(**module)))
      return reporter.error(ImportErrorKind::Internal)
             << "the importer made invalid IR; this is a bug in memplan";
    return module;
  };
  FailureOr<OwningOpRef<ModuleOp>> module = run();
  if (failed(module) && kindOnFailure)
    *kindOnFailure = reporter.kind().value_or(ImportErrorKind::Internal);
  return module;
}
