//===- MlirText.cpp - MLIR text from strangers ----------------------------===//

#include "MlirText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CrashRecoveryContext.h"

using namespace mlir;

namespace memplan {

/// Whether brackets are open more than 500 deep at once. MLIR's parser recurses
/// with them, and ends the process where the stack does.
static bool nestsTooDeep(StringRef text) {
  constexpr int64_t kDeepest = 500;
  int64_t brackets = 0, angles = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    StringRef rest = text.substr(i);
    if (rest.starts_with("\"")) {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    } else if (rest.starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (rest.starts_with("->") || rest.starts_with(">=")) {
      ++i;
    } else if (StringRef("{[(").contains(rest.front())) {
      ++brackets;
    } else if (StringRef("}])").contains(rest.front())) {
      brackets = std::max<int64_t>(brackets - 1, 0);
    } else if (rest.starts_with("<")) {
      ++angles;
    } else if (rest.starts_with(">")) {
      angles = std::max<int64_t>(angles - 1, 0);
    }
    if (brackets > kDeepest || angles > kDeepest)
      return true;
  }
  return false;
}

OwningOpRef<ModuleOp> parseMlirText(StringRef text, StringRef name,
                                    MLIRContext &context, bool &isBroken) {
  isBroken = false;
  Location file = UnknownLoc::get(&context);
  if (nestsTooDeep(text)) {
    emitError(file) << "'" << name << "' nests brackets more than 500 deep";
    return nullptr;
  }
  OwningOpRef<ModuleOp> module;
  bool isReported = false;
  {
    // Counts, and leaves each to the next handler.
    ScopedDiagnosticHandler counter(&context, [&](Diagnostic &diagnostic) {
      isReported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return failure();
    });
    llvm::CrashRecoveryContext::Enable();
    isBroken = !llvm::CrashRecoveryContext().RunSafely([&] {
      module = parseSourceString<ModuleOp>(text, ParserConfig(&context), name);
    });
    llvm::CrashRecoveryContext::Disable();
  }
  if (!isBroken)
    return module;
  // It mostly fails on the way out of an error that it has reported.
  if (!isReported)
    emitError(file) << "MLIR's own parser failed on '" << name
                    << "', which well-formed text doesn't make it do";
  return nullptr;
}

} // namespace memplan
