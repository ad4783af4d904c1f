//===- FuzzModel.cpp - What the fuzzers of models share -------------------===//

#include "FuzzModel.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Import/ONNX/Import.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace memplan::fuzz {

static MLIRContext *context = nullptr;

void abandonContext() { context = nullptr; }

MLIRContext &getContext() {
  constexpr int kMostUses = 500;
  static DialectRegistry *registry = [] {
    auto *made = new DialectRegistry;
    registerAllDialects(*made);
    registerAllExtensions(*made);
    registerMemPlanDialect(*made);
    registerImportDialects(*made);
    return made;
  }();
  static int uses = 0;
  if (!context || ++uses == kMostUses) {
    delete context;
    context = new MLIRContext(*registry, MLIRContext::Threading::DISABLED);
    context->getDiagEngine().registerHandler([](Diagnostic &) {});
    uses = 0;
  }
  return *context;
}

MemoryFile::MemoryFile() : descriptor(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (descriptor < 0)
    fail("memfd_create");
  name = "/proc/self/fd/" + std::to_string(descriptor);
}

void MemoryFile::write(llvm::StringRef bytes) {
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, bytes.data(), bytes.size(), 0) !=
          static_cast<ssize_t>(bytes.size()))
    fail("write");
}

void fail(const char *what, const std::string &detail) {
  std::fprintf(stderr, "FAILED: %s: %s\n", what, detail.c_str());
  std::abort();
}

} // namespace memplan::fuzz
