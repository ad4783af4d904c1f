//===- Svg.cpp - A drawing of a placement ---------------------------------===//

#include "Svg.h"

#include "memplan/Solver/LiveProfile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace memplan {

// The field in which buffers are drawn, in pixels.
static constexpr double fieldLeft = 110;
static constexpr double fieldTop = 50;
static constexpr double fieldWidth = 1200;
static constexpr double fieldHeight = 700;
static constexpr int numColors = 8;

static constexpr const char *styleSheet = R"(<style>
text { font: 12px sans-serif; fill: #222 }
text.end { text-anchor: end }
text.middle { text-anchor: middle }
text.name { font-size: 10px; pointer-events: none }
rect { stroke: #fff; stroke-width: 0.4 }
rect:hover { stroke: #000; stroke-width: 1.5 }
.field { fill: #f4f4f4; stroke: #888 }
.c0 { fill: #8dd3c7 } .c1 { fill: #ffe08a } .c2 { fill: #bebada }
.c3 { fill: #fb9a8c } .c4 { fill: #80b1d3 } .c5 { fill: #fdb462 }
.c6 { fill: #b3de69 } .c7 { fill: #fccde5 }
.live { fill: none; stroke: #222; stroke-width: 1.2 }
.bound { stroke: #1a7f37; stroke-width: 1.5; stroke-dasharray: 8 4 }
.capacity { stroke: #c00; stroke-width: 1.5 }
</style>
)";

/// Text that XML takes, whatever the file said.
static std::string escapeXml(StringRef text) {
  std::string clean = json::isUTF8(text) ? text.str() : json::fixUTF8(text);
  std::string escaped;
  for (size_t i = 0; i < clean.size(); ++i) {
    StringRef rest = StringRef(clean).drop_front(i);
    if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {
      escaped += "?"; // U+FFFE and U+FFFF are no characters of XML.
      i += 2;
    } else if (clean[i] == '&') {
      escaped += "&amp;";
    } else if (clean[i] == '<') {
      escaped += "&lt;";
    } else if (clean[i] == '>') {
      escaped += "&gt;";
    } else if (static_cast<unsigned char>(clean[i]) < 0x20) {
      escaped += " ";
    } else {
      escaped += clean[i];
    }
  }
  return escaped;
}

namespace {

class Drawing {
public:
  Drawing(raw_ostream &os, const solver::CsvTable &table,
          const solver::Solution &solution)
      : os(os), table(table), solution(solution),
        profile(solver::computeLiveProfile(table.problem)) {
    for (const solver::Buffer &buffer : table.problem.buffers)
      if (isVisible(buffer)) {
        times.push_back(buffer.lower);
        times.push_back(buffer.upper);
      }
    llvm::sort(times);
    times.erase(llvm::unique(times), times.end());
    top = std::max({int64_t(1), solution.height, solution.lowerBound,
                    table.problem.capacity.value_or(0)});
  }

  void draw(StringRef title);

private:
  static bool isVisible(const solver::Buffer &buffer) {
    return buffer.size > 0 && buffer.lower < buffer.upper;
  }

  double x(int64_t time) const {
    auto section = llvm::lower_bound(times, time) - times.begin();
    return fieldLeft +
           fieldWidth * static_cast<double>(section) /
               static_cast<double>(std::max<size_t>(times.size(), 2) - 1);
  }

  double y(int64_t address) const {
    return fieldTop + fieldHeight * (1 - static_cast<double>(address) /
                                             static_cast<double>(top));
  }

  void drawFrame(StringRef title);
  void drawTimes();
  void drawBuffer(size_t i);
  void drawLive();
  void drawLevel(const char *kind, StringRef text, int64_t address,
                 double textY);
  void drawText(double x, double y, const char *kind, const Twine &text) {
    os << format("<text x=\"%.2f\" y=\"%.2f\" class=\"%s\">", x, y, kind)
       << text << "</text>\n";
  }

  raw_ostream &os;
  const solver::CsvTable &table;
  const solver::Solution &solution;
  std::vector<solver::LivePoint> profile;
  /// Where sections begin and end.
  std::vector<int64_t> times;
  /// The address at the upper edge.
  int64_t top = 1;
};

} // namespace

void Drawing::drawFrame(StringRef title) {
  os << format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
               "%.0f\">\n",
               fieldLeft + fieldWidth + 30, fieldTop + fieldHeight + 90)
     << styleSheet;
  drawText(fieldLeft, 25, "start",
           Twine(escapeXml(title)) + ": " + Twine(table.rows.size()) +
               " buffers, height " + Twine(solution.height) + ", " +
               solver::toString(solution.status));
  os << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
               "class=\"field\"/>\n",
               fieldLeft, fieldTop, fieldWidth, fieldHeight);
  for (int64_t quarter : {0, 1, 2, 3, 4}) {
    // Without a product, which might not fit.
    int64_t address = quarter == 4 ? top : top / 4 * quarter;
    drawText(fieldLeft - 6, y(address) + 4, "end", Twine(address));
  }
  drawText(12, fieldTop - 12, "start", "address in bytes");
}

void Drawing::drawTimes() {
  constexpr size_t maxLabels = 12;
  size_t stride = times.size() / maxLabels + 1;
  for (size_t i = 0; i < times.size(); i += stride)
    drawText(x(times[i]), fieldTop + fieldHeight + 16, "middle",
             Twine(times[i]));
  drawText(fieldLeft, fieldTop + fieldHeight + 34, "start",
           "time, in sections of equal width from one start or end of a "
           "buffer to the next");
}

void Drawing::drawBuffer(size_t i) {
  const solver::Buffer &buffer = table.problem.buffers[i];
  const solver::CsvRow &row = table.rows[table.rowOfBuffer[i]];
  int64_t offset = solution.offsets[i];
  double left = x(buffer.lower), width = x(buffer.upper) - left;
  double upper = y(offset + buffer.size), height = y(offset) - upper;
  std::string name = escapeXml(StringRef(row.id.data(), row.id.size()));
  os << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
               "class=\"c%d\">",
               left, upper, width, height,
               static_cast<int>(table.rowOfBuffer[i] % numColors))
     << "<title>" << name << "\nsize " << buffer.size << "\nlifetime ["
     << buffer.lower << ", " << buffer.upper << ")\noffset " << offset
     << "</title></rect>\n";
  // Six pixels a letter.
  if (height >= 12 && width >= 6.0 * static_cast<double>(row.id.size()) + 4)
    drawText(left + width / 2, upper + height / 2 + 4, "middle name", name);
}

void Drawing::drawLive() {
  os << "<polyline class=\"live\" points=\"";
  double last = y(0);
  for (const solver::LivePoint &point : profile) {
    os << format("%.2f,%.2f ", x(point.time), last);
    last = y(point.bytes);
    os << format("%.2f,%.2f ", x(point.time), last);
  }
  os << "\"/>\n";
}

void Drawing::drawLevel(const char *kind, StringRef text, int64_t address,
                        double textY) {
  os << format("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
               "class=\"%s\"/>\n",
               fieldLeft, y(address), fieldLeft + fieldWidth, y(address), kind);
  os << format("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
               "class=\"%s\"/>\n",
               fieldLeft, textY - 4, fieldLeft + 40, textY - 4, kind);
  drawText(fieldLeft + 48, textY, "start", text + " " + Twine(address));
}

void Drawing::draw(StringRef title) {
  drawFrame(title);
  drawTimes();
  for (size_t i = 0; i < table.problem.buffers.size(); ++i)
    if (isVisible(table.problem.buffers[i]))
      drawBuffer(i);
  drawLive();
  double legend = fieldTop + fieldHeight + 54;
  drawText(fieldLeft + 300, legend, "start", "black curve: live bytes");
  drawLevel("bound", "lower bound", solution.lowerBound, legend);
  if (table.problem.capacity)
    drawLevel("capacity", "capacity", *table.problem.capacity, legend + 20);
  os << "</svg>\n";
}

void writeSvg(raw_ostream &os, StringRef title, const solver::CsvTable &table,
              const solver::Solution &solution) {
  Drawing(os, table, solution).draw(title);
}

} // namespace memplan
