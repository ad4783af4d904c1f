//===- ArenaVerifier.cpp - Independent check of an arena plan -------------===//

#include "memplan/Analysis/ArenaVerifier.h"

#include "ArenaVerifierImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::verifier;

//===----------------------------------------------------------------------===//
// Summaries
//===----------------------------------------------------------------------===//

/// From "nothing" upwards until nothing changes, so that recursion needs no
/// special case.
Summaries verifier::summarize(ModuleOp module, SymbolTableCollection &symbols) {
  Summaries summaries;
  auto functions = module.getOps<func::FuncOp>();
  for (func::FuncOp function : functions) {
    FunctionSummary &summary = summaries[function];
    summary.keeps.resize(function.getNumArguments());
    summary.returns.resize(function.getNumResults());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (func::FuncOp function : functions) {
      if (function.isExternal())
        continue;
      std::vector<Tenant> arguments(function.getNumArguments());
      for (auto [tenant, argument] :
           llvm::zip_equal(arguments, function.getArguments()))
        if (isa<BaseMemRefType>(argument.getType()))
          tenant.value = argument;
      PointsTo pointsTo(function, arguments, summaries, symbols);
      FunctionSummary summary = summaries[function];
      function.walk([&](Operation *op) {
        bool isReturn = isa<func::ReturnOp>(op);
        for (OpOperand &operand : op->getOpOperands()) {
          const TenantSet &found = pointsTo.lookup(operand.get());
          if (found.empty())
            continue;
          if (isReturn)
            unite(summary.returns[operand.getOperandNumber()], found);
          else if (classifyUse(operand, summaries, symbols).kind == Use::Kept)
            for (unsigned argument : found)
              summary.keeps.set(argument);
        }
      });
      if (summary != summaries[function]) {
        summaries[function] = summary;
        changed = true;
      }
    }
  }
  return summaries;
}

namespace {

//===----------------------------------------------------------------------===//
// One function
//===----------------------------------------------------------------------===//

class FunctionVerifier {
public:
  FunctionVerifier(func::FuncOp function, std::vector<Tenant> tenants,
                   const Summaries &summaries, SymbolTableCollection &symbols)
      : function(function), tenants(std::move(tenants)), summaries(summaries),
        symbols(symbols),
        pointsTo(function, this->tenants, summaries, symbols) {}

  LogicalResult run() {
    checkHomes();
    checkUses();
    checkInstances();
    Occupancy occupancy(function, tenants, pointsTo, summaries, symbols);
    checkOccupancy(occupancy);
    return failure(hasFailed);
  }

private:
  InFlightDiagnostic error(const Tenant &tenant) {
    hasFailed = true;
    return emitError(tenant.getLoc()) << describe(tenant) << " ";
  }

  /// A region that runs several times at once would share one buffer.
  void checkHomes() {
    for (const Tenant &tenant : tenants)
      for (Operation *op = tenant.op->getParentOp(); op != function;
           op = op->getParentOp())
        if (!runsRegionsInTurn(op)) {
          error(tenant)
                  .append("is made where several may be in use at once")
                  .attachNote(op->getLoc())
              << "inside of this";
          break;
        }
  }

  void checkUses() {
    function.walk([&](Operation *op) {
      checkShifted(op);
      for (OpOperand &operand : op->getOpOperands()) {
        const TenantSet &found = pointsTo.lookup(operand.get());
        if (found.empty())
          continue;
        Use use = classifyUse(operand, summaries, symbols);
        if (use.kind == Use::Access)
          checkParts(operand, found);
        if (use.kind == Use::Kept)
          for (unsigned index : found)
            error(tenants[index]).append(use.why).attachNote(op->getLoc())
                << "here, so its life is not known";
      }
    });
    checkLateOps();
  }

  /// An access must lie in the parts, if the buffer has any.
  void checkParts(OpOperand &operand, const TenantSet &found) {
    for (unsigned index : found) {
      const Tenant &tenant = tenants[index];
      if (!tenant.isPart || tenant.bufferBytes == 0)
        continue;
      auto range = findByteRange(operand.get(), tenant);
      int64_t next = range ? range->first : 0;
      int64_t end = range ? range->second : tenant.bufferBytes;
      for (const Tenant &part : tenants)
        if (part.op == tenant.op && part.firstByte <= next)
          next = std::max(next, part.firstByte + part.bytes);
      if (next < end)
        error(tenant)
                .append("is touched at its byte ", next,
                        ", which no part of its slot has")
                .attachNote(operand.getOwner()->getLoc())
            << "here";
    }
  }

  /// An access inside an op that may run on after its place.
  void checkLateOps() {
    function.walk([&](Operation *op) {
      for (Operation *late = op->getParentOp(); late != function && late;
           late = late->getParentOp()) {
        if (late->getNumResults() == 0 ||
            llvm::all_of(late->getResultTypes(), [](Type type) {
              return type.isIntOrIndexOrFloat() ||
                     isa<ShapedType, ComplexType>(type);
            }))
          continue;
        for (Value operand : op->getOperands())
          for (unsigned index : pointsTo.lookup(operand))
            if (!late->isAncestor(tenants[index].op))
              error(tenants[index])
                      .append("is used by an op that may run on after its "
                              "place")
                      .attachNote(late->getLoc())
                  << "here";
      }
    });
  }

