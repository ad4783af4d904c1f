//===- ByteSize.cpp - Sizes as people write them --------------------------===//

#include "ByteSize.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace memplan {

/// 0 for what is no unit.
static int64_t unitOf(StringRef text) {
  return StringSwitch<int64_t>(text.lower())
      .Cases({"", "b"}, 1)
      .Case("kib", int64_t(1) << 10)
      .Case("mib", int64_t(1) << 20)
      .Case("gib", int64_t(1) << 30)
      .Case("tib", int64_t(1) << 40)
      .Case("kb", 1000)
      .Case("mb", 1000 * 1000)
      .Case("gb", 1000 * 1000 * 1000)
      .Case("tb", int64_t(1000) * 1000 * 1000 * 1000)
      .Default(0);
}

std::optional<int64_t> parseByteSize(StringRef text) {
  StringRef number =
      text.take_while([](char c) { return isDigit(c) || c == '.'; });
  int64_t unit = unitOf(text.drop_front(number.size()).trim());
  auto [whole, fraction] = number.split('.');
  int64_t bytes;
  if (!unit || whole.getAsInteger(10, bytes) || number.ends_with(".") ||
      number.count('.') > 1 || __builtin_mul_overflow(bytes, unit, &bytes))
    return std::nullopt;
  // Digits beyond the ninth are less than a byte of a GB, and few care.
  int64_t part = 0, scale = 1;
  for (char digit : fraction.take_front(9))
    part = part * 10 + (digit - '0'), scale *= 10;
  __int128 rest = static_cast<__int128>(part) * unit / scale;
  if (__builtin_add_overflow(bytes, static_cast<int64_t>(rest), &bytes))
    return std::nullopt;
  return bytes;
}

std::string describeBytes(int64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes";
  raw_string_ostream os(text);
  double size = static_cast<double>(bytes);
  for (const char *unit : {"KiB", "MiB", "GiB", "TiB"}) {
    size /= 1024;
    if (size >= 1 && (size < 1024 || unit[0] == 'T')) {
      os << " (" << format("%.1f ", size) << unit << ")";
      break;
    }
  }
  return text;
}

} // namespace memplan
