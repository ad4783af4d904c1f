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
/// w is dense; in y, and in x if xStride doesn't say otherwise, the spatial
/// elements of a channel are.
struct ConvShape {
  int64_t n = 0, c = 0, f = 0, groups = 1;
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  int64_t padBegin[3] = {0, 0, 0}; ///< Negative ones skip input.
  int64_t xStrideN = 0, xStrideC = 0, yStrideN = 0, yStrideF = 0;
  /// Extents of the windows of `out` that a pool reduces, powers of two. What
  /// is left over at the end is not computed. y has one element a window.
  int64_t pool[3] = {1, 1, 1};
  /// Feature i of group g is channel i * groups + g of y, not g * f/groups + i.
  bool interleaved = false;
  /// Each element of x stands for so many in each dimension, powers of two;
  /// `in` are the extents that x has, everything else is over those times this.
  int64_t upsample[3] = {1, 1, 1};
  /// Between the spatial elements of a channel of x, as where that is a view
  /// of every other column; all 0: dense, row-major.
  int64_t xStride[3] = {0, 0, 0};
};

/// As the kernels want it. Products that can exceed 31 bits are 64-bit.
struct ConvGeometry {
  int32_t images, filters; ///< n, f / groups.
  int32_t channels, depth; ///< c / groups, and that by kernel elements.
  /// Output positions that are computed: of an image, of all.
  int32_t imagePixels, allPixels;
  int32_t inZ, inY, inX;
  int32_t strideZ, strideY, strideX;
  int32_t dilationZ, dilationY, dilationX;
  int32_t padZ, padY, padX;
  FastDiv byImage;              ///< Output position to n.
  FastDiv byOutPlane, byOutRow; ///< Position, or window, to z, y, x.
  FastDiv byKernel, byKernelPlane, byKernelRow; ///< k to channel, z, y, x.
  int64_t xStrideN, xStrideC, yStrideN;
  int64_t yStrideG, yStrideF; ///< Of groups, and of filters in a group.
  /// With a pool: extents before it, and logarithms of a window's.
  int32_t outY, outX;
  int32_t poolShiftZ, poolShiftY, poolShiftX;
  int32_t upShiftZ, upShiftY, upShiftX; ///< Logarithms of what `upsample` has.
  int32_t xStrideZ, xStrideY, xStrideX;

  /// Where `pixel` of an image is in the output, before pooling. With a pool
  /// of kArea elements, pixels count window by window.
  template <int kArea = 1>
  __device__ __forceinline__ void outputPosition(uint32_t pixel, int32_t &z,
                                                 int32_t &y, int32_t &x) const {
    uint32_t inPlane, column;
    z = int32_t(byOutPlane.divide(pixel / kArea, inPlane));
    y = int32_t(byOutRow.divide(inPlane, column));
    x = int32_t(column);
    if (kArea == 1)
      return;
    const int32_t element = int32_t(pixel % kArea);
    x = (x << poolShiftX) | (element & ((1 << poolShiftX) - 1));
    y = (y << poolShiftY) | ((element >> poolShiftX) & ((1 << poolShiftY) - 1));
    z = (z << poolShiftZ) | (element >> (poolShiftX + poolShiftY));
  }

  /// Its number in row-major order.
  template <int kArea>
  __device__ __forceinline__ int32_t outputNumber(uint32_t pixel) const {
    if (kArea == 1)
      return int32_t(pixel);
    int32_t z, y, x;
    outputPosition<kArea>(pixel, z, y, x);
    return (z * outY + y) * outX + x;
  }

  /// The input position under kernel element (0, 0, 0) there.
  template <int kArea = 1>
  __device__ __forceinline__ void inputOrigin(uint32_t pixel, int32_t &z,
                                              int32_t &y, int32_t &x) const {
    outputPosition<kArea>(pixel, z, y, x);
    z = z * strideZ - padZ;
    y = y * strideY - padY;
    x = x * strideX - padX;
  }

  /// From a channel's first element in x to the one at a position, which may
  /// lie outside.
  __device__ __forceinline__ int64_t inputOffset(int32_t z, int32_t y,
                                                 int32_t x) const {
    return int64_t(z) * xStrideZ + int64_t(y) * xStrideY +
           int64_t(x) * xStrideX;
  }

