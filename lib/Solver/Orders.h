//===- Orders.h - In which order to take items ------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_ORDERS_H
#define MEMPLAN_LIB_SOLVER_ORDERS_H

#include "Strip.h"

namespace memplan::solver {

/// What an order compares, larger first.
enum class OrderKey { Length, Area, Size, Sections, Crowding };

/// For each item, the largest number of bytes alive at a time of its life.
std::vector<int64_t> computeCrowding(const Strip &strip);

/// The items' ranks in the order by `keys`, compared one after the other; ties
/// go by number.
std::vector<int> computeRanks(const Strip &strip,
                              const std::vector<int64_t> &crowding,
                              const std::vector<OrderKey> &keys);

/// Ranks by a product of powers of length, size and crowding, with noise, all
/// drawn from `seed`.
std::vector<int> computeRandomRanks(const Strip &strip,
                                    const std::vector<int64_t> &crowding,
                                    uint64_t seed);

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_ORDERS_H
