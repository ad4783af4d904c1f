//===- Csv.h - Problems and placements as tables ----------------*- C++ -*-===//
//
// The format of docs/MemplanSolve.md, which contains that of MiniMalloc.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_SOLVER_CSV_H
#define MEMPLAN_SOLVER_CSV_H

#include "memplan/Solver/Problem.h"

#include <memory>
#include <string_view>

namespace memplan::solver {

/// One line of the table.
struct CsvRow {
  std::string_view id;
  /// The whole line, without its end.
  std::string_view text;
  /// From 1, as editors count.
  int64_t line = 0;
  /// What the column `offset` says.
  std::optional<int64_t> offset;
  /// The buffer whose offset is the row's.
  size_t firstBuffer = 0;
};

/// What a column holds. The order is the one in which they are written.
enum class CsvColumn : unsigned {
  Id,
  Lower,
  Upper,
  Size,
  Alignment,
  Hint,
  Gaps,
  Group,
  GroupOffset,
  Offset
};
constexpr size_t numCsvColumns = static_cast<size_t>(CsvColumn::Offset) + 1;

/// A file's rows and the problem that they state.
///
/// A row without gaps is one buffer. A row with gaps is a rigid group: first a
/// buffer of the row's whole size and an empty lifetime, which carries the
/// row's offsets and alignment, then one buffer for each stretch of time in
/// which the row takes the same bytes.
struct CsvTable {
  Problem problem;
  std::vector<CsvRow> rows;
  /// For each buffer, its row.
  std::vector<size_t> rowOfBuffer;
  /// How the header spells each column, and where it stands in a line; empty
  /// where the file has no such column.
  std::string_view names[numCsvColumns];
  size_t positions[numCsvColumns] = {};
  /// What the views above look into.
  std::unique_ptr<const std::string> text;

  bool has(CsvColumn column) const {
    return !names[static_cast<size_t>(column)].empty();
  }

  /// For messages: "buffer 'conv1' (line 7)".
  std::string nameOf(size_t buffer) const;
};

/// What the column `offset` means.
enum class OffsetColumn {
  /// An offset that the solver must keep (`Buffer::fixedOffset`).
  Fixed,
  /// A placement to be checked; the problem has no fixed offsets.
  Placement
};

/// A table or what is wrong with the file, with line and column.
struct CsvOutcome {
  std::optional<CsvTable> table;
  std::string error;

  explicit operator bool() const { return table.has_value(); }
};

/// Reads a file; every problem that comes back has passed `checkProblem`.
CsvOutcome readCsv(std::string text, OffsetColumn offsets);

/// The placement that the column `offset` states: an offset for each buffer of
/// the problem, or, in `error`, which row has none.
struct CsvPlacement {
  std::vector<int64_t> offsets;
  std::string error;
};
CsvPlacement placementOf(const CsvTable &table);

/// The same table, columns in the order of `CsvColumn`, with the rows' offsets;
/// there must be one offset for each buffer.
std::string writeCsv(const CsvTable &table,
                     const std::vector<int64_t> &offsets);

} // namespace memplan::solver

#endif // MEMPLAN_SOLVER_CSV_H
