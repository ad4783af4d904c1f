//===- ConvImplicitGemm.h - convolution as a matrix product -----*- C++ -*-===//
//
// y[f, (n, p)] = sum over k = (c, z, y, x) of w[f, k] * patch[k, (n, p)], where
// the patch matrix is never made: its elements are gathered from x while a tile
// is loaded. A block computes kFilters by kPixels of y; a thread a few rows by
// a few columns of that, in registers. Two sets of shared tiles take turns, so
// that the next is loaded while one is multiplied, with one barrier a step.
//
// Small layers don't fill a GPU with blocks. There, a block's slices of 128
// threads share one tile: each sums every kSlices-th part of k, and the first
// adds the others' sums up at the end. Without slices, each result is summed
// over k in order, whatever the tile.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONVIMPLICITGEMM_H
#define MEMPLAN_RUNTIME_CONVIMPLICITGEMM_H

#include "memplan/Runtime/ConvPool.h"
#include "memplan/Runtime/ConvShape.h"

namespace memplan::rt {

/// How a block's part of y is cut.
template <int Filters, int Pixels, int RowsPerThread, int ColumnsPerThread,
          int Slices = 1>
struct ConvTile {
  static constexpr int kThreads = 128; ///< Of a slice.
  static constexpr int kSlices = Slices;
  static constexpr int kFilters = Filters, kPixels = Pixels;
  static constexpr int kRows = RowsPerThread, kColumns = ColumnsPerThread;
  /// Steps of k that are loaded at once.
  static constexpr int kDepth = 16;
  /// Columns of a thread come in runs of neighbours, for wide shared loads; the
  /// runs lie apart, so that a warp's loads are contiguous.
  static constexpr int kRun = kColumns < 4 ? kColumns : 4;
  static constexpr int kRuns = kColumns / kRun;
  static constexpr int kThreadColumns = kPixels / kColumns;
  /// One vector more than needed: rows then start in different banks.
  static constexpr int kFilterPitch = kFilters + 4;
  /// Values of each kind that a thread brings from global memory a step.
  static constexpr int kWeightVectors = kFilters * kDepth / 4 / kThreads;
  static constexpr int kPatchValues = kPixels * kDepth / kThreads;

  static_assert(kFilters / kRows * kThreadColumns == kThreads);
  static_assert(kWeightVectors >= 1 && kFilters * kDepth % (4 * kThreads) == 0);
  static_assert(kThreads % kPixels == 0 && kRows % 4 == 0);
  // The sums that a slice hands over take the place of its weights.
  static_assert(kSlices == 1 ||
                kFilters * kPixels <= 2 * kDepth * kFilterPitch);
};

/// Where the k-th summand takes its input: relative to a patch's origin, and
/// to the first element of the group's channels.
struct ConvSource {
  int64_t offset;
  int32_t z, y, x;
};

/// What an instance of the kernel is made for: elements of input, filter and
/// output, and how the first two count.
template <class X, class W, class Y, class LoadX, class LoadW>
struct ConvTypes {
  using Input = X;
  using Filter = W;
  using Output = Y;
  using Accum = ProductOf<X, W>;
  LoadX loadX;
  LoadW loadW;
};

template <class Accum, class Tile>
struct ConvShared {
  alignas(16) Accum weights[2][Tile::kDepth][Tile::kFilterPitch];
  alignas(16) Accum patch[2][Tile::kDepth][Tile::kPixels];
  ConvSource sources[2][Tile::kDepth];
};

/// One thread's view of the computation. Its steps are those of its slice: step
/// i of slice s loads and multiplies part i * kSlices + s of k.
template <class Types, class Tile, class Pool, bool Upsampled>
class ConvThread {
public:
  using X = typename Types::Input;
  using W = typename Types::Filter;
  using Y = typename Types::Output;
  using Accum = typename Types::Accum;
  /// Of the epilogue's results while they are pooled: sums of integers may have
  /// become floats.
  using Pooled = decltype(Accum() + AccumOf<Y>());
  using Shared = ConvShared<Accum, Tile>;

  __device__ ConvThread(const ConvGeometry &g, const Types &types,
                        Shared &shared, const X *x, const W *w,
                        bool vectorWeights)
      : g(g), types(types), shared(shared), vectorWeights(vectorWeights) {
    const int thread = int(threadIdx.x);
    const int group = int(blockIdx.z);
    firstFilter = int(blockIdx.y) * Tile::kFilters;
    weightRows = w + int64_t(group) * g.filters * g.depth;

    // The output position whose patch this thread gathers, always the same.
    const int64_t pixel =
        int64_t(blockIdx.x) * Tile::kPixels + thread % Tile::kPixels;
    originZ = kOutside;
    patchOrigin = x;
    if (pixel < g.allPixels) {
      uint32_t inImage;
      const uint32_t image = g.byImage.divide(uint32_t(pixel), inImage);
      g.template inputOrigin<Pool::kArea>(inImage, originZ, originY, originX);
      patchOffset =
          image * g.xStrideN + int64_t(group) * g.channels * g.xStrideC;
      if (!Upsampled)
        patchOffset += g.inputOffset(originZ, originY, originX);
    }
  }

