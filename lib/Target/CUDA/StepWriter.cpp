//===- StepWriter.cpp - The functions that launch -------------------------===//
//
// In checked builds the code says when buffers live. Lives are ranges of
// program points, so what lives at a place is what is alive at its point, by
// whatever way control got there: at the end of each way it is brought to what
// it is where ways meet.
//
//===----------------------------------------------------------------------===//

#include "StepWriter.h"

#include "CppText.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

using Kind = HostStep::Kind;

/// Launches a function: one that can be read, and not so many functions.
static constexpr size_t kLaunchesPerFunction = 32;

std::string StepWriter::listRanges(const Launch &launch, bool written) {
  SmallVector<std::string> ranges;
  for (const PointerArgument &pointer : launch.pointers) {
    if ((pointer.ref.base != BufferRef::Base::Arena &&
         pointer.ref.base != BufferRef::Base::Carried) ||
        !(written ? pointer.written : pointer.read))
      continue;
    for (const ByteRange &range : pointer.ref.ranges(/*cover=*/written)) {
      std::string text = "{" + pointer.name;
      if (range.offset)
        text += " + " +
                std::to_string(range.offset / pointer.ref.getElementBytes());
      text += ", " + std::to_string(range.bytes);
      if (range.count != 1)
        text += ", " + std::to_string(range.count) + ", " +
                std::to_string(range.stride);
      ranges.push_back(text + "}");
    }
  }
  return "{" + llvm::join(ranges, ", ") + "}";
}

//===----------------------------------------------------------------------===//
// Lives
//===----------------------------------------------------------------------===//

static bool livesAt(const BufferLife &life, int64_t point) {
  return life.lower <= point && point < life.upper;
}

void StepWriter::writeBegin(const BufferLife &life) {
  os << wrapAtCommas("MEMPLAN_TRY(run.begin(" + std::to_string(life.offset) +
                         ", " + std::to_string(life.bytes) + ", " +
                         quoteForString(life.name) + "));",
                     indent());
  lives.alive.push_back(&life);
}

/// Ends what doesn't live at `point` and begins what does.
void StepWriter::bringTo(int64_t point) {
  llvm::erase_if(lives.alive, [&](const BufferLife *life) {
    if (livesAt(*life, point))
      return false;
    os << indent() << "MEMPLAN_TRY(run.end(" << life->offset << ", "
       << life->bytes << "));\n";
    return true;
  });
  // In the order of their beginnings; what lived before lives on.
  ArrayRef<BufferLife> all = program.lives;
  const BufferLife *first = all.begin();
  if (point >= lives.point)
    first = llvm::partition_point(
        all, [&](const BufferLife &life) { return life.lower <= lives.point; });
  for (; first != all.end() && first->lower <= point; ++first)
    if (livesAt(*first, point) && !llvm::is_contained(lives.alive, first))
      writeBegin(*first);
  lives.point = point;
}

