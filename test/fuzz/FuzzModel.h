//===- FuzzModel.h - What the fuzzers of models share -----------*- C++ -*-===//

#ifndef MEMPLAN_TEST_FUZZ_FUZZMODEL_H
#define MEMPLAN_TEST_FUZZ_FUZZMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace memplan::fuzz {

/// A context without threads whose diagnostics go nowhere. It is a new one now
/// and then, since a context never forgets an attribute.
mlir::MLIRContext &getContext();

/// The next getContext() is a new one; what the present one holds is lost.
void abandonContext();

/// A file in memory, under a path of its own, that holds other bytes each time.
class MemoryFile {
public:
  MemoryFile();
  const std::string &path() const { return name; }
  void write(llvm::StringRef bytes);

private:
  int descriptor;
  std::string name;
};

/// Ends the process, which libFuzzer reports as a finding.
[[noreturn]] void fail(const char *what, const std::string &detail = {});

} // namespace memplan::fuzz

#endif // MEMPLAN_TEST_FUZZ_FUZZMODEL_H