  /// Works out where a step's values come from, one k a thread.
  __device__ __forceinline__ void decodeStep(int step) {
    const int i = int(threadIdx.x);
    if (i >= Tile::kDepth)
      return;
    const int k = firstOf(step) + i;
    ConvSource source = {0, kOutside, 0, 0};
    if (k < g.depth) {
      uint32_t inChannel, inPlane, column;
      const uint32_t channel = g.byKernel.divide(uint32_t(k), inChannel);
      source.z = int32_t(g.byKernelPlane.divide(inChannel, inPlane));
      source.y = int32_t(g.byKernelRow.divide(inPlane, column));
      source.z *= g.dilationZ;
      source.y *= g.dilationY;
      source.x = int32_t(column) * g.dilationX;
      source.offset = channel * g.xStrideC;
      if (!Upsampled)
        source.offset += g.inputOffset(source.z, source.y, source.x);
    }
    shared.sources[step & 1][i] = source;
  }

  /// Brings a step's values from global memory into registers.
  __device__ __forceinline__ void fetch(int step) {
    const int thread = int(threadIdx.x);
    MEMPLAN_UNROLL
    for (int i = 0; i < Tile::kPatchValues; ++i) {
      const ConvSource &source =
          shared.sources[step & 1][thread / Tile::kPixels +
                                   i * (Tile::kThreads / Tile::kPixels)];
      patchValues[i] = Accum(0);
      const int32_t z = originZ + source.z, y = originY + source.y,
                    x = originX + source.x;
      if (!g.isInside(z, y, x))
        continue;
      int64_t offset = patchOffset + source.offset;
      // Three shifts and three multiplications a value, some percent of a
      // step's instructions; the tensor that isn't stored would have been
      // written once and read once a filter tile, in as many times the bytes.
      if (Upsampled)
        offset +=
            g.inputOffset(z >> g.upShiftZ, y >> g.upShiftY, x >> g.upShiftX);
      patchValues[i] = types.loadX.template load<Accum>(patchOrigin[offset], 0);
    }
    const int k = firstOf(step) + weightColumn();
    MEMPLAN_UNROLL
    for (int i = 0; i < Tile::kWeightVectors; ++i) {
      const int filter = firstFilter + weightRow(i);
      const W *row = weightRows + int64_t(filter) * g.depth + k;
      const bool exists = filter < g.filters;
      if (vectorWeights && exists && k < g.depth) {
        weightValues[i] = loadVec<4>(row);
        continue;
      }
      MEMPLAN_UNROLL
      for (int j = 0; j < 4; ++j)
        weightValues[i][j] = exists && k + j < g.depth ? row[j] : W(0);
    }
  }

  /// Puts what was fetched for a step into shared memory.
  __device__ __forceinline__ void stash(int step) {
    const int thread = int(threadIdx.x);
    MEMPLAN_UNROLL
    for (int i = 0; i < Tile::kPatchValues; ++i)
      shared.patch[step & 1][thread / Tile::kPixels +
                             i * (Tile::kThreads / Tile::kPixels)]
                  [thread % Tile::kPixels] = patchValues[i];
    MEMPLAN_UNROLL
    for (int i = 0; i < Tile::kWeightVectors; ++i) {
      // Beyond the last filter, and the last k, anything serves.
      const int filter = firstFilter + weightRow(i);
      const int64_t owner =
          int64_t(blockIdx.z) * g.filters + (filter < g.filters ? filter : 0);
      MEMPLAN_UNROLL
      for (int j = 0; j < 4; ++j)
        shared.weights[step & 1][weightColumn() + j][weightRow(i)] =
            types.loadW.template load<Accum>(weightValues[i][j], owner);
    }
  }

