//===- ConvShape.h - the geometry of a convolution --------------*- C++ -*-===//
//
// What the caller states (ConvShape), and what the kernels work with
// (ConvGeometry): checked to fit 32 bits where it must, with the divisions that
// index decoding needs prepared.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONVSHAPE_H
#define MEMPLAN_RUNTIME_CONVSHAPE_H

#include "memplan/Runtime/Element.h"
#include "memplan/Runtime/FastDiv.h"

#include <cinttypes>

namespace memplan::rt {

/// x[n, c, in] * w[f, c / groups, kernel] -> y[n, f, out], all in elements.
/// Spatial extents are depth, height, width; a convolution of fewer dimensions
/// has extents, strides and dilations 1 and padding 0 in the leading ones.
/// w is dense; in x and y the spatial elements of a channel are.
struct ConvShape {
  int64_t n = 0, c = 0, f = 0, groups = 1;
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  int64_t padBegin[3] = {0, 0, 0}; ///< Negative ones skip input.
  int64_t xStrideN = 0, xStrideC = 0, yStrideN = 0, yStrideF = 0;
};

/// As the kernels want it. Products that can exceed 31 bits are 64-bit.
struct ConvGeometry {
  int32_t images, filters;        ///< n, f / groups.
  int32_t channels, depth;        ///< c / groups, and that by kernel elements.
  int32_t imagePixels, allPixels; ///< Output positions: of an image, of all.
  int32_t inZ, inY, inX;
  int32_t strideZ, strideY, strideX;
  int32_t dilationZ, dilationY, dilationX;
  int32_t padZ, padY, padX;
  FastDiv byImage, byOutPlane, byOutRow; ///< Output position to n, z, y, x.
  FastDiv byKernel, byKernelPlane, byKernelRow; ///< k to channel, z, y, x.
  int64_t xStrideN, xStrideC, yStrideN, yStrideF;

  /// The input position under kernel element (0, 0, 0) at output position
  /// `pixel` of an image.
  __device__ __forceinline__ void inputOrigin(uint32_t pixel, int32_t &z,
                                              int32_t &y, int32_t &x) const {
    uint32_t inPlane, column;
    z = int32_t(byOutPlane.divide(pixel, inPlane)) * strideZ - padZ;
    y = int32_t(byOutRow.divide(inPlane, column)) * strideY - padY;
    x = int32_t(column) * strideX - padX;
  }

  /// True if there is an input element at the position.
  __device__ __forceinline__ bool isInside(int32_t z, int32_t y,
                                           int32_t x) const {
    return uint32_t(z) < uint32_t(inZ) && uint32_t(y) < uint32_t(inY) &&
           uint32_t(x) < uint32_t(inX);
  }
};

/// A position that isn't inside whatever is added to it: positions and offsets
/// are kept under 2^30, and two of these don't overflow.
inline constexpr int32_t kOutside = -(1 << 30);

/// Fills `g`, or says which number can't be.
inline memplan_status makeConvGeometry(const char *what, const ConvShape &s,
                                       ConvGeometry &g) {
  constexpr int64_t kLimit = int64_t(1) << 30;
  if (s.n < 0 || s.c < 0 || s.f < 0 || s.groups < 1 || s.n >= kLimit ||
      s.c >= kLimit || s.f >= kLimit || s.c % s.groups || s.f % s.groups)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: convolution of n = %" PRId64 ", c = %" PRId64
                ", f = %" PRId64 " in %" PRId64
                " groups; each must be from 0 to 2^30, and the groups divide c "
                "and f",
                what, s.n, s.c, s.f, s.groups);
  int64_t pixels = 1, taps = 1;
  for (int d = 0; d < 3; ++d) {
    const bool small = s.in[d] >= 0 && s.in[d] < kLimit && s.out[d] >= 0 &&
                       s.out[d] < kLimit && s.kernel[d] >= 1 &&
                       s.kernel[d] < kLimit && s.stride[d] >= 1 &&
                       s.stride[d] < kLimit && s.dilation[d] >= 1 &&
                       s.dilation[d] < kLimit && s.padBegin[d] > -kLimit &&
                       s.padBegin[d] < kLimit;
    if (!small || s.out[d] * s.stride[d] - s.padBegin[d] >= kLimit ||
        s.kernel[d] * s.dilation[d] >= kLimit)
      return fail(MEMPLAN_ERROR_ARGUMENT,
                  "%s: convolution with input %" PRId64 ", kernel %" PRId64
                  ", output %" PRId64 ", stride %" PRId64 ", dilation %" PRId64
                  ", padding %" PRId64 " in dimension %d is out of range",
                  what, s.in[d], s.kernel[d], s.out[d], s.stride[d],
                  s.dilation[d], s.padBegin[d], d);
    // Factors and running products are under 2^31, so nothing overflows.
    pixels = pixels * s.out[d] < kLimit * 2 ? pixels * s.out[d] : kLimit * 2;
    taps = taps * s.kernel[d] < kLimit * 2 ? taps * s.kernel[d] : kLimit * 2;
  }
  // A margin, since the last tile reaches beyond the end.
  constexpr int64_t kMost = 2 * kLimit - 256;
  if (pixels * s.n >= kMost || s.c / s.groups * taps >= kMost)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: convolution with %" PRId64 " images of %" PRId64
                " output positions and %" PRId64 " channels of %" PRId64
                " kernel elements; both products must be under 2^31 - 256",
                what, s.n, pixels, s.c / s.groups, taps);

  g.images = int32_t(s.n);
  g.filters = int32_t(s.f / s.groups);
  g.channels = int32_t(s.c / s.groups);
  g.depth = int32_t(g.channels * taps);
  g.imagePixels = int32_t(pixels);
  g.allPixels = int32_t(pixels * s.n);
  g.inZ = int32_t(s.in[0]), g.inY = int32_t(s.in[1]), g.inX = int32_t(s.in[2]);
  g.strideZ = int32_t(s.stride[0]), g.strideY = int32_t(s.stride[1]),
  g.strideX = int32_t(s.stride[2]);
  g.dilationZ = int32_t(s.dilation[0]), g.dilationY = int32_t(s.dilation[1]),
  g.dilationX = int32_t(s.dilation[2]);
  g.padZ = int32_t(s.padBegin[0]), g.padY = int32_t(s.padBegin[1]),
  g.padX = int32_t(s.padBegin[2]);
  g.xStrideN = s.xStrideN, g.xStrideC = s.xStrideC;
  g.yStrideN = s.yStrideN, g.yStrideF = s.yStrideF;
  if (g.allPixels == 0)
    return MEMPLAN_OK; // nothing to decode
  g.byImage = FastDiv(uint32_t(pixels));
  g.byOutPlane = FastDiv(uint32_t(s.out[1] * s.out[2]));
  g.byOutRow = FastDiv(uint32_t(s.out[2]));
  g.byKernel = FastDiv(uint32_t(taps));
  g.byKernelPlane = FastDiv(uint32_t(s.kernel[1] * s.kernel[2]));
  g.byKernelRow = FastDiv(uint32_t(s.kernel[2]));
  return MEMPLAN_OK;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVSHAPE_H
