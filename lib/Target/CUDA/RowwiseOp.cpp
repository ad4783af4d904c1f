//===- RowwiseOp.cpp - memplan.rowwise: a thread, warp or block a row -----===//

#include "CppText.h"
#include "MapKernel.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

namespace {

/// Who reduces a row: alone where rows lie side by side or are very short, by
/// shuffles within a warp, or through shared memory within a block.
enum class RowTeam { Thread, Warp, Block };

constexpr int64_t kRowsPerBlock = 8; // warps of a block under RowTeam::Warp
constexpr int64_t kShortRow = 16;    // shorter than half a warp
constexpr int64_t kLongRow = 1024;   // where a warp has 32 elements a thread
constexpr int64_t kManyRows = 4096;  // enough threads to fill a GPU
constexpr int64_t kMostKept = 8;     // registers a thread and input

StringRef getReduction(Combiner combiner) {
  switch (combiner) {
  case Combiner::Sum:
    return "SumOp";
  case Combiner::Max:
    return "MaxOp";
  case Combiner::Min:
    return "MinOp";
  case Combiner::Prod:
    return "ProdOp";
  }
  llvm_unreachable("all combiners handled");
}

StringRef getWord(Combiner combiner) {
  switch (combiner) {
  case Combiner::Sum:
    return "sum";
  case Combiner::Max:
    return "max";
  case Combiner::Min:
    return "min";
  case Combiner::Prod:
    return "prod";
  }
  llvm_unreachable("all combiners handled");
}

class RowwiseText {
public:
  RowwiseText(Emitter &emitter, RowwiseOp op) : emitter(emitter), op(op) {}

  LogicalResult read();
  void emit();

private:
  void chooseTeam();
  void chooseKept();
  void emitKept();
  void emitRowNumber();
  void emitLoopHead();
  void emitStage(unsigned stage);
  void emitFinish();
  void emitLoopTail() { kernel.body += "  }\n"; }
  std::string callOn(const ScalarFunction &function);
  std::string place(unsigned operand) {
    return sum({rowIndex->offset(operand, operands[operand].name),
                columnIndex->offset(operand, operands[operand].name)});
  }

