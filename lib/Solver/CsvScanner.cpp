//===- CsvScanner.cpp - Fields and numbers of untrusted text --------------===//

#include "CsvScanner.h"

#include <algorithm>
#include <charconv>

namespace memplan::solver {

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

void splitFields(std::string_view line, std::vector<std::string_view> &fields) {
  fields.clear();
  size_t begin = 0;
  for (size_t comma; (comma = line.find(',', begin)) != std::string_view::npos;
       begin = comma + 1)
    fields.push_back(trim(line.substr(begin, comma - begin)));
  fields.push_back(trim(line.substr(begin)));
}

/// Of the character at the front: 1 to 4 if it is UTF-8 (overlong forms are
/// not told apart), else 0.
static size_t characterLength(std::string_view text) {
  auto byte = static_cast<unsigned char>(text.front());
  size_t length = byte < 0x80                   ? 1
                  : byte >= 0xc2 && byte < 0xe0 ? 2
                  : byte >= 0xe0 && byte < 0xf0 ? 3
                  : byte >= 0xf0 && byte < 0xf5 ? 4
                                                : 0;
  if (length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
      return 0;
  return length;
}

std::string quote(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr size_t maxLength = 40;
  std::string quoted = "'";
  size_t count = 0;
  for (; !text.empty() && count < maxLength; ++count) {
    auto byte = static_cast<unsigned char>(text.front());
    size_t length = characterLength(text);
    if (length == 0 || byte < 0x20 || byte == 0x7f)
      quoted += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    else
      quoted += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return quoted + (text.empty() ? "'" : "...'");
}

static std::from_chars_result parse(std::string_view text, int64_t &value) {
  const char *begin = text.data();
  return std::from_chars(begin, begin + text.size(), value);
}

std::optional<int64_t> scanInteger(std::string_view text, std::string &fault) {
  int64_t value = 0;
  auto [rest, code] = parse(text, value);
  bool isNumber = rest == text.data() + text.size();
  if (code == std::errc() && isNumber)
    return value;
  fault = quote(text) + (code == std::errc::result_out_of_range && isNumber
                             ? " does not fit 64 bits"
                             : " is not a whole number");
  return std::nullopt;
}

std::optional<int64_t> takeInteger(std::string_view &text) {
  int64_t value = 0;
  auto [rest, code] = parse(text, value);
  if (code != std::errc())
    return std::nullopt;
  text.remove_prefix(rest - text.data());
  return value;
}

bool takeCharacter(std::string_view &text, char character) {
  if (text.empty() || text.front() != character)
    return false;
  text.remove_prefix(1);
  return true;
}

} // namespace memplan::solver
