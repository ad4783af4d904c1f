//===- FirstFit.h - One body after the other --------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_FIRSTFIT_H
#define MEMPLAN_LIB_SOLVER_FIRSTFIT_H

#include "Bodies.h"
#include "Budget.h"

#include <optional>

namespace memplan::solver {

/// What goes first, largest first.
enum class GreedyOrder { Size, Length, Area, Crowding };
constexpr GreedyOrder allGreedyOrders[] = {
    GreedyOrder::Size, GreedyOrder::Length, GreedyOrder::Area,
    GreedyOrder::Crowding};

/// Each body in turn at the lowest place that is free for all of its parts
/// (Pisarchyk and Lee 2020 for the order by size). Takes bodies of any shape.
class FirstFit {
public:
  explicit FirstFit(const Bodies &bodies) : bodies(bodies) {}

  /// Whether bodies with given places share bytes.
  bool doFixedCollide() const;

  /// Places all. If it may stop, it gives up where the budget is spent or the
  /// height would not be below `limit`. With very many bodies, a place below
  /// the goal that is not the lowest will do.
  std::optional<std::vector<int64_t>> run(GreedyOrder order, int64_t goal,
                                          int64_t limit, Budget &budget,
                                          bool mayStop) const;

private:
  /// So many bodies that speed is worth a small loss.
  bool isHuge() const;
  std::vector<int> makeOrder(GreedyOrder order) const;
  std::vector<double> computeCrowding() const;
  int64_t findPlace(OccupancyIndex &index, const Body &body, int64_t hint,
                    int64_t goal, int64_t &steps) const;
  bool placeFixed(OccupancyIndex &index, int64_t &steps) const;

  const Bodies &bodies;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_FIRSTFIT_H
