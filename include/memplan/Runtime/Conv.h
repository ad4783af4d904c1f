//===- Conv.h - convolutions ------------------------------------*- C++ -*-===//
//
// y[n, f, p] = epilogue(sum of w[f, ...] * x[n, ...] under position p, n, f, p)
//
// in one launch, whatever the geometry: nothing is unfolded in memory and no
// workspace is needed. The epilogue is a functor of emitted code,
//
//   struct Epilogue {
//     const float *bias;
//     __device__ float operator()(float sum, int n, int f, int p) const;
//   };
//
// with p the linear output position (row-major over depth, height, width). The
// kernels are instantiated once for each of its types, so equal epilogues
// should share one. An epilogue may read the element of y that it computes, if
// y holds an operand that dies here.
//
// conv<MaxPool<4>>(...) pools the epilogue's results before they are stored, in
// the windows that ConvShape::pool states; p is then the position before that.
// convUpsampled(...) reads x upsampled, as ConvShape::upsample states.
//
// x, w and y may differ in type; sums are kept in ProductOf of the first two.
// convQuantized(...) takes zero points of x and w, see LessZeroPoint; those of
// w are the features'. Outside of x there is nothing, that is x's zero point.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONV_H
#define MEMPLAN_RUNTIME_CONV_H

#include "memplan/Runtime/ConvDirect.h"
#include "memplan/Runtime/ConvImplicitGemm.h"

namespace memplan::rt {

// Filters by positions a block, rows by columns a thread.
using ConvTile128x64 = ConvTile<128, 64, 8, 8>;
using ConvTile64x64 = ConvTile<64, 64, 8, 4>;
using ConvTile32x64 = ConvTile<32, 64, 4, 4>;
using ConvTile32x32 = ConvTile<32, 32, 4, 2>;
using ConvTile32x32By4 = ConvTile<32, 32, 4, 2, 4>; // slices of k

/// Tests pin a kernel; emitted code leaves the choice to `conv`. It depends on
/// nothing but the shape where it changes results (by rounding: only the kernel
/// in slices sums in another order).
enum class ConvKernel {
  Auto,
  Depthwise,
  Gemm128x64,
  Gemm64x64,
  Gemm32x64,
  Gemm32x32,
  Gemm32x32By4
};

/// The largest tile that still gives every multiprocessor something to do.
inline ConvKernel chooseConvKernel(const ConvGeometry &g, int64_t groups,
                                   bool isPlain = true) {
  if (isPlain && g.channels == 1 && (g.filters < 16 || groups > 65535))
    return ConvKernel::Depthwise;
#ifdef __CUDACC__
  const int64_t wantedBlocks = 128; // multiprocessors of an A100 or H100
#else
  const int64_t wantedBlocks = 4 * host::ThreadPool::get().size();
#endif
  struct Choice {
    ConvKernel kernel;
    int filters, pixels;
  };
  constexpr Choice kChoices[] = {{ConvKernel::Gemm128x64, 128, 64},
                                 {ConvKernel::Gemm64x64, 64, 64},
                                 {ConvKernel::Gemm32x64, 32, 64}};
  for (const Choice &choice : kChoices) {
    // A tile of which half or more would hang over the end is left out.
    if (choice.filters > 32 && g.filters <= choice.filters / 2)
      continue;
    if (ceilDiv(g.filters, choice.filters) *
            int64_t(ceilDiv(g.allPixels, choice.pixels)) * groups >=
        wantedBlocks)
      return choice.kernel;
  }
#ifdef __CUDACC__
  // With less than a block for each multiprocessor and many steps in each, more
  // warps a block are what is left to hide latencies. CPUs have none to hide.
  if (g.depth >= 256 &&
      ceilDiv(g.filters, 32) * int64_t(ceilDiv(g.allPixels, 32)) * groups <
          wantedBlocks)
    return ConvKernel::Gemm32x32By4;
#endif
  return ConvKernel::Gemm32x32;
}

template <class Tile, class Pool, bool Upsampled, class Types, class Epilogue>
memplan_status
launchConvGemm(const char *what, const ConvGeometry &g, int64_t groups,
               const Types &types, const typename Types::Input *x,
               const typename Types::Filter *w, typename Types::Output *y,
               const Epilogue &epilogue, cudaStream_t stream) {
  using W = typename Types::Filter;
  using Y = typename Types::Output;
  const int64_t filterTiles = ceilDiv(g.filters, Tile::kFilters);
  if (filterTiles > 65535 || groups > 65535)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: convolution in %" PRId64 " groups of %d filters; a launch "
                "takes 65535 groups and as many tiles of %d filters",
                what, groups, g.filters, Tile::kFilters);
  ConvVectors vectors;
  vectors.weights = g.depth % 4 == 0 && isAlignedFor<W, 4>(w);
  vectors.results =
      g.imagePixels % Tile::kRun == 0 && g.yStrideN % Tile::kRun == 0 &&
      g.yStrideF % Tile::kRun == 0 && g.yStrideG % Tile::kRun == 0 &&
      isAlignedFor<Y, Tile::kRun>(y);
  const dim3 grid(unsigned(ceilDiv(g.allPixels, Tile::kPixels)),
                  unsigned(filterTiles), unsigned(groups));
  return launchWithBarriers(
      what, convImplicitGemmKernel<Types, Epilogue, Tile, Pool, Upsampled>,
      grid, dim3(Tile::kThreads, Tile::kSlices), stream, g, types, x, w, y,
      epilogue, vectors);
}

