//===- PlanArena.cpp - Lifetimes to offsets, as attributes ----------------===//

#include "memplan/Analysis/Liveness.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Solver.h"
#include "memplan/Support/CheckedMath.h"
#include "memplan/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace memplan {
#define GEN_PASS_DEF_PLANARENA
#include "memplan/Transforms/Passes.h.inc"
} // namespace memplan

using namespace mlir;
using namespace memplan;

namespace {

/// Who calls whom in a module, and whose arena its callers can provide.
class CallGraph {
public:
  explicit CallGraph(ModuleOp module) : module(module) {
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](func::CallOp call) {
        if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
          callees[function].insert(callee);
      });
  }

  /// Callees before callers, otherwise in the module's order.
  SmallVector<func::FuncOp> bottomUp() {
    SmallVector<func::FuncOp> order;
    llvm::DenseSet<Operation *> seen;
    std::function<void(func::FuncOp)> visit = [&](func::FuncOp function) {
      if (!seen.insert(function).second)
        return;
      for (func::FuncOp callee : callees[function])
        visit(callee);
      order.push_back(function);
    };
    for (auto function : module.getOps<func::FuncOp>())
      visit(function);
    return order;
  }

  /// Whether every caller of `function` is a plain call that can hand it an
  /// arena: private, called, not recursive, not used otherwise, and no call
  /// stands where several may run at one time.
  bool isArenaGivenByCallers(func::FuncOp function) {
    if (function.isPublic() || isRecursive(function))
      return false;
    auto uses = SymbolTable::getSymbolUses(function, module);
    if (!uses || uses->empty())
      return false;
    return llvm::all_of(*uses, [](const SymbolTable::SymbolUse &use) {
      auto call = dyn_cast<func::CallOp>(use.getUser());
      if (!call)
        return false;
      for (Operation *op = call->getParentOp(); !isa<func::FuncOp>(op);
           op = op->getParentOp())
        if (!hasSequentialRegions(op))
          return false;
      return true;
    });
  }

private:
  bool isRecursive(func::FuncOp function) {
    llvm::SmallPtrSet<Operation *, 8> seen;
    SmallVector<func::FuncOp> worklist = {function};
    while (!worklist.empty())
      for (func::FuncOp callee : callees[worklist.pop_back_val()]) {
        if (callee == function)
          return true;
        if (seen.insert(callee).second)
          worklist.push_back(callee);
      }
    return false;
  }

  ModuleOp module;
  llvm::DenseMap<Operation *, llvm::SmallSetVector<func::FuncOp, 4>> callees;
};

/// The buffers of one function in one memory space.
struct Group {
  /// An alloc, or a call with the index of the callee's arena.
  struct Owner {
    Operation *op;
    unsigned index;
    std::vector<LivePart> parts;
  };
  /// One for each owner.
  solver::Problem problem;
  SmallVector<Owner> owners;
  int64_t alignment = 1;
};

class PlanArenaPass : public memplan::impl::PlanArenaBase<PlanArenaPass> {
public:
  using PlanArenaBase::PlanArenaBase;

