//===- OverlapIndex.h - Which items live in a range of sections -*- C++ -*-===//

#ifndef MEMPLAN_LIB_SOLVER_OVERLAPINDEX_H
#define MEMPLAN_LIB_SOLVER_OVERLAPINDEX_H

#include "Strip.h"

#include <algorithm>

namespace memplan::solver {

/// A set of items that only shrinks, enumerated by overlap with a range of
/// sections. Items are numbered by start, so those that begin early enough are
/// a prefix; blocks of 64 and of 4096 that are empty or end too early are
/// skipped whole.
class OverlapIndex {
public:
  explicit OverlapIndex(const Strip &strip)
      : in(&strip), words(numBlocks(strip.numItems, 64)),
        lastOfWord(words.size(), 0),
        lastOfBlock(numBlocks(strip.numItems, 64 * 64), 0),
        countOfBlock(lastOfBlock.size(), 0) {
    for (int i = 0; i < in->numItems; ++i) {
      words[i / 64] |= uint64_t{1} << (i % 64);
      lastOfWord[i / 64] = std::max(lastOfWord[i / 64], in->last[i]);
      lastOfBlock[i / 4096] = std::max(lastOfBlock[i / 4096], in->last[i]);
      ++countOfBlock[i / 4096];
    }
  }

  bool contains(int item) const { return words[item / 64] >> (item % 64) & 1; }
  void erase(int item) {
    words[item / 64] &= ~(uint64_t{1} << (item % 64));
    --countOfBlock[item / 4096];
  }

  /// Calls for each item of the set that lives in one of [first, last), in
  /// order of number.
  template <typename Callback>
  void forEach(int first, int last, int64_t &steps, Callback callback) const {
    for (size_t block = 0; block < lastOfBlock.size(); ++block) {
      ++steps;
      if (in->first[block * 4096] >= last)
        return;
      if (countOfBlock[block] == 0 || lastOfBlock[block] <= first)
        continue;
      size_t end = std::min(words.size(), (block + 1) * 64);
      for (size_t w = block * 64; w < end; ++w) {
        if (words[w] == 0 || lastOfWord[w] <= first)
          continue;
        if (in->first[w * 64] >= last)
          return;
        for (uint64_t bits = words[w]; bits; bits &= bits - 1) {
          int item = static_cast<int>(w * 64) + __builtin_ctzll(bits);
          ++steps;
          if (in->first[item] < last && in->last[item] > first)
            callback(item);
        }
      }
      steps += 16;
    }
  }

private:
  static size_t numBlocks(int items, int size) {
    return (static_cast<size_t>(items) + size - 1) / size;
  }

  const Strip *in;
  std::vector<uint64_t> words;
  std::vector<int> lastOfWord, lastOfBlock, countOfBlock;
};

} // namespace memplan::solver

#endif // MEMPLAN_LIB_SOLVER_OVERLAPINDEX_H
