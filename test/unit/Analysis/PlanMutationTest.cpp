//===- PlanMutationTest.cpp - The verifier against 10,000 wrong plans -----===//
//
// Plans of hand-written and generated modules are mutated; whether a mutant is
// still valid is decided by an interpreter (TraceOracle) that shares no code
// with planner or verifier, and by rules on the numbers. The verifier must
// refuse every invalid mutant and accept every plan that was not mutated.
//
//===----------------------------------------------------------------------===//

#include "ModuleGenerator.h"
#include "TraceOracle.h"

#include "memplan/Analysis/ArenaVerifier.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Solver/Solver.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <array>
#include <random>

using namespace mlir;
using namespace memplan;
using namespace memplan::test;

namespace {

constexpr uint64_t kSeed = 20240229;
constexpr int kNumMutants = 10000;
constexpr int kNumGenerated = 60;

enum class Mutation {
  Overlap,
  Misalign,
  Outside,
  ShortLife,
  BrokenAlias,
  Missing,
  WrongHeight,
  WrongBound,
};
constexpr std::array<const char *, 8> kMutationNames = {
    "overlap",      "misaligned",     "outside",      "short life",
    "broken alias", "missing buffer", "wrong height", "wrong bound"};

class PlanMutation : public ::testing::Test {
protected:
  PlanMutation() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, cf::ControlFlowDialect,
                    func::FuncDialect, linalg::LinalgDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
    registerMemPlanDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      llvm::raw_string_ostream(diagnostics) << diagnostic << "\n";
    });
  }

  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  bool run(ModuleOp module, std::unique_ptr<Pass> pass) {
    PassManager manager(&context);
    manager.enableVerifier(false);
    manager.addPass(std::move(pass));
    return succeeded(manager.run(module));
  }

  bool plan(ModuleOp module, bool noReuse) {
    PlanArenaOptions options;
    options.alignment = 16;
    options.noReuse = noReuse;
    return run(module, createPlanArena(options));
  }

  unsigned pick(unsigned count) {
    return static_cast<unsigned>(random() % count);
  }

  static func::FuncOp getFunction(ModuleOp module) {
    return module.lookupSymbol<func::FuncOp>("f");
  }

  static SmallVector<memref::AllocOp> getPlanned(ModuleOp module) {
    SmallVector<memref::AllocOp> allocs;
    module.walk([&](memref::AllocOp alloc) {
      if (alloc->hasAttr(kSlotAttr))
        allocs.push_back(alloc);
    });
    return allocs;
  }

  static int64_t sizeOf(memref::AllocOp alloc) {
    return 4 * alloc.getType().getNumElements();
  }

  ArenaAttr getArena(ModuleOp module) {
    auto arenas = getFunction(module)->getAttrOfType<ArrayAttr>(kArenasAttr);
    return arenas ? cast<ArenaAttr>(arenas[0]) : nullptr;
  }

  void setArena(ModuleOp module, int64_t bytes, int64_t bound, BoundProof proof,
                int64_t sum, bool optimal) {
    ArenaAttr old = getArena(module);
    auto arena = ArenaAttr::get(&context, bytes, bound, proof, sum, optimal,
                                old.getAlignment(), old.getMemorySpace());
    getFunction(module)->setAttr(kArenasAttr,
                                 ArrayAttr::get(&context, {arena}));
  }

  void setSlot(memref::AllocOp alloc, int64_t offset, int64_t lower,
               int64_t upper) {
    alloc->setAttr(kSlotAttr, SlotAttr::get(&context, offset, lower, upper));
  }

  static solver::Problem getProblem(ModuleOp module) {
    solver::Problem problem;
    for (memref::AllocOp alloc : getPlanned(module)) {
      auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr);
      solver::Buffer &buffer = problem.buffers.emplace_back();
      buffer.lower = slot.getLower();
      buffer.upper = slot.getUpper();
      buffer.size = sizeOf(alloc);
      buffer.alignment = 16;
    }
    return problem;
  }

  /// Makes the arena's numbers follow from the slots, so that they are no
  /// reason to refuse the plan.
  void fitArena(ModuleOp module) {
    int64_t height = 0, sum = 0;
    for (memref::AllocOp alloc : getPlanned(module)) {
      auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr);
      height = std::max(height, slot.getOffset() + sizeOf(alloc));
      sum += sizeOf(alloc);
    }
    int64_t bound = solver::computeLowerBound(getProblem(module));
    setArena(module, height, bound, BoundProof::LiveBytes, sum,
             height == bound);
  }

  /// Mutates; true if a rule on the numbers alone makes the plan invalid, none
  /// if this mutation does not apply.
  std::optional<bool> mutate(ModuleOp module, Mutation mutation) {
    SmallVector<memref::AllocOp> allocs = getPlanned(module);
    memref::AllocOp alloc = allocs[pick(allocs.size())];
    auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr);
    ArenaAttr arena = getArena(module);
    switch (mutation) {
    case Mutation::Overlap:
      setSlot(alloc, 16 * pick(arena.getBytes() / 16 + 1), slot.getLower(),
              slot.getUpper());
      fitArena(module);
      return false;
    case Mutation::Misalign:
      setSlot(alloc, slot.getOffset() + 1 + pick(15), slot.getLower(),
              slot.getUpper());
      fitArena(module);
      return true;
    case Mutation::Outside:
      setSlot(alloc,
              (arena.getBytes() - sizeOf(alloc)) / 16 * 16 + 16 * (1 + pick(9)),
              slot.getLower(), slot.getUpper());
      return true;
    case Mutation::ShortLife:
      return shortenLife(module, allocs);
    case Mutation::BrokenAlias:
      return rewire(module, alloc) ? std::optional(false) : std::nullopt;
    case Mutation::Missing:
      alloc->removeAttr(kSlotAttr);
      return true;
    case Mutation::WrongHeight: {
      int64_t change = 16 * (1 + pick(3));
      int64_t bytes = pick(2) ? arena.getBytes() + change
                              : std::max<int64_t>(arena.getBytes() - change, 0);
      setArena(module, bytes, arena.getLowerBound(), arena.getLowerBoundProof(),
               arena.getNoReuse(), bytes == arena.getLowerBound());
      return true;
    }
    case Mutation::WrongBound:
      return falsifyBound(module, arena);
    }
    return std::nullopt;
  }

  /// Breaks one rule on the bound, of the kinds that the slots can belie, and
  /// keeps the others.
  std::optional<bool> falsifyBound(ModuleOp module, ArenaAttr arena) {
    int64_t bytes = arena.getBytes(), bound = arena.getLowerBound();
    int64_t liveBytes = solver::computeLowerBound(getProblem(module));
    BoundProof proof = arena.getLowerBoundProof();
    bool flipsOptimal = false;
    switch (pick(4)) {
    case 0: // Less, or more up to the plan's own bytes, than what lives.
      proof = BoundProof::LiveBytes;
      bound = pick(static_cast<unsigned>(bytes) + 1);
      if (bound == liveBytes)
        return std::nullopt;
      break;
    case 1:
      if (liveBytes == 0)
        return std::nullopt;
      proof = BoundProof::Search;
      bound = pick(static_cast<unsigned>(liveBytes));
      break;
    case 2:
      proof = pick(2) ? BoundProof::Search : BoundProof::LiveBytes;
      bound = bytes + 1 + pick(64);
      break;
    case 3:
      flipsOptimal = true;
      break;
    }
    setArena(module, bytes, bound, proof, arena.getNoReuse(),
             (bytes == bound) != flipsOptimal);
    return true;
  }

  /// Shortens some lifetimes and solves again, as a planner would that got them
  /// wrong: the plan agrees with its claims.
  std::optional<bool> shortenLife(ModuleOp module,
                                  ArrayRef<memref::AllocOp> allocs) {
    solver::Problem problem = getProblem(module);
    unsigned victim = pick(allocs.size());
    for (auto [index, buffer] : llvm::enumerate(problem.buffers)) {
      int64_t &lower = buffer.lower, &upper = buffer.upper;
      if (index == victim || pick(4) == 0) {
        int64_t cut = upper > lower ? 1 + pick(upper - lower) : 0;
        if (pick(3))
          upper -= cut;
        else
          lower += cut;
      }
    }
    auto outcome = solver::createSolver()->solve(problem);
    for (auto [alloc, buffer, offset] :
         llvm::zip_equal(allocs, problem.buffers, outcome.solution->offsets))
      setSlot(alloc, offset, buffer.lower, buffer.upper);
    fitArena(module);
    return false;
  }

  /// Makes an op use another buffer's value than it did.
  bool rewire(ModuleOp module, memref::AllocOp alloc) {
    DominanceInfo dominance(module);
    SmallVector<OpOperand *> uses;
    module.walk([&](Operation *op) {
      for (OpOperand &use : op->getOpOperands())
        if (use.get().getType() == alloc.getType() &&
            use.get() != alloc.getResult() && !isa<func::ReturnOp>(op) &&
            dominance.properlyDominates(alloc.getOperation(), op))
          uses.push_back(&use);
    });
    if (uses.empty())
      return false;
    uses[pick(uses.size())]->set(alloc);
    return true;
  }

  MLIRContext context;
  std::mt19937_64 random{kSeed};
  std::string diagnostics;
};

