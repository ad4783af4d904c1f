//===- Overlap.cpp - Whether two parts of a buffer meet -------------------===//

#include "Overlap.h"

#include <numeric>

using namespace mlir;

namespace memplan {

namespace {

/// A multiple of `step` bytes between `low` and `high` times.
struct Dim {
  int64_t step, low, high;
};

/// Looks for multiples of all dims that bring two elements to overlap.
class Search {
public:
  Search(const BufferRef &a, const BufferRef &b)
      : widthA(a.getElementBytes()), widthB(b.getElementBytes()) {
    addDims(a, /*sign=*/1);
    addDims(b, /*sign=*/-1);
    llvm::sort(dims,
               [](const Dim &x, const Dim &y) { return x.step > y.step; });
    spans.resize(dims.size() + 1);
    for (size_t i = dims.size(); i-- > 0;)
      spans[i] = {spans[i + 1].first + dims[i].low * dims[i].step,
                  spans[i + 1].second + dims[i].high * dims[i].step};
  }

  /// Whether bytes can be shared when a starts `distance` after b. What takes
  /// too long to tell counts as true.
  bool canMeet(int64_t distance) {
    steps = 0;
    return meets(distance, 0);
  }

  /// Distances at which bytes can be shared at all.
  std::pair<int64_t, int64_t> getDistances() const {
    return {-widthA + 1 - spans.front().second,
            widthB - 1 - spans.front().first};
  }

private:
  void addDims(const BufferRef &ref, int64_t sign) {
    for (auto [extent, stride] : llvm::zip_equal(ref.shape, ref.strides)) {
      int64_t step = sign * stride * ref.getElementBytes();
      if (extent <= 1 || step == 0)
        continue;
      Dim dim = {std::abs(step), 0, extent - 1};
      if (step < 0)
        dim = {dim.step, 1 - extent, 0};
      // Walked by both: only the difference matters.
      auto same = llvm::find_if(
          dims, [&](const Dim &other) { return other.step == dim.step; });
      if (same == dims.end()) {
        dims.push_back(dim);
        continue;
      }
      same->low += dim.low;
      same->high += dim.high;
    }
  }

  bool meets(int64_t distance, size_t index) {
    constexpr int64_t kMostSteps = 10000;
    if (++steps > kMostSteps)
      return true;
    // Byte 0 of a's element against those of b's.
    if (index == dims.size())
      return -widthA < distance && distance < widthB;
    const Dim &dim = dims[index];
    auto [low, high] = spans[index + 1];
    int64_t first =
        std::max(dim.low, divideUp(-widthA + 1 - high - distance, dim.step));
    int64_t last =
        std::min(dim.high, -divideUp(-(widthB - 1 - low - distance), dim.step));
    for (int64_t i = first; i <= last; ++i)
      if (meets(distance + i * dim.step, index + 1))
        return true;
    return false;
  }

  static int64_t divideUp(int64_t a, int64_t b) {
    return a / b + (a % b > 0 ? 1 : 0);
  }

  int64_t widthA, widthB;
  SmallVector<Dim> dims;
  /// What the dims from this one on add at least and at most.
  SmallVector<std::pair<int64_t, int64_t>> spans;
  int64_t steps = 0;
};

/// All unknown parts of the distance are multiples of this; 0 if there are
/// none.
int64_t getUnknownStep(const BufferRef &a, const BufferRef &b) {
  BufferRef difference;
  difference.terms = a.terms;
  int64_t step = 0;
  for (const OffsetTerm &term : b.terms) {
    auto found = llvm::find_if(difference.terms, [&](const OffsetTerm &other) {
      return other.scalar == term.scalar;
    });
    if (found == difference.terms.end())
      step = std::gcd(step, term.bytes);
    else
      found->bytes -= term.bytes;
  }
  for (const OffsetTerm &term : difference.terms)
    step = std::gcd(step, term.bytes);
  return step;
}

} // namespace

Overlap computeOverlap(const BufferRef &a, int64_t offsetOfA,
                       const BufferRef &b, int64_t offsetOfB) {
  if (a.getNumElements() == 0 || b.getNumElements() == 0)
    return {false, false};
  int64_t distance = offsetOfA - offsetOfB, step = getUnknownStep(a, b);
  Search search(a, b);
  if (step == 0)
    return {distance == 0, distance != 0 && search.canMeet(distance)};
  constexpr int64_t kMostDistances = 1000;
  auto [first, last] = search.getDistances();
  // The least distance of at least `first` that the unknown parts allow.
  int64_t at = first + ((distance - first) % step + step) % step;
  Overlap overlap = {distance % step == 0, false};
  for (int64_t tried = 0; at <= last && !overlap.canBeShifted;
       at += step, ++tried)
    overlap.canBeShifted =
        tried >= kMostDistances || (at != 0 && search.canMeet(at));
  return overlap;
}

} // namespace memplan