/// Whether bringTo(point) would write anything.
bool StepWriter::changesAt(int64_t point) const {
  size_t count = llvm::count_if(program.lives, [&](const BufferLife &life) {
    return livesAt(life, point);
  });
  return count != lives.alive.size() ||
         !llvm::all_of(lives.alive, [&](const BufferLife *life) {
           return livesAt(*life, point);
         });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void StepWriter::writeLaunch(const Launch &launch, int64_t point) {
  bringTo(point);
  std::string outer = indent(), inner = outer + "  ";
  if (launch.result)
    os << outer << launch.result->type << " " << launch.result->name << "{};\n";
  os << outer << "// [" << numLaunches++ << "] "
     << escapeForComment(launch.node) << "\n"
     << outer << "//     " << escapeForComment(launch.title, 1000) << "\n"
     << outer << "{\n";
  for (const PointerArgument &pointer : launch.pointers) {
    std::string type = *getCppType(pointer.ref.elementType);
    os << inner << (pointer.written ? "" : "const ") << type << " *"
       << pointer.name << " = " << program.emitter.getPointer(type, pointer.ref)
       << ";\n";
  }
  std::string what = quoteForString(launch.node);
  std::string writes = listRanges(launch, /*written=*/true);
  os << wrapAtCommas("MEMPLAN_TRY(run.before(" + what + ", " + writes + ", " +
                         listRanges(launch, /*written=*/false) + "));",
                     inner)
     << wrapAtCommas("MEMPLAN_TRY(" + launch.call + ");", inner)
     << wrapAtCommas("MEMPLAN_TRY(run.after(" + what + ", " + writes + "));",
                     inner)
     << outer << "}\n";
}

void StepWriter::writeText(const HostStep &step) {
  if (!step.comment.empty())
    os << indent() << step.comment << "\n";
  os << wrapAtCommas(step.text, indent());
}

void StepWriter::writeBreak(const HostStep &step) {
  if (!changesAt(step.point)) {
    os << indent() << step.text << "\n" << indent() << "  break;\n";
  } else {
    Lives before = lives;
    os << indent() << step.text << " {\n";
    ++depth;
    bringTo(step.point);
    os << indent() << "break;\n";
    --depth;
    os << indent() << "}\n";
    lives = std::move(before);
  }
  frames.back().exit = step.point;
}

void StepWriter::closeBranch(const HostStep &step) {
  bringTo(step.point);
  --depth;
  Frame frame = std::move(frames.back());
  frames.pop_back();
  std::swap(lives, frame.before);
  bool differs = frame.needsElse && changesAt(step.point);
  if (differs) {
    // Skipped, it has to leave the same buffers alive.
    os << indent() << "} else {\n";
    ++depth;
    bringTo(step.point);
    --depth;
  } else {
    std::swap(lives, frame.before);
  }
  os << indent() << "}\n";
}

void StepWriter::writeStep(const HostStep &step) {
  switch (step.kind) {
  case Kind::Launch:
    return writeLaunch(program.emitter.launches[step.launch], step.point);
  case Kind::Statement:
  case Kind::Check:
    return writeText(step);
  case Kind::OpenLoop:
  case Kind::OpenBranch:
    bringTo(step.point);
    writeText(step);
    frames.push_back({lives, /*needsElse=*/step.text != "{", step.point});
    ++depth;
    return;
  case Kind::Break:
    return writeBreak(step);
  case Kind::CloseLoop:
    bringTo(step.point);
    --depth;
    os << indent() << "}\n";
    // What was alive where it was left; that may be before the first round.
    lives.point = frames.back().exit;
    llvm::erase_if(lives.alive, [&](const BufferLife *life) {
      return !livesAt(*life, lives.point);
    });
    for (const BufferLife &life : program.lives)
      if (livesAt(life, lives.point) && !llvm::is_contained(lives.alive, &life))
        lives.alive.push_back(&life);
    frames.pop_back();
    return;
  case Kind::Else:
    bringTo(step.point);
    --depth;
    writeText(step);
    ++depth;
    lives = frames.back().before;
    if (StringRef(step.text) == "} else {")
      frames.back().needsElse = false;
    return;
  case Kind::CloseBranch:
    return closeBranch(step);
  }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void StepWriter::findLastUses() {
  for (auto [number, step] : llvm::enumerate(steps)) {
    llvm::StringSet<> used;
    collectIdentifiers(program.emitter, step, used);
    for (const auto &name : used)
      lastUses[name.getKey()] = number;
  }
}

/// Whether a function that begins at step `first` may end before this one: no
/// variable of it is needed later.
bool StepWriter::isCutBefore(size_t first, size_t step) const {
  for (const HostStep &before : steps.slice(first, step - first)) {
    StringRef name = before.defines;
    if (before.kind == Kind::Launch)
      if (const auto &result = program.emitter.launches[before.launch].result)
        name = result->name;
    if (!name.empty() && lastUses.lookup(name) >= step)
      return false;
  }
  return true;
}

void StepWriter::writeFunction(size_t first, size_t last) {
  for (const HostStep &step : steps.slice(first, last - first))
    writeStep(step);
}

size_t StepWriter::write() {
  size_t total = llvm::count_if(
      steps, [](const HostStep &step) { return step.kind == Kind::Launch; });
  if (total == 0)
    return 0; // nothing that anybody could tell
  findLastUses();
  size_t numFunctions = 0;
  for (size_t first = 0; first < steps.size();) {
    size_t last = first, count = 0, open = 0;
    for (; last < steps.size(); ++last) {
      Kind kind = steps[last].kind;
      if (count >= kLaunchesPerFunction && open == 0 &&
          isCutBefore(first, last))
        break;
      count += kind == Kind::Launch;
      open += kind == Kind::OpenLoop || kind == Kind::OpenBranch;
      open -= kind == Kind::CloseLoop || kind == Kind::CloseBranch;
    }
    os << "//===- Launches " << numLaunches << " to " << numLaunches + count - 1
       << " -===//\n\nmemplan_status launches" << numFunctions++
       << "(const Run &run) {\n";
    writeFunction(first, last);
    os << "  return MEMPLAN_OK;\n}\n\n";
    first = last;
  }
  return numFunctions;
}

} // namespace memplan
