//===- ArenaVerifierClaims.cpp - What a plan says of itself ---------------===//

#include "ArenaVerifierImpl.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace memplan::verifier {

std::string describe(const Tenant &tenant) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "buffer";
  tenant.getLoc()->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    os << " '" << named.getName().getValue() << "'";
    return WalkResult::interrupt();
  });
  os << " (bytes [" << tenant.offset << ", ";
  if (auto end = checkedAdd(tenant.offset, tenant.bytes))
    os << *end;
  else
    os << tenant.offset << " + " << tenant.bytes;
  os << "), points [" << tenant.lower << ", " << tenant.upper << "))";
  return text;
}

namespace {

/// The largest sum of claimed sizes, each rounded up to the alignment but one,
/// over all points: events in a map by time.
int64_t computeBound(ArrayRef<const Tenant *> tenants, int64_t alignment) {
  // Of a part only the multiples of its own place's alignment are known.
  for (const Tenant *tenant : tenants)
    while (tenant->firstByte % alignment != 0)
      alignment /= 2;
  std::map<int64_t,
           std::pair<SmallVector<const Tenant *>, SmallVector<const Tenant *>>>
      events;
  int64_t bound = 0;
  for (const Tenant *tenant : tenants) {
    bound = std::max({bound, tenant->bytes, tenant->bufferBytes});
    if (tenant->lower < tenant->upper) {
      events[tenant->lower].second.push_back(tenant);
      events[tenant->upper].first.push_back(tenant);
    }
  }
  auto padding = [&](const Tenant *tenant) {
    return (alignment - tenant->bytes % alignment) % alignment;
  };
  int64_t live = 0;
  std::map<int64_t, int64_t> paddings;
  for (auto &[time, lists] : events) {
    for (const Tenant *tenant : lists.first) {
      live -= tenant->bytes + padding(tenant);
      if (--paddings[padding(tenant)] == 0)
        paddings.erase(padding(tenant));
    }
    for (const Tenant *tenant : lists.second) {
      live += tenant->bytes + padding(tenant);
      ++paddings[padding(tenant)];
    }
    if (!paddings.empty())
      bound = std::max(bound, live - paddings.rbegin()->first);
  }
  return bound;
}

class ClaimChecker {
public:
  ClaimChecker(func::FuncOp function, ModuleOp module)
      : function(function), module(module) {}

  FailureOr<Claims> run() {
    readArenas();
    findArenaValues();
    function.walk([&](Operation *op) { readOp(op); });
    for (auto [value, arena] : arenaValues)
      checkArenaUses(value);
    for (auto &[space, arena] : arenas)
      checkArena(space, arena);
    if (hasFailed)
      return failure();
    return std::move(claims);
  }

private:
  InFlightDiagnostic error(Operation *op) {
    hasFailed = true;
    // At the location: the op itself may be the whole function.
    return emitError(op->getLoc());
  }

  void readArenas() {
    Attribute attribute = function->getAttr(kArenasAttr);
    if (!attribute)
      return;
    auto list = dyn_cast<ArrayAttr>(attribute);
    if (!list) {
      error(function) << kArenasAttr << " is " << attribute
                      << ", expected an array of #memplan.arena";
      return;
    }
    for (Attribute entry : list) {
      auto arena = dyn_cast<ArenaAttr>(entry);
      if (!arena)
        error(function) << kArenasAttr << " holds " << entry
                        << ", expected #memplan.arena";
      else if (!arenas.insert({arena.getMemorySpace(), arena}).second)
        error(function) << "has two arenas in one memory space";
    }
  }

  /// Arguments and allocs that are marked as the arena.
  void findArenaValues() {
    for (BlockArgument argument : function.getArguments())
      if (Attribute mark =
              function.getArgAttr(argument.getArgNumber(), kArenaArgAttr))
        addArenaValue(function, argument, mark);
    function.walk([&](memref::AllocOp alloc) {
      if (Attribute mark = alloc->getAttr(kArenaArgAttr)) {
        addArenaValue(alloc, alloc, mark);
        auto arena = dyn_cast<ArenaAttr>(mark);
        if (arena && alloc.getAlignment().value_or(1) %
                             static_cast<uint64_t>(arena.getAlignment()) !=
                         0)
          error(alloc) << "arena is allocated with alignment "
                       << alloc.getAlignment().value_or(1) << ", its plan has "
                       << arena.getAlignment();
      }
    });
    claims.isMaterialized = !arenaValues.empty();
    if (claims.isMaterialized)
      for (auto &[space, arena] : arenas)
        if (llvm::none_of(arenaValues, [&, a = arena](const auto &entry) {
              return entry.second == a;
            }))
          error(function) << "has no value for its arena " << arena;
  }

