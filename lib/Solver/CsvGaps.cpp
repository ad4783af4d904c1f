//===- CsvGaps.cpp - The column `gaps` ------------------------------------===//

#include "CsvGaps.h"

#include "CsvScanner.h"
#include "memplan/Support/CheckedMath.h"

#include <algorithm>

namespace memplan::solver {

namespace {

/// A gap as it stands in the file; its window is the part.
struct Gap {
  CsvPart part;
  std::string_view text;
};

} // namespace

static std::string readGap(std::string_view text, bool isEndInclusive,
                           const Buffer &buffer, Gap &gap) {
  std::string_view rest = text;
  auto lower = takeInteger(rest);
  auto upper =
      lower && takeCharacter(rest, '-') ? takeInteger(rest) : std::nullopt;
  std::optional<int64_t> begin = 0, end = 0;
  if (upper && takeCharacter(rest, '@')) {
    begin = takeInteger(rest);
    end = begin && takeCharacter(rest, ':') ? takeInteger(rest) : std::nullopt;
  }
  if (!upper || !begin || !end || !rest.empty())
    return quote(text) + " is not a gap; expected lo-hi or lo-hi@begin:end";
  if (isEndInclusive)
    upper = checkedAdd(*upper, 1);
  if (!upper || *lower > *upper || *lower < buffer.lower ||
      *upper > buffer.upper)
    return "gap " + quote(text) + " is not an interval in the lifetime";
  if (*begin < 0 || *begin > *end || *end > buffer.size)
    return "the window of gap " + quote(text) +
           " is not a range of the buffer's bytes";
  gap = {{*lower, *upper, *begin, *end}, text};
  return "";
}

std::string splitAtGaps(std::string_view text, bool isEndInclusive,
                        const Buffer &buffer, std::vector<CsvPart> &parts) {
  std::vector<Gap> gaps;
  for (text = trim(text); !text.empty(); text = trim(text)) {
    std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    Gap gap;
    if (std::string what = readGap(word, isEndInclusive, buffer, gap);
        !what.empty())
      return what;
    if (gap.part.lower < gap.part.upper)
      gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap &a, const Gap &b) {
    return a.part.lower < b.part.lower;
  });
  int64_t now = buffer.lower;
  const Gap *previous = nullptr;
  for (const Gap &gap : gaps) {
    if (gap.part.lower < now)
      return "gaps " + quote(previous->text) + " and " + quote(gap.text) +
             " overlap";
    if (now < gap.part.lower)
      parts.push_back({now, gap.part.lower, 0, buffer.size});
    // An empty window is a part without bytes, which says at least that the
    // row has gaps.
    parts.push_back(gap.part);
    now = gap.part.upper;
    previous = &gap;
  }
  if (!gaps.empty() && now < buffer.upper)
    parts.push_back({now, buffer.upper, 0, buffer.size});
  return "";
}

} // namespace memplan::solver
