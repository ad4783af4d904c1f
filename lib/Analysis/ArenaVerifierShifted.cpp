//===- ArenaVerifierShifted.cpp - Shifted parts of one buffer -------------===//

#include "ArenaVerifierImpl.h"

#include "memplan/Analysis/InPlace.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::verifier;

namespace {

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

/// Whether the offset in the value's type counts from the buffer's start: only
/// `memref.view` moves the base.
bool isOffsetFromBuffer(Value value, const Tenant &tenant) {
  while (value != tenant.value) {
    Operation *op = value.getDefiningOp();
    if (!op || isa<memref::ViewOp>(op) || op->getNumOperands() == 0 ||
        !isa<BaseMemRefType>(value.getType()))
      return false;
    value = op->getOperand(0);
  }
  return true;
}

/// Whether the op that has both operands, parts of one buffer, surely stores
/// what it has yet to read.
bool isMisread(OpOperand &source, OpOperand &target) {
  auto from = getFootprint(source.get()), to = getFootprint(target.get());
  if (source.get() != target.get() && (!from || !to))
    return false;
  if (source.get() != target.get() && areShifted(*from, *to))
    return true;
  bool areSame = source.get() == target.get() || *from == *to;
  auto op = dyn_cast<DestinationStyleOpInterface>(source.getOwner());
  return areSame && op && isa<InPlaceOpInterface, linalg::LinalgOp>(*op) &&
         op.isDpsInput(&source) && op.isDpsInit(&target) &&
         !canOverwrite(source, target);
}

} // namespace

std::optional<std::pair<int64_t, int64_t>>
verifier::findByteRange(Value value, const Tenant &tenant) {
  auto print = getFootprint(value);
  if (!print || !isOffsetFromBuffer(value, tenant))
    return std::nullopt;
  if (llvm::is_contained(print->sizes, 0))
    return std::pair<int64_t, int64_t>(0, 0);
  auto [first, last] = getRange(*print);
  int64_t width = DataLayout::closest(tenant.op).getTypeSize(
      cast<MemRefType>(value.getType()).getElementType());
  return std::pair(first * width, (last + 1) * width);
}

bool verifier::mayTouch(Value value, const Tenant &tenant) {
  if (!tenant.isPart)
    return true;
  auto range = findByteRange(value, tenant);
  return !range || (range->first < tenant.firstByte + tenant.bytes &&
                    tenant.firstByte < range->second);
}

TenantSet verifier::findShifted(Operation *op, ArrayRef<Tenant> tenants,
                                const PointsTo &pointsTo,
                                const Summaries &summaries,
                                SymbolTableCollection &symbols) {
  // Calls are left to their callee.
  if (isa<CallOpInterface>(op))
    return {};
  struct Part {
    OpOperand *operand;
    unsigned tenant;
  };
  SmallVector<Part> read, written;
  for (OpOperand &operand : op->getOpOperands()) {
    const TenantSet &found = pointsTo.lookup(operand.get());
    // One buffer, though it may have parts.
    if (found.empty() ||
        llvm::any_of(found,
                     [&](unsigned index) {
                       return tenants[index].value !=
                              tenants[found.front()].value;
                     }) ||
        !isOffsetFromBuffer(operand.get(), tenants[found.front()]))
      continue;
    Use use = classifyUse(operand, summaries, symbols);
    if (use.kind != Use::Access)
      continue;
    if (use.reads)
      read.push_back({&operand, found.front()});
    if (use.writes)
      written.push_back({&operand, found.front()});
  }
  TenantSet shifted;
  for (const Part &target : written)
    for (const Part &source : read) {
      if (target.tenant == source.tenant && target.operand != source.operand &&
          isMisread(*source.operand, *target.operand))
        unite(shifted, {target.tenant});
    }
  return shifted;
}
