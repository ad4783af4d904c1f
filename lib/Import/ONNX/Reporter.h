//===- Reporter.h - Errors of one import ------------------------*- C++ -*-===//
//
// Every message starts with the model's file; the kind of the first error is
// that of the import.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_REPORTER_H
#define MEMPLAN_LIB_IMPORT_ONNX_REPORTER_H

#include "memplan/Import/ONNX/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

namespace memplan::onnx {

/// `name` in quotes, with anything unprintable escaped and the middle of a very
/// long one left out: names come from files.
inline std::string quoted(llvm::StringRef name) {
  constexpr size_t kMost = 240, kHalf = kMost / 2;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '\'';
  if (name.size() <= kMost) {
    llvm::printEscapedString(name, os);
  } else {
    llvm::printEscapedString(name.take_front(kHalf), os);
    os << "...";
    llvm::printEscapedString(name.take_back(kHalf), os);
  }
  os << '\'';
  return text;
}

/// "2x3x4", or "scalar".
template <typename Range>
std::string shapeText(const Range &shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

class Reporter {
public:
  Reporter(mlir::MLIRContext &context, llvm::StringRef path)
      : context(context), path(path) {}

  mlir::InFlightDiagnostic error(ImportErrorKind kind) {
    if (!firstKind)
      firstKind = kind;
    auto diagnostic = mlir::emitError(mlir::UnknownLoc::get(&context));
    diagnostic << path << ": ";
    return diagnostic;
  }
  mlir::InFlightDiagnostic invalid() {
    return error(ImportErrorKind::InvalidModel);
  }

  mlir::InFlightDiagnostic warning() {
    auto diagnostic = mlir::emitWarning(mlir::UnknownLoc::get(&context));
    diagnostic << path << ": ";
    return diagnostic;
  }

  std::optional<ImportErrorKind> kind() const { return firstKind; }
  /// For errors that turn out not to be the import's.
  void setKind(std::optional<ImportErrorKind> kind) { firstKind = kind; }
  llvm::StringRef file() const { return path; }
  mlir::MLIRContext &getContext() { return context; }

private:
  mlir::MLIRContext &context;
  std::string path;
  std::optional<ImportErrorKind> firstKind;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_REPORTER_H