template <bool Depthwise, bool Upsampled, class Types, class Epilogue>
memplan_status launchConvDirect(const char *what, const ConvGeometry &g,
                                const ConvShape &shape, const Types &types,
                                const typename Types::Input *x,
                                const typename Types::Filter *w,
                                typename Types::Output *y,
                                const Epilogue &epilogue, cudaStream_t stream) {
  const int64_t results = shape.f * g.imagePixels;
  if ((Depthwise && g.channels != 1) || results > INT32_MAX)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: the %s takes %s and under 2^31 results an image, not %d "
                "and %" PRId64,
                what, Depthwise ? "depthwise kernel" : "kernel of 64-bit types",
                Depthwise ? "one input channel a group" : "any channels",
                g.channels, results);
  DirectDecoding d;
  d.byFilter = FastDiv(uint32_t(g.imagePixels));
  d.byGroup = FastDiv(uint32_t(g.filters));
  d.results = int32_t(results);
  d.kernelZ = int32_t(shape.kernel[0]);
  d.kernelY = int32_t(shape.kernel[1]);
  d.kernelX = int32_t(shape.kernel[2]);
  const dim3 grid(unsigned(ceilDiv(results, int64_t(kDirectThreads))),
                  unsigned(g.images < 65535 ? g.images : 65535),
                  unsigned(ceilDiv(g.images, 65535)));
  return launch(what, convDirectKernel<Depthwise, Upsampled, Types, Epilogue>,
                grid, dim3(kDirectThreads), stream, g, d, types, x, w, y,
                epilogue);
}

/// With tiles, or depthwise: types of up to 32 bits.
template <class Pool, bool Upsampled, class Types, class Epilogue>
memplan_status
launchConv(const char *what, const ConvGeometry &g, const ConvShape &shape,
           const Types &types, const typename Types::Input *x,
           const typename Types::Filter *w, typename Types::Output *y,
           const Epilogue &epilogue, cudaStream_t stream, ConvKernel kernel) {
  const int64_t groups = shape.groups;
  constexpr bool isPlain = Pool::kArea == 1 && !Upsampled;
  if (kernel == ConvKernel::Auto)
    kernel = chooseConvKernel(g, groups, isPlain);
  switch (kernel) {
  case ConvKernel::Depthwise:
    if (!isPlain)
      return fail(MEMPLAN_ERROR_ARGUMENT,
                  "%s: the depthwise kernel neither pools nor upsamples", what);
    return launchConvDirect</*Depthwise=*/true, /*Upsampled=*/false>(
        what, g, shape, types, x, w, y, epilogue, stream);
  case ConvKernel::Gemm128x64:
    return launchConvGemm<ConvTile128x64, Pool, Upsampled>(
        what, g, groups, types, x, w, y, epilogue, stream);
  case ConvKernel::Gemm64x64:
    return launchConvGemm<ConvTile64x64, Pool, Upsampled>(
        what, g, groups, types, x, w, y, epilogue, stream);
  case ConvKernel::Gemm32x64:
    return launchConvGemm<ConvTile32x64, Pool, Upsampled>(
        what, g, groups, types, x, w, y, epilogue, stream);
  case ConvKernel::Gemm32x32By4:
    return launchConvGemm<ConvTile32x32By4, Pool, Upsampled>(
        what, g, groups, types, x, w, y, epilogue, stream);
  case ConvKernel::Auto:
  case ConvKernel::Gemm32x32:
    break;
  }
  return launchConvGemm<ConvTile32x32, Pool, Upsampled>(
      what, g, groups, types, x, w, y, epilogue, stream);
}

