//===- ConvDirect.h - convolution, one thread a result ----------*- C++ -*-===//
//
// With one input channel a group there is no matrix to multiply: each result is
// a short sum, and memory sets the pace. Neighbours in a row are computed by
// neighbouring threads, so that loads and stores are contiguous and overlapping
// patches meet in the cache.
//
// 64-bit types come here with any number of channels: they are rare, and the
// tiled kernels' shared memory and vectors are made for 32 bits.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONVDIRECT_H
#define MEMPLAN_RUNTIME_CONVDIRECT_H

#include "memplan/Runtime/ConvImplicitGemm.h"

namespace memplan::rt {

inline constexpr int kDirectThreads = 128;

/// What a result of one image is a result of: its filter and its position.
struct DirectDecoding {
  FastDiv byFilter; ///< Result to filter and position: output pixels.
  FastDiv byGroup;  ///< Filter to group: filters of a group.
  int32_t results;  ///< Of one image.
  int32_t kernelZ, kernelY, kernelX;
};

/// `Depthwise` ones have one channel a group.
template <bool Depthwise, bool Upsampled, class Types, class Epilogue>
__global__ void __launch_bounds__(kDirectThreads)
    convDirectKernel(const ConvGeometry g, const DirectDecoding d,
                     const Types types,
                     const typename Types::Input *__restrict__ x,
                     const typename Types::Filter *__restrict__ w,
                     typename Types::Output *y, const Epilogue epilogue) {
  using Accum = typename Types::Accum;
  const int64_t result = int64_t(blockIdx.x) * kDirectThreads + threadIdx.x;
  if (result >= d.results)
    return;
  uint32_t pixel;
  const uint32_t f = d.byFilter.divide(uint32_t(result), pixel);
  uint32_t filter;
  const uint32_t group = d.byGroup.divide(f, filter);
  int32_t originZ, originY, originX;
  g.inputOrigin(pixel, originZ, originY, originX);
  // One image a thread: a loop over images would hoist the epilogue's operands
  // and spill them.
  const int64_t n = int64_t(blockIdx.z) * gridDim.y + blockIdx.y;
  if (n >= g.images)
    return;
  const int32_t channels = Depthwise ? 1 : g.channels;
  const auto *plane =
      x + n * g.xStrideN + int64_t(group) * channels * g.xStrideC;
  const auto *weight = w + int64_t(f) * g.depth;
  Accum sum = 0;
  for (int32_t c = 0; c < channels; ++c, plane += g.xStrideC)
    for (int32_t kz = 0; kz < d.kernelZ; ++kz)
      for (int32_t ky = 0; ky < d.kernelY; ++ky)
        for (int32_t kx = 0; kx < d.kernelX; ++kx, ++weight) {
          int32_t iz = originZ + kz * g.dilationZ;
          int32_t iy = originY + ky * g.dilationY;
          int32_t ix = originX + kx * g.dilationX;
          if (!g.isInside(iz, iy, ix))
            continue;
          if (Upsampled)
            iz >>= g.upShiftZ, iy >>= g.upShiftY, ix >>= g.upShiftX;
          sum += types.loadX.template load<Accum>(
                     plane[g.insideOffset(iz, iy, ix)], 0) *
                 types.loadW.template load<Accum>(*weight, f);
        }
  y[n * g.yStrideN + group * g.yStrideG + filter * g.yStrideF + pixel] =
      epilogue(sum, int(n), int(f), int(pixel));
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVDIRECT_H