  void runOnOperation() override {
    if (!llvm::isPowerOf2_64(alignment)) {
      emitError(getOperation().getLoc())
          << "memplan-plan-arena: alignment=" << alignment.getValue()
          << " is not a power of two";
      return signalPassFailure();
    }
    if (effort < 0) {
      emitError(getOperation().getLoc())
          << "memplan-plan-arena: effort=" << effort.getValue()
          << " is not a number of steps of at least 0";
      return signalPassFailure();
    }
    CallGraph calls(getOperation());
    BufferFlowAnalysis flowAnalysis;
    for (func::FuncOp function : calls.bottomUp())
      if (!function.isExternal() &&
          failed(planFunction(function, calls, flowAnalysis)))
        return signalPassFailure();
  }

private:
  LogicalResult planFunction(func::FuncOp function, CallGraph &calls,
                             BufferFlowAnalysis &flowAnalysis) {
    if (isMaterialized(function))
      return emitError(function.getLoc())
             << "@" << function.getName()
             << " has an arena already; plan before memplan-materialize-arena";
    clearPlan(function);
    BufferLiveness liveness(function, flowAnalysis);
    numLeftAlone += liveness.getLeftAlone().size();
    if (emitRemarks)
      for (const LeftAlone &left : liveness.getLeftAlone()) {
        InFlightDiagnostic remark = left.alloc->emitRemark()
                                    << "left alone: " << left.reason;
        if (left.where)
          remark.attachNote(left.where->getLoc()) << "here";
      }
    llvm::MapVector<Attribute, Group> groups;
    for (const LiveBuffer &buffer : liveness.getBuffers())
      addBuffer(groups, buffer);
    addCallees(groups, function, calls, liveness.getPoints());
    numBuffers += liveness.getBuffers().size();

    SmallVector<Attribute> arenas;
    for (auto &[space, group] : groups)
      if (failed(solveGroup(function, space, group, arenas)))
        return failure();
    for (auto &[call, slots] : calleeSlots)
      call->setAttr(kCalleeSlotsAttr, ArrayAttr::get(&getContext(), slots));
    if (!arenas.empty())
      function->setAttr(kArenasAttr, ArrayAttr::get(&getContext(), arenas));
    return success();
  }

