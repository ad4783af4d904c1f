//===- host_counters.cpp - the host runtime's counters -------------------===//
//
// Compiled into the shared library that host.py makes of an emitted file.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Platform.h"

static_assert(sizeof(memplan::rt::HostCounters) == 4 * sizeof(int64_t),
              "host.py's Counters must match");

extern "C" memplan::rt::HostCounters memplan_tools_counters() {
  return memplan::rt::hostCounters();
}