  void addArenaValue(Operation *op, Value value, Attribute mark) {
    auto type = dyn_cast<MemRefType>(value.getType());
    auto arena = dyn_cast<ArenaAttr>(mark);
    if (!arena || !type || type.getRank() != 1 ||
        !type.getElementType().isInteger(8) || !type.getLayout().isIdentity()) {
      error(op) << "an arena must be a memref<Nxi8> marked with its "
                   "#memplan.arena, found "
                << value.getType() << " marked " << mark;
      return;
    }
    if (arenas.lookup(type.getMemorySpace()) != arena)
      error(op) << "arena is marked " << arena
                << ", which is not among the function's " << kArenasAttr;
    if (type.getDimSize(0) != arena.getBytes())
      error(op) << "arena has " << type.getDimSize(0) << " bytes, its plan "
                << arena.getBytes();
    for (auto &[other, attribute] : arenaValues)
      if (attribute == arena)
        error(op) << "a second arena in the same memory space";
    arenaValues.insert({value, arena});
  }

  void readOp(Operation *op) {
    if (Attribute mark = op->getAttr(kSlotAttr))
      readSlot(op, mark);
    if (Attribute mark = op->getAttr(kCalleeSlotsAttr))
      readCalleeSlots(op, mark);
    else if (auto call = dyn_cast<func::CallOp>(op))
      checkPassedArenas(call);
  }

  void readSlot(Operation *op, Attribute mark) {
    auto slot = dyn_cast<SlotAttr>(mark);
    if (!slot) {
      error(op) << kSlotAttr << " is " << mark << ", expected #memplan.slot";
      return;
    }
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      if (claims.isMaterialized)
        error(op) << "has a slot but is not a view of the arena";
      addTenant(op, alloc, slot, alloc.getAlignment().value_or(1));
      return;
    }
    auto view = dyn_cast<memref::ViewOp>(op);
    if (!view) {
      error(op) << "has a slot, which only an alloc or a view of an arena may "
                   "have";
      return;
    }
    if (!arenaValues.contains(view.getSource())) {
      error(op) << "has a slot but is a view of "
                << (isa<BlockArgument>(view.getSource())
                        ? "an argument that is not the arena: it is the "
                          "caller's and no scratch"
                        : "something other than the arena");
      return;
    }
    APInt shift;
    if (!matchPattern(view.getByteShift(), m_ConstantInt(&shift)) ||
        shift.getSExtValue() != slot.getOffset())
      error(op) << "is a view at a byte shift other than its slot's offset "
                << slot.getOffset();
    addTenant(op, view, slot, 1);
  }

  void addTenant(Operation *op, Value value, SlotAttr slot, int64_t alignment) {
    auto type = cast<MemRefType>(value.getType());
    std::optional<int64_t> bytes = sizeOf(op, type);
    if (!bytes) {
      error(op) << "has a slot but a size in bytes that is not known: " << type;
      return;
    }
    Tenant tenant = {op,
                     value,
                     type.getMemorySpace(),
                     *bytes,
                     slot.getOffset(),
                     slot.getLower(),
                     slot.getUpper()};
    tenant.bufferBytes = *bytes;
    tenant.isWorkspace = op->hasAttr(kWorkspaceAttr);
    if (tenant.isWorkspace && (slot.getParts() || !isOnlyWorkspace(value))) {
      error(op) << describe(tenant) << " is marked " << kWorkspaceAttr
                << ", but is used as something else or has parts";
      return;
    }
    if (!slot.getParts())
      return addChecked(tenant, alignment);
    auto end = checkedAdd(slot.getOffset(), *bytes);
    ArenaAttr arena = arenas.lookup(tenant.space);
    if (arena && (!end || *end > arena.getBytes())) {
      error(op) << describe(tenant) << " does not lie inside the arena of "
                << arena.getBytes() << " bytes";
      return;
    }
    for (auto part : slot.getParts().getAsRange<PartAttr>()) {
      if (part.getOffset() + part.getBytes() > *bytes) {
        error(op) << describe(tenant) << " has a part " << part
                  << " beyond its end";
        return;
      }
      tenant.isPart = true;
      tenant.firstByte = part.getOffset();
      tenant.offset = slot.getOffset() + part.getOffset();
      tenant.bytes = part.getBytes();
      tenant.lower = part.getLower();
      tenant.upper = part.getUpper();
      addChecked(tenant, alignment);
      tenant.bufferBytes = 0;
    }
  }

