//===- Svg.h - A drawing of a placement -------------------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANSOLVE_SVG_H
#define MEMPLAN_TOOLS_MEMPLANSOLVE_SVG_H

#include "memplan/Solver/Csv.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// Draws the buffers: addresses upwards, time to the right. Time goes by
/// sections (from one start or end of a buffer to the next), all of one width,
/// since real lifetimes are mostly too uneven to be seen. Every rectangle says
/// what it is under the pointer; lines show the bytes that live, the lower
/// bound and the capacity.
void writeSvg(llvm::raw_ostream &os, llvm::StringRef title,
              const solver::CsvTable &table, const solver::Solution &solution);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANSOLVE_SVG_H
