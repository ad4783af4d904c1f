//===- ArenaVerifier.cpp - Independent check of an arena plan -------------===//

#include "memplan/Analysis/ArenaVerifier.h"

#include "ArenaVerifierImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::verifier;

namespace {

//===----------------------------------------------------------------------===//
// Summaries
//===----------------------------------------------------------------------===//

/// What functions do with their arguments, from "nothing" upwards until nothing
/// changes, so that recursion needs no special case.
Summaries summarize(ModuleOp module, SymbolTableCollection &symbols) {
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

//===----------------------------------------------------------------------===//
// Shifted parts of one buffer
//===----------------------------------------------------------------------===//

/// Elements that a memref covers, relative to its buffer; none if not static.
struct Footprint {
  int64_t offset;
  SmallVector<int64_t> sizes, strides;

  bool operator==(const Footprint &other) const {
    return offset == other.offset && sizes == other.sizes &&
           strides == other.strides;
  }
};

std::optional<Footprint> getFootprint(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  Footprint footprint;
  if (!type || !type.hasStaticShape() ||
      failed(type.getStridesAndOffset(footprint.strides, footprint.offset)) ||
      ShapedType::isDynamic(footprint.offset) ||
      llvm::any_of(footprint.strides, ShapedType::isDynamic))
    return std::nullopt;
  llvm::append_range(footprint.sizes, type.getShape());
  return footprint;
}

/// The covered elements, or none if there are too many to list.
std::optional<llvm::DenseSet<int64_t>> listElements(const Footprint &print) {
  constexpr int64_t kMost = 1 << 16;
  llvm::DenseSet<int64_t> elements = {print.offset};
  for (auto [size, stride] : llvm::zip_equal(print.sizes, print.strides)) {
    if (static_cast<int64_t>(elements.size()) >
        kMost / std::max<int64_t>(size, 1))
      return std::nullopt;
    llvm::DenseSet<int64_t> next;
    for (int64_t element : elements)
      for (int64_t i = 0; i < size; ++i)
        next.insert(element + i * stride);
    elements = std::move(next);
  }
  return elements;
}

/// First and last covered element.
std::pair<int64_t, int64_t> getRange(const Footprint &print) {
  int64_t first = print.offset, last = print.offset;
  for (auto [size, stride] : llvm::zip_equal(print.sizes, print.strides))
    (stride < 0 ? first : last) += (size - 1) * stride;
  return {first, last};
}

/// Whether the two provably cover a common element without being the same.
bool areShifted(const Footprint &a, const Footprint &b) {
  if (a == b || llvm::is_contained(a.sizes, 0) ||
      llvm::is_contained(b.sizes, 0))
    return false;
  auto [firstA, lastA] = getRange(a);
  auto [firstB, lastB] = getRange(b);
  if (lastA < firstB || lastB < firstA)
    return false;
  auto elementsA = listElements(a), elementsB = listElements(b);
  if (elementsA && elementsB) {
    // The same elements in another shape are an op on the whole in place.
    if (a.offset == b.offset && *elementsA == *elementsB)
      return false;
    return llvm::any_of(*elementsA,
                        [&](int64_t e) { return elementsB->contains(e); });
  }
  // Too many to list: ranges without holes still decide.
  auto isDense = [](const Footprint &print, int64_t first, int64_t last) {
    int64_t count = 1;
    for (int64_t size : print.sizes)
      count *= size;
    return count == last - first + 1;
  };
  return isDense(a, firstA, lastA) && isDense(b, firstB, lastB) &&
         firstA != firstB;
}

//===----------------------------------------------------------------------===//
// One function
//===----------------------------------------------------------------------===//

class FunctionVerifier {
public:
  FunctionVerifier(func::FuncOp function, std::vector<Tenant> tenants,
                   const Summaries &summaries, SymbolTableCollection &symbols)
      : function(function), tenants(std::move(tenants)), summaries(summaries),
        symbols(symbols),
        pointsTo(function, this->tenants, summaries, symbols) {
    for (const Tenant &tenant : this->tenants)
      tenantOps.insert(tenant.op);
  }

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
        if (use.kind == Use::Kept)
          for (unsigned index : found)
            error(tenants[index]).append(use.why).attachNote(op->getLoc())
                << "here, so its life is not known";
      }
    });
    checkLateOps();
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

  /// An op that writes a part of a buffer which overlaps another part that it
  /// reads. Calls are left to their callee.
  void checkShifted(Operation *op) {
    if (isa<CallOpInterface>(op))
      return;
    struct Part {
      Value value;
      unsigned tenant;
    };
    SmallVector<Part> read, written;
    for (OpOperand &operand : op->getOpOperands()) {
      const TenantSet &found = pointsTo.lookup(operand.get());
      if (found.size() != 1 || !offsetsAreFromBuffer(operand.get()))
        continue;
      Use use = classifyUse(operand, summaries, symbols);
      if (use.kind != Use::Access)
        continue;
      if (use.reads)
        read.push_back({operand.get(), found.front()});
      if (use.writes)
        written.push_back({operand.get(), found.front()});
    }
    for (const Part &target : written)
      for (const Part &source : read) {
        if (target.tenant != source.tenant || target.value == source.value)
          continue;
        auto from = getFootprint(source.value), to = getFootprint(target.value);
        if (from && to && areShifted(*from, *to))
          error(tenants[target.tenant])
                  .append("is read and written in parts that overlap but "
                          "differ")
                  .attachNote(op->getLoc())
              << "by this";
      }
  }

  /// Whether the offset in the value's type counts from the tenant's start:
  /// only `memref.view` moves the base.
  bool offsetsAreFromBuffer(Value value) {
    for (Operation *op = value.getDefiningOp(); op;
         op = value.getDefiningOp()) {
      if (tenantOps.contains(op))
        return true;
      if (isa<memref::ViewOp>(op) || op->getNumOperands() == 0)
        return false;
      value = op->getOperand(0);
    }
    return false;
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
  llvm::DenseSet<Operation *> tenantOps;
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
