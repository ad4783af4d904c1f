//===- TraceOracle.cpp - Decides by running whether a plan is valid -------===//

#include "TraceOracle.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <vector>

using namespace mlir;

namespace memplan::test {
namespace {

/// The choices of one run; `next` moves on to the next run, depth first.
class Script {
public:
  unsigned choose(unsigned count) {
    if (position == choices.size())
      choices.push_back({0, count});
    return choices[position++].first;
  }
  bool next() {
    position = 0;
    while (!choices.empty() &&
           choices.back().first + 1 == choices.back().second)
      choices.pop_back();
    if (choices.empty())
      return false;
    ++choices.back().first;
    return true;
  }

private:
  std::vector<std::pair<unsigned, unsigned>> choices;
  size_t position = 0;
};

using Stamp = std::pair<int, int>;

/// All in words of 4 bytes: the modules know f32 alone, and offsets that are no
/// multiple of a word break the rule of alignment.
constexpr int64_t kWord = 4;
constexpr int64_t kMostWords = 1 << 16;

/// One execution of an alloc with a slot.
struct Instance {
  int64_t offset;
  /// The version last written to each word; 0 for none.
  std::vector<int> versions;
};

/// The words of the buffer that a memref of a type covers.
using Footprints = llvm::DenseMap<Type, std::vector<int64_t>>;

class Interpreter {
public:
  Interpreter(func::FuncOp function, Script &script, Footprints &footprints)
      : function(function), script(script), footprints(footprints) {}

  std::string run() {
    runRegion(function.getBody());
    return fault;
  }

private:
  static constexpr int kMostSteps = 2000;
  /// Not in the arena: arguments and allocs without a slot.
  static constexpr int kElsewhere = -1;

  struct Exit {
    Operation *terminator = nullptr;
    SmallVector<int> values;
  };

  int lookup(Value value) {
    auto found = values.find(value);
    return found == values.end() ? kElsewhere : found->second;
  }

  SmallVector<int> lookupAll(ValueRange range) {
    SmallVector<int> result;
    for (Value value : range)
      result.push_back(lookup(value));
    return result;
  }

  void bind(ValueRange targets, ArrayRef<int> sources) {
    for (auto [target, source] : llvm::zip(targets, sources))
      values[target] = source;
  }

  bool isOver() const { return !fault.empty() || steps > kMostSteps; }

  Exit runRegion(Region &region) {
    Block *block = &region.front();
    while (!isOver()) {
      Block *next = nullptr;
      for (Operation &op : *block) {
        ++steps;
        if (isOver())
          break;
        if (auto branch = dyn_cast<cf::BranchOp>(op)) {
          SmallVector<int> passed = lookupAll(branch.getDestOperands());
          next = branch.getDest();
          bind(next->getArguments(), passed);
        } else if (auto branch = dyn_cast<cf::CondBranchOp>(op)) {
          bool taken = script.choose(2) == 0;
          SmallVector<int> passed =
              lookupAll(taken ? branch.getTrueDestOperands()
                              : branch.getFalseDestOperands());
          next = taken ? branch.getTrueDest() : branch.getFalseDest();
          bind(next->getArguments(), passed);
        } else if (op.hasTrait<OpTrait::IsTerminator>()) {
          return {&op, lookupAll(op.getOperands())};
        } else {
          runOp(&op);
        }
      }
      if (!next)
        break;
      block = next;
    }
    return {};
  }

  void runOp(Operation *op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return runAlloc(alloc);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Region *region = script.choose(2) == 0 ? &branch.getThenRegion()
                                             : &branch.getElseRegion();
      if (!region->empty())
        bind(op->getResults(), runRegion(*region).values);
      return;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<int> state = lookupAll(loop.getInitArgs());
      for (unsigned round = 0; round < 2 && script.choose(2) == 0; ++round) {
        bind(loop.getRegionIterArgs(), state);
        Exit exit = runRegion(loop.getRegion());
        if (isOver())
          return;
        state = exit.values;
      }
      return bind(op->getResults(), state);
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      SmallVector<int> state = lookupAll(loop.getInits());
      for (unsigned round = 0;; ++round) {
        bind(loop.getBeforeArguments(), state);
        Exit before = runRegion(loop.getBefore());
        if (isOver())
          return;
        // The first operand is the condition.
        state.assign(before.values.begin() + 1, before.values.end());
        if (round == 2 || script.choose(2) == 1)
          break;
        bind(loop.getAfterArguments(), state);
        state = runRegion(loop.getAfter()).values;
        if (isOver())
          return;
      }
      return bind(op->getResults(), state);
    }
    if (auto region = dyn_cast<scf::ExecuteRegionOp>(op))
      return bind(op->getResults(), runRegion(region.getRegion()).values);
    if (isa<arith::SelectOp>(op)) {
      values[op->getResult(0)] = lookup(op->getOperand(1 + script.choose(2)));
      return;
    }
    if (isa<memref::SubViewOp, memref::CastOp, memref::TransposeOp,
            memref::CollapseShapeOp, memref::ExpandShapeOp>(op)) {
      values[op->getResult(0)] = lookup(op->getOperand(0));
      return;
    }
    if (auto copy = dyn_cast<memref::CopyOp>(op))
      return access(op, {copy.getSource()}, {copy.getTarget()});
    if (auto fill = dyn_cast<linalg::FillOp>(op))
      return access(op, {}, {fill.getOutputs()[0]});
    if (auto call = dyn_cast<func::CallOp>(op))
      return access(op, llvm::to_vector(call.getOperands()),
                    llvm::to_vector(call.getOperands()));
    if (isa<arith::ConstantOp, memref::DeallocOp>(op))
      return;
    llvm::report_fatal_error("the oracle does not know " +
                             op->getName().getStringRef());
  }

