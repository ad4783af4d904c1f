//===- CsvTest.cpp - Tables in, tables out --------------------------------===//

#include "memplan/Solver/Csv.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Instances.h"
#include "memplan/Support/SplitMix64.h"

#include "gtest/gtest.h"

using namespace memplan::solver;

namespace {

CsvTable read(std::string text, OffsetColumn offsets = OffsetColumn::Fixed) {
  CsvOutcome outcome = readCsv(std::move(text), offsets);
  EXPECT_EQ(outcome.error, "");
  return outcome ? std::move(*outcome.table) : CsvTable();
}

std::string errorOf(std::string text) {
  CsvOutcome outcome = readCsv(std::move(text), OffsetColumn::Fixed);
  EXPECT_FALSE(outcome);
  return outcome.error;
}

/// The fault of one line below a header with every column.
std::string rowError(const std::string &row) {
  return errorOf("id,lower,upper,size,alignment,hint,gaps,group,group_offset,"
                 "offset\n" +
                 row + "\n");
}

/// What a row is, in one line.
std::string show(const Buffer &buffer) {
  std::string text = "[" + std::to_string(buffer.lower) + "," +
                     std::to_string(buffer.upper) + ") " +
                     std::to_string(buffer.size);
  if (buffer.alignment != 1)
    text += " align " + std::to_string(buffer.alignment);
  if (buffer.fixedOffset)
    text += " fixed " + std::to_string(*buffer.fixedOffset);
  if (buffer.preferredOffset)
    text += " hint " + std::to_string(*buffer.preferredOffset);
  if (buffer.group)
    text += " group " + std::to_string(buffer.group->id) + "+" +
            std::to_string(buffer.group->offset);
  return text;
}

std::vector<std::string> show(const CsvTable &table) {
  std::vector<std::string> lines;
  for (const Buffer &buffer : table.problem.buffers)
    lines.push_back(show(buffer));
  return lines;
}

using Lines = std::vector<std::string>;

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

TEST(Csv, EachHeaderForm) {
  Lines want = {"[3,9) 4", "[0,21) 5"};
  EXPECT_EQ(show(read("id,lower,upper,size\nb1,3,9,4\nb2,0,21,5\n")), want);
  EXPECT_EQ(show(read("buffer,start,end,size\nb1,3,8,4\nb2,0,20,5\n")), want)
      << "the end is inclusive";
  EXPECT_EQ(show(read("size,buffer_id,upper,begin\n4,b1,9,3\n5,b2,21,0")), want)
      << "columns in any order, no newline at the end";
  EXPECT_EQ(show(read("id,start,upper,size\nb1,3,9,4\nb2,0,21,5\n")), want)
      << "only the name of the end decides";
}

TEST(Csv, IdsAreStrings) {
  CsvTable table = read("id,lower,upper,size\nconv 1/bias:0,0,1,2\n01,0,1,2\n"
                        "1,0,1,2\n\xc3\xbc,0,1,2\n");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].id, "conv 1/bias:0");
  EXPECT_EQ(table.rows[1].id, "01");
  EXPECT_EQ(table.rows[3].id, "\xc3\xbc");
  EXPECT_EQ(table.rows[3].line, 5);
  EXPECT_EQ(table.nameOf(0), "buffer 'conv 1/bias:0' (line 2)");
}

TEST(Csv, EveryColumn) {
  EXPECT_EQ(show(read("id,lower,upper,size,alignment,hint,group,group_offset,"
                      "offset\n"
                      "a,0,1,10,4,8,,,16\n"
                      "b,0,1,10,,,,,\n"
                      "c,0,1,10,1,-1,,,-1\n"
                      "d,0,1,10,2,-77,views,0,\n"
                      "e,0,1,10,2,,views,6,\n"
                      "f,0,1,10,,,other,,\n")),
            (Lines{"[0,1) 10 align 4 fixed 16 hint 8", "[0,1) 10", "[0,1) 10",
                   "[0,1) 10 align 2 group 0+0", "[0,1) 10 align 2 group 0+6",
                   "[0,1) 10 group 1+0"}));
}

