//===- Preferences.h - Moving buffers to where they are wanted --*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_PREFERENCES_H
#define MEMPLAN_LIB_SOLVER_PREFERENCES_H

#include "Bodies.h"
#include "Budget.h"

namespace memplan::solver {

/// Moves bodies, in the problem's order, to the first of their buffers'
/// preferred offsets if that place is free and does not raise the height.
/// Looks at the bodies that live at the same time, and is done however much of
/// the budget is left.
void movePreferred(const Problem &problem, const Bodies &bodies, int64_t height,
                   std::vector<int64_t> &places, Budget &budget);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_PREFERENCES_H
