//===- ScheduleProblem.cpp - A block as a scheduling problem --------------===//

#include "ScheduleProblem.h"

#include "memplan/Analysis/InPlace.h"
#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/SubsetOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace memplan {
namespace {

/// No storage of this block: an input, a constant, nothing yet.
constexpr int kNone = -1;

/// The tensor that the op's result is another sight of; null if it is a tensor
/// of its own.
Value getViewSource(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
    return op->getOperand(0);
  if (auto extraction = dyn_cast<SubsetExtractionOpInterface>(op))
    return extraction.getSourceOperand().get();
  return nullptr;
}

bool isFromGlobal(Value memref) {
  return memref.getDefiningOp<memref::GetGlobalOp>() != nullptr;
}

/// Whether an op touches no bytes of the arena and can run any time: constants,
/// weights, empty tensors, views, arithmetic on scalars.
bool isTransparent(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, memref::GetGlobalOp>(op))
    return true;
  if (auto toTensor = dyn_cast<bufferization::ToTensorOp>(op))
    return isFromGlobal(toTensor.getBuffer());
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return false;
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return getViewSource(op) || (llvm::all_of(op->getOperandTypes(), isScalar) &&
                               llvm::all_of(op->getResultTypes(), isScalar));
}

/// Whether the op keeps its place among others of its kind.
bool isOrdered(Operation *op) {
  if (!isMemoryEffectFree(op))
    return true;
  return llvm::any_of(op->getOperands(), [](Value value) {
    return isa<BaseMemRefType>(value.getType()) && !isFromGlobal(value);
  });
}

