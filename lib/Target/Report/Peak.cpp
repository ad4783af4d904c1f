//===- Peak.cpp - Where a plan's bytes go ---------------------------------===//

#include "memplan/Target/Report/Peak.h"

#include "memplan/Analysis/Liveness.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Solver/LiveProfile.h"
#include "memplan/Target/Report/PlanReport.h"
#include "memplan/Target/Report/WeightsLayout.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace memplan {

namespace {

/// The ops of a function by their points.
std::vector<Operation *> listOps(func::FuncOp function,
                                 const ProgramPoints &points) {
  std::vector<Operation *> ops(points.size(), nullptr);
  // An op with regions has its first point before and its last after them.
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function || points.begin(op) == points.end(op))
      return;
    ops[points.begin(op)] = op;
    ops[points.end(op) - 1] = op;
  });
  return ops;
}

class PeakFinder {
public:
  PeakFinder(func::FuncOp function, ArenaAttr arena, int64_t firstIndex)
      : function(function), arena(arena) {
    int64_t index = firstIndex;
    function.walk([&](Operation *op) {
      auto slot = op->getAttrOfType<SlotAttr>(kSlotAttr);
      auto type = slot && op->getNumResults() == 1
                      ? dyn_cast<MemRefType>(op->getResult(0).getType())
                      : MemRefType();
      if (!type)
        return;
      if (type.getMemorySpace() == arena.getMemorySpace() &&
          !op->hasAttr(kWorkspaceAttr)) {
        int64_t bytes = getContentBytes(type).value_or(0);
        if (!slot.getParts())
          add(index, op, type, 0, bytes, slot.getLower(), slot.getUpper());
        else
          for (auto part : slot.getParts().getAsRange<PartAttr>())
            add(index, op, type, part.getOffset(), part.getBytes(),
                part.getLower(), part.getUpper());
      }
      ++index;
    });
  }

  ArenaPeak run() {
    ProgramPoints points(function);
    std::vector<Operation *> ops = listOps(function, points);
    ArenaPeak peak;
    peak.function = function;
    peak.memorySpace = arena.getMemorySpace();
    peak.arenaBytes = arena.getBytes();
    peak.numPoints = points.size();
    peak.point = findPoint();
    peak.liveBytes = solver::computeLowerBound(problem);
    auto opAt = [&](int64_t point) -> Operation * {
      return point >= 0 && point < points.size() ? ops[point] : nullptr;
    };
    peak.op = opAt(peak.point);
    for (auto [index, buffer] : llvm::enumerate(buffers)) {
      if (peak.point < buffer.lower || buffer.upper <= peak.point)
        continue;
      buffer.birth = opAt(buffer.lower);
      buffer.death = opAt(buffer.upper - 1);
      int64_t size = std::exchange(problem.buffers[index].size, 0);
      buffer.peakWithout = solver::computeLowerBound(problem);
      problem.buffers[index].size = size;
      peak.buffers.push_back(buffer);
    }
    llvm::stable_sort(peak.buffers, [](const auto &a, const auto &b) {
      return a.bytes > b.bytes;
    });
    return peak;
  }

private:
  /// A buffer, or a part of it from `first` on.
  void add(int64_t index, Operation *op, MemRefType type, int64_t first,
           int64_t bytes, int64_t lower, int64_t upper) {
    buffers.push_back(
        {index, op, type, bytes, lower, upper, nullptr, nullptr, 0});
    solver::Buffer buffer;
    buffer.lower = lower;
    buffer.upper = upper;
    buffer.size = bytes;
    buffer.alignment = arena.getAlignment();
    while (first % buffer.alignment != 0)
      buffer.alignment /= 2;
    problem.buffers.push_back(buffer);
  }

  int64_t findPoint() const {
    solver::LivePoint highest = {0, -1};
    for (solver::LivePoint point : solver::computeLiveProfile(problem))
      if (point.bytes > highest.bytes)
        highest = point;
    return highest.time;
  }

  func::FuncOp function;
  ArenaAttr arena;
  std::vector<PeakBuffer> buffers;
  solver::Problem problem;
};

std::string nameOf(Operation *op) {
  return op ? "'" + getBufferName(op->getLoc()) + "'" : "?";
}

