//===- Orders.cpp - In which order to take items --------------------------===//

#include "Orders.h"

#include "RangeMaxTree.h"
#include "memplan/Support/SplitMix64.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

std::vector<int64_t> computeCrowding(const Strip &strip) {
  std::vector<int64_t> live(strip.numSections + 1, 0);
  for (int i = 0; i < strip.numItems; ++i) {
    live[strip.first[i]] += strip.size[i];
    live[strip.last[i]] -= strip.size[i];
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  RangeMaxTree tree(live);
  std::vector<int64_t> crowding;
  crowding.reserve(strip.numItems);
  for (int i = 0; i < strip.numItems; ++i)
    crowding.push_back(tree.max(strip.first[i], strip.last[i]).value);
  return crowding;
}

static std::vector<int> toRanks(const std::vector<int> &order) {
  std::vector<int> ranks(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    ranks[order[i]] = static_cast<int>(i);
  return ranks;
}

/// Keys are doubles since size times length may not fit 64 bits; both factors
/// are exact up to 2^53, and a rounding beyond that only changes an order.
static double getKey(const Strip &strip, const std::vector<int64_t> &crowding,
                     OrderKey key, int item) {
  double length = static_cast<double>(strip.length[item]);
  double size = static_cast<double>(strip.size[item]);
  switch (key) {
  case OrderKey::Length:
    return length;
  case OrderKey::Area:
    return length * size;
  case OrderKey::Size:
    return size;
  case OrderKey::Sections:
    return strip.last[item] - strip.first[item];
  case OrderKey::Crowding:
    return static_cast<double>(crowding[item]);
  }
  return 0;
}

std::vector<int> computeRanks(const Strip &strip,
                              const std::vector<int64_t> &crowding,
                              const std::vector<OrderKey> &keys) {
  std::vector<int> order(strip.numItems);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    for (OrderKey key : keys) {
      double x = getKey(strip, crowding, key, a);
      double y = getKey(strip, crowding, key, b);
      if (x != y)
        return x > y;
    }
    return false;
  });
  return toRanks(order);
}

namespace {

/// 256 * log2(value), by integers alone so that every machine agrees.
int64_t scaledLog2(int64_t value) {
  auto x = static_cast<uint64_t>(std::max<int64_t>(value, 1));
  int exponent = 63 - __builtin_clzll(x);
  uint64_t mantissa = (x << (63 - exponent)) >> 55; // 256 to 511
  return exponent * 256 + static_cast<int64_t>(mantissa - 256);
}

} // namespace

std::vector<int> computeRandomRanks(const Strip &strip,
                                    const std::vector<int64_t> &crowding,
                                    uint64_t seed) {
  SplitMix64 random(seed);
  int64_t ofLength = random.below(256), ofSize = random.below(256);
  int64_t ofCrowding = random.below(4096) - 1024;
  int64_t noise = 1 + random.below(1 + random.below(1 << 18));
  std::vector<int64_t> keys;
  keys.reserve(strip.numItems);
  for (int i = 0; i < strip.numItems; ++i)
    keys.push_back(ofLength * scaledLog2(strip.length[i]) +
                   ofSize * scaledLog2(strip.size[i]) +
                   ofCrowding * scaledLog2(crowding[i]) + random.below(noise));
  std::vector<int> order(strip.numItems);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return keys[a] > keys[b]; });
  return toRanks(order);
}

} // namespace memplan::solver
