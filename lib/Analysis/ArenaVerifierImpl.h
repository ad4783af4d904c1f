//===- ArenaVerifierImpl.h - Parts of the arena verifier --------*- C++ -*-===//
//
// Private to the verifier: tenants (what it knows of a planned buffer), where
// they may be pointed to from, and when they are occupied.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_ANALYSIS_ARENAVERIFIERIMPL_H
#define MEMPLAN_LIB_ANALYSIS_ARENAVERIFIERIMPL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace memplan::verifier {

/// A buffer with a slot, or (while summaries are made) an argument.
struct Tenant {
  /// The alloc, view or call that carries the slot; null for an argument.
  mlir::Operation *op = nullptr;
  /// The buffer; null for a callee's arena before materialization.
  mlir::Value value;
  mlir::Attribute space;
  int64_t bytes = 0;
  int64_t offset = 0;
  int64_t lower = 0;
  int64_t upper = 0;
  /// A buffer with parts is one tenant for each: the range of the buffer's
  /// bytes that this one is.
  bool isPart = false;
  int64_t firstByte = 0;
  /// Scratch memory that the plan could do without: no bound counts it.
  bool isWorkspace = false;
  /// Bytes of the whole buffer; 0 for all of its parts but the first.
  int64_t bufferBytes = 0;

  mlir::Location getLoc() const { return op ? op->getLoc() : value.getLoc(); }
  bool sharesBytesWith(const Tenant &other) const {
    return space == other.space && bytes > 0 && other.bytes > 0 &&
           offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

/// Sorted indices of tenants.
using TenantSet = llvm::SmallVector<unsigned, 2>;

/// Adds `source` to `target`; true if that changes it.
bool unite(TenantSet &target, const TenantSet &source);

/// What a function does with its memref arguments.
struct FunctionSummary {
  llvm::BitVector keeps;
  /// Of each result, the arguments that it may be.
  llvm::SmallVector<TenantSet> returns;

  bool operator!=(const FunctionSummary &other) const {
    return keeps != other.keeps || returns != other.returns;
  }
};
using Summaries = llvm::DenseMap<mlir::Operation *, FunctionSummary>;

/// The summaries of all functions of a module.
Summaries summarize(mlir::ModuleOp module,
                    mlir::SymbolTableCollection &symbols);

/// What an operand's use does with the buffer behind it.
struct Use {
  enum Kind { None, HandedOn, Access, Kept } kind = None;
  bool reads = false;
  bool writes = false;
  /// For `Kept`: in words.
  const char *why = "";
};
Use classifyUse(mlir::OpOperand &operand, const Summaries &summaries,
                mlir::SymbolTableCollection &symbols);

/// A way that control and values take: out of a branch (or an op with regions)
/// into a block's arguments or an op's results.
struct Edge {
  mlir::Operation *from;
  /// The block entered, or null if `into` completes.
  mlir::Block *block;
  mlir::Operation *into;
  mlir::SmallVector<mlir::Value> operands;
  mlir::SmallVector<mlir::Value> inputs;
};

/// Calls `visit` for each edge out of `op`: a terminator or an op with regions.
/// Ops of unknown control flow have edges among all of their regions.
void forEachEdge(mlir::Operation *op,
                 llvm::function_ref<void(const Edge &)> visit);

/// Whether the regions of `op` run one at a time while `op` runs.
bool runsRegionsInTurn(mlir::Operation *op);

/// Where tenants may be pointed to from, to a fixpoint over all values.
class PointsTo {
public:
  PointsTo(mlir::func::FuncOp function, llvm::ArrayRef<Tenant> tenants,
           const Summaries &summaries, mlir::SymbolTableCollection &symbols);
  const TenantSet &lookup(mlir::Value value) const;

private:
  bool transfer(mlir::Operation *op);
  bool transferCall(mlir::Operation *op, mlir::func::FuncOp callee);
  bool flow(mlir::Value from, mlir::Value to);

  const Summaries &summaries;
  mlir::SymbolTableCollection &symbols;
  llvm::DenseMap<mlir::Value, TenantSet> sets;
};

/// The bytes of its buffer between which `value`, that buffer or a view of it,
/// lies; none if that isn't known.
std::optional<std::pair<int64_t, int64_t>> findByteRange(mlir::Value value,
                                                         const Tenant &tenant);

/// Whether an access through `value` may touch the tenant, which it may point
/// to.
bool mayTouch(mlir::Value value, const Tenant &tenant);

/// Tenants of which `op` writes a part that overlaps another part that it
/// reads, without being the same, or the same part that it reads in another
/// order. Only what is certain: parts whose place in the buffer is static, ops
/// that know their order.
TenantSet findShifted(mlir::Operation *op, llvm::ArrayRef<Tenant> tenants,
                      const PointsTo &pointsTo, const Summaries &summaries,
                      mlir::SymbolTableCollection &symbols);

/// A moment in the function: an op, or the completion of an op with regions.
struct Node {
  mlir::Operation *op;
  llvm::SmallVector<unsigned, 2> successors;
  llvm::SmallVector<unsigned, 2> predecessors;
  TenantSet reads;
  TenantSet writes;
  /// Tenants of which no earlier instance matters from here on: one is made
  /// here, or control enters a region in which they are made.
  TenantSet kills;
  /// The program point, or -1.
  int64_t point = -1;
};

/// When tenants are occupied: they have been written and will be read, or are
/// touched right now.
class Occupancy {
public:
  Occupancy(mlir::func::FuncOp function, llvm::ArrayRef<Tenant> tenants,
            const PointsTo &pointsTo, const Summaries &summaries,
            mlir::SymbolTableCollection &symbols);

  llvm::ArrayRef<Node> getNodes() const { return nodes; }
  llvm::BitVector getOccupied(unsigned node) const;

private:
  unsigned addNode(mlir::Operation *op, bool hasPoint);
  void build(mlir::Region &region);
  void link(mlir::Operation *op);
  void addEdge(unsigned from, unsigned to);
  void addKills(mlir::Operation *op, unsigned tenant);
  void addAccesses(llvm::ArrayRef<Tenant> tenants, const PointsTo &pointsTo,
                   const Summaries &summaries,
                   mlir::SymbolTableCollection &symbols);
  void solve();
  bool hasPoints(mlir::Operation *op);

  std::vector<Node> nodes;
  /// Entry and completion.
  llvm::DenseMap<mlir::Operation *, std::pair<unsigned, unsigned>> nodesOf;
  llvm::DenseMap<mlir::Operation *, bool> pointed;
  int64_t nextPoint = 0;
  unsigned numTenants;
  /// Data present and data wanted, before and after each node.
  std::vector<llvm::BitVector> writtenIn, writtenOut, wantedIn, wantedOut;
};

/// The slots and arenas of one function as they are claimed.
struct Claims {
  std::vector<Tenant> tenants;
  /// Before materialization, slots are on allocs.
  bool isMaterialized = false;
};

/// Reads the claims of `function` and checks all that needs no dataflow: where
/// slots stand, alignment, bounds, the arena's numbers, claimed overlaps.
mlir::FailureOr<Claims> checkClaims(mlir::func::FuncOp function,
                                    mlir::ModuleOp module);

/// A buffer as diagnostics call it: its name if it has one, and its bytes.
std::string describe(const Tenant &tenant);

} // namespace memplan::verifier

#endif // MEMPLAN_LIB_ANALYSIS_ARENAVERIFIERIMPL_H