  Emitter &emitter;
  RowwiseOp op;
  std::vector<MapOperand> operands; ///< The output last.
  SmallVector<int> operandOfInput;  ///< -1 for inputs that no region uses.
  std::vector<ScalarFunction> stages;
  ScalarFunction finish;
  LoopNest rows{{}, {}}, columns{{}, {}};
  bool narrow = true;
  RowTeam team = RowTeam::Block;
  /// Elements of a row that each thread holds in registers, for the operands
  /// that several regions read; 0 if the row is too long for that.
  int64_t numKept = 0;
  SmallVector<bool> isKept;
  KernelText kernel;
  std::optional<IndexText> rowIndex, columnIndex;
};

LogicalResult RowwiseText::read() {
  SmallVector<std::string> names;
  for (size_t i = 0; i < op.getInputs().size(); ++i)
    names.push_back("x" + std::to_string(i));
  for (auto [stage, region] : llvm::enumerate(op.getStages())) {
    auto made = makeScalarFunction(emitter, op, region, names);
    if (failed(made))
      return failure();
    Type type = made->resultTypes.front();
    if (!type.isF32() && !type.isF64() && !type.isInteger(32) &&
        !type.isInteger(64) && !type.isF16() && !type.isBF16())
      return op.emitError() << "a row reduction in " << type
                            << " is unsupported by the CUDA target, which has "
                               "f16, bf16, f32, f64, i32 and i64";
    stages.push_back(*made);
    names.push_back("r" + std::to_string(stage));
  }
  auto made = makeScalarFunction(emitter, op, op.getFinish(), names);
  if (failed(made))
    return failure();
  finish = *made;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    bool used = finish.uses(i) || llvm::any_of(stages, [&](const auto &stage) {
                  return stage.uses(i);
                });
    operandOfInput.push_back(used ? operands.size() : -1);
    if (!used)
      continue;
    auto operand =
        makeMapOperand(emitter, op, input, op.getInputMap(i), names[i]);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  auto output =
      makeMapOperand(emitter, op, op.getInit(), op.getOutputMap(), "y");
  if (failed(output))
    return failure();
  output->read = false;
  output->written = true;
  operands.push_back(*output);

  SmallVector<LinearAccess> accesses;
  for (const MapOperand &operand : operands)
    accesses.push_back(operand.access);
  LoopNest nest(op.getLoopExtents(), accesses);
  narrow = nest.isNarrow();
  SmallVector<unsigned> parallel, reduced;
  for (unsigned dim = 0; dim < nest.getNumDims(); ++dim)
    (llvm::is_contained(op.getRowDims(), dim) ? reduced : parallel)
        .push_back(dim);
  rows = nest.select(parallel);
  rows.simplify(/*lead=*/operands.size() - 1);
  columns = nest.select(reduced);
  columns.simplify(/*lead=*/op.isReduction() ? 0 : operands.size() - 1);
  return success();
}

void RowwiseText::chooseTeam() {
  int64_t length = columns.getNumPoints();
  auto isUnit = [](const LoopNest &nest) {
    return nest.getNumDims() != 0 && nest.coefficients.front().back() == 1;
  };
  bool sideBySide = !isUnit(columns) && isUnit(rows);
  if (stages.empty() || length <= kShortRow ||
      (sideBySide && rows.getNumPoints() >= kManyRows))
    team = RowTeam::Thread;
  else if (length <= kLongRow)
    team = RowTeam::Warp;
  else
    team = RowTeam::Block;
}

void RowwiseText::chooseKept() {
  isKept.assign(operands.size(), false);
  if (team == RowTeam::Thread)
    return;
  int64_t threads = team == RowTeam::Warp ? 32 : kMapThreads;
  int64_t perThread = (columns.getNumPoints() + threads - 1) / threads;
  if (perThread > kMostKept)
    return;
  auto isZero = [](int64_t coefficient) { return coefficient == 0; };
  for (auto [input, operand] : llvm::enumerate(operandOfInput)) {
    if (operand < 0 || llvm::all_of(columns.coefficients[operand], isZero))
      continue;
    unsigned readers = finish.uses(input) && !op.isReduction();
    for (const ScalarFunction &stage : stages)
      readers += stage.uses(input);
    if (readers > 1) {
      isKept[operand] = true;
      numKept = perThread;
    }
  }
}

/// Reads what several regions need once.
void RowwiseText::emitKept() {
  if (numKept == 0)
    return;
  for (unsigned i = 0; i < operands.size(); ++i)
    if (isKept[i])
      kernel.body += "  " + *getCppType(operands[i].ref.elementType) + " " +
                     operands[i].name + "_kept[" + std::to_string(numKept) +
                     "] = {};\n";
  emitLoopHead();
  for (unsigned i = 0; i < operands.size(); ++i)
    if (isKept[i])
      kernel.body += "    " + operands[i].name +
                     "_kept[k] = " + operands[i].name + "[" + place(i) + "];\n";
  emitLoopTail();
}

void RowwiseText::emitRowNumber() {
  std::string type = rowIndex->type().str();
  if (team == RowTeam::Block && rows.getNumDims() == 0)
    return;
  std::string block = narrow ? "blockIdx.x" : "int64_t(blockIdx.x)";
  std::string row;
  switch (team) {
  case RowTeam::Thread:
    row = block + " * blockDim.x + threadIdx.x";
    break;
  case RowTeam::Warp:
    row = block + " * blockDim.y + threadIdx.y";
    break;
  case RowTeam::Block:
    row = block;
    break;
  }
  kernel.body += "  const " + type + " row = " + row + ";\n";
  if (team != RowTeam::Block)
    kernel.body +=
        "  if (row >= " + kernel.number(type, "rows", rows.getNumPoints()) +
        ")\n    return;\n";
  rowIndex->decode("row");
}

void RowwiseText::emitLoopHead() {
  std::string type = columnIndex->type().str();
  std::string length = kernel.number(type, "length", columns.getNumPoints());
  if (numKept != 0) {
    kernel.body +=
        "  MEMPLAN_UNROLL\n  for (int k = 0; k < " + std::to_string(numKept) +
        "; ++k) {\n    const " + type + " j = threadIdx.x + " + type +
        "(k) * blockDim.x;\n    if (j >= " + length + ")\n      continue;\n";
    columnIndex->decode("j", /*step=*/1, "    ", /*allRead=*/false);
    return;
  }
  std::string first = team == RowTeam::Thread ? "0" : "threadIdx.x";
  std::string step = team == RowTeam::Thread ? "++j" : "j += blockDim.x";
  kernel.body += "  for (" + type + " j = " + first + "; j < " + length + "; " +
                 step + ") {\n";
  columnIndex->decode("j", /*step=*/1, "    ");
}

std::string RowwiseText::callOn(const ScalarFunction &function) {
  unsigned numInputs = op.getInputs().size();
  return function.call([&](unsigned number) {
    if (number >= numInputs)
      return "r" + std::to_string(number - numInputs);
    unsigned operand = operandOfInput[number];
    if (isKept[operand])
      return operands[operand].name + "_kept[k]";
    return operands[operand].name + "[" + place(operand) + "]";
  });
}

void RowwiseText::emitStage(unsigned stage) {
  Type resultType = stages[stage].resultTypes.front();
  std::string reduction = getReduction(op.getCombiner(stage)).str();
  std::string result = "r" + std::to_string(stage);
  // Types of 16 bits are reduced in float and rounded once.
  std::string type = *getCppType(getAccumulatorType(resultType));
  bool isNarrow = type != *getCppType(resultType);
  std::string sum = isNarrow ? result + "_wide" : result;
  kernel.body += "  " + type + " " + sum + " = " + reduction + "::identity<" +
                 type + ">();\n";
  emitLoopHead();
  std::string value = callOn(stages[stage]);
  if (isNarrow)
    value = type + "(" + value + ")";
  kernel.body += "    " + sum + " = " + reduction + "::combine(" + sum + ", " +
                 value + ");\n";
  emitLoopTail();
  if (team != RowTeam::Thread)
    kernel.body += "  " + sum + " = " +
                   (team == RowTeam::Warp ? "warpReduce<" : "blockReduce<") +
                   reduction + ">(" + sum + ");\n";
  if (isNarrow)
    kernel.body += "  const " + *getCppType(resultType) + " " + result + "(" +
                   sum + ");\n";
}

void RowwiseText::emitFinish() {
  unsigned output = operands.size() - 1;
  if (!op.isReduction()) {
    emitLoopHead();
    kernel.body += "    y[" + place(output) + "] = " + callOn(finish) + ";\n";
    emitLoopTail();
    return;
  }
  // No column is meant, so none of the columns' dims may appear.
  if (team != RowTeam::Thread)
    kernel.body += "  if (threadIdx.x == 0)\n  ";
  kernel.body +=
      "  y[" + rowIndex->offset(output, "y") + "] = " + callOn(finish) + ";\n";
}

void RowwiseText::emit() {
  if (operands.back().ref.getNumElements() == 0)
    return;
  chooseTeam();
  chooseKept();
  rowIndex.emplace(kernel, rows, narrow, "d");
  columnIndex.emplace(kernel, columns, narrow, "c");
  for (const MapOperand &operand : operands)
    kernel.pointer(operand.name, operand.ref, operand.read, operand.written);
  emitRowNumber();
  emitKept();
  SmallVector<StringRef> words;
  for (unsigned stage = 0; stage < stages.size(); ++stage) {
    emitStage(stage);
    words.push_back(getWord(op.getCombiner(stage)));
  }
  emitFinish();
  std::string grid, block, comment;
  switch (team) {
  case RowTeam::Thread:
    grid = gridFor(rows.getNumPoints());
    block = "dim3(" + std::to_string(kMapThreads) + ")";
    comment = "One row a thread.";
    break;
  case RowTeam::Warp:
    grid = "dim3(" +
           std::to_string((rows.getNumPoints() + kRowsPerBlock - 1) /
                          kRowsPerBlock) +
           ")";
    block = "dim3(32, " + std::to_string(kRowsPerBlock) + ")";
    comment = "One row a warp.";
    break;
  case RowTeam::Block:
    grid = "dim3(" + std::to_string(rows.getNumPoints()) + ")";
    block = "dim3(" + std::to_string(kMapThreads) + ")";
    comment = "One row a block.";
    break;
  }
  std::string name = kernel.define(
      emitter, "rows_" + (words.empty() ? finish.hint : llvm::join(words, "_")),
      comment);
  emitter.addLaunch(op, "memplan.rowwise", kernel.pointers,
                    kernel.launch(name, getNodeName(op.getLoc()), grid, block,
                                  /*barriers=*/team != RowTeam::Thread));
}

} // namespace

LogicalResult emitRowwise(Emitter &emitter, Operation *raw) {
  RowwiseText text(emitter, cast<RowwiseOp>(raw));
  if (failed(text.read()))
    return failure();
  text.emit();
  return success();
}

} // namespace memplan
