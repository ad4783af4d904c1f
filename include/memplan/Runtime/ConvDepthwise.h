//===- ConvDepthwise.h - convolution of single channels ---------*- C++ -*-===//
//
// With one input channel a group there is no matrix to multiply: each result is
// a short sum, and memory sets the pace. One thread a result; neighbours in a
// row are computed by neighbouring threads, so that loads and stores are
// contiguous and overlapping patches meet in the cache.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONVDEPTHWISE_H
#define MEMPLAN_RUNTIME_CONVDEPTHWISE_H

#include "memplan/Runtime/ConvImplicitGemm.h"

namespace memplan::rt {

inline constexpr int kDepthwiseThreads = 128;

/// What a result of one image is a result of: its filter and its position.
struct DepthwiseDecoding {
  FastDiv byFilter;     ///< Result to filter and position: output pixels.
  FastDiv byMultiplier; ///< Filter to channel: filters of a group.
  int32_t results;      ///< Of one image.
  int32_t kernelZ, kernelY, kernelX;
};

template <class Types, class Epilogue>
__global__ void __launch_bounds__(kDepthwiseThreads)
    convDepthwiseKernel(const ConvGeometry g, const DepthwiseDecoding d,
                        const Types types,
                        const typename Types::Input *__restrict__ x,
                        const typename Types::Filter *__restrict__ w,
                        typename Types::Output *y, const Epilogue epilogue) {
  using Accum = typename Types::Accum;
  const int64_t result = int64_t(blockIdx.x) * kDepthwiseThreads + threadIdx.x;
  if (result >= d.results)
    return;
  uint32_t pixel;
  const uint32_t f = d.byFilter.divide(uint32_t(result), pixel);
  uint32_t filter;
  const uint32_t channel = d.byMultiplier.divide(f, filter);
  int32_t originZ, originY, originX;
  g.inputOrigin(pixel, originZ, originY, originX);
  // One image a thread: a loop over images would hoist the epilogue's operands
  // and spill them.
  const int64_t n = int64_t(blockIdx.z) * gridDim.y + blockIdx.y;
  if (n >= g.images)
    return;
  const auto *plane = x + n * g.xStrideN + channel * g.xStrideC;
  const auto *weight = w + int64_t(f) * g.depth;
  Accum sum = 0;
  for (int32_t kz = 0; kz < d.kernelZ; ++kz)
    for (int32_t ky = 0; ky < d.kernelY; ++ky)
      for (int32_t kx = 0; kx < d.kernelX; ++kx, ++weight) {
        const int32_t iz = originZ + kz * g.dilationZ;
        const int32_t iy = originY + ky * g.dilationY;
        const int32_t ix = originX + kx * g.dilationX;
        if (g.isInside(iz, iy, ix))
          sum += types.loadX.template load<Accum>(
                     plane[g.inputOffset(iz, iy, ix)], 0) *
                 types.loadW.template load<Accum>(*weight, f);
      }
  y[n * g.yStrideN + channel * g.yStrideG + filter * g.yStrideF + pixel] =
      epilogue(sum, int(n), int(f), int(pixel));
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVDEPTHWISE_H
