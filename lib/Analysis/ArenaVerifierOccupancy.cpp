//===- ArenaVerifierOccupancy.cpp - When tenants hold wanted data ---------===//

#include "ArenaVerifierImpl.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace memplan::verifier {

Occupancy::Occupancy(func::FuncOp function, ArrayRef<Tenant> tenants,
                     const PointsTo &pointsTo, const Summaries &summaries,
                     SymbolTableCollection &symbols)
    : numTenants(tenants.size()) {
  build(function.getBody());
  function.walk([&](Operation *op) {
    if (nodesOf.contains(op))
      link(op);
  });
  for (auto [index, tenant] : llvm::enumerate(tenants)) {
    if (tenant.op && tenant.value)
      addKills(tenant.op, index);
    // The arena of a callee, not yet an operand: touched by the call.
    if (tenant.op && !tenant.value) {
      Node &node = nodes[nodesOf[tenant.op].first];
      unite(node.reads, {static_cast<unsigned>(index)});
      unite(node.writes, {static_cast<unsigned>(index)});
    }
  }
  addAccesses(tenants, pointsTo, summaries, symbols);
  solve();
}

/// An instance is known only inside the regions that it is made in, unless it
/// is handed out of them; what is handed back in at their start is an instance
/// that outlives its successor, which is refused elsewhere. So entering such a
/// region ends all earlier instances.
void Occupancy::addKills(Operation *op, unsigned tenant) {
  auto killAt = [&](Operation *first) {
    if (auto found = nodesOf.find(first); found != nodesOf.end())
      unite(nodes[found->second.first].kills, {tenant});
  };
  killAt(op);
  for (Region *region = op->getParentRegion(); region->getParentRegion();
       region = region->getParentRegion())
    if (!region->front().empty())
      killAt(&region->front().front());
}

/// See docs/Planning.md, "Program points".
bool Occupancy::hasPoints(Operation *op) {
  auto [entry, isNew] = pointed.try_emplace(op, false);
  if (!isNew)
    return entry->second;
  bool result = false;
  if (!op->hasTrait<OpTrait::IsTerminator>()) {
    if (auto interface = dyn_cast<MemoryEffectOpInterface>(op))
      result = interface.hasEffect<MemoryEffects::Read>() ||
               interface.hasEffect<MemoryEffects::Write>();
    else
      result = !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() &&
               !isMemoryEffectFree(op);
  }
  for (Region &region : op->getRegions())
    for (Operation &nested : region.getOps())
      result |= hasPoints(&nested);
  return pointed[op] = result;
}

unsigned Occupancy::addNode(Operation *op, bool hasPoint) {
  Node node;
  node.op = op;
  node.point = hasPoint ? nextPoint++ : -1;
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

void Occupancy::build(Region &region) {
  for (Block &block : region)
    for (Operation &op : block) {
      bool holdsPoints = false;
      for (Region &nested : op.getRegions())
        for (Operation &inner : nested.getOps())
          holdsPoints |= hasPoints(&inner);
      unsigned first = addNode(&op, hasPoints(&op));
      unsigned last = first;
      if (holdsPoints || isa<RegionBranchOpInterface>(op)) {
        for (Region &nested : op.getRegions())
          build(nested);
        last = addNode(&op, holdsPoints);
      }
      nodesOf[&op] = {first, last};
    }
}

void Occupancy::addEdge(unsigned from, unsigned to) {
  nodes[from].successors.push_back(to);
  nodes[to].predecessors.push_back(from);
}

void Occupancy::link(Operation *op) {
  auto [first, last] = nodesOf[op];
  if (Operation *next = op->getNextNode())
    addEdge(last, nodesOf[next].first);
  bool isTerminator = op->hasTrait<OpTrait::IsTerminator>();
  if (first == last && !isTerminator) {
    // The last op of a block without a terminator ends its region.
    if (!op->getNextNode() && nodesOf.contains(op->getParentOp()))
      addEdge(last, nodesOf[op->getParentOp()].second);
    return;
  }
  forEachEdge(op, [&](const Edge &edge) {
    unsigned from = isTerminator ? last : first;
    if (edge.block && !edge.block->empty())
      addEdge(from, nodesOf[&edge.block->front()].first);
    else if (edge.into)
      addEdge(from, nodesOf[edge.into].second);
  });
}

void Occupancy::addAccesses(ArrayRef<Tenant> tenants, const PointsTo &pointsTo,
                            const Summaries &summaries,
                            SymbolTableCollection &symbols) {
  for (auto &[op, range] : nodesOf)
    for (OpOperand &operand : op->getOpOperands()) {
      TenantSet touched = pointsTo.lookup(operand.get());
      // A callee may look beyond the part that it is given.
      if (!isa<CallOpInterface>(op))
        llvm::erase_if(touched, [&](unsigned index) {
          return !mayTouch(operand.get(), tenants[index]);
        });
      if (touched.empty())
        continue;
      Use use = classifyUse(operand, summaries, symbols);
      // What is kept is an error elsewhere; it is at least touched here.
      bool isKept = use.kind == Use::Kept;
      Node &node = nodes[range.first];
      if (use.reads || isKept)
        unite(node.reads, touched);
      if (use.writes || isKept)
        unite(node.writes, touched);
    }
}

void Occupancy::solve() {
  llvm::BitVector none(numTenants);
  writtenIn.assign(nodes.size(), none);
  writtenOut = wantedIn = wantedOut = writtenIn;
  auto setAll = [](llvm::BitVector &bits, const TenantSet &tenants) {
    for (unsigned tenant : tenants)
      bits.set(tenant);
  };
  auto resetAll = [](llvm::BitVector &bits, const TenantSet &tenants) {
    for (unsigned tenant : tenants)
      bits.reset(tenant);
  };
  // Nodes stand in program order, so a sweep settles all but loops.
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i = 0; i < nodes.size(); ++i) {
      for (unsigned from : nodes[i].predecessors)
        writtenIn[i] |= writtenOut[from];
      resetAll(writtenIn[i], nodes[i].kills);
      llvm::BitVector out = writtenIn[i];
      setAll(out, nodes[i].writes);
      if (out != writtenOut[i]) {
        writtenOut[i] = std::move(out);
        changed = true;
      }
    }
    for (unsigned i = nodes.size(); i-- > 0;) {
      for (unsigned to : nodes[i].successors)
        wantedOut[i] |= wantedIn[to];
      llvm::BitVector in = wantedOut[i];
      setAll(in, nodes[i].reads);
      resetAll(in, nodes[i].kills);
      if (in != wantedIn[i]) {
        wantedIn[i] = std::move(in);
        changed = true;
      }
    }
  }
}

llvm::BitVector Occupancy::getOccupied(unsigned node) const {
  llvm::BitVector before = writtenIn[node], after = writtenOut[node];
  before &= wantedIn[node];
  after &= wantedOut[node];
  before |= after;
  for (unsigned tenant : nodes[node].reads)
    before.set(tenant);
  for (unsigned tenant : nodes[node].writes)
    before.set(tenant);
  return before;
}

} // namespace memplan::verifier