  /// The same to one inside, in fewer registers.
  __device__ __forceinline__ int32_t insideOffset(int32_t z, int32_t y,
                                                  int32_t x) const {
    return z * xStrideZ + y * xStrideY + x * xStrideX;
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

/// The logarithm of a power of two from 1 to 32, or -1.
inline int32_t poolShift(int64_t extent) {
  for (int32_t shift = 0; shift <= 5; ++shift)
    if (extent == int64_t(1) << shift)
      return shift;
  return -1;
}

/// What of the geometry upsampling decides.
inline memplan_status describeUpsampling(const char *what, const ConvShape &s,
                                         bool isUpsampled, ConvGeometry &g) {
  int32_t *shifts[3] = {&g.upShiftZ, &g.upShiftY, &g.upShiftX};
  bool isOne = true;
  for (int d = 0; d < 3; ++d) {
    int32_t shift = 0;
    while (shift < 10 && int64_t(1) << shift < s.upsample[d])
      ++shift;
    if (s.upsample[d] != int64_t(1) << shift ||
        s.in[d] > (int64_t(1) << 30 >> shift))
      return fail(
          MEMPLAN_ERROR_ARGUMENT,
          "%s: convolution that upsamples by %" PRId64
          " in dimension %d; it must be a power of two up to 1024, with "
          "which the input's extent is under 2^30",
          what, s.upsample[d], d);
    *shifts[d] = shift;
    isOne &= shift == 0;
  }
  if (!isUpsampled && !isOne)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: convolution that upsamples, with a kernel that doesn't",
                what);
  return MEMPLAN_OK;
}

/// What of the geometry a pool of `area` elements decides.
inline memplan_status describePool(const char *what, const ConvShape &s,
                                   int area, ConvGeometry &g) {
  g.poolShiftZ = poolShift(s.pool[0]);
  g.poolShiftY = poolShift(s.pool[1]);
  g.poolShiftX = poolShift(s.pool[2]);
  if (g.poolShiftZ < 0 || g.poolShiftY < 0 || g.poolShiftX < 0 ||
      s.pool[0] * s.pool[1] * s.pool[2] != area)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: convolution with a pool of %" PRId64 " x %" PRId64
                " x %" PRId64 "; the extents must be powers of two of which "
                "the product is %d",
                what, s.pool[0], s.pool[1], s.pool[2], area);
  g.outY = int32_t(s.out[1]), g.outX = int32_t(s.out[2]);
  return MEMPLAN_OK;
}

/// How the elements of a channel of x lie.
inline memplan_status describeInput(const char *what, const ConvShape &s,
                                    ConvGeometry &g) {
  const bool isDense = !s.xStride[0] && !s.xStride[1] && !s.xStride[2];
  const int64_t dense[3] = {s.in[1] * s.in[2], s.in[2], 1};
  const int64_t *strides = isDense ? dense : s.xStride;
  int64_t last = 0; // each term is under 2^62, and checked before the next one
  for (int d = 0; d < 3; ++d) {
    if (strides[d] < 0 || (s.in[d] > 1 && strides[d] > INT32_MAX))
      last = int64_t(1) << 31;
    else if (s.in[d] > 1 && last <= INT32_MAX)
      last += (s.in[d] - 1) * strides[d];
  }
  if (last > INT32_MAX)
    return fail(
        MEMPLAN_ERROR_ARGUMENT,
        "%s: convolution of channels of %" PRId64 " x %" PRId64 " x %" PRId64
        " elements with strides %" PRId64 ", %" PRId64 ", %" PRId64
        "; from the first to the last there must be under 2^31",
        what, s.in[0], s.in[1], s.in[2], strides[0], strides[1], strides[2]);
  g.xStrideZ = int32_t(s.in[0] > 1 ? strides[0] : 0);
  g.xStrideY = int32_t(s.in[1] > 1 ? strides[1] : 0);
  g.xStrideX = int32_t(s.in[2] > 1 ? strides[2] : 0);
  return MEMPLAN_OK;
}

/// Fills `g`, or says which number can't be. `poolArea` and `isUpsampled` are
/// what the kernel was made for.
inline memplan_status makeConvGeometry(const char *what, const ConvShape &s,
                                       ConvGeometry &g, int poolArea = 1,
                                       bool isUpsampled = false) {
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

  MEMPLAN_TRY(describePool(what, s, poolArea, g));
  MEMPLAN_TRY(describeUpsampling(what, s, isUpsampled, g));
  // What windows don't cover is not computed.
  const int64_t windowsY = s.out[1] / s.pool[1],
                windowsX = s.out[2] / s.pool[2];
  pixels = s.out[0] / s.pool[0] * windowsY * windowsX * poolArea;
  g.images = int32_t(s.n);
  g.filters = int32_t(s.f / s.groups);
  g.channels = int32_t(s.c / s.groups);
  g.depth = int32_t(g.channels * taps);
  g.imagePixels = int32_t(pixels);
  g.allPixels = int32_t(pixels * s.n);
  g.inZ = int32_t(s.in[0] << g.upShiftZ);
  g.inY = int32_t(s.in[1] << g.upShiftY);
  g.inX = int32_t(s.in[2] << g.upShiftX);
  g.strideZ = int32_t(s.stride[0]), g.strideY = int32_t(s.stride[1]),
  g.strideX = int32_t(s.stride[2]);
  g.dilationZ = int32_t(s.dilation[0]), g.dilationY = int32_t(s.dilation[1]),
  g.dilationX = int32_t(s.dilation[2]);
  g.padZ = int32_t(s.padBegin[0]), g.padY = int32_t(s.padBegin[1]),
  g.padX = int32_t(s.padBegin[2]);
  g.xStrideN = s.xStrideN, g.xStrideC = s.xStrideC;
  MEMPLAN_TRY(describeInput(what, s, g));
  g.yStrideN = s.yStrideN;
  g.yStrideF = s.interleaved ? s.yStrideF * s.groups : s.yStrideF;
  g.yStrideG = s.interleaved ? s.yStrideF : s.yStrideF * g.filters;
  if (g.allPixels == 0)
    return MEMPLAN_OK; // nothing to decode
  g.byImage = FastDiv(uint32_t(pixels));
  g.byOutPlane = FastDiv(uint32_t(windowsY * windowsX));
  g.byOutRow = FastDiv(uint32_t(windowsX));
  g.byKernel = FastDiv(uint32_t(taps));
  g.byKernelPlane = FastDiv(uint32_t(s.kernel[1] * s.kernel[2]));
  g.byKernelRow = FastDiv(uint32_t(s.kernel[2]));
  return MEMPLAN_OK;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONVSHAPE_H