template <class Pool, bool Upsampled, class X, class W, class Y, class LoadX,
          class LoadW, class Epilogue>
memplan_status convAs(const char *what, const ConvShape &shape, const X *x,
                      LoadX loadX, const W *w, LoadW loadW, Y *y,
                      const Epilogue &epilogue, cudaStream_t stream,
                      ConvKernel kernel) {
  ConvGeometry g;
  MEMPLAN_TRY(makeConvGeometry(what, shape, g, Pool::kArea, Upsampled));
  if (g.allPixels == 0 || shape.f == 0)
    return MEMPLAN_OK;
  const ConvTypes<X, W, Y, LoadX, LoadW> types{loadX, loadW};
  if constexpr (sizeof(X) > 4 || sizeof(W) > 4 || sizeof(Y) > 4) {
    static_assert(Pool::kArea == 1, "64-bit types aren't pooled");
    return launchConvDirect</*Depthwise=*/false, Upsampled>(
        what, g, shape, types, x, w, y, epilogue, stream);
  } else {
    return launchConv<Pool, Upsampled>(what, g, shape, types, x, w, y, epilogue,
                                       stream, kernel);
  }
}

template <class Pool = NoPool, bool Upsampled = false, class X, class W,
          class Y, class Epilogue>
memplan_status conv(const char *what, const ConvShape &shape, const X *x,
                    const W *w, Y *y, const Epilogue &epilogue,
                    cudaStream_t stream, ConvKernel kernel = ConvKernel::Auto) {
  return convAs<Pool, Upsampled>(what, shape, x, AsItIs(), w, AsItIs(), y,
                                 epilogue, stream, kernel);
}

template <class Pool = NoPool, class X, class W, class Y, class Epilogue>
memplan_status convUpsampled(const char *what, const ConvShape &shape,
                             const X *x, const W *w, Y *y,
                             const Epilogue &epilogue, cudaStream_t stream) {
  return convAs<Pool, true>(what, shape, x, AsItIs(), w, AsItIs(), y, epilogue,
                            stream, ConvKernel::Auto);
}

template <class Pool = NoPool, class X, class LoadX, class W, class LoadW,
          class Y, class Epilogue>
memplan_status
convQuantized(const char *what, const ConvShape &shape, const X *x, LoadX loadX,
              const W *w, LoadW loadW, Y *y, const Epilogue &epilogue,
              cudaStream_t stream, ConvKernel kernel = ConvKernel::Auto) {
  return convAs<Pool, false>(what, shape, x, loadX, w, loadW, y, epilogue,
                             stream, kernel);
}

template <class Pool = NoPool, class X, class LoadX, class W, class LoadW,
          class Y, class Epilogue>
memplan_status
convQuantizedUpsampled(const char *what, const ConvShape &shape, const X *x,
                       LoadX loadX, const W *w, LoadW loadW, Y *y,
                       const Epilogue &epilogue, cudaStream_t stream) {
  return convAs<Pool, true>(what, shape, x, loadX, w, loadW, y, epilogue,
                            stream, ConvKernel::Auto);
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONV_H
