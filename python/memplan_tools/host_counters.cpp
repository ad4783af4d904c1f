//===- host_counters.cpp - the host runtime's counters -------------------===//
//
// Compiled into the shared library that host.py makes of an emitted file.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Platform.h"

static_assert(sizeof(memplan::rt::HostCounters) == 4 * sizeof(int64_t),
              "host.py's Counters must match");

extern "C" void memplan_tools_counters(memplan::rt::HostCounters *counters) {
  *counters = memplan::rt::hostCounters();
}
