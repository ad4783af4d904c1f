//===- CsvScanner.h - Fields and numbers of untrusted text ------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_CSVSCANNER_H
#define MEMPLAN_LIB_SOLVER_CSVSCANNER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memplan::solver {

/// Without spaces and tabs at either end.
std::string_view trim(std::string_view text);

/// Splits at commas and trims each field.
void splitFields(std::string_view line, std::vector<std::string_view> &fields);

/// In quotes for a message: at most 40 characters; control characters and what
/// is not UTF-8 as \xHH.
std::string quote(std::string_view text);

/// A decimal number without sign or with `-`; nullopt for anything else, and
/// then what is wrong in `fault`.
std::optional<int64_t> scanInteger(std::string_view text, std::string &fault);

/// Takes a number from the front of the text.
std::optional<int64_t> takeInteger(std::string_view &text);

/// Takes one character from the front of the text if it is there.
bool takeCharacter(std::string_view &text, char character);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_CSVSCANNER_H
