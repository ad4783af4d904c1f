//===- CarriedBuffer.cpp - Memrefs that control flow carries --------------===//

#include "CarriedBuffer.h"

#include "BufferRef.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;

namespace memplan {

CarriedBuffer &CarriedBuffers::add(Operation *owner, unsigned group,
                                   ArrayRef<Value> values,
                                   ArrayRef<Value> sources) {
  CarriedBuffer buffer;
  buffer.owner = owner;
  buffer.group = group;
  buffer.scope = owner->getParentRegion();
  buffer.sources.assign(sources.begin(), sources.end());
  buffer.number = buffers.size();
  for (Value value : values)
    numbers[value] = buffer.number;
  buffers.push_back(std::move(buffer));
  return buffers.back();
}

void CarriedBuffers::collect() {
  auto isMemRef = [](Value value) { return isa<MemRefType>(value.getType()); };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [argument, result, init, next] :
           llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults(),
                           loop.getInitArgs(), loop.getYieldedValues()))
        if (isMemRef(result))
          add(op, 0, {argument, result}, {init, next});
      return;
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      for (auto [argument, init, next] :
           llvm::zip_equal(loop.getBeforeArguments(), loop.getInits(),
                           loop.getYieldedValues()))
        if (isMemRef(argument))
          add(op, 0, {argument}, {init, next});
      for (auto [argument, result, source] :
           llvm::zip_equal(loop.getAfterArguments(), loop.getResults(),
                           loop.getConditionOp().getArgs()))
        if (isMemRef(result))
          add(op, 1, {argument, result}, {source});
      return;
    }
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      if (isMemRef(select))
        add(op, 0, {select}, {select.getTrueValue(), select.getFalseValue()});
      return;
    }
    if (!isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op))
      return;
    for (OpResult result : op->getResults()) {
      if (!isMemRef(result))
        continue;
      SmallVector<Value> sources;
      for (Region &region : op->getRegions())
        for (Block &block : region)
          if (auto yield = dyn_cast<scf::YieldOp>(block.getTerminator()))
            sources.push_back(yield.getOperand(result.getResultNumber()));
      add(op, 0, {result}, sources);
    }
  });
}

const CarriedBuffer *CarriedBuffers::find(Value value) const {
  auto found = numbers.find(value);
  return found == numbers.end() ? nullptr : &buffers[found->second];
}

/// Whether what `ref` is made of is known where the carried memref is.
bool CarriedBuffers::isVisible(const BufferRef &ref,
                               const CarriedBuffer &buffer) const {
  if (ref.base == BufferRef::Base::Carried &&
      !buffers[ref.number].scope->isAncestor(buffer.scope))
    return false;
  return llvm::all_of(ref.terms, [&](OffsetTerm term) {
    return term.scalar.getParentRegion()->isAncestor(buffer.scope);
  });
}

bool CarriedBuffers::isOnePlace(const CarriedBuffer &buffer) {
  std::optional<BufferRef> first;
  for (Value source : buffer.sources) {
    auto ref = table.resolve(source, /*user=*/nullptr);
    if (failed(ref) || !isVisible(*ref, buffer) ||
        (first && !areSamePlace(*first, *ref)))
      return false;
    first = *ref;
  }
  return first.has_value();
}

/// Joins what its sources may be; whether that added anything.
bool CarriedBuffers::addProperties(CarriedBuffer &buffer) {
  bool wasReadOnly = buffer.isReadOnly, wasInside = buffer.isInside;
  int64_t oldAlignment = buffer.alignment;
  size_t oldRoots = buffer.roots.size();
  for (Value source : buffer.sources) {
    auto ref = table.resolve(source, /*user=*/nullptr);
    if (failed(ref))
      continue; // reported where the memref is carried
    int64_t alignment = ref->baseAlignment;
    if (ref->base == BufferRef::Base::Carried) {
      const CarriedBuffer &other = buffers[ref->number];
      buffer.isReadOnly |= other.isReadOnly;
      buffer.isInside |= other.isInside || ref->byteOffset != 0;
      buffer.roots.insert(other.roots.begin(), other.roots.end());
      alignment = other.alignment;
    } else {
      buffer.isReadOnly |= ref->base == BufferRef::Base::Input ||
                           ref->base == BufferRef::Base::Weights;
      buffer.isInside |= ref->byteOffset != ref->rootOffset;
      buffer.roots.insert(ref->root);
    }
    buffer.isInside |= !ref->terms.empty();
    // 0 is what nothing is known of yet, and a multiple of everything.
    alignment = std::gcd(alignment, ref->byteOffset);
    for (const OffsetTerm &term : ref->terms)
      alignment = std::gcd(alignment, term.bytes);
    buffer.alignment = std::gcd(buffer.alignment, alignment);
  }
  return buffer.isReadOnly != wasReadOnly || buffer.isInside != wasInside ||
         buffer.alignment != oldAlignment || buffer.roots.size() != oldRoots;
}

void CarriedBuffers::analyze() {
  collect();
  // At first each is taken for its first source; those that turn out to be
  // something else become variables, which may make others so.
  for (bool changed = true; changed;) {
    changed = false;
    table.known.clear();
    for (CarriedBuffer &buffer : buffers)
      if (!buffer.isVariable && !isOnePlace(buffer))
        changed = buffer.isVariable = true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (CarriedBuffer &buffer : buffers)
      changed |= buffer.isVariable && addProperties(buffer);
  }
  table.known.clear(); // holds alignments of the time before
}

/// Whether two variables may be parts of one buffer. Two loop-carried ones that
/// a body swaps are different in each iteration if they are in the one before:
/// this assumes that they are apart until a pair of sources shows otherwise.
bool CarriedBuffers::mayBeSame(const CarriedBuffer &a, const CarriedBuffer &b) {
  if (a.number == b.number)
    return true;
  if (a.number > b.number)
    return mayBeSame(b, a);
  if (llvm::none_of(a.roots,
                    [&](Value root) { return b.roots.contains(root); }))
    return false;
  if (!assumedApart.insert({a.number, b.number}).second)
    return false;
  auto mayShare = [&](Value left, Value right) {
    auto from = table.resolve(left, /*user=*/nullptr);
    auto to = table.resolve(right, /*user=*/nullptr);
    return failed(from) || failed(to) || mayShareBuffer(*from, *to);
  };
  if (a.owner == b.owner && a.group == b.group) {
    for (auto [left, right] : llvm::zip_equal(a.sources, b.sources))
      if (mayShare(left, right))
        return true;
    return false;
  }
  // While b gets its values a keeps its own: b's op is inside of a's or later.
  return llvm::any_of(b.sources, [&](Value source) {
    auto ref = table.resolve(source, /*user=*/nullptr);
    if (failed(ref))
      return true;
    BufferRef other;
    other.base = BufferRef::Base::Carried;
    other.number = a.number;
    return mayShareBuffer(other, *ref);
  });
}

bool CarriedBuffers::mayShareBuffer(const BufferRef &a, const BufferRef &b) {
  bool isOutermost = assumedApart.empty();
  bool result;
  if (a.base == BufferRef::Base::Carried && b.base == BufferRef::Base::Carried)
    result = mayBeSame(buffers[a.number], buffers[b.number]);
  else if (a.base == BufferRef::Base::Carried)
    result = buffers[a.number].roots.contains(b.root);
  else if (b.base == BufferRef::Base::Carried)
    result = buffers[b.number].roots.contains(a.root);
  else
    result = a.root == b.root;
  if (isOutermost)
    assumedApart.clear();
  return result;
}

} // namespace memplan
