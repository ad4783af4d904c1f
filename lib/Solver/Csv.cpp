//===- Csv.cpp - Problems and placements as tables ------------------------===//

#include "memplan/Solver/Csv.h"

#include "CsvGaps.h"
#include "CsvScanner.h"
#include "memplan/Support/CheckedMath.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace memplan::solver {

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

namespace {

struct ColumnName {
  std::string_view name;
  CsvColumn column;
};

} // namespace

static constexpr ColumnName columnNames[] = {
    {"id", CsvColumn::Id},        {"buffer", CsvColumn::Id},
    {"buffer_id", CsvColumn::Id}, {"lower", CsvColumn::Lower},
    {"start", CsvColumn::Lower},  {"begin", CsvColumn::Lower},
    {"upper", CsvColumn::Upper},  {"end", CsvColumn::Upper},
    {"size", CsvColumn::Size},    {"alignment", CsvColumn::Alignment},
    {"hint", CsvColumn::Hint},    {"gaps", CsvColumn::Gaps},
    {"group", CsvColumn::Group},  {"group_offset", CsvColumn::GroupOffset},
    {"offset", CsvColumn::Offset}};

/// The names of one column, or of all: "'lower', 'start' or 'begin'".
static std::string listNames(std::optional<CsvColumn> column) {
  std::vector<std::string_view> names;
  for (const ColumnName &known : columnNames)
    if (!column || known.column == *column)
      names.push_back(known.name);
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      list += i + 1 == names.size() ? (column ? " or " : " and ") : ", ";
    list += "'" + std::string(names[i]) + "'";
  }
  return list;
}

namespace {

class CsvReader {
public:
  CsvReader(CsvTable &table, OffsetColumn offsets)
      : table(table), offsets(offsets) {}

  /// Returns what is wrong, or an empty string.
  std::string run();

private:
  std::string readHeader(std::string_view line);
  std::string readRow(std::string_view line);
  std::string readNumbers(CsvRow &row, Buffer &buffer);
  std::string readGroup(Buffer &buffer);
  std::string addBuffers(const Buffer &buffer);

  std::string_view field(CsvColumn column) const {
    return table.has(column)
               ? fields[table.positions[static_cast<size_t>(column)]]
               : std::string_view();
  }

  /// The number in a column, nullopt if the field is empty or there is no such
  /// column; anything else is noted in `fault` unless there is one already.
  std::optional<int64_t> number(CsvColumn column);
  int64_t requiredNumber(CsvColumn column);
  void blame(CsvColumn column, const std::string &what);

  std::string atLine(const std::string &what) const {
    return "line " + std::to_string(lineNumber) + ": " + what;
  }

  CsvTable &table;
  OffsetColumn offsets;
  int64_t lineNumber = 0;
  std::vector<std::string_view> fields;
  size_t numColumns = 0;
  bool isEndInclusive = false;
  std::string fault;
  std::unordered_map<std::string_view, int64_t> linesOfIds;
  std::unordered_map<std::string_view, int64_t> groupIds;
  int64_t numGroups = 0;
};

} // namespace

std::string CsvReader::readHeader(std::string_view line) {
  splitFields(line, fields);
  numColumns = fields.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    auto known = std::find_if(
        std::begin(columnNames), std::end(columnNames),
        [&](const ColumnName &entry) { return entry.name == fields[i]; });
    if (known == std::end(columnNames))
      return atLine("unknown column " + quote(fields[i]) +
                    " in the header; known are " + listNames(std::nullopt));
    auto column = static_cast<size_t>(known->column);
    if (!table.names[column].empty())
      return atLine("columns " + quote(table.names[column]) + " and " +
                    quote(fields[i]) + " in the header are the same");
    table.names[column] = fields[i];
    table.positions[column] = i;
  }
  for (CsvColumn column :
       {CsvColumn::Id, CsvColumn::Lower, CsvColumn::Upper, CsvColumn::Size})
    if (!table.has(column))
      return atLine("the header has no column " + listNames(column));
  isEndInclusive = table.names[static_cast<size_t>(CsvColumn::Upper)] == "end";
  return "";
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void CsvReader::blame(CsvColumn column, const std::string &what) {
  if (fault.empty())
    fault = atLine("column " + quote(table.names[static_cast<size_t>(column)]) +
                   ": " + what);
}