  /// A value that points to a tenant at the start of a block from which that
  /// tenant is made anew is an older instance of it.
  void checkInstances() {
    function.walk([&](Block *block) {
      for (BlockArgument argument : block->getArguments())
        for (unsigned index : pointsTo.lookup(argument)) {
          const Tenant &tenant = tenants[index];
          Block *home = block->getParent()->findAncestorBlockInRegion(
              *tenant.op->getBlock());
          if (!home || !isReachable(block, home))
            continue;
          error(tenant)
                  .append("is still in use when it is made again")
                  .attachNote(argument.getLoc())
              << "carried round a loop as this value";
        }
    });
  }

  static bool isReachable(Block *from, Block *to) {
    llvm::SetVector<Block *> reached;
    reached.insert(from);
    for (size_t i = 0; i < reached.size(); ++i)
      reached.insert_range(reached[i]->getSuccessors());
    return reached.contains(to);
  }

  void checkShifted(Operation *op) {
    for (unsigned index :
         findShifted(op, tenants, pointsTo, summaries, symbols))
      error(tenants[index])
              .append("is overwritten where it is yet to be read")
              .attachNote(op->getLoc())
          << "by this";
  }

  void checkOccupancy(const Occupancy &occupancy) {
    llvm::DenseSet<std::pair<unsigned, unsigned>> reported;
    llvm::DenseSet<unsigned> reportedLives;
    for (auto [index, node] : llvm::enumerate(occupancy.getNodes())) {
      if (node.point < 0)
        continue;
      llvm::BitVector occupied = occupancy.getOccupied(index);
      for (unsigned t : occupied.set_bits()) {
        const Tenant &tenant = tenants[t];
        bool covers = tenant.lower <= node.point && node.point < tenant.upper;
        if (!covers && reportedLives.insert(t).second)
          error(tenant)
                  .append("is in use at point ", node.point,
                          ", outside of its lifetime")
                  .attachNote(node.op->getLoc())
              << "here";
      }
      TenantSet touched = node.reads;
      unite(touched, node.writes);
      for (unsigned a : touched)
        for (unsigned b : occupied.set_bits())
          if (a != b && tenants[a].sharesBytesWith(tenants[b]) &&
              reported.insert({std::min(a, b), std::max(a, b)}).second)
            reportOverlap(tenants[a], tenants[b], node.op);
    }
  }

  void reportOverlap(const Tenant &a, const Tenant &b, Operation *op) {
    InFlightDiagnostic diagnostic = error(a)
                                    << "is touched while " << describe(b)
                                    << " shares bytes with it and is in use";
    diagnostic.attachNote(b.getLoc()) << "which is made here";
    diagnostic.attachNote(op->getLoc()) << "both are in use at this op";
  }

  func::FuncOp function;
  std::vector<Tenant> tenants;
  const Summaries &summaries;
  SymbolTableCollection &symbols;
  PointsTo pointsTo;
  bool hasFailed = false;
};

} // namespace

LogicalResult memplan::verifyArenas(ModuleOp module) {
  SymbolTableCollection symbols;
  Summaries summaries = summarize(module, symbols);
  bool hasFailed = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<Claims> claims = checkClaims(function, module);
    if (failed(claims)) {
      hasFailed = true;
      continue;
    }
    if (claims->tenants.empty())
      continue;
    FunctionVerifier verifier(function, std::move(claims->tenants), summaries,
                              symbols);
    hasFailed |= failed(verifier.run());
  }
  return failure(hasFailed);
}

LogicalResult memplan::verifyAccesses(ModuleOp module) {
  SymbolTableCollection symbols;
  Summaries summaries = summarize(module, symbols);
  bool hasFailed = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::vector<Tenant> buffers;
    auto addBuffer = [&](Operation *op, Value value) {
      Tenant &buffer = buffers.emplace_back();
      buffer.op = op;
      buffer.value = value;
    };
    for (BlockArgument argument : function.getArguments())
      if (isa<MemRefType>(argument.getType()))
        addBuffer(nullptr, argument);
    function.walk([&](Operation *op) {
      if (isa<memref::AllocOp, memref::AllocaOp>(op))
        addBuffer(op, op->getResult(0));
    });
    if (function.isExternal() || buffers.empty())
      continue;
    PointsTo pointsTo(function, buffers, summaries, symbols);
    function.walk([&](Operation *op) {
      for (unsigned index :
           findShifted(op, buffers, pointsTo, summaries, symbols)) {
        hasFailed = true;
        (emitError(op->getLoc())
         << "overwrites parts of a buffer that it has yet to read")
                .attachNote(buffers[index].getLoc())
            << "this buffer";
      }
    });
  }
  return failure(hasFailed);
}