std::string shapeOf(MemRefType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t extent : type.getShape())
    os << extent << "x";
  os << type.getElementType();
  return text;
}

void printPeak(const ArenaPeak &peak, llvm::raw_ostream &os) {
  os << "peak of @" << func::FuncOp(peak.function).getName();
  if (peak.memorySpace)
    os << " in memory space " << peak.memorySpace;
  os << ": " << peak.liveBytes << " bytes live at point " << peak.point
     << " of " << peak.numPoints;
  if (peak.op)
    os << ", at " << nameOf(peak.op) << " (" << peak.op->getName() << ")";
  os << "; arena " << peak.arenaBytes << " bytes\n";
  if (peak.buffers.empty())
    return;
  os << "         bytes   share  without it  lives             type  buffer; "
        "written first by, read last by\n";
  for (const PeakBuffer &buffer : peak.buffers) {
    std::string lives = "[" + std::to_string(buffer.lower) + ", " +
                        std::to_string(buffer.upper) + ")";
    os << llvm::format("%14lld %6.1f%% %11lld  %-12s %9s  ",
                       static_cast<long long>(buffer.bytes),
                       peak.liveBytes ? 100.0 * buffer.bytes / peak.liveBytes
                                      : 0.0,
                       static_cast<long long>(buffer.peakWithout),
                       lives.c_str(), shapeOf(buffer.type).c_str())
       << nameOf(buffer.op) << "; " << nameOf(buffer.birth) << ", "
       << nameOf(buffer.death) << "\n";
  }
  const PeakBuffer *first = peak.getFirstToChange();
  os << "change first: " << nameOf(first->op) << ", " << first->bytes
     << " bytes";
  if (first->peakWithout < peak.liveBytes)
    os << "; without it " << first->peakWithout
       << " bytes would be live at most\n";
  else
    os << "; another time needs as many bytes without it\n";
}

} // namespace

int64_t getArgumentBytes(func::FuncOp function, bool outputs) {
  int64_t sum = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(function.getArgument(i).getType());
    bool isOutput = function.getArgAttr(i, "bufferize.result") != nullptr;
    if (type && isOutput == outputs && !function.getArgAttr(i, kArenaArgAttr))
      sum += getContentBytes(type).value_or(0);
  }
  return sum;
}

const PeakBuffer *ArenaPeak::getFirstToChange() const {
  auto found = llvm::min_element(buffers, [](const auto &a, const auto &b) {
    return a.peakWithout < b.peakWithout;
  });
  return found == buffers.end() ? nullptr : &*found;
}

std::vector<ArenaPeak> findPeaks(ModuleOp module) {
  std::vector<ArenaPeak> peaks;
  int64_t firstIndex = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr);
    if (!arenas || !function.isPublic())
      continue;
    for (auto arena : arenas.getAsRange<ArenaAttr>())
      peaks.push_back(PeakFinder(function, arena, firstIndex).run());
    function.walk([&](Operation *op) {
      firstIndex += op->hasAttr(kSlotAttr) && op->getNumResults() == 1;
    });
  }
  return peaks;
}

void printPeaks(ModuleOp module, llvm::raw_ostream &os) {
  for (const ArenaPeak &peak : findPeaks(module))
    printPeak(peak, os);
  int64_t arena = 0, workspace = 0, inputs = 0, outputs = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    if (auto arenas = function->getAttrOfType<ArrayAttr>(kArenasAttr))
      for (auto attribute : arenas.getAsRange<ArenaAttr>())
        arena += attribute.getBytes();
    function.walk([&](Operation *op) {
      if (op->hasAttr(kWorkspaceAttr) && op->getNumResults() == 1)
        if (auto type = dyn_cast<MemRefType>(op->getResult(0).getType()))
          workspace = std::max(workspace, getContentBytes(type).value_or(0));
    });
    inputs += getArgumentBytes(function, /*outputs=*/false);
    outputs += getArgumentBytes(function, /*outputs=*/true);
  }
  os << "all in all: " << getWeightsBytes(module) << " bytes of weights, "
     << arena << " of activations, up to " << workspace
     << " of workspace inside of them; the caller's own: " << inputs
     << " of inputs, " << outputs << " of outputs\n";
}

} // namespace memplan
