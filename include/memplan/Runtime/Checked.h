//===- Checked.h - a plan's rules checked while it runs ---------*- C++ -*-===//
//
// A wrong plan often gives right numbers by luck. With MEMPLAN_CHECKED on the
// host, an ArenaGuard keeps a second copy of the arena and of what is known
// about each byte, and turns a broken rule into MEMPLAN_ERROR_CHECK:
//
//   - no two live buffers overlap;
//   - a launch writes only where it says, and only into live buffers: all other
//     bytes, dead ones included, are as before;
//   - it reads only what is live and has been written;
//   - weights and inputs don't change.
//
// Dead and new bytes hold 0xFF, which is NaN in every floating-point type, so
// that a read which nobody declared shows in the results. Under
// AddressSanitizer dead bytes are poisoned as well, and an access is reported
// where it happens.
//
// Otherwise all of this is empty.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CHECKED_H
#define MEMPLAN_RUNTIME_CHECKED_H

#include "memplan/Runtime/Platform.h"

#include <cstddef>
#include <initializer_list>

namespace memplan::rt {

/// `count` rows of `bytes` bytes each, `stride` bytes from start to start.
struct Range {
  const void *ptr = nullptr;
  size_t bytes = 0;
  size_t count = 1;
  size_t stride = 0;

  constexpr Range(const void *ptr, size_t bytes, size_t count = 1,
                  size_t stride = 0)
      : ptr(ptr), bytes(bytes), count(count), stride(stride) {}
};

} // namespace memplan::rt

#if defined(MEMPLAN_CHECKED) && !defined(__CUDACC__)
#include "memplan/Runtime/CheckedHost.h" // IWYU pragma: export
#else

namespace memplan::rt {
inline namespace unchecked {

class ArenaGuard {
public:
  memplan_status enter(void *, size_t) { return MEMPLAN_OK; }
  memplan_status begin(const void *, size_t, const char *) {
    return MEMPLAN_OK;
  }
  memplan_status end(const void *, size_t) { return MEMPLAN_OK; }
  memplan_status beforeLaunch(const char *, std::initializer_list<Range>,
                              std::initializer_list<Range> = {}) {
    return MEMPLAN_OK;
  }
  memplan_status afterLaunch(const char *, std::initializer_list<Range>) {
    return MEMPLAN_OK;
  }
  memplan_status protect(const void *, size_t, const char *) {
    return MEMPLAN_OK;
  }
  memplan_status leave() { return MEMPLAN_OK; }
};

} // namespace unchecked
} // namespace memplan::rt

#endif

#endif // MEMPLAN_RUNTIME_CHECKED_H
