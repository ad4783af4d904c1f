//===- MlirText.h - MLIR text from strangers --------------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_COMMON_MLIRTEXT_H
#define MEMPLAN_TOOLS_COMMON_MLIRTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace memplan {

/// Parses and verifies a module; a NUL must follow the text. Null, after an
/// error in `context`, if the text isn't one. `isBroken` then says whether the
/// parser itself failed, as LLVM 22's does on some malformed text (a bad
/// attribute of linalg.transpose, for one, is a null pointer). The process goes
/// on, but `context` may only be left alone: not used, not destroyed.
mlir::OwningOpRef<mlir::ModuleOp> parseMlirText(llvm::StringRef text,
                                                llvm::StringRef name,
                                                mlir::MLIRContext &context,
                                                bool &isBroken);

} // namespace memplan

#endif // MEMPLAN_TOOLS_COMMON_MLIRTEXT_H