  /// Adds a step's product.
  __device__ __forceinline__ void multiply(int step) {
    // A CPU has registers for half of the sums at a time.
#ifdef __CUDACC__
    constexpr int kRowsAtOnce = Tile::kRows;
#else
    constexpr int kRowsAtOnce = 4;
#endif
    const Accum(*weights)[Tile::kFilterPitch] = shared.weights[step & 1];
    const Accum(*patch)[Tile::kPixels] = shared.patch[step & 1];
    MEMPLAN_UNROLL
    for (int first = 0; first < Tile::kRows; first += kRowsAtOnce) {
#ifdef __CUDACC__
      MEMPLAN_UNROLL
#endif
      for (int k = 0; k < Tile::kDepth; ++k) {
        Accum column[kRowsAtOnce], row[Tile::kColumns];
        MEMPLAN_UNROLL
        for (int i = 0; i < kRowsAtOnce; i += 4) {
          const auto four = loadVec<4>(&weights[k][firstRow() + first + i]);
          MEMPLAN_UNROLL
          for (int j = 0; j < 4; ++j)
            column[i + j] = four[j];
        }
        MEMPLAN_UNROLL
        for (int run = 0; run < Tile::kRuns; ++run) {
          const auto some = loadVec<Tile::kRun>(&patch[k][firstColumn(run)]);
          MEMPLAN_UNROLL
          for (int j = 0; j < Tile::kRun; ++j)
            row[run * Tile::kRun + j] = some[j];
        }
        MEMPLAN_UNROLL
        for (int i = 0; i < kRowsAtOnce; ++i) {
          MEMPLAN_UNROLL
          for (int j = 0; j < Tile::kColumns; ++j)
            sums[first + i][j] += column[i] * row[j];
        }
      }
    }
  }

  /// Gathers the slices' sums in the first slice. True there.
  __device__ __forceinline__ bool gatherSlices(Shared *slices) {
    if (Tile::kSlices == 1)
      return true;
    __syncthreads(); // all have multiplied what is overwritten now
    const int thread = int(threadIdx.x), slice = int(threadIdx.y);
    if (slice > 0)
      forEachSum([&](int i, Accum &sum) {
        handedOver(slices[slice])[i * Tile::kThreads + thread] = sum;
      });
    __syncthreads();
    if (slice > 0)
      return false;
    for (int other = 1; other < Tile::kSlices; ++other)
      forEachSum([&](int i, Accum &sum) {
        sum += handedOver(slices[other])[i * Tile::kThreads + thread];
      });
    return true;
  }

  /// Passes the sums through the epilogue, and out.
  template <class Epilogue>
  __device__ __forceinline__ void store(Y *y, const Epilogue &epilogue,
                                        bool vectorResults) {
    MEMPLAN_UNROLL
    for (int run = 0; run < Tile::kRuns; ++run) {
      const int64_t pixel =
          int64_t(blockIdx.x) * Tile::kPixels + firstColumn(run);
      uint32_t image[Tile::kRun], inImage[Tile::kRun];
      MEMPLAN_UNROLL
      for (int j = 0; j < Tile::kRun; ++j)
        image[j] = g.byImage.divide(uint32_t(pixel + j), inImage[j]);
      MEMPLAN_UNROLL
      for (int i = 0; i < Tile::kRows; ++i) {
        const int filter = firstFilter + firstRow() + i;
        if (filter >= g.filters)
          continue;
        const int f = int(blockIdx.z) * g.filters + filter;
        Vec<Y, Tile::kRun> results = {};
        MEMPLAN_UNROLL
        for (int j = 0; j < Tile::kRun; ++j)
          if (pixel + j < g.allPixels)
            results[j] = epilogue(sums[i][run * Tile::kRun + j], int(image[j]),
                                  f, int(inImage[j]));
        if (vectorResults) {
          if (pixel < g.allPixels)
            storeVec(&y[image[0] * g.yStrideN + channel(filter) + inImage[0]],
                     results);
          continue;
        }
        MEMPLAN_UNROLL
        for (int j = 0; j < Tile::kRun; ++j)
          if (pixel + j < g.allPixels)
            y[image[j] * g.yStrideN + channel(filter) + inImage[j]] =
                results[j];
      }
    }
  }

