//===- ByteSize.h - Sizes as people write them ------------------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_MEMPLANOPT_BYTESIZE_H
#define MEMPLAN_TOOLS_MEMPLANOPT_BYTESIZE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace memplan {

/// What parseByteSize takes, for messages.
inline constexpr llvm::StringLiteral kByteSizeForms =
    "a number of bytes, or one with a unit: KiB, MiB, GiB, TiB (powers of "
    "1024), kB, MB, GB, TB (powers of 1000), as in 8GiB or 1.5GB";

/// "8GiB", "1.5 GB", "4096", "512B" to bytes, the fraction rounded down; units
/// in any case. None if it is something else, negative or not under 2^63.
std::optional<int64_t> parseByteSize(llvm::StringRef text);

/// "8589934592 bytes (8.0 GiB)"; without the second form under 1 KiB.
std::string describeBytes(int64_t bytes);

} // namespace memplan

#endif // MEMPLAN_TOOLS_MEMPLANOPT_BYTESIZE_H