std::optional<int64_t> CsvReader::number(CsvColumn column) {
  std::string_view text = field(column);
  if (text.empty())
    return std::nullopt;
  std::string what;
  auto value = scanInteger(text, what);
  if (!value)
    blame(column, what);
  return value;
}

int64_t CsvReader::requiredNumber(CsvColumn column) {
  if (field(column).empty())
    blame(column, "expected a whole number, found nothing");
  return number(column).value_or(0);
}

std::string CsvReader::readNumbers(CsvRow &row, Buffer &buffer) {
  buffer.lower = requiredNumber(CsvColumn::Lower);
  buffer.upper = requiredNumber(CsvColumn::Upper);
  if (isEndInclusive) {
    auto upper = checkedAdd(buffer.upper, 1);
    if (!upper)
      blame(CsvColumn::Upper, quote(field(CsvColumn::Upper)) +
                                  " is inclusive, and the point after it does "
                                  "not fit 64 bits");
    buffer.upper = upper.value_or(buffer.lower);
  }
  if (buffer.upper < buffer.lower)
    blame(CsvColumn::Upper,
          "the lifetime ends at " + std::string(field(CsvColumn::Upper)) +
              ", before it starts at " + std::to_string(buffer.lower));
  buffer.size = requiredNumber(CsvColumn::Size);
  if (buffer.size < 0)
    blame(CsvColumn::Size, "negative size " + std::to_string(buffer.size));
  buffer.alignment = number(CsvColumn::Alignment).value_or(1);
  if (buffer.alignment < 1)
    blame(CsvColumn::Alignment,
          "expected at least 1, found " + std::to_string(buffer.alignment));
  buffer.preferredOffset = number(CsvColumn::Hint);
  if (buffer.preferredOffset && *buffer.preferredOffset < 0)
    buffer.preferredOffset.reset();
  row.offset = number(CsvColumn::Offset);
  if (row.offset == -1)
    row.offset.reset();
  if (row.offset && *row.offset < 0)
    blame(CsvColumn::Offset, "negative offset " + std::to_string(*row.offset) +
                                 "; -1 or nothing says that it is free");
  if (offsets == OffsetColumn::Fixed)
    buffer.fixedOffset = row.offset;
  return fault;
}

std::string CsvReader::readGroup(Buffer &buffer) {
  std::string_view group = field(CsvColumn::Group);
  auto offset = number(CsvColumn::GroupOffset);
  if (offset && group.empty())
    blame(CsvColumn::GroupOffset, "a group offset without a group");
  if (offset && *offset < 0)
    blame(CsvColumn::GroupOffset,
          "negative group offset " + std::to_string(*offset));
  if (!group.empty()) {
    auto [entry, isNew] = groupIds.emplace(group, numGroups);
    numGroups += isNew;
    buffer.group = GroupMember{entry->second, offset.value_or(0)};
  }
  return fault;
}

/// One buffer, or the row's frame and its parts (see `CsvTable`). The parts'
/// alignments follow from the frame's; they are stated as far as they are
/// divisors of it, since bounds are made from them.
std::string CsvReader::addBuffers(const Buffer &buffer) {
  std::vector<Buffer> &all = table.problem.buffers;
  std::vector<CsvPart> parts;
  if (!field(CsvColumn::Gaps).empty()) {
    if (std::string what =
            splitAtGaps(field(CsvColumn::Gaps), isEndInclusive, buffer, parts);
        !what.empty()) {
      blame(CsvColumn::Gaps, what);
      return fault;
    }
  }
  if (parts.empty()) {
    all.push_back(buffer);
    table.rowOfBuffer.push_back(table.rows.size());
    return "";
  }
  Buffer frame = buffer;
  frame.upper = frame.lower;
  if (!frame.group)
    frame.group = GroupMember{numGroups++, 0};
  all.push_back(frame);
  for (const CsvPart &part : parts) {
    Buffer piece;
    piece.lower = part.lower;
    piece.upper = part.upper;
    piece.size = part.end - part.begin;
    piece.alignment = std::gcd(frame.alignment, part.begin);
    auto offset = checkedAdd(frame.group->offset, part.begin);
    if (!offset) {
      blame(CsvColumn::GroupOffset, "the parts' offsets do not fit 63 bits");
      return fault;
    }
    piece.group = GroupMember{frame.group->id, *offset};
    all.push_back(piece);
  }
  table.rowOfBuffer.resize(all.size(), table.rows.size());
  return "";
}

