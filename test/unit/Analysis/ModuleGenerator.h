//===- ModuleGenerator.h - Random programs on memrefs -----------*- C++ -*-===//

#ifndef MEMPLAN_TEST_UNIT_ANALYSIS_MODULEGENERATOR_H
#define MEMPLAN_TEST_UNIT_ANALYSIS_MODULEGENERATOR_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>

namespace memplan::test {

/// A module of one function that allocates, views, selects, copies and fills
/// buffers in straight code, branches and loops, as text. The same seed gives
/// the same module.
std::string generateModule(uint64_t seed);

/// Modules by hand, with what a generator seldom hits.
llvm::ArrayRef<const char *> getHandWrittenModules();

} // namespace memplan::test

#endif // MEMPLAN_TEST_UNIT_ANALYSIS_MODULEGENERATOR_H
