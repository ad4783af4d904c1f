//===- SectionSearch.h - Exact search for one capacity ----------*- C++ -*-===//
//
// Does a placement of at most a given height exist? Depth-first search over
// partial placements that grow from the ground, with explained failures. The
// algorithm and why each rule is sound: docs/Solver.md.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_SOLVER_SECTIONSEARCH_H
#define MEMPLAN_LIB_SOLVER_SECTIONSEARCH_H

#include "Strip.h"
#include "memplan/Solver/Solver.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace memplan::solver {

/// Which item is branched on next. A section is chosen first, the one with the
/// largest `unplaced bytes + floorWeight * floor`; in it the item with the
/// lowest possible offset, ties by `rank`.
struct Branching {
  /// 0: the section with most bytes to place. 1: the one with least room left.
  /// Very negative: the lowest one.
  double floorWeight = 0;
  /// For each item, smaller first.
  std::vector<int> rank;
  /// Of items that can begin equally low, first those that end where a higher
  /// floor begins and as high as it (Burke et al. 2004: best fit for strips).
  bool matchWalls = false;
};

enum class SearchResult { Found, Infeasible, Limit };

class SectionSearch {
public:
  SectionSearch(const Strip &strip, const SearchRules &rules);

  /// Looks for a placement of at most `capacity` bytes within `maxSteps` steps.
  /// May be called again with another capacity or branching. Ends with `Limit`
  /// soon after `isNeedless` returns true.
  SearchResult run(int64_t capacity, const Branching &branching,
                   int64_t maxSteps,
                   const std::function<bool()> &isNeedless = nullptr);

  /// After `Found`: one per item.
  const std::vector<int64_t> &getOffsets() const { return offset; }
  /// Of the last run.
  int64_t getSteps() const { return steps; }

private:
  using Word = uint64_t;
  enum class Change : uint8_t { Head, Delayed, Base, Reason, Place };
  struct TrailEntry {
    Change change;
    int index;
    int oldSecond;
    int64_t oldValue;
  };
  struct Range {
    int begin, end;
  };
  struct Key {
    uint64_t low, high;
    bool operator==(const Key &other) const {
      return low == other.low && high == other.high;
    }
  };

  void reset(int64_t newCapacity);
  void buildMembers();
  bool computeBases();

  SearchResult searchComponent(Range component);
  SearchResult branch(Range component);
  SearchResult searchParts(Range component);
  int select(Range component);
  int countWalls(int item) const;
  bool isBefore(int item, int other) const;
  int descend(int item);

  bool place(int item);
  bool delay(int item, bool withConflict);
  bool raise(int item, int64_t newHead, int reason, bool isDelay);
  bool updateSection(int section);
  bool updateTouched();
  void undo(size_t mark);

  int findSwapPartner(int item) const;
  Key computeKey(Range component) const;

  int newReason();
  Word *reasonAt(int reason) { return &reasons[size_t(reason) * words]; }
  void addReason(Word *set, int reason) {
    const Word *other = reasonAt(reason);
    for (int w = 0; w < words; ++w)
      set[w] |= other[w];
  }
  void explainBySection(int section);
  static bool testBit(const Word *set, int bit) {
    return set[bit / 64] >> (bit % 64) & 1;
  }

  template <typename Callback>
  void forUnplacedNeighbours(int item, Callback callback) {
    const Word *row = &adjacency[size_t(item) * words];
    for (int w = wordBegin[item]; w < wordEnd[item]; ++w)
      for (Word bits = row[w] & unplaced[w]; bits; bits &= bits - 1)
        callback(w * 64 + __builtin_ctzll(bits));
    steps += wordEnd[item] - wordBegin[item];
  }

  const Strip &in;
  const SearchRules rules;
  const int words;

  // Fixed for the strip.
  std::vector<Word> adjacency;
  std::vector<int> wordBegin, wordEnd;
  std::vector<int> memberBegin, slotBegin;
  std::vector<Key> itemKeys;

  // Fixed for a run.
  int64_t capacity = 0;
  const Branching *branching = nullptr;
  std::vector<int64_t> latest;
  std::vector<int> twin;
  int64_t maxSteps = 0;
  const std::function<bool()> *isNeedless = nullptr;

  // The partial placement. `head`: no lower offset is possible. `delayed`: the
  // item can't lie at its head on what is placed; something has to come below
  // it first. `base`: the lowest head of a section's unplaced items, `witness`
  // an item that has it.
  std::vector<int64_t> head, offset;
  std::vector<uint8_t> delayed;
  std::vector<Word> unplaced;
  std::vector<int> members, slots, count, witness;
  std::vector<int64_t> remaining, base;
  std::vector<TrailEntry> trail;
  std::vector<int> touched;
  std::vector<uint8_t> isTouched;

  // Explanations: sets of placed items. `headReason`: why the head isn't
  // lower. `placeReason`: why a placed item is where it is, itself included.
  std::vector<Word> reasons;
  int numReasons = 0;
  std::vector<int> headReason, placeReason;
  std::vector<Word> conflict;

  // Components are ranges of this stack, each sorted by start.
  std::vector<int> stack;
  int numPlaced = 0;
  std::vector<int> placedAt;
  /// The smallest `placedAt` of an item that a pruning since the enclosing
  /// component began leaned on; a failure is only remembered if it leaned on
  /// nothing from before.
  int leanedOn = 0;
  std::vector<Key> failedStates;

  int64_t steps = 0;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_SECTIONSEARCH_H