  static bool isOnlyWorkspace(Value value) {
    return llvm::all_of(value.getUses(), [](OpOperand &use) {
      auto user = dyn_cast<WorkspaceOpInterface>(use.getOwner());
      return user && llvm::any_of(user.getWorkspaceMutable(),
                                  [&](auto &other) { return &other == &use; });
    });
  }

  /// Size of a dense memref, computed on its own.
  static std::optional<int64_t> sizeOf(Operation *op, MemRefType type) {
    Type element = type.getElementType();
    if (auto vector = dyn_cast<VectorType>(element))
      element = vector.isScalable() ? Type() : vector.getElementType();
    if (auto complex = dyn_cast_or_null<ComplexType>(element))
      element = complex.getElementType();
    if (!element || !element.isIntOrIndexOrFloat() || !type.hasStaticShape() ||
        !type.getLayout().isIdentity())
      return std::nullopt;
    std::optional<int64_t> bytes = static_cast<int64_t>(
        DataLayout::closest(op).getTypeSize(type.getElementType()));
    for (int64_t extent : type.getShape())
      bytes = bytes ? checkedMul(*bytes, extent) : std::nullopt;
    return bytes;
  }

  void addChecked(Tenant tenant, int64_t alignment) {
    ArenaAttr arena = arenas.lookup(tenant.space);
    if (!arena) {
      error(tenant.op) << "has a slot, but the function has no arena in its "
                          "memory space";
      return;
    }
    auto end = checkedAdd(tenant.offset, tenant.bytes);
    if (!end || *end > arena.getBytes()) {
      error(tenant.op) << describe(tenant) << " does not lie inside the arena"
                       << " of " << arena.getBytes() << " bytes";
      return;
    }
    int64_t start = tenant.offset - tenant.firstByte;
    if (start % arena.getAlignment() != 0 ||
        start % std::max<int64_t>(alignment, 1) != 0 ||
        arena.getAlignment() % std::max<int64_t>(alignment, 1) != 0)
      error(tenant.op) << describe(tenant) << " is not aligned to "
                       << std::max(arena.getAlignment(), alignment) << " bytes";
    claims.tenants.push_back(tenant);
  }

  void readCalleeSlots(Operation *op, Attribute mark) {
    auto call = dyn_cast<func::CallOp>(op);
    auto callee =
        call ? module.lookupSymbol<func::FuncOp>(call.getCallee()) : nullptr;
    auto calleeArenas =
        callee ? callee->getAttrOfType<ArrayAttr>(kArenasAttr) : nullptr;
    auto slots = dyn_cast<ArrayAttr>(mark);
    if (!calleeArenas || !slots || slots.size() != calleeArenas.size()) {
      error(op) << kCalleeSlotsAttr << " does not match the callee's arenas";
      return;
    }
    for (auto [entry, wanted] : llvm::zip_equal(slots, calleeArenas)) {
      auto slot = dyn_cast<SlotAttr>(entry);
      auto arena = dyn_cast<ArenaAttr>(wanted);
      if (!slot || !arena) {
        error(op) << kCalleeSlotsAttr << " holds " << entry
                  << ", expected #memplan.slot";
        continue;
      }
      if (slot.getParts()) {
        error(op) << kCalleeSlotsAttr << " holds " << entry
                  << ": a callee's arena has no parts";
        continue;
      }
      Tenant tenant = {op,
                       Value(),
                       arena.getMemorySpace(),
                       arena.getBytes(),
                       slot.getOffset(),
                       slot.getLower(),
                       slot.getUpper()};
      tenant.bufferBytes = tenant.bytes;
      addChecked(tenant, arena.getAlignment());
    }
  }