  void runAlloc(memref::AllocOp alloc) {
    auto slot = alloc->getAttrOfType<SlotAttr>(kSlotAttr);
    if (!slot)
      return;
    int64_t offset = slot.getOffset() / kWord;
    int64_t size = alloc.getType().getNumElements();
    if (offset + size > kMostWords)
      llvm::report_fatal_error("the oracle wants small arenas");
    if (static_cast<int64_t>(arena.size()) < offset + size)
      arena.resize(offset + size, Stamp{kElsewhere, 0});
    values[alloc] = static_cast<int>(instances.size());
    instances.push_back({offset, std::vector<int>(size, 0)});
  }

  const std::vector<int64_t> &wordsOf(Value value) {
    auto [entry, isNew] = footprints.try_emplace(value.getType());
    if (!isNew)
      return entry->second;
    auto type = cast<MemRefType>(value.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        !type.getElementType().isF32())
      llvm::report_fatal_error("the oracle wants strided memrefs of f32");
    std::vector<int64_t> words = {offset};
    for (auto [size, stride] : llvm::zip(type.getShape(), strides)) {
      std::vector<int64_t> next;
      for (int64_t word : words)
        for (int64_t i = 0; i < size; ++i)
          next.push_back(word + i * stride);
      words = std::move(next);
    }
    llvm::sort(words);
    entry->second = std::move(words);
    return entry->second;
  }

  void checkHolds(Operation *op, Value value) {
    int index = lookup(value);
    if (index == kElsewhere)
      return;
    const Instance &instance = instances[index];
    for (int64_t word : wordsOf(value)) {
      int version = instance.versions[word];
      if (version == 0)
        continue; // Never written: whatever is there will do.
      if (arena[instance.offset + word] == Stamp{index, version})
        continue;
      llvm::raw_string_ostream(fault)
          << "word " << word << " of the buffer at " << instance.offset * kWord
          << " was lost at " << *op;
      return;
    }
  }

  /// Reads, then writes; what was read must stand until the op is done, except
  /// for what it overwrites of the same buffer in place.
  void access(Operation *op, ArrayRef<Value> reads, ArrayRef<Value> writes) {
    for (Value value : reads) {
      checkHolds(op, value);
      for (Value other : writes)
        if (other != value && lookup(value) != kElsewhere &&
            lookup(other) == lookup(value))
          checkSame(op, value, other);
    }
    ++version;
    for (Value value : writes)
      if (int index = lookup(value); index != kElsewhere)
        for (int64_t word : wordsOf(value)) {
          arena[instances[index].offset + word] = {index, version};
          instances[index].versions[word] = version;
        }
    for (Value value : reads)
      checkHolds(op, value);
    for (Value value : writes)
      checkHolds(op, value);
  }

  /// Parts of one buffer, one read and one written, are the same or disjoint.
  void checkSame(Operation *op, Value read, Value written) {
    if (isa<func::CallOp>(op))
      return;
    std::vector<int64_t> a = wordsOf(read), b = wordsOf(written), common;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                          std::back_inserter(common));
    if (!common.empty() && a != b)
      llvm::raw_string_ostream(fault) << "shifted onto itself at " << *op;
  }

  func::FuncOp function;
  Script &script;
  Footprints &footprints;
  llvm::DenseMap<Value, int> values;
  std::vector<Instance> instances;
  std::vector<Stamp> arena;
  int version = 0;
  int steps = 0;
  std::string fault;
};

} // namespace

std::string runTraces(func::FuncOp function) {
  Script script;
  Footprints footprints;
  for (int run = 0; run < 100; ++run) {
    std::string fault = Interpreter(function, script, footprints).run();
    if (!fault.empty())
      return fault;
    if (!script.next())
      break;
  }
  return "";
}

} // namespace memplan::test