TEST(Csv, WhatIsLegal) {
  EXPECT_EQ(show(read("id,lower,upper,size\n")), Lines()) << "no rows";
  EXPECT_EQ(show(read("id,lower,upper,size\na,-5,-2,0\nb,3,3,7\n")),
            (Lines{"[-5,-2) 0", "[3,3) 7"}))
      << "negative times, no bytes, no time";
  EXPECT_EQ(show(read("id,start,end,size\na,3,2,7\n")), (Lines{"[3,3) 7"}))
      << "no time, with an inclusive end";
  EXPECT_EQ(show(read("\xef\xbb\xbfid,lower,upper,size\r\n\r\na,0,1,2\r\n")),
            (Lines{"[0,1) 2"}))
      << "byte order mark, CRLF, blank lines";
  EXPECT_EQ(show(read("\n id , lower,\tupper,size \n\n a ,0, 1 ,2\n   \n")),
            (Lines{"[0,1) 2"}))
      << "spaces and tabs around fields";
  EXPECT_EQ(show(read("id,lower,upper,size\na,-9223372036854775808,"
                      "9223372036854775807,4611686018427387904\n")),
            (Lines{"[-9223372036854775808,9223372036854775807) "
                   "4611686018427387904"}))
      << "2^62 bytes";
}

//===----------------------------------------------------------------------===//
// Gaps
//===----------------------------------------------------------------------===//

TEST(Csv, GapsCutARow) {
  CsvTable table = read("id,lower,upper,size,alignment,hint,gaps,offset\n"
                        "a,0,10,8,4,20,2-4 6-7@2:6,16\n"
                        "b,0,10,3,1,,,\n");
  // The frame, then: whole, nothing, whole, bytes 2 to 5, whole. Multiples of 4
  // plus 2 are multiples of 2.
  EXPECT_EQ(show(table),
            (Lines{"[0,0) 8 align 4 fixed 16 hint 20 group 0+0",
                   "[0,2) 8 align 4 group 0+0", "[2,4) 0 align 4 group 0+0",
                   "[4,6) 8 align 4 group 0+0", "[6,7) 4 align 2 group 0+2",
                   "[7,10) 8 align 4 group 0+0", "[0,10) 3"}));
  EXPECT_EQ(table.rows[1].firstBuffer, 6u);
  EXPECT_EQ(table.rowOfBuffer, (std::vector<size_t>{0, 0, 0, 0, 0, 0, 1}));
}

TEST(Csv, GapsAtTheEdgesInAnyOrder) {
  EXPECT_EQ(show(read("id,lower,upper,size,gaps\na,0,10,8,8-10 0-3@0:8\n")),
            (Lines{"[0,0) 8 group 0+0", "[0,3) 8 group 0+0",
                   "[3,8) 8 group 0+0", "[8,10) 0 group 0+0"}));
  EXPECT_EQ(show(read("id,lower,upper,size,gaps\na,-9,-3,8,-8--5@1:2\n")),
            (Lines{"[-9,-9) 8 group 0+0", "[-9,-8) 8 group 0+0",
                   "[-8,-5) 1 group 0+1", "[-5,-3) 8 group 0+0"}))
      << "negative times";
  EXPECT_EQ(show(read("id,lower,upper,size,gaps\na,0,10,8,5-5\n")),
            (Lines{"[0,10) 8"}))
      << "a gap of no length is none";
}

TEST(Csv, GapsOfInclusiveEnds) {
  // 2 to 3 inclusive is [2, 4).
  EXPECT_EQ(show(read("id,start,end,size,gaps\na,0,9,8,2-3\n")),
            (Lines{"[0,0) 8 group 0+0", "[0,2) 8 group 0+0",
                   "[2,4) 0 group 0+0", "[4,10) 8 group 0+0"}));
}

TEST(Csv, GapsInAGroup) {
  EXPECT_EQ(
      show(read("id,lower,upper,size,gaps,group,group_offset\n"
                "a,0,4,8,1-2@4:5,g,100\nb,0,4,8,,g,\nc,0,4,8,0-4,,\n")),
      (Lines{"[0,0) 8 group 0+100", "[0,1) 8 group 0+100",
             "[1,2) 1 group 0+104", "[2,4) 8 group 0+100", "[0,4) 8 group 0+0",
             "[0,0) 8 group 1+0", "[0,4) 0 group 1+0"}));
}

