//===- Attempt.h - Errors of what may be tried otherwise --------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_ATTEMPT_H
#define MEMPLAN_LIB_IMPORT_ONNX_ATTEMPT_H

#include "Reporter.h"

namespace memplan::onnx {

/// Holds back the errors that are reported while it lives. They reach the user
/// in the end unless `drop` says that something else worked instead.
class Attempt {
public:
  explicit Attempt(Reporter &reporter)
      : reporter(reporter), kindBefore(reporter.kind()),
        handler(std::in_place, &reporter.getContext(),
                [this](mlir::Diagnostic &diagnostic) {
                  errors.push_back(std::move(diagnostic));
                }) {}
  ~Attempt() {
    stop();
    for (mlir::Diagnostic &diagnostic : errors)
      reporter.getContext().getDiagEngine().emit(std::move(diagnostic));
  }
  Attempt(const Attempt &) = delete;
  Attempt &operator=(const Attempt &) = delete;

  /// From here on errors are reported at once.
  void stop() { handler.reset(); }
  /// Adds to this attempt's last error why an earlier one failed.
  void explain(llvm::StringRef text, const Attempt &earlier) {
    if (!errors.empty() && !earlier.errors.empty())
      errors.back().attachNote() << text << earlier.errors.front().str();
  }
  /// Adds the way out to this attempt's last error.
  void note(const llvm::Twine &text) {
    if (!errors.empty())
      errors.back().attachNote() << text;
  }
  /// Its first error, for messages.
  std::string text() const {
    return errors.empty() ? std::string() : errors.front().str();
  }
  void drop() {
    forgetKind();
    clear();
  }
  /// The halves of `drop`, for who needs the errors meanwhile.
  void forgetKind() {
    stop();
    reporter.setKind(kindBefore);
  }
  void clear() { errors.clear(); }

private:
  Reporter &reporter;
  std::optional<ImportErrorKind> kindBefore;
  std::vector<mlir::Diagnostic> errors;
  std::optional<mlir::ScopedDiagnosticHandler> handler;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_ATTEMPT_H