  /// The same, through a pool: one result a window. Neighbouring threads have
  /// neighbouring windows, so that what a warp stores is contiguous but for the
  /// ends of rows; there is a kArea-th of it, and the loads of a warp's patch
  /// values take as many sectors as without a pool: those of rows of a window's
  /// height, each as long as the warp is wide by that height.
  template <class Epilogue>
  __device__ __forceinline__ void storePooled(Y *y, const Epilogue &epilogue) {
    constexpr int kArea = Pool::kArea;
    constexpr int kStep = kArea < Tile::kRun ? kArea : Tile::kRun;
    // Shuffles stay in the lanes that share a row.
    static_assert(Tile::kRun * Tile::kThreadColumns % kArea == 0);
    MEMPLAN_UNROLL
    for (int run = 0; run < Tile::kRuns; ++run) {
      const int64_t pixel =
          int64_t(blockIdx.x) * Tile::kPixels + firstColumn(run);
      uint32_t image[Tile::kRun], inImage[Tile::kRun];
      MEMPLAN_UNROLL
      for (int j = 0; j < Tile::kRun; ++j)
        image[j] = g.byImage.divide(uint32_t(pixel + j), inImage[j]);
      MEMPLAN_UNROLL
      for (int i = 0; i < Tile::kRows; ++i) {
        const int filter = firstFilter + firstRow() + i;
        const int f = int(blockIdx.z) * g.filters + filter;
        Pooled values[Tile::kRun];
        MEMPLAN_UNROLL
        for (int j = 0; j < Tile::kRun; ++j) {
          // Windows are there as a whole or not at all; the threads of those
          // that aren't take part in the shuffles.
          values[j] = Pooled(0);
          if (filter < g.filters && pixel + j < g.allPixels)
            values[j] =
                Pooled(epilogue(sums[i][run * Tile::kRun + j], int(image[j]), f,
                                g.template outputNumber<kArea>(inImage[j])));
        }
        reduceWindows<Pool>(values);
        MEMPLAN_UNROLL
        for (int j = 0; j < Tile::kRun; j += kStep)
          if (filter < g.filters && pixel + j < g.allPixels &&
              inImage[j] % kArea == 0)
            y[image[j] * g.yStrideN + channel(filter) + inImage[j] / kArea] =
                Y(values[j]);
      }
    }
  }

private:
  /// Where in an image of y a filter of the group is.
  __device__ __forceinline__ int64_t channel(int filter) const {
    return int64_t(blockIdx.z) * g.yStrideG + filter * g.yStrideF;
  }
  /// The first k of a step.
  __device__ __forceinline__ int firstOf(int step) const {
    return (step * Tile::kSlices + int(threadIdx.y)) * Tile::kDepth;
  }
  __device__ static __forceinline__ Accum *handedOver(Shared &slice) {
    return &slice.weights[0][0][0];
  }
  template <class Use>
  __device__ __forceinline__ void forEachSum(Use use) {
    MEMPLAN_UNROLL
    for (int i = 0; i < Tile::kRows; ++i) {
      MEMPLAN_UNROLL
      for (int j = 0; j < Tile::kColumns; ++j)
        use(i * Tile::kColumns + j, sums[i][j]);
    }
  }
  // Four neighbours in k a thread; a row's are loaded by adjacent threads.
  __device__ __forceinline__ int weightColumn() const {
    return int(threadIdx.x) % (Tile::kDepth / 4) * 4;
  }
  __device__ __forceinline__ int weightRow(int i) const {
    return int(threadIdx.x) / (Tile::kDepth / 4) +
           i * (Tile::kThreads / (Tile::kDepth / 4));
  }
  __device__ __forceinline__ int firstRow() const {
    return int(threadIdx.x) / Tile::kThreadColumns * Tile::kRows;
  }
  __device__ __forceinline__ int firstColumn(int run) const {
    return int(threadIdx.x) % Tile::kThreadColumns * Tile::kRun +
           run * (Tile::kPixels / Tile::kRuns);
  }

  const ConvGeometry &g;
  const Types &types;
  Shared &shared;
  const bool vectorWeights;
  int firstFilter;
  const W *weightRows;
  const X *patchOrigin;
  int64_t patchOffset = 0;
  int32_t originZ, originY = 0, originX = 0;
  Accum patchValues[Tile::kPatchValues];
  Vec<W, 4> weightValues[Tile::kWeightVectors];
  Accum sums[Tile::kRows][Tile::kColumns] = {};
};

/// Which wide accesses the operands' alignment allows.
struct ConvVectors {
  bool weights, results;
};

template <class Types, class Epilogue, class Tile, class Pool, bool Upsampled>
__global__ void __launch_bounds__(Tile::kThreads *Tile::kSlices)
    convImplicitGemmKernel(const ConvGeometry g, const Types types,
                           const typename Types::Input *__restrict__ x,
                           const typename Types::Filter *__restrict__ w,
                           typename Types::Output *y, const Epilogue epilogue,
                           const ConvVectors vectors) {
  __shared__ ConvShared<typename Types::Accum, Tile> shared[Tile::kSlices];
  ConvThread<Types, Tile, Pool, Upsampled> thread(g, types, shared[threadIdx.y],
                                                  x, w, vectors.weights);
  // The same number for each slice: what lies beyond the end counts as zero.
  const int steps = ceilDiv(g.depth, Tile::kDepth * Tile::kSlices);
  if (steps > 0) {
    thread.decodeStep(0);
    thread.decodeStep(1);
    __syncthreads();
    thread.fetch(0);
    thread.stash(0);
    __syncthreads();
  }
  // At the top, the step's values and the next one's sources are in shared
  // memory; the other values and the other sources were last read before the
  // barrier that ended the step before, and may be overwritten.
  for (int step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more)
      thread.fetch(step + 1);
    thread.decodeStep(step + 2);
    thread.multiply(step);
    if (more) {
      thread.stash(step + 1);
      __syncthreads();
    }
  }
  if (!thread.gatherSlices(shared))
    return;
  if constexpr (Pool::kArea == 1)
    thread.store(y, epilogue, vectors.results);
  else
    thread.storePooled(y, epilogue);
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVIMPLICITGEMM_H
