//===- CheckedMath.h - Overflow-checked sizes -------------------*- C++ -*-===//
//
// Every size, offset and element count of the project is an int64_t that went
// through these helpers: a result that does not fit is std::nullopt, never a
// wrapped number. Depends on the C++ standard library alone.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_SUPPORT_CHECKEDMATH_H
#define MEMPLAN_SUPPORT_CHECKEDMATH_H

#include <cstdint>
#include <optional>

namespace memplan {

/// a + b, or nullopt when it does not fit int64_t.
inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// a * b, or nullopt when it does not fit int64_t.
inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// The smallest multiple of `alignment` (> 0) that is at least `value` (>= 0),
/// or nullopt when it does not fit int64_t.
inline std::optional<int64_t> checkedAlignTo(int64_t value, int64_t alignment) {
  auto raised = checkedAdd(value, alignment - 1);
  if (!raised)
    return std::nullopt;
  return *raised / alignment * alignment;
}

/// The product of a range of extents (the number of elements of a shape).
/// Overflow is reported even when another factor is 0, so that a shape such as
/// [2^62, 4, 0] is refused instead of hidden. Negative extents give nullopt.
template <typename Range>
std::optional<int64_t> checkedProduct(const Range &extents) {
  int64_t product = 1;
  bool hasZero = false;
  for (int64_t extent : extents) {
    if (extent < 0)
      return std::nullopt;
    if (extent == 0) {
      hasZero = true;
      continue;
    }
    auto next = checkedMul(product, extent);
    if (!next)
      return std::nullopt;
    product = *next;
  }
  return hasZero ? 0 : product;
}

} // namespace memplan

#endif // MEMPLAN_SUPPORT_CHECKEDMATH_H
