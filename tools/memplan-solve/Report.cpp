//===- Report.cpp - What memplan-solve says about a run -------------------===//

#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace memplan {

static bool hasPlacement(const Report &report) {
  return report.solution.offsets.size() == report.table.problem.buffers.size();
}

void printJson(raw_ostream &os, const Report &report) {
  json::OStream json(os);
  json.object([&] {
    json.attribute("file", json::fixUTF8(report.file));
    json.attribute("buffers", static_cast<int64_t>(report.table.rows.size()));
    json.attribute("lower_bound", report.solution.lowerBound);
    json.attribute("height", hasPlacement(report)
                                 ? json::Value(report.solution.height)
                                 : json::Value(nullptr));
    json.attribute("capacity", report.table.problem.capacity
                                   ? json::Value(*report.table.problem.capacity)
                                   : json::Value(nullptr));
    json.attribute("status", solver::toString(report.solution.status));
    json.attributeBegin("seconds");
    json.rawValue(
        [&](raw_ostream &os) { os << format("%.6f", report.seconds); });
    json.attributeEnd();
    json.attribute("steps", report.solution.steps);
  });
  os << "\n";
}

void printJsonError(raw_ostream &os, StringRef file, StringRef error) {
  json::OStream json(os);
  json.object([&] {
    json.attribute("file", json::fixUTF8(file));
    json.attribute("error", json::fixUTF8(error));
  });
  os << "\n";
}

void printSummary(raw_ostream &os, const Report &report) {
  const solver::Solution &solution = report.solution;
  os << report.file << ": " << report.table.rows.size() << " buffers, ";
  if (hasPlacement(report))
    os << "height " << solution.height;
  else
    os << "no placement";
  os << ", lower bound " << solution.lowerBound;
  if (hasPlacement(report) && solution.lowerBound > 0)
    os << format(" (+%.2f %%)", 100.0 *
                                    (static_cast<double>(solution.height) -
                                     static_cast<double>(solution.lowerBound)) /
                                    static_cast<double>(solution.lowerBound));
  if (report.table.problem.capacity)
    os << ", capacity " << *report.table.problem.capacity;
  os << ": " << solver::toString(solution.status)
     << format(", %.3f s, ", report.seconds) << solution.steps << " steps\n";
}

} // namespace memplan
