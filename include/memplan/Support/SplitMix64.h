//===- SplitMix64.h - Portable pseudo-random numbers ------------*- C++ -*-===//

#ifndef MEMPLAN_SUPPORT_SPLITMIX64_H
#define MEMPLAN_SUPPORT_SPLITMIX64_H

#include <cstdint>

namespace memplan {

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (OOPSLA 2014): the same numbers on every machine and with every
/// library.
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t seed) : state(seed) {}

  /// A hash of one word.
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15); }

  /// One of 0 ... count - 1; count must be positive.
  int64_t below(int64_t count) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(next()) *
                                 static_cast<uint64_t>(count)) >>
                                64);
  }

  /// One of first ... last.
  int64_t between(int64_t first, int64_t last) {
    return first + below(last - first + 1);
  }

  /// True `percent` times in a hundred.
  bool chance(int64_t percent) { return below(100) < percent; }

private:
  uint64_t state;
};

} // namespace memplan

#endif // MEMPLAN_SUPPORT_SPLITMIX64_H
