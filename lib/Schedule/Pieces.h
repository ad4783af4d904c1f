//===- Pieces.h - Stretches of an order as problems -------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_SCHEDULE_PIECES_H
#define MEMPLAN_LIB_SCHEDULE_PIECES_H

#include "memplan/Schedule/Schedule.h"

namespace memplan::schedule {

/// Positions [begin, end) of an order.
struct Stretch {
  int begin, end;
};

/// The stretches of the original order that come one after the other in every
/// order: nodes that all others are before or after, and what is between them.
std::vector<Stretch> cutIntoPieces(const Problem &problem);

/// Makes problems of stretches of one order. Other orders of a stretch change
/// nothing outside of it.
class Slicer {
public:
  Slicer(const Problem &problem, const std::vector<int> &order);

  /// Node i of the result is the node at position `begin + i`. What is alive
  /// all through the stretch and not touched is a last storage.
  Problem slice(Stretch stretch) const;

  /// To be called when the order of a stretch has changed.
  void renew(Stretch stretch);

private:
  const Problem &problem;
  const std::vector<int> &order;
  /// By node.
  std::vector<int> positions;
  /// First and last position at which each storage is touched; -1 if none.
  std::vector<int> firstTouch, lastTouch;
  /// Bytes alive before each position.
  std::vector<int64_t> live;
};

} // namespace memplan::schedule

#endif // MEMPLAN_LIB_SCHEDULE_PIECES_H
