//===- GraphImporter.h - A decoded model to a module ------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTER_H
#define MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTER_H

#include "Model.h"
#include "ModelFile.h"

namespace memplan::onnx {

mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importGraph(const Model &model, ModelFile &file, const ImportOptions &options,
            Reporter &reporter);

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_GRAPHIMPORTER_H
