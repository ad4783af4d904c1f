//===- MemoryMapSVG.cpp - The memory map as a picture ---------------------===//
//
// The same picture as the page's (MemoryMap/view.js), without what moves.
//
//===----------------------------------------------------------------------===//

#include "memplan/Target/Report/PlanReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Format.h"

#include <cmath>

using llvm::format;
using llvm::StringRef;

namespace memplan {

namespace {

// In pixels.
constexpr double kWidth = 1400, kLeft = 92, kRight = 24, kField = 560;
constexpr double kBand = 26, kGap = 8, kHead = 84, kFoot = 116;
constexpr double kCharacter = 6.4;

constexpr const char *kStyle = R"(<style>
svg { --page: #fff; --plot: #fbfcfd; --ink: #17202b; --soft: #55606e; --line: #d5dae1; --grid: #e6eaef; --accent: #0b62a8; --peak: #a3261b;
  background: var(--page); font: 12px system-ui, 'Helvetica Neue', Arial, sans-serif }
@media (prefers-color-scheme: dark) { svg { --page: #1a2129; --plot: #141a21; --ink: #e8edf3; --soft: #a3afbd; --line: #36414d; --grid: #262f39; --accent: #6db8f2; --peak: #ff9a8d } }
text { fill: var(--soft) } .h { font-size: 18px; font-weight: 600; fill: var(--ink) }
.n { fill: #10151b; font-size: 11px; pointer-events: none } .e { text-anchor: end } .m { text-anchor: middle }
.field { fill: var(--plot); stroke: var(--line) } .grid { stroke: var(--grid) } .tick { stroke: var(--line) }
.r { stroke: var(--page); stroke-width: .6 } .r:hover { stroke: var(--ink); stroke-width: 2 }
.activation { fill: #56b4e9 } .overwritten { fill: url(#dots) } .assembled { fill: url(#lines) } .workspace { fill: url(#hatch) }
.weight { fill: #cc79a7; stroke: none } .input { fill: #7a8fb8 } .output { fill: #d55e00 }
.live { fill: none; stroke: var(--ink); stroke-width: 1.8; stroke-linejoin: round; pointer-events: none } .thin { stroke-width: 1.1 }
.halo { fill: none; stroke: var(--page); stroke-width: 4.5; stroke-opacity: .75; pointer-events: none }
.arena { stroke: var(--ink); stroke-width: 1.6 } .bound { stroke: var(--accent); stroke-width: 1.6; stroke-dasharray: 7 5 } .peak { stroke: var(--peak); stroke-width: 1.6; stroke-dasharray: 3 3 }
.label { paint-order: stroke; stroke: var(--page); stroke-width: 4px; fill: var(--ink) } .label.b { fill: var(--accent) } .label.p { fill: var(--peak) }
</style>
<defs>
<pattern id="dots" width="12" height="12" patternUnits="userSpaceOnUse"><rect width="12" height="12" fill="#e69f00"/><g fill="#000" fill-opacity=".26"><circle cx="3" cy="3" r="1.5"/><circle cx="9" cy="9" r="1.5"/></g></pattern>
<pattern id="lines" width="12" height="12" patternUnits="userSpaceOnUse"><rect width="12" height="12" fill="#2bb38a"/><path d="M0 6H12" stroke="#000" stroke-opacity=".26" stroke-width="2"/></pattern>
<pattern id="hatch" width="12" height="12" patternUnits="userSpaceOnUse"><rect width="12" height="12" fill="#f0e442"/><path d="M-6 12L6 0M0 12L12 0M6 12L18 0" stroke="#000" stroke-opacity=".26" stroke-width="2"/></pattern>
</defs>
)";

/// Text that XML takes, in which nothing is invisible or turns it around.
std::string escapeXml(StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(text.bytes_begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.bytes_end());
  while (at != end) {
    llvm::UTF32 c = 0xfffd;
    const llvm::UTF8 *begin = at;
    if (llvm::convertUTF8Sequence(&at, end, &c, llvm::strictConversion) !=
        llvm::conversionOK)
      at = begin + 1;
    auto isIn = [c](llvm::UTF32 low, llvm::UTF32 high) {
      return low <= c && c <= high;
    };
    if (c == '&')
      os << "&amp;";
    else if (c == '<')
      os << "&lt;";
    else if (c == '>')
      os << "&gt;";
    else if (c < 0x20 || isIn(0x7f, 0x9f) || c == 0xad || c == 0x61c ||
             c == 0x180e || isIn(0x200b, 0x200f) || isIn(0x2028, 0x202f) ||
             isIn(0x2060, 0x206f) || c == 0xfeff || isIn(0xfff9, 0xffff))
      os << format("\\u%04x", static_cast<unsigned>(c));
    else
      os << text.substr(reinterpret_cast<const char *>(begin) - text.data(),
                        at - begin);
  }
  return escaped;
}

std::string formatSize(int64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char *unit = "";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    value /= 1024;
    unit = next;
    if (value < 1024)
      break;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << format(value >= 100 ? "%.1f %s" : "%.2f %s", value, unit);
  return text;
}

/// As plan.js has it: parts that live apart, else an op that wrote it also read
/// it, else several wrote it.
const char *getKind(const PlanBuffer &buffer) {
  if (buffer.isWorkspace())
    return "workspace";
  if (!buffer.parts.empty())
    return "assembled";
  for (size_t i = 1; i < buffer.writtenAt.size(); ++i)
    if (llvm::binary_search(buffer.readAt, buffer.writtenAt[i]))
      return "overwritten";
  return buffer.writtenAt.size() > 1 ? "assembled" : "activation";
}

std::string describeType(const PlanTensor &tensor) {
  std::string text = tensor.type + "[";
  for (auto [i, extent] : llvm::enumerate(tensor.shape))
    text += (i ? ", " : "") + std::to_string(extent);
  return text + "]";
}

/// As much of the end of a name as there is room for.
std::string fit(StringRef text, double width) {
  size_t room = std::max(0.0, width / kCharacter);
  if (text.size() <= room)
    return escapeXml(text);
  // Less than ten characters of a name tell nothing.
  if (room < 11)
    return "";
  text = text.take_back(room - 1);
  while (!text.empty() && (text.front() & 0xc0) == 0x80)
    text = text.drop_front();
  return "\xe2\x80\xa6" + escapeXml(text);
}

class ArenaDrawing {
public:
  ArenaDrawing(const PlanDocument &plan, size_t index, double top,
               llvm::raw_ostream &os)
      : plan(plan), index(index), arena(plan.arenas[index]),
        function(plan.functions[arena.function]), os(os), top(top + kHead),
        bottom(top + kHead + kField),
        points(std::max<int64_t>(1, function.points)),
        limit(1.04 *
              std::max({arena.bytes, arena.lowerBoundBytes, int64_t(1)})) {}

  static constexpr double kHeight = kHead + kField + kFoot;

  void run() {
    writeHead();
    writeAxes();
    for (const PlanRange &range : listRanges(plan, index))
      if (range.bytes > 0)
        writeRange(range);
    writeNames();
    writeBands();
    writeLines();
    writeLegend();
  }

private:
  double x(double time) const {
    return kLeft + time / points * (kWidth - kLeft - kRight);
  }
  double y(double address) const { return bottom - address / limit * kField; }

  std::string title(int64_t point) const {
    const PlanOperation *operation = findOperation(function, point);
    return operation ? getTitle(*operation) : "no operation";
  }

  void text(double atX, double atY, StringRef style, StringRef content) {
    os << format("<text x=\"%.1f\" y=\"%.1f\"", atX, atY) << " class=\""
       << style << "\">" << content << "</text>\n";
  }

  void writeHead() {
    std::string name = plan.model.value_or("plan");
    text(kLeft, top - 58, "h", escapeXml(name));
    std::string line = "@" + escapeXml(function.name);
    if (!arena.memorySpace.empty())
      line += " in memory space " + escapeXml(arena.memorySpace);
    line += ": arena " + formatSize(arena.bytes) + ", lower bound " +
            formatSize(arena.lowerBoundBytes) +
            (arena.optimal ? " (proved optimal)" : "") +
            ", sum of the buffers " + formatSize(arena.noReuseBytes) +
            ", weights " + formatSize(plan.weightsBytes);
    text(kLeft, top - 40, "", line);
  }

  void writeAxes() {
    os << format("<rect class=\"field\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                 "height=\"%.1f\"/>\n",
                 kLeft, top, kWidth - kLeft - kRight, kField);
    // Powers of two, 44 pixels apart at least.
    int64_t step = 1;
    while (step < limit * 44 / kField)
      step *= 2;
    for (int64_t address = 0; address <= limit; address += step) {
      os << format("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", kLeft,
                   y(address), kWidth - kRight);
      text(kLeft - 8, y(address) + 4, "e", formatSize(address));
    }
    double axis = bottom + kGap + kBand;
    int64_t stride = 1;
    for (int64_t power = 1; stride < points / 18; power *= 10)
      for (int64_t factor : {1, 2, 5})
        if (stride < points / 18)
          stride = power * factor;
    for (int64_t time = 0; time < points; time += stride) {
      os << format("<path class=\"tick\" d=\"M%.1f %.1fv5\"/>\n", x(time),
                   axis);
      text(x(time), axis + 18, "m", std::to_string(time));
    }
    text((kLeft + kWidth - kRight) / 2, axis + 36, "m", "operation");
  }

  void writeRange(const PlanRange &range) {
    const PlanBuffer &buffer = plan.buffers[range.buffer];
    double left = x(range.lower), high = y(range.offset + range.bytes);
    double width = std::max(0.4, x(range.upper) - left);
    double height = std::max(0.4, y(range.offset) - high);
    // The line around it would hide a thin one.
    bool isThin = width < 3 || height < 3;
    os << "<rect class=\"" << (isThin ? "" : "r ") << getKind(buffer) << "\""
       << format(" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">", left,
                 high, width, height)
       << "<title>" << escapeXml(buffer.node) << "\n"
       << buffer.name << " " << escapeXml(describeType(buffer)) << ", "
       << range.bytes << " bytes at " << range.offset << "\nlives ["
       << range.lower << ", " << range.upper << "), born at "
       << escapeXml(title(range.lower)) << ", last at "
       << escapeXml(title(range.upper - 1)) << "</title></rect>\n";
    if (width > 24 && height > 14)
      names.push_back(
          {left + 5, high + height / 2 + 4, fit(buffer.node, width - 10)});
  }

  void writeNames() {
    for (const auto &[atX, atY, name] : names)
      if (!name.empty())
        text(atX, atY, "n", name);
  }

  void writeValue(const PlanValue &value, const char *kind, double high,
                  double height) {
    if (value.function != arena.function)
      return;
    int64_t first = points, last = -1;
    for (const std::vector<int64_t> *uses : {&value.writtenAt, &value.readAt})
      if (!uses->empty()) {
        first = std::min(first, uses->front());
        last = std::max(last, uses->back());
      }
    if (last < first)
      return;
    os << "<rect class=\"r " << kind << "\""
       << format(" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">",
                 x(first), high, std::max(0.8, x(last + 1) - x(first)),
                 std::max(0.8, height))
       << "<title>" << kind << " " << escapeXml(value.name) << "\n"
       << escapeXml(describeType(value)) << ", " << value.bytes
       << " bytes</title></rect>\n";
  }

  /// Inputs and outputs a row each, weights by their place in the block.
  void writeBands() {
    double high = bottom + kGap;
    text(kLeft - 8, high + 11, "e", "weights");
    text(kLeft - 8, high + 25, "e", formatSize(plan.weightsBytes));
    for (const PlanValue &weight : plan.weights) {
      double scale = kBand / std::max<int64_t>(1, plan.weightsBytes);
      writeValue(weight, "weight",
                 high + kBand -
                     (weight.offset.value_or(0) + double(weight.bytes)) * scale,
                 weight.bytes * scale);
    }
    size_t rows = plan.inputs.size() + plan.outputs.size(), row = 0;
    if (rows == 0)
      return;
    high = top - kGap - 18;
    text(kLeft - 8, high + 13, "e", "in, out");
    double height = 18.0 / rows;
    for (const PlanValue &input : plan.inputs)
      writeValue(input, "input", high + height * row++, height);
    for (const PlanValue &output : plan.outputs)
      writeValue(output, "output", high + height * row++, height);
  }

  void writeLines() {
    std::string path;
    llvm::raw_string_ostream d(path);
    d << format("M%.1f %.1f", x(0), y(0));
    // Where several operations share a pixel, the most of them.
    bool isDense = points > (kWidth - kLeft - kRight) / 2;
    for (size_t i = 0; i < arena.live.size(); ++i) {
      auto [point, bytes] = arena.live[i];
      while (isDense && i + 1 < arena.live.size() &&
             x(arena.live[i + 1].first) < x(point) + 2)
        bytes = std::max(bytes, arena.live[++i].second);
      d << format("H%.2fV%.2f", x(point), y(bytes));
    }
    d << format("H%.1f", x(points));
    for (const char *style : {"halo", isDense ? "live thin" : "live"})
      os << "<path class=\"" << style << "\" d=\"" << path << "\"/>\n";
    auto writeLine = [&](const char *style, int64_t bytes) {
      os << "<path class=\"" << style << "\" d=\""
         << format("M%.1f %.2fH%.1f", kLeft, y(bytes), kWidth - kRight)
         << "\"/>\n";
    };
    double right = kWidth - kRight - 6;
    bool isTight = arena.bytes == arena.lowerBoundBytes;
    writeLine("arena", arena.bytes);
    text(right, y(arena.bytes) - 5, "label e",
         (isTight ? "arena = lower bound " : "arena ") +
             formatSize(arena.bytes));
    if (!isTight) {
      writeLine("bound", arena.lowerBoundBytes);
      text(right, y(arena.lowerBoundBytes) + 15, "label b e",
           "lower bound " + formatSize(arena.lowerBoundBytes));
    }
    writePeak();
  }

  void writePeak() {
    const PlanPeak &peak = plan.peaks[index];
    if (peak.liveBytes == 0)
      return;
    double at = x(peak.point + 0.5);
    os << "<path class=\"peak\" d=\""
       << format("M%.1f %.1fV%.2f", at, bottom, y(peak.liveBytes)) << "\"/>\n";
    std::string label = "peak " + formatSize(peak.liveBytes) + " at " +
                        std::to_string(peak.point);
    if (!peak.node.empty())
      label += ", " + fit(peak.node, 300);
    bool isLeft = at + 400 > kWidth;
    text(isLeft ? at - 7 : at + 7, y(peak.liveBytes) + 36,
         isLeft ? "label p e" : "label p", label);
  }

  void writeLegend() {
    llvm::StringMap<bool> isThere;
    for (const PlanBuffer &buffer : plan.buffers)
      isThere[getKind(buffer)] |= buffer.arena == index;
    isThere["weight"] = !plan.weights.empty();
    isThere["input"] = !plan.inputs.empty();
    isThere["output"] = !plan.outputs.empty();
    double at = kLeft, high = bottom + kGap + kBand + 52;
    for (auto [kind, label] :
         {std::pair{"activation", "activation"},
          {"overwritten", "overwritten in place"},
          {"assembled", "put together by several operations"},
          {"workspace", "workspace"},
          {"input", "inputs"},
          {"output", "outputs"},
          {"weight", "weights"}}) {
      if (!isThere.lookup(kind))
        continue;
      os << "<rect class=\"" << kind << "\""
         << format(" x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"12\"/>\n", at,
                   high);
      text(at + 28, high + 10, "", label);
      at += 52 + kCharacter * StringRef(label).size();
    }
  }

  struct Name {
    double x, y;
    std::string text;
  };
  const PlanDocument &plan;
  size_t index;
  const PlanArena &arena;
  const PlanFunction &function;
  llvm::raw_ostream &os;
  double top, bottom;
  int64_t points;
  double limit;
  std::vector<Name> names;
};

} // namespace

void emitMemoryMapSVG(const PlanDocument &plan, llvm::raw_ostream &os) {
  double height =
      std::max<size_t>(1, plan.arenas.size()) * ArenaDrawing::kHeight;
  os << format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
               "%.0f\" width=\"%.0f\" height=\"%.0f\">\n",
               kWidth, height, kWidth, height)
     << kStyle;
  for (size_t i = 0; i < plan.arenas.size(); ++i)
    ArenaDrawing(plan, i, i * ArenaDrawing::kHeight, os).run();
  os << "</svg>\n";
}

} // namespace memplan