TEST_F(PlanMutation, VerifierRefusesEveryInvalidMutant) {
  std::vector<std::string> sources;
  for (const char *text : getHandWrittenModules())
    sources.push_back(text);
  for (int i = 0; i < kNumGenerated; ++i)
    sources.push_back(generateModule(kSeed + i));
  std::vector<OwningOpRef<ModuleOp>> modules;
  for (const std::string &source : sources) {
    diagnostics.clear();
    OwningOpRef<ModuleOp> module = parse(source);
    ASSERT_TRUE(module) << diagnostics << source;
    // Some plans that are not optimal, so that they can be called so.
    bool noReuse = modules.size() % 4 == 3;
    ASSERT_TRUE(plan(*module, noReuse)) << diagnostics << source;
    EXPECT_TRUE(succeeded(verifyArenas(*module))) << diagnostics << source;
    EXPECT_EQ(runTraces(getFunction(*module)), "") << source;
    OwningOpRef<ModuleOp> materialized = module->clone();
    ASSERT_TRUE(run(*materialized, createMaterializeArena()));
    EXPECT_TRUE(succeeded(verifyArenas(*materialized)))
        << diagnostics << source;
    if (getPlanned(*module).size() >= 2)
      modules.push_back(std::move(module));
  }
  ASSERT_GE(modules.size(), 40u);

  std::array<int, kMutationNames.size()> numInvalid = {};
  int numMutants = 0, numMissed = 0, numRefusedValid = 0;
  while (numMutants < kNumMutants) {
    ModuleOp original = *modules[pick(modules.size())];
    OwningOpRef<ModuleOp> mutant = original.clone();
    auto mutation = static_cast<Mutation>(numMutants % kMutationNames.size());
    std::optional<bool> breaksRule = mutate(*mutant, mutation);
    if (!breaksRule) {
      ++numMutants;
      continue;
    }
    ++numMutants;
    std::string fault = *breaksRule ? "breaks a rule on the numbers"
                                    : runTraces(getFunction(*mutant));
    // Half of them are looked at in the form that code is made from. What has
    // lost its slot stays an alloc there.
    diagnostics.clear();
    if (pick(2) && !run(*mutant, createMaterializeArena()))
      FAIL() << "cannot materialize: " << diagnostics;
    bool accepted = succeeded(verifyArenas(*mutant));
    numInvalid[static_cast<size_t>(mutation)] += !fault.empty();
    numRefusedValid += fault.empty() && !accepted;
    if (fault.empty() || !accepted || ++numMissed > 3)
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << *mutant;
    ADD_FAILURE() << "accepted a mutant (mutation: "
                  << kMutationNames[static_cast<size_t>(mutation)] << ", seed "
                  << kSeed << ", number " << numMutants
                  << ") that is invalid: " << fault << "\n"
                  << text;
  }
  EXPECT_EQ(numMissed, 0);
  for (auto [name, count] : llvm::zip_equal(kMutationNames, numInvalid)) {
    EXPECT_GT(count, 100) << "too few invalid mutants by " << name;
    llvm::outs() << "  " << name << ": " << count << " invalid mutants\n";
  }
  llvm::outs() << "  valid but refused (claims that are wrong without harm): "
               << numRefusedValid << "\n";
}

/// Plans of random modules are valid by the oracle and by the verifier.
TEST_F(PlanMutation, PlansOfRandomModulesAreValid) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string source = generateModule(seed);
    diagnostics.clear();
    OwningOpRef<ModuleOp> module = parse(source);
    ASSERT_TRUE(module) << "seed " << seed << diagnostics << source;
    ASSERT_TRUE(plan(*module, seed % 5 == 0)) << "seed " << seed;
    EXPECT_EQ(runTraces(getFunction(*module)), "") << "seed " << seed << "\n"
                                                   << source;
    EXPECT_TRUE(succeeded(verifyArenas(*module))) << "seed " << seed << "\n"
                                                  << diagnostics << source;
  }
}

} // namespace