TEST(Csv, MalformedGaps) {
  auto gapError = [](const std::string &gaps) {
    std::string prefix = "line 2: column 'gaps': ";
    std::string error = rowError("a,0,10,8,,," + gaps + ",,,");
    EXPECT_EQ(error.substr(0, prefix.size()), prefix);
    return error.substr(prefix.size());
  };
  for (const char *text :
       {"5", "5-", "-", "5-6@", "5-6@1", "5-6@1:", "5-6@:2", "a-b",
        "5-6@1:2@3:4", "5-6x", "5:6", "@1:2", "5-99999999999999999999"})
    EXPECT_EQ(gapError(text), "'" + std::string(text) +
                                  "' is not a gap; expected lo-hi or "
                                  "lo-hi@begin:end");
  for (const char *text : {"6-5", "-1-3", "8-11"})
    EXPECT_EQ(gapError(text), "gap '" + std::string(text) +
                                  "' is not an interval in the lifetime");
  for (const char *text : {"5-6@-1:3", "5-6@4:3", "5-6@4:9"})
    EXPECT_EQ(gapError(text), "the window of gap '" + std::string(text) +
                                  "' is not a range of the buffer's bytes");
  EXPECT_EQ(gapError("5-8 1-6@0:1"), "gaps '1-6@0:1' and '5-8' overlap");
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

TEST(Csv, FaultsOfTheFile) {
  EXPECT_EQ(errorOf(""), "line 1: the file is empty, expected a header");
  EXPECT_EQ(errorOf("\n \r\n"), "line 1: the file is empty, expected a header");
  EXPECT_EQ(errorOf("1,0,3,4\n"),
            "line 1: unknown column '1' in the header; known are 'id', "
            "'buffer', 'buffer_id', 'lower', 'start', 'begin', 'upper', 'end', "
            "'size', 'alignment', 'hint', 'gaps', 'group', 'group_offset' and "
            "'offset'");
  EXPECT_EQ(errorOf("\nid,lower,upper,size,colour\n").substr(0, 31),
            "line 2: unknown column 'colour'");
  EXPECT_EQ(errorOf("id,lower,upper,size,\n").substr(0, 25),
            "line 1: unknown column ''");
  EXPECT_EQ(errorOf("id,lower,upper,size,buffer\n"),
            "line 1: columns 'id' and 'buffer' in the header are the same");
  EXPECT_EQ(errorOf("id,lower,upper,end,size\n"),
            "line 1: columns 'upper' and 'end' in the header are the same");
  EXPECT_EQ(errorOf("id,size,size,lower\n"),
            "line 1: columns 'size' and 'size' in the header are the same");
  EXPECT_EQ(errorOf("lower,upper,size\n"),
            "line 1: the header has no column 'id', 'buffer' or 'buffer_id'");
  EXPECT_EQ(errorOf("id,lower,size\n"),
            "line 1: the header has no column 'upper' or 'end'");
  EXPECT_EQ(errorOf("id,lower,upper\n"),
            "line 1: the header has no column 'size'");
  EXPECT_EQ(errorOf(std::string("id,lower,upper,size\na\0b,0,1,2\n", 29)),
            "line 2: control characters in 'a\\x00b,0,1,2'");
  EXPECT_EQ(errorOf("id,lower,upper,size\na,0,1,2\rb,0,1,2\n"),
            "line 2: control characters in 'a,0,1,2\\x0db,0,1,2'");
  EXPECT_EQ(errorOf("\xff\xc3\xbc\xe2\x82,\n").substr(0, 39),
            "line 1: unknown column '\\xff\xc3\xbc\\xe2\\x82'")
      << "what is UTF-8 stays";
  EXPECT_EQ(errorOf("id,lower,upper,size\n\"a,b\",0,1,2\n"),
            "line 2: quoted fields are not supported");
}

TEST(Csv, FaultsOfALine) {
  const std::string header = "id,lower,upper,size\n\n";
  EXPECT_EQ(errorOf(header + "a,0,1\n"), "line 3: 3 fields, but the header "
                                         "has 4");
  EXPECT_EQ(errorOf(header + "a,0,1,2,\n"), "line 3: 5 fields, but the header "
                                            "has 4");
  EXPECT_EQ(errorOf(header + "# comment\n"), "line 3: 1 fields, but the header "
                                             "has 4");
  EXPECT_EQ(errorOf(header + ",0,1,2\n"),
            "line 3: column 'id': the id is empty");
  EXPECT_EQ(errorOf(header + "a,0,1,2\nb,0,1,2\na,5,6,7\n"),
            "line 5: column 'id': 'a' is the id of line 3 already");
  EXPECT_EQ(errorOf(header + "a,,1,2\n"),
            "line 3: column 'lower': expected a whole number, found nothing");
  for (const char *text : {"x", "1x", "0x10", "1.5", "+1", "1e3", "- 1", "--1"})
    EXPECT_EQ(errorOf(header + "a,0,1," + text + "\n"),
              "line 3: column 'size': '" + std::string(text) +
                  "' is not a whole number");
  EXPECT_EQ(errorOf(header + "a,0,1,9223372036854775808\n"),
            "line 3: column 'size': '9223372036854775808' does not fit 64 "
            "bits");
  EXPECT_EQ(errorOf(header + "a,0,1," + std::string(1000, 'z') + "\n"),
            "line 3: column 'size': '" + std::string(40, 'z') +
                "...' is not a whole number");
  EXPECT_EQ(errorOf(header + "a,0,1,-2\n"),
            "line 3: column 'size': negative size -2");
  EXPECT_EQ(errorOf(header + "a,5,4,2\n"),
            "line 3: column 'upper': the lifetime ends at 4, before it starts "
            "at 5");
  EXPECT_EQ(errorOf("id,start,end,size\na,5,3,2\n"),
            "line 2: column 'end': the lifetime ends at 3, before it starts at "
            "5");
  EXPECT_EQ(errorOf("id,start,end,size\na,5,9223372036854775807,2\n"),
            "line 2: column 'end': '9223372036854775807' is inclusive, and the "
            "point after it does not fit 64 bits");
}

TEST(Csv, FaultsOfOptionalColumns) {
  EXPECT_EQ(rowError("a,0,1,2,0,,,,,"),
            "line 2: column 'alignment': expected at least 1, found 0");
  EXPECT_EQ(rowError("a,0,1,2,-8,,,,,"),
            "line 2: column 'alignment': expected at least 1, found -8");
  EXPECT_EQ(rowError("a,0,1,2,,x,,,,"),
            "line 2: column 'hint': 'x' is not a whole number");
  EXPECT_EQ(rowError("a,0,1,2,,,,,3,"),
            "line 2: column 'group_offset': a group offset without a group");
  EXPECT_EQ(rowError("a,0,1,2,,,,g,-3,"),
            "line 2: column 'group_offset': negative group offset -3");
  EXPECT_EQ(rowError("a,0,1,2,,,,,,-2"),
            "line 2: column 'offset': negative offset -2; -1 or nothing says "
            "that it is free");
}

TEST(Csv, FaultsOfTheProblem) {
  EXPECT_EQ(rowError("a,0,1,2,16,,,,,8"),
            "buffer 'a' (line 2) is fixed at offset 8, expected a non-negative "
            "multiple of 16");
  EXPECT_EQ(rowError("a,0,1,2,8,,,g,0,\nb,0,1,2,8,,,g,4,"),
            "buffer 'b' (line 3) cannot be aligned to 8 while buffer 'a' (line "
            "2) in the same group is aligned to 8: their distance is 4");
  EXPECT_EQ(rowError("a,0,1,4611686018427387904,,,,,,\n"
                     "b,0,1,4611686018427387904,,,,,,"),
            "the sizes up to buffer 'b' (line 3) do not fit 63 bits");
  EXPECT_EQ(rowError("a,0,2,8,,,0-1@8:8,g,9223372036854775800,"),
            "line 2: column 'group_offset': the parts' offsets do not fit 63 "
            "bits");
}

TEST(Csv, RandomGarbageNeverTraps) {
  const std::string alphabet = "0123456789,,,,--::@ \n\r\tabx\"\xff";
  memplan::SplitMix64 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string text = "id,lower,upper,size,gaps,offset\n";
    if (random.chance(10))
      text.resize(random.below(static_cast<int64_t>(text.size())));
    for (int64_t i = random.below(60); i > 0; --i)
      text += alphabet[random.below(static_cast<int64_t>(alphabet.size()))];
    CsvOutcome outcome = readCsv(text, OffsetColumn::Fixed);
    EXPECT_NE(outcome.table.has_value(), !outcome.error.empty());
  }
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

TEST(Csv, RoundTrip) {
  CsvTable table = read("offset,size,end,start,buffer,hint\n"
                        ",4,2,0,b1,-1\n 7 ,4,8,3, b2 ,\r\n");
  EXPECT_EQ(writeCsv(table, {3, 7}), "buffer,start,end,size,hint,offset\n"
                                     "b1,0,2,4,-1,3\n"
                                     "b2,3,8,4,,7\n");
  // A row is one line, however many buffers it is.
  table = read("id,lower,upper,size,gaps\na,0,9,8,2-4@1:2\nb,0,1,2,\n");
  ASSERT_EQ(table.problem.buffers.size(), 5u);
  EXPECT_EQ(writeCsv(table, {10, 10, 11, 10, 0}),
            "id,lower,upper,size,gaps,offset\na,0,9,8,2-4@1:2,10\nb,0,1,2,,"
            "0\n");
  EXPECT_EQ(writeCsv(read("id,lower,upper,size\n"), {}),
            "id,lower,upper,size,offset\n");
}

TEST(Csv, ThePlacementOfAFile) {
  CsvTable table = read("id,lower,upper,size,gaps,offset\n"
                        "a,0,9,8,2-4@1:2,10\nb,0,1,2,,0\n",
                        OffsetColumn::Placement);
  EXPECT_FALSE(table.problem.buffers[0].fixedOffset);
  CsvPlacement placement = placementOf(table);
  EXPECT_EQ(placement.error, "");
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{10, 10, 11, 10, 0}));
  // Byte 11 alone is in use during [2, 4): the rest may hold another buffer.
  std::string text = "id,lower,upper,size,gaps,offset\na,0,9,8,2-4@1:2,10\n";
  auto faultOf = [&](const std::string &row) {
    CsvTable table = read(text + row, OffsetColumn::Placement);
    Solution solution;
    solution.offsets = placementOf(table).offsets;
    solution.height = 18;
    return checkSolution(table.problem, solution,
                         [&](size_t i) { return table.nameOf(i); });
  };
  EXPECT_EQ(faultOf("b,2,4,6,,12\n"), "");
  EXPECT_EQ(faultOf("b,2,4,6,,11\n"),
            "buffer 'b' (line 3) at 11 of size 6 in [2, 4) overlaps buffer 'a' "
            "(line 2) at 11 of size 1 in [2, 4)");
  EXPECT_EQ(faultOf("b,2,5,6,,12\n"),
            "buffer 'a' (line 2) at 10 of size 8 in [4, 9) overlaps buffer 'b' "
            "(line 3) at 12 of size 6 in [2, 5)");
}

TEST(Csv, APlacementNeedsAllOffsets) {
  EXPECT_EQ(placementOf(read("id,lower,upper,size,offset\na,0,1,2,0\nb,0,1,2,-1"
                             "\n",
                             OffsetColumn::Placement))
                .error,
            "buffer 'b' (line 3) has no offset");
  // Far too high, with parts that would be higher still.
  CsvTable table = read("id,lower,upper,size,gaps,offset\n"
                        "a,0,9,8,2-4@1:2,9223372036854775807\n",
                        OffsetColumn::Placement);
  Solution solution;
  solution.offsets = placementOf(table).offsets;
  EXPECT_EQ(checkSolution(table.problem, solution),
            "buffer 0 at 9223372036854775807 of size 8 in [0, 0) is not a "
            "range of bytes");
}

} // namespace
