//===- Instances.cpp - Generated problems ---------------------------------===//

#include "memplan/Solver/Instances.h"

#include "memplan/Support/SplitMix64.h"

#include <algorithm>

namespace memplan::solver {

//===----------------------------------------------------------------------===//
// Perfect packings
//===----------------------------------------------------------------------===//

namespace {

/// In units of the steps.
struct Rectangle {
  int64_t left, right, bottom, top;

  int64_t width() const { return right - left; }
  int64_t height() const { return top - bottom; }
  bool canBeCut() const { return width() > 1 || height() > 1; }
  bool canHoldPinwheel() const { return width() > 2 && height() > 2; }
};

/// Cuts one rectangle after the other until there are enough.
class Cutter {
public:
  Cutter(const PerfectPackingOptions &options, Rectangle whole)
      : options(options), random(options.seed) {
    keep(whole);
  }

  /// There must be at least as many cells.
  std::vector<Rectangle> run() {
    while (missing() > 0)
      cutOne();
    open.insert(open.end(), done.begin(), done.end());
    for (size_t i = open.size(); i > 1; --i)
      std::swap(open[i - 1], open[random.below(static_cast<int64_t>(i))]);
    return open;
  }

private:
  int64_t missing() const {
    return options.count - static_cast<int64_t>(open.size() + done.size());
  }

  void keep(Rectangle part) { (part.canBeCut() ? open : done).push_back(part); }

  Rectangle takeOne();
  void cutOne();
  void cutThrough(Rectangle whole);
  void cutPinwheel(Rectangle whole);

  const PerfectPackingOptions &options;
  SplitMix64 random;
  std::vector<Rectangle> open;
  std::vector<Rectangle> done;
};

} // namespace

/// The largest of three at random, so that the sizes differ, but few parts are
/// slivers.
Rectangle Cutter::takeOne() {
  auto area = [](const Rectangle &r) {
    return static_cast<__int128>(r.width()) * r.height();
  };
  auto count = static_cast<int64_t>(open.size());
  int64_t best = random.below(count);
  for (int i = 0; i < 2; ++i)
    if (int64_t other = random.below(count);
        area(open[other]) > area(open[best]))
      best = other;
  std::swap(open[best], open.back());
  Rectangle taken = open.back();
  open.pop_back();
  return taken;
}

void Cutter::cutOne() {
  Rectangle whole = takeOne();
  // The one taken out counts as missing; a pinwheel keeps five.
  if (missing() >= 5 && whole.canHoldPinwheel() &&
      random.chance(options.pinwheelPercent))
    cutPinwheel(whole);
  else
    cutThrough(whole);
}

void Cutter::cutThrough(Rectangle whole) {
  bool isAcross =
      whole.width() == 1 || (whole.height() > 1 && random.chance(50));
  Rectangle first = whole, second = whole;
  if (isAcross)
    first.top = second.bottom = random.between(whole.bottom + 1, whole.top - 1);
  else
    first.right = second.left = random.between(whole.left + 1, whole.right - 1);
  keep(first);
  keep(second);
}

/// Four arms around a centre; the arms turn one way or the other.
void Cutter::cutPinwheel(Rectangle whole) {
  int64_t x1 = random.between(whole.left + 1, whole.right - 2);
  int64_t x2 = random.between(x1 + 1, whole.right - 1);
  int64_t y1 = random.between(whole.bottom + 1, whole.top - 2);
  int64_t y2 = random.between(y1 + 1, whole.top - 1);
  bool isMirrored = random.chance(50);
  auto place = [&](int64_t left, int64_t right, int64_t bottom, int64_t top) {
    if (isMirrored) {
      std::swap(left, right);
      left = whole.left + whole.right - left;
      right = whole.left + whole.right - right;
    }
    keep({left, right, bottom, top});
  };
  place(whole.left, x2, whole.bottom, y1);
  place(x2, whole.right, whole.bottom, y2);
  place(x1, whole.right, y2, whole.top);
  place(whole.left, x1, y1, whole.top);
  place(x1, x2, y1, y2);
}

std::optional<PerfectPacking>
makePerfectPacking(const PerfectPackingOptions &options) {
  if (options.timeStep < 1 || options.sizeStep < 1 || options.count < 1 ||
      options.duration % options.timeStep != 0 ||
      options.height % options.sizeStep != 0)
    return std::nullopt;
  int64_t columns = options.duration / options.timeStep;
  int64_t rows = options.height / options.sizeStep;
  if (static_cast<__int128>(columns) * rows < options.count)
    return std::nullopt;
  PerfectPacking packing;
  for (const Rectangle &part : Cutter(options, {0, columns, 0, rows}).run()) {
    Buffer buffer;
    buffer.lower = part.left * options.timeStep;
    buffer.upper = part.right * options.timeStep;
    buffer.size = part.height() * options.sizeStep;
    packing.problem.buffers.push_back(buffer);
    packing.solution.offsets.push_back(part.bottom * options.sizeStep);
  }
  packing.solution.height = packing.solution.lowerBound = options.height;
  packing.solution.status = Status::Optimal;
  return packing;
}

//===----------------------------------------------------------------------===//
// Heavy tails
//===----------------------------------------------------------------------===//

/// minimum * 2^k with probability 2^-(k + 1), then uniform up to twice that.
static int64_t drawHeavyTailed(SplitMix64 &random, int64_t minimum,
                               int64_t maximum) {
  int64_t value = minimum;
  while (value <= maximum / 2 && random.chance(50))
    value *= 2;
  return std::min(maximum, value + random.below(value));
}

Problem makeHeavyTailed(const HeavyTailedOptions &options) {
  SplitMix64 random(options.seed);
  int64_t duration = options.duration > 0 ? options.duration : options.count;
  Problem problem;
  for (int64_t i = 0; i < options.count; ++i) {
    Buffer buffer;
    buffer.lower = random.below(duration);
    buffer.upper = buffer.lower + drawHeavyTailed(random, options.minLifetime,
                                                  options.maxLifetime);
    buffer.size = drawHeavyTailed(random, options.minSize, options.maxSize);
    buffer.alignment = options.alignment;
    problem.buffers.push_back(buffer);
  }
  return problem;
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

Problem makeModelTrace(const ModelTraceOptions &options) {
  SplitMix64 random(options.seed);
  Problem problem;
  auto add = [&](int64_t lower, int64_t upper, int64_t size) {
    Buffer buffer;
    buffer.lower = lower;
    buffer.upper = std::min(upper, options.ops + 1);
    buffer.size = size;
    buffer.alignment = options.alignment;
    problem.buffers.push_back(buffer);
  };
  // A stage is a run of ops on tensors of one extent; from one to the next the
  // extent is halved in two dimensions and the channels double, or the other
  // way round.
  int64_t stageBytes = 1 << 20;
  int64_t stageEnd = 0;
  for (int64_t op = 0; op < options.ops; ++op) {
    if (op == stageEnd) {
      stageEnd += random.between(4, 16);
      bool isShrinking = stageBytes > (1 << 14) && random.chance(70);
      stageBytes = isShrinking ? stageBytes / 2
                               : std::min<int64_t>(stageBytes * 2, 1 << 24);
    }
    // Bottlenecks and expansions: a quarter to four times the stage's size.
    int64_t bytes = (stageBytes / 4) << random.below(5);
    int64_t lastUse = op + 1;
    if (random.chance(options.skipPercent))
      lastUse += random.between(1, options.maxSkip);
    add(op, lastUse + 1, bytes);
    if (random.chance(options.workspacePercent))
      add(op, op + 1, random.between(1, stageBytes));
  }
  return problem;
}

} // namespace memplan::solver