std::string CsvReader::readRow(std::string_view line) {
  splitFields(line, fields);
  if (fields.size() != numColumns)
    return atLine(std::to_string(fields.size()) + " fields, but the header " +
                  "has " + std::to_string(numColumns));
  CsvRow row;
  row.id = field(CsvColumn::Id);
  row.text = line;
  row.line = lineNumber;
  row.firstBuffer = table.problem.buffers.size();
  if (row.id.empty())
    blame(CsvColumn::Id, "the id is empty");
  auto [other, isNew] = linesOfIds.emplace(row.id, lineNumber);
  if (!isNew)
    blame(CsvColumn::Id, quote(row.id) + " is the id of line " +
                             std::to_string(other->second) + " already");
  Buffer buffer;
  if (!readNumbers(row, buffer).empty() || !readGroup(buffer).empty() ||
      !addBuffers(buffer).empty())
    return fault;
  table.rows.push_back(row);
  return "";
}

std::string CsvReader::run() {
  std::string_view text = *table.text;
  // Some editors begin files with a byte order mark.
  if (constexpr std::string_view mark = "\xef\xbb\xbf";
      text.substr(0, mark.size()) == mark)
    text.remove_prefix(mark.size());
  linesOfIds.reserve(std::count(text.begin(), text.end(), '\n'));
  bool hasHeader = false;
  while (!text.empty()) {
    ++lineNumber;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (trim(line).empty())
      continue;
    for (char c : line)
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t')
        return atLine("control characters in " + quote(line));
    if (line.find('"') != std::string_view::npos)
      return atLine("quoted fields are not supported");
    std::string what = hasHeader ? readRow(line) : readHeader(line);
    if (!what.empty())
      return what;
    hasHeader = true;
  }
  if (!hasHeader)
    return "line 1: the file is empty, expected a header";
  return checkProblem(table.problem,
                      [&](size_t buffer) { return table.nameOf(buffer); });
}

std::string CsvTable::nameOf(size_t buffer) const {
  const CsvRow &row = rows[rowOfBuffer[buffer]];
  return "buffer " + quote(row.id) + " (line " + std::to_string(row.line) + ")";
}

CsvOutcome readCsv(std::string text, OffsetColumn offsets) {
  CsvTable table;
  table.text = std::make_unique<const std::string>(std::move(text));
  std::string error = CsvReader(table, offsets).run();
  if (!error.empty())
    return {std::nullopt, error};
  return {std::move(table), ""};
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

CsvPlacement placementOf(const CsvTable &table) {
  const std::vector<Buffer> &buffers = table.problem.buffers;
  CsvPlacement placement;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const CsvRow &row = table.rows[table.rowOfBuffer[i]];
    if (!row.offset)
      return {{}, table.nameOf(i) + " has no offset"};
    int64_t distance =
        i == row.firstBuffer
            ? 0
            : buffers[i].group->offset - buffers[row.firstBuffer].group->offset;
    // A sum that does not fit is found by the checker at the row's frame.
    placement.offsets.push_back(
        checkedAdd(*row.offset, distance).value_or(INT64_MAX));
  }
  return placement;
}

std::string writeCsv(const CsvTable &table,
                     const std::vector<int64_t> &offsets) {
  std::string text;
  std::vector<std::string_view> fields;
  constexpr auto last = static_cast<size_t>(CsvColumn::Offset);
  for (size_t column = 0; column < last; ++column)
    if (!table.names[column].empty())
      text += std::string(table.names[column]) + ",";
  text += "offset\n";
  for (const CsvRow &row : table.rows) {
    splitFields(row.text, fields);
    for (size_t column = 0; column < last; ++column)
      if (!table.names[column].empty())
        text.append(fields[table.positions[column]]).append(",");
    text += std::to_string(offsets[row.firstBuffer]) + "\n";
  }
  return text;
}

} // namespace memplan::solver
