//===- CsvGaps.h - The column `gaps` ----------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_CSVGAPS_H
#define MEMPLAN_LIB_SOLVER_CSVGAPS_H

#include "memplan/Solver/Problem.h"

#include <string_view>

namespace memplan::solver {

/// Bytes [begin, end) of a buffer, in use during [lower, upper).
struct CsvPart {
  int64_t lower;
  int64_t upper;
  int64_t begin;
  int64_t end;
};

/// Reads gaps `lo-hi` and `lo-hi@begin:end`, separated by spaces, and cuts the
/// buffer into what remains of it, in the order of time. During a gap only the
/// bytes of its window are in use, or none. No parts if no gap has any length.
/// Returns what is wrong, or an empty string.
std::string splitAtGaps(std::string_view text, bool isEndInclusive,
                        const Buffer &buffer, std::vector<CsvPart> &parts);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_CSVGAPS_H