  /// An arena that a callee takes must be a buffer of its own.
  void checkPassedArenas(func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee)
      return;
    for (unsigned i = 0; i < callee.getNumArguments(); ++i) {
      auto arena = callee.getArgAttrOfType<ArenaAttr>(i, kArenaArgAttr);
      if (!arena)
        continue;
      auto view = call.getOperand(i).getDefiningOp<memref::ViewOp>();
      auto slot = view ? view->getAttrOfType<SlotAttr>(kSlotAttr) : nullptr;
      if (!slot || !view->hasOneUse())
        error(call) << "passes as the arena of @" << call.getCallee()
                    << " something other than a planned buffer of its own";
      else if (slot.getOffset() % arena.getAlignment() != 0)
        error(call) << "passes an arena at " << slot.getOffset() << ", @"
                    << call.getCallee() << " wants alignment "
                    << arena.getAlignment();
    }
  }

  void checkArenaUses(Value value) {
    for (Operation *user : value.getUsers()) {
      if (isa<memref::ViewOp>(user) && user->hasAttr(kSlotAttr))
        continue;
      if (isa<memref::DeallocOp>(user) && isLastBeforeReturn(user))
        continue;
      error(user) << (isa<memref::ViewOp>(user)
                          ? "is a view of the arena without a slot"
                          : "uses the arena other than through a view with a "
                            "slot");
    }
  }

  static bool isLastBeforeReturn(Operation *op) {
    while (isa_and_nonnull<memref::DeallocOp>(op))
      op = op->getNextNode();
    return isa_and_nonnull<func::ReturnOp>(op);
  }

  void checkArena(Attribute space, ArenaAttr arena) {
    SmallVector<const Tenant *> members;
    for (const Tenant &tenant : claims.tenants)
      if (tenant.space == space)
        members.push_back(&tenant);
    int64_t height = 0;
    std::optional<int64_t> total = 0;
    for (const Tenant *tenant : members) {
      if (tenant->isWorkspace)
        continue; // inside of the arena, as was checked
      int64_t start = tenant->offset - tenant->firstByte;
      height = std::max({height, tenant->offset + tenant->bytes,
                         start + tenant->bufferBytes});
      auto aligned = checkedAlignTo(tenant->bufferBytes, arena.getAlignment());
      total = aligned && total ? checkedAdd(*total, *aligned) : std::nullopt;
    }
    if (hasFailed)
      return;
    if (!total) {
      error(function) << "the sizes of the buffers do not fit 63 bits";
      return;
    }
    if (arena.getBytes() != height)
      error(function) << "arena has " << arena.getBytes()
                      << " bytes, but its buffers end at " << height;
    if (arena.getNoReuse() != *total)
      error(function) << "arena says no_reuse = " << arena.getNoReuse()
                      << ", but its buffers sum up to " << *total
                      << ": one is missing or has another size";
    SmallVector<const Tenant *> needed;
    llvm::copy_if(members, std::back_inserter(needed),
                  [](const Tenant *tenant) { return !tenant->isWorkspace; });
    int64_t bound = computeBound(needed, arena.getAlignment());
    if (arena.getBytes() < bound)
      error(function) << "arena has " << arena.getBytes()
                      << " bytes, but the lifetimes need " << bound;
    else
      checkBound(arena, bound);
    checkClaimedOverlaps(members);
  }

  /// A bound by live bytes is derived anew. One by search has to be believed,
  /// but lies between that and the plan itself, which is a placement.
  void checkBound(ArenaAttr arena, int64_t liveBytes) {
    int64_t bytes = arena.getBytes(), bound = arena.getLowerBound();
    bool isSearched = arena.getLowerBoundProof() == BoundProof::Search;
    if (bound > bytes)
      error(function) << "arena says lower_bound = " << bound
                      << ", but its plan takes only " << bytes << " bytes";
    else if (isSearched && bound < liveBytes)
      error(function) << "arena says lower_bound = " << bound
                      << " by search, but the lifetimes alone prove "
                      << liveBytes;
    else if (!isSearched && bound != liveBytes)
      error(function) << "arena says lower_bound = " << bound
                      << ", but the lifetimes prove " << liveBytes;
    else if (arena.getOptimal() && bytes != bound)
      error(function) << "arena of " << bytes
                      << " bytes is called optimal, but the bound is " << bound;
    else if (!arena.getOptimal() && bytes == bound)
      error(function) << "arena of " << bytes
                      << " bytes is called not optimal, but is as small as its "
                         "bound";
  }

  /// Sweep by start; those that have ended are dropped as it goes.
  void checkClaimedOverlaps(SmallVector<const Tenant *> members) {
    llvm::stable_sort(members, [](const Tenant *a, const Tenant *b) {
      return a->lower < b->lower;
    });
    std::vector<const Tenant *> live;
    for (const Tenant *tenant : members) {
      llvm::erase_if(live, [&](const Tenant *other) {
        return other->upper <= tenant->lower;
      });
      for (const Tenant *other : live)
        if (tenant->lower < tenant->upper && tenant->sharesBytesWith(*other))
          error(tenant->op)
                  .append(describe(*tenant), " overlaps ", describe(*other))
                  .attachNote(other->getLoc())
              << "which is made here";
      live.push_back(tenant);
    }
  }

  func::FuncOp function;
  ModuleOp module;
  Claims claims;
  llvm::MapVector<Attribute, ArenaAttr> arenas;
  llvm::MapVector<Value, ArenaAttr> arenaValues;
  bool hasFailed = false;
};

} // namespace

FailureOr<Claims> checkClaims(func::FuncOp function, ModuleOp module) {
  return ClaimChecker(function, module).run();
}

} // namespace memplan::verifier
