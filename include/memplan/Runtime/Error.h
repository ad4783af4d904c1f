//===- Error.h - statuses with a message ------------------------*- C++ -*-===//
//
// An error is a status that is returned, and a message that stays with the
// thread until its next error. Nothing here throws or allocates.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_ERROR_H
#define MEMPLAN_RUNTIME_ERROR_H

#include "memplan/Runtime/Status.h"

#include <cstdarg>
#include <cstdio>

/// Returns from the enclosing function if `expression` isn't MEMPLAN_OK.
#define MEMPLAN_TRY(expression)                                                \
  do {                                                                         \
    if (memplan_status memplanTried = (expression);                            \
        memplanTried != MEMPLAN_OK)                                            \
      return memplanTried;                                                     \
  } while (false)

namespace memplan::rt {

/// The calling thread's message; long ones are cut.
inline constexpr size_t kErrorBytes = 1024;
inline char *errorMessage() {
  static thread_local char message[kErrorBytes] = "";
  return message;
}

/// Sets the thread's message, printf style, and returns `status`.
__attribute__((format(printf, 2, 3))) inline memplan_status
fail(memplan_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(errorMessage(), kErrorBytes, format, arguments);
  va_end(arguments);
  return status;
}

} // namespace memplan::rt

// Weak and not inline, so that each object file which includes this offers them
// to C callers, and several models link into one program.
extern "C" __attribute__((weak)) const char *memplan_last_error(void) {
  return memplan::rt::errorMessage();
}

extern "C" __attribute__((weak)) const char *
memplan_status_name(memplan_status status) {
  switch (status) {
  case MEMPLAN_OK:
    return "MEMPLAN_OK";
  case MEMPLAN_ERROR_ARGUMENT:
    return "MEMPLAN_ERROR_ARGUMENT";
  case MEMPLAN_ERROR_MEMORY:
    return "MEMPLAN_ERROR_MEMORY";
  case MEMPLAN_ERROR_FILE:
    return "MEMPLAN_ERROR_FILE";
  case MEMPLAN_ERROR_FORMAT:
    return "MEMPLAN_ERROR_FORMAT";
  case MEMPLAN_ERROR_DEVICE:
    return "MEMPLAN_ERROR_DEVICE";
  case MEMPLAN_ERROR_LIBRARY:
    return "MEMPLAN_ERROR_LIBRARY";
  case MEMPLAN_ERROR_CHECK:
    return "MEMPLAN_ERROR_CHECK";
  }
  return "unknown memplan_status";
}

#endif // MEMPLAN_RUNTIME_ERROR_H
