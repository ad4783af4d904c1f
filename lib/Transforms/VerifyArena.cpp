//===- VerifyArena.cpp - Independent check of an arena plan ---------------===//

#include "memplan/Analysis/ArenaVerifier.h"
#include "memplan/Transforms/Passes.h"

namespace memplan {
#define GEN_PASS_DEF_VERIFYARENA
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

namespace {

class VerifyArenaPass : public memplan::impl::VerifyArenaBase<VerifyArenaPass> {
public:
  void runOnOperation() override {
    if (failed(memplan::verifyArenas(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
