//===- Rules.cpp - One flag for each rule of the search -------------------===//

#include "Rules.h"

using namespace llvm;

namespace memplan {

namespace {

struct RuleFlag {
  const char *name;
  bool solver::SearchRules::*rule;
  const char *help;
};

} // namespace

using solver::SearchRules;

static constexpr RuleFlag ruleFlags[] = {
    {"decompose", &SearchRules::decompose,
     "Solve parts of time that no unplaced buffer joins each for itself"},
    {"backjump", &SearchRules::backjump,
     "Return past decisions that a failure does not depend on"},
    {"remember", &SearchRules::remember,
     "Recognise partial placements that failed before"},
    {"order-stacks", &SearchRules::orderStacks,
     "Keep one order of two buffers of one lifetime that lie one directly on "
     "the other"},
    {"order-twins", &SearchRules::orderTwins,
     "Place equal buffers in one order"},
};
static_assert(std::size(ruleFlags) == sizeof(SearchRules),
              "every rule has a flag");

static cl::OptionCategory ruleCategory(
    "rules of the search (docs/Solver.md), each switched off with =false");

static std::vector<std::unique_ptr<cl::opt<bool>>> flags;

void registerRuleFlags(cl::OptionCategory &category) {
  solver::SearchRules defaults;
  for (const RuleFlag &flag : ruleFlags)
    flags.push_back(std::make_unique<cl::opt<bool>>(
        StringRef(flag.name), cl::desc(flag.help),
        cl::init(defaults.*flag.rule), cl::cat(ruleCategory)));
  cl::HideUnrelatedOptions({&category, &ruleCategory});
}

solver::SearchRules rulesFromFlags() {
  solver::SearchRules rules;
  for (size_t i = 0; i < flags.size(); ++i)
    rules.*ruleFlags[i].rule = *flags[i];
  return rules;
}

} // namespace memplan
