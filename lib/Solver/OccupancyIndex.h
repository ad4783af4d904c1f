//===- OccupancyIndex.h - Where is there room, and when ---------*- C++ -*-===//
//
// The bytes that are taken in each section, for many placements in a row: a
// segment tree over the sections whose nodes hold unions of byte ranges. Bytes
// that touch are one range, so a well filled block has few.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_OCCUPANCYINDEX_H
#define MEMPLAN_LIB_SOLVER_OCCUPANCYINDEX_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan::solver {

class OccupancyIndex {
public:
  explicit OccupancyIndex(int numSections);

  /// Sections [first, last) and the bytes [low, high), all relative to a place.
  struct Part {
    int first, last;
    int64_t low, high;
  };

  /// The lowest place residue + k * modulus, not below `from`, at which all
  /// parts are free. A search that passes `limit` ends there and returns what
  /// it has reached. `steps` grows by the ranges looked at.
  int64_t findPlace(const Part *begin, const Part *end, int64_t from,
                    int64_t modulus, int64_t limit, int64_t &steps);

  void insert(const Part &part, int64_t place, int64_t &steps);

private:
  struct Bytes {
    int64_t low, high;
  };
  using Union = std::vector<Bytes>;
  struct Cursor {
    const Union *ranges;
    size_t next;
    int64_t low, high;
  };

  static void add(Union &ranges, Bytes bytes, int64_t &steps);
  void collect(const Part &part);

  struct Node {
    /// What is taken somewhere in the node's sections, by parts that end or
    /// begin within them or at their edge.
    Union somewhere;
    /// What is taken throughout the node's sections but not its sibling's, by
    /// parts that go on beyond them.
    Union throughout;
  };

  /// Leaves are the nodes from `numLeaves` on; node n has children 2n, 2n + 1.
  int numLeaves;
  std::vector<Node> nodes;
  std::vector<Cursor> cursors;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_OCCUPANCYINDEX_H
