//===- Search.h - Orders of one piece ---------------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SCHEDULE_SEARCH_H
#define MEMPLAN_LIB_SCHEDULE_SEARCH_H

#include "memplan/Schedule/Schedule.h"

#include <optional>

namespace memplan::schedule {

/// What a search came to know.
struct SearchResult {
  /// An order whose peak is below the one to beat.
  std::optional<std::vector<int>> order;
  int64_t peak = 0; ///< Of that order.
  /// No order's peak is below, if this is above `enough`.
  int64_t lowerBound = 0;
  int64_t steps = 0;
};

/// Exact search for the smallest peak below `toBeat`. A peak of `enough` is as
/// good as any below it. Stops at the first order that is known to be the
/// smallest, or after `effort` steps, when the bound that was reached holds.
SearchResult searchBottomUp(const Problem &problem, int64_t enough,
                            int64_t toBeat, int64_t effort, bool commit);

/// Looks for any order of a peak of at most `limit`. Without one, the bound is
/// `limit + 1` if all was looked at and 0 if the effort was spent.
SearchResult searchWithin(const Problem &problem, int64_t limit, int64_t effort,
                          bool commit);

/// Builds `width` partial orders at a time and keeps those of least peak, then
/// of least live bytes. The result has an order if it is below `toBeat`; no
/// bound. Gives up after `effort` steps.
SearchResult searchBeam(const Problem &problem, int width, int64_t enough,
                        int64_t toBeat, int64_t effort);

} // namespace memplan::schedule

#endif // MEMPLAN_LIB_SCHEDULE_SEARCH_H