/// The values that an op or its regions read.
SetVector<Value> getReadValues(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

/// The operand into whose buffer a result is written; null if it gets one of
/// its own.
OpOperand *getDestination(OpResult result) {
  Operation *op = result.getOwner();
  if (auto destinationStyle = dyn_cast<DestinationStyleOpInterface>(op))
    return destinationStyle.getTiedOpOperand(result);
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    for (OpOperand &init : loop.getInitsMutable())
      if (loop.getTiedLoopResult(&init) == result)
        return &init;
  return nullptr;
}

/// Whether an op may write a result over an input whose life ends there.
bool canOverwriteWith(OpOperand &input, OpResult result) {
  auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
  if (!op || !op.isDpsInput(&input) ||
      getElementTypeOrSelf(input.get()) != getElementTypeOrSelf(result))
    return false;
  return canOverwrite(input, *op.getTiedOpOperand(result));
}

/// Storages that may turn out to be one.
class StorageSets {
public:
  int add(int64_t bytes, bool isFresh) {
    int set = static_cast<int>(sets.size());
    sets.push_back({set, bytes, isFresh});
    return set;
  }
  int find(int set) const {
    while (set != kNone && sets[set].parent != set)
      set = sets[set].parent;
    return set;
  }
  /// `part` is written inside of `whole` from now on.
  void put(int part, int whole) {
    part = find(part);
    whole = find(whole);
    if (part == whole)
      return;
    sets[part].parent = whole;
    sets[whole].numWriters += sets[part].numWriters;
  }

  struct Set {
    int parent;
    int64_t bytes;
    /// Nothing is in it before its first writer: a tensor.empty.
    bool isFresh;
    /// Inserted into at several places.
    bool isConcatenation = false;
    bool isLiveOut = false;
    int numWriters = 1;
  };
  Set &operator[](int set) { return sets[find(set)]; }
  int size() const { return static_cast<int>(sets.size()); }

private:
  std::vector<Set> sets;
};

class Builder {
public:
  Builder(Block &block, int64_t alignment,
          const DenseMap<Operation *, int64_t> &workspaces)
      : block(block), alignment(alignment), workspaces(workspaces),
        result(makeEmpty(block)) {}

  static BlockProblem makeEmpty(Block &block) {
    return {{}, {}, "", block.getParentOp()->getLoc()};
  }

  BlockProblem build() {
    for (Operation &op : block) {
      if (&op == block.getTerminator())
        break;
      if (isTransparent(&op))
        addTransparent(&op);
      else if (!addNode(&op))
        return std::move(result);
    }
    addTerminator();
    finish();
    return std::move(result);
  }

private:
  /// What is known of a value that the block defines.
  struct Fact {
    int storage = kNone;
    int64_t bytes = 0; ///< Of the value itself, which may be part of a storage.
    SmallVector<int, 2> nodes; ///< That must have run.
  };

  const Fact *find(Value value) const {
    auto entry = facts.find(value);
    return entry == facts.end() ? nullptr : &entry->second;
  }

  int getStorage(Value value) const {
    const Fact *fact = find(value);
    return fact ? storages.find(fact->storage) : kNone;
  }

  bool fail(Operation *op, const Twine &why) {
    result.obstacle = why.str();
    result.obstacleLoc = op->getLoc();
    result.ops.clear();
    result.problem = {};
    return false;
  }

  std::optional<int64_t> getBytes(Type type) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !tensor.getElementType().isIntOrIndexOrFloat())
      return std::nullopt;
    int64_t bits = tensor.getElementType().isIndex()
                       ? 64
                       : tensor.getElementTypeBitWidth();
    auto count = checkedProduct(tensor.getShape());
    auto bytes =
        count ? checkedMul(*count, llvm::divideCeil(bits, 8)) : std::nullopt;
    return bytes ? checkedAlignTo(*bytes, alignment) : std::nullopt;
  }

  void addTransparent(Operation *op) {
    Fact fact;
    for (Value operand : op->getOperands())
      if (const Fact *known = find(operand))
        for (int node : known->nodes)
          if (!llvm::is_contained(fact.nodes, node))
            fact.nodes.push_back(node);
    if (Value source = getViewSource(op)) {
      fact.storage = getStorage(source);
      fact.bytes = getBytes(op->getResult(0).getType()).value_or(0);
    }
    for (Value value : op->getResults())
      facts[value] = fact;
  }

  bool addNode(Operation *op) {
    int number = static_cast<int>(result.ops.size());
    schedule::Node node;
    auto workspace = workspaces.find(op);
    node.workspace = workspace == workspaces.end() ? 0 : workspace->second;
    SetVector<int> before;
    touched.emplace_back();
    for (Value value : getReadValues(op))
      if (const Fact *fact = find(value)) {
        before.insert(fact->nodes.begin(), fact->nodes.end());
        if (fact->storage != kNone)
          touched.back().push_back(fact->storage);
      }
    if (isOrdered(op)) {
      if (lastOrdered != kNone)
        before.insert(lastOrdered);
      lastOrdered = number;
    }
    for (OpResult value : op->getResults()) {
      Fact fact;
      fact.nodes = {number};
      if (isa<TensorType>(value.getType())) {
        auto bytes = getBytes(value.getType());
        if (!bytes)
          return fail(op, "the size of its " +
                              Twine(isa<RankedTensorType>(value.getType())
                                        ? "result"
                                        : "unranked result") +
                              " is not known");
        fact.bytes = *bytes;
        fact.storage = placeResult(value, *bytes, number);
        touched.back().push_back(fact.storage);
      }
      facts[value] = fact;
    }
    node.predecessors.assign(before.begin(), before.end());
    result.ops.push_back(op);
    result.problem.nodes.push_back(std::move(node));
    return true;
  }

  /// The storage that a node writes a result into.
  int placeResult(OpResult value, int64_t bytes, int number) {
    Operation *op = value.getOwner();
    OpOperand *destination = getDestination(value);
    int into = destination ? getStorage(destination->get()) : kNone;
    int storage;
    if (into != kNone && destination->get().hasOneUse()) {
      storage = into;
      ++storages[into].numWriters;
    } else {
      bool isEmpty = destination && findEmpty(destination->get());
      storage = storages.add(bytes, isEmpty);
      if (into != kNone)
        chances.push_back({number, into, storage, bytes});
    }
    if (auto insertion = dyn_cast<SubsetInsertionOpInterface>(op)) {
      insertInto(insertion, storage);
      return storage;
    }
    // Storages that the op reads in a way in which it can't overwrite them.
    DenseSet<int> kept;
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value capture : captured)
      kept.insert(getStorage(capture));
    for (OpOperand &input : op->getOpOperands())
      if (!canOverwriteWith(input, value))
        kept.insert(getStorage(input.get()));
    for (OpOperand &input : op->getOpOperands()) {
      int from = getStorage(input.get());
      if (from != kNone && !kept.contains(from))
        chances.push_back({number, from, storage, find(input.get())->bytes});
    }
    return storage;
  }

  static bool findEmpty(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (isa<tensor::EmptyOp>(op))
        return true;
      value = getViewSource(op);
      if (!value)
        return false;
    }
    return false;
  }

  /// What an op inserts into a fresh buffer is written there by its producer,
  /// if nothing speaks against it.
  void insertInto(SubsetInsertionOpInterface insertion, int whole) {
    storages[whole].isConcatenation = true;
    const Fact *part = find(insertion.getSourceOperand().get());
    if (!part || part->storage == kNone || !storages[whole].isFresh)
      return;
    StorageSets::Set &set = storages[part->storage];
    if (set.isFresh && part->bytes == set.bytes)
      storages.put(part->storage, whole);
  }

  void addTerminator() {
    Operation *terminator = block.getTerminator();
    Operation *parent = block.getParentOp();
    // The results of the parent take the bytes: a function's belong to its
    // caller, those of a branch are counted where the branch is.
    bool isOutputs = terminator->hasTrait<OpTrait::ReturnLike>() &&
                     !isa<LoopLikeOpInterface>(parent);
    SetVector<int> outputs;
    for (Value value : getReadValues(terminator)) {
      int storage = getStorage(value);
      if (storage == kNone)
        continue;
      if (isOutputs && isWholeStorage(value))
        outputs.insert(storage);
      else
        storages[storage].isLiveOut = true;
    }
    for (int storage : outputs)
      storages[storage].bytes = 0;
    // What other blocks use.
    for (auto &[value, fact] : facts)
      if (fact.storage != kNone && value.isUsedOutsideOfBlock(&block) &&
          isUsedInOtherBlock(value))
        storages[fact.storage].isLiveOut = true;
  }

  /// Nested uses are those of the op of this block that they are in.
  bool isUsedInOtherBlock(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !block.findAncestorOpInBlock(*user);
    });
  }

  /// Whether a value is all of a storage, reshaped at most.
  bool isWholeStorage(Value value) {
    const Fact *fact = find(value);
    return fact->bytes == storages[fact->storage].bytes;
  }

  void finish() {
    DenseMap<int, int> numbers;
    std::vector<StorageSets::Set> sets;
    for (int set = 0; set < storages.size(); ++set)
      if (storages.find(set) == set && storages[set].bytes > 0) {
        numbers[set] = static_cast<int>(result.problem.storages.size());
        sets.push_back(storages[set]);
        result.problem.storages.push_back(
            {storages[set].bytes, false, storages[set].isLiveOut});
      }
    auto getNumber = [&](int set) {
      auto entry = numbers.find(storages.find(set));
      return entry == numbers.end() ? kNone : entry->second;
    };
    std::vector<SmallVector<int>> touchers(sets.size());
    for (auto [number, list] : llvm::enumerate(touched)) {
      SetVector<int> unique;
      for (int set : list)
        if (int storage = getNumber(set); storage != kNone)
          unique.insert(storage);
      for (int storage : unique)
        touchers[storage].push_back(static_cast<int>(number));
      result.problem.nodes[number].touches =
          std::vector<int>(unique.begin(), unique.end());
    }
    for (const Chance &chance : chances) {
      int input = getNumber(chance.input), output = getNumber(chance.output);
      // All of the input, and nobody else starts the output.
      if (input == kNone || output == kNone || input == output ||
          sets[input].bytes != chance.bytes || sets[input].isConcatenation ||
          sets[output].isConcatenation ||
          touchers[output].front() != chance.node)
        continue;
      // Follows from the data; said so for the solver.
      for (int toucher : ArrayRef(touchers[output]).drop_front()) {
        auto &before = result.problem.nodes[toucher].predecessors;
        if (!llvm::is_contained(before, chance.node))
          before.push_back(chance.node);
      }
      result.problem.nodes[chance.node].overwrites.push_back({input, output});
    }
  }

  struct Chance {
    int node, input, output;
    int64_t bytes; ///< Of the value that is overwritten.
  };

  Block &block;
  const int64_t alignment;
  const DenseMap<Operation *, int64_t> &workspaces;
  BlockProblem result;
  llvm::MapVector<Value, Fact> facts;
  StorageSets storages;
  std::vector<SmallVector<int>> touched; ///< Sets by node.
  std::vector<Chance> chances;
  int lastOrdered = kNone;
};

} // namespace

BlockProblem
buildBlockProblem(Block &block, int64_t alignment,
                  const DenseMap<Operation *, int64_t> &workspaces) {
  return Builder(block, alignment, workspaces).build();
}

void applyOrder(Block &block, const BlockProblem &blockProblem,
                ArrayRef<int> order) {
  Operation *terminator = block.getTerminator();
  DenseSet<Operation *> waiting;
  for (Operation &op : block.without_terminator())
    waiting.insert(&op);
  // Depth first, without recursion: scalar code may be long.
  auto place = [&](Operation *op) {
    SmallVector<Operation *> stack = {op};
    while (!stack.empty()) {
      Operation *top = stack.back();
      bool isFree = true;
      for (Value value : getReadValues(top)) {
        Operation *def = value.getDefiningOp();
        if (def && waiting.contains(def)) {
          stack.push_back(def);
          isFree = false;
        }
      }
      if (!isFree)
        continue;
      stack.pop_back();
      if (waiting.erase(top))
        top->moveBefore(terminator);
    }
  };
  for (int number : order)
    place(blockProblem.ops[number]);
  // What only the terminator or nobody uses.
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (!waiting.contains(&op))
      break;
    place(&op);
  }
}

} // namespace memplan