  static bool isMaterialized(func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, kArenaArgAttr))
        return true;
    return function
        .walk([](memref::AllocOp alloc) {
          return alloc->hasAttr(kArenaArgAttr) ? WalkResult::interrupt()
                                               : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void clearPlan(func::FuncOp function) {
    calleeSlots.clear();
    function->removeAttr(kArenasAttr);
    function.walk([](Operation *op) {
      if (isa<memref::AllocOp>(op)) {
        op->removeAttr(kSlotAttr);
        // A buffer of this plan, which counts like any other.
        op->removeAttr(kWorkspaceAttr);
      }
      op->removeAttr(kCalleeSlotsAttr);
    });
  }

  void addBuffer(llvm::MapVector<Attribute, Group> &groups,
                 const LiveBuffer &buffer) {
    memref::AllocOp alloc = buffer.alloc;
    Group &group = groups[alloc.getType().getMemorySpace()];
    int64_t natural =
        static_cast<int64_t>(DataLayout::closest(alloc).getTypeABIAlignment(
            alloc.getType().getElementType()));
    group.alignment = std::max({group.alignment, buffer.alignment, natural});
    solver::Buffer entry;
    entry.lower = buffer.lower;
    entry.upper = buffer.upper;
    entry.size = buffer.bytes;
    group.problem.buffers.push_back(entry);
    group.owners.push_back(
        {alloc, 0, noReuse ? std::vector<LivePart>() : buffer.parts});
  }

  /// A callee's arena is a buffer of the call.
  void addCallees(llvm::MapVector<Attribute, Group> &groups,
                  func::FuncOp function, CallGraph &calls,
                  const ProgramPoints &points) {
    function.walk([&](func::CallOp call) {
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      auto arenas =
          callee ? callee->getAttrOfType<ArrayAttr>(kArenasAttr) : nullptr;
      if (!arenas || !calls.isArenaGivenByCallers(callee))
        return;
      calleeSlots[call].resize(arenas.size());
      for (auto [index, attribute] : llvm::enumerate(arenas)) {
        auto arena = cast<ArenaAttr>(attribute);
        Group &group = groups[arena.getMemorySpace()];
        group.alignment = std::max(group.alignment, arena.getAlignment());
        solver::Buffer entry;
        entry.lower = points.begin(call);
        entry.upper = points.end(call);
        entry.size = arena.getBytes();
        group.problem.buffers.push_back(entry);
        group.owners.push_back({call, static_cast<unsigned>(index), {}});
      }
    });
  }

  struct Placement {
    /// Offsets are those of the buffers.
    solver::Solution solution;
    /// The lower bound that the lifetimes alone give.
    int64_t liveBytes;
  };

  /// Solves `problem`, whose first entries are the buffers.
  std::optional<Placement> place(func::FuncOp function,
                                 const solver::Problem &problem) {
    solver::SolverOptions options;
    options.effort = effort;
    auto solver =
        noReuse ? solver::createNoReuseSolver() : solver::createSolver(options);
    solver::Outcome outcome = solver->solve(problem);
    if (!outcome) {
      emitError(function.getLoc())
          << "cannot plan @" << function.getName() << ": " << outcome.error;
      return std::nullopt;
    }
    std::string fault = solver::checkSolution(problem, *outcome.solution);
    if (!fault.empty()) {
      emitError(function.getLoc())
          << "internal error: the solver's plan of @" << function.getName()
          << " is wrong: " << fault;
      return std::nullopt;
    }
    solverSteps += outcome.solution->steps;
    return Placement{std::move(*outcome.solution),
                     solver::computeLowerBound(problem)};
  }

  /// The problem in which a buffer with parts is a rigid group: first of all
  /// the whole of it, which takes no time and thus no room, but lies in the
  /// arena and is aligned; after all buffers the parts.
  static solver::Problem splitIntoParts(const Group &group, int64_t unit) {
    solver::Problem problem = group.problem;
    for (auto [index, owner] : llvm::enumerate(group.owners)) {
      if (owner.parts.empty())
        continue;
      auto id = static_cast<int64_t>(index);
      problem.buffers[index].upper = problem.buffers[index].lower;
      problem.buffers[index].group = solver::GroupMember{id, 0};
      for (const LivePart &part : owner.parts) {
        solver::Buffer entry;
        entry.lower = part.lower;
        entry.upper = part.upper;
        entry.size = part.bytes;
        entry.alignment = unit;
        while (part.offset % entry.alignment != 0)
          entry.alignment /= 2;
        entry.group = solver::GroupMember{id, part.offset};
        problem.buffers.push_back(entry);
      }
    }
    return problem;
  }

  ArrayAttr makeParts(const Group::Owner &owner) {
    SmallVector<Attribute> parts;
    for (const LivePart &part : owner.parts)
      parts.push_back(PartAttr::get(&getContext(), part.offset, part.bytes,
                                    part.lower, part.upper));
    return parts.empty() ? ArrayAttr() : ArrayAttr::get(&getContext(), parts);
  }

  LogicalResult solveGroup(func::FuncOp function, Attribute space, Group &group,
                           SmallVectorImpl<Attribute> &arenas) {
    int64_t unit = std::max<int64_t>(group.alignment, alignment);
    for (solver::Buffer &buffer : group.problem.buffers)
      buffer.alignment = unit;
    std::optional<Placement> placement = place(function, group.problem);
    if (!placement)
      return failure();
    bool hasParts = llvm::any_of(group.owners, [](const Group::Owner &owner) {
      return !owner.parts.empty();
    });
    if (hasParts) {
      solver::Problem parted = splitIntoParts(group, unit);
      std::optional<Placement> other = place(function, parted);
      if (!other)
        return failure();
      // Whichever needs less: with groups the solver can do less.
      if (other->solution.height < placement->solution.height)
        placement = std::move(other);
      else
        hasParts = false;
    }
    const solver::Solution &solution = placement->solution;
    int64_t total = 0;
    for (auto [owner, buffer, offset] :
         llvm::zip(group.owners, group.problem.buffers, solution.offsets)) {
      // The solver has checked that the sum fits.
      total += *checkedAlignTo(buffer.size, unit);
      auto slot =
          SlotAttr::get(&getContext(), offset, buffer.lower, buffer.upper,
                        hasParts ? makeParts(owner) : ArrayAttr());
      if (isa<memref::AllocOp>(owner.op))
        owner.op->setAttr(kSlotAttr, slot);
      else
        calleeSlots[owner.op][owner.index] = slot;
    }
    arenaBytes += solution.height;
    noReuseBytes += total;
    BoundProof proof = solution.lowerBound > placement->liveBytes
                           ? BoundProof::Search
                           : BoundProof::LiveBytes;
    arenas.push_back(ArenaAttr::get(
        &getContext(), solution.height, solution.lowerBound, proof, total,
        solution.status == solver::Status::Optimal, unit, space));
    return success();
  }

  llvm::MapVector<Operation *, SmallVector<Attribute>> calleeSlots;
};

} // namespace
