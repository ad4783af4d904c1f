//===- ConvTest.cpp - convolutions against plain loops --------------------===//

#include "memplan/Runtime/Conv.h"
#include "memplan/Runtime/Gemm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

using namespace memplan::rt;

namespace {

/// Adds a bias, and an operand with y's extents, densely laid out.
struct Epilogue {
  const float *bias, *added;
  int filters, pixels;
  __device__ float operator()(float sum, int n, int f, int p) const {
    return applyRelu(sum + bias[f]) +
           added[(int64_t(n) * filters + f) * pixels + p];
  }
};

constexpr ConvKernel kGemmKernels[] = {
    ConvKernel::Auto,      ConvKernel::Gemm128x64, ConvKernel::Gemm64x64,
    ConvKernel::Gemm32x64, ConvKernel::Gemm32x32,  ConvKernel::Gemm32x32By4};

class Conv : public testing::Test {
protected:
  std::mt19937 random{20240611};

  int64_t upTo(int64_t most) { return int64_t(random() % uint64_t(most)); }

  /// Small integers, so that sums are exact in any order.
  std::vector<float> numbers(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &v : values)
      v = float(int(random() % 7) - 3);
    return values;
  }

  static void setDense(ConvShape &s) {
    s.xStrideC = s.in[0] * s.in[1] * s.in[2];
    s.xStrideN = s.xStrideC * s.c;
    s.yStrideF = s.out[0] * s.out[1] * s.out[2];
    s.yStrideN = s.yStrideF * s.f;
  }

  static ConvShape shape2D(int64_t n, int64_t c, int64_t f, int64_t groups,
                           int64_t size, int64_t kernel, int64_t stride,
                           int64_t pad) {
    ConvShape s;
    s.n = n, s.c = c, s.f = f, s.groups = groups;
    for (int d : {1, 2}) {
      s.in[d] = size, s.kernel[d] = kernel, s.stride[d] = stride;
      s.padBegin[d] = pad;
      s.out[d] = (size + 2 * pad - kernel) / stride + 1;
    }
    setDense(s);
    return s;
  }

  /// Where an element of a channel of x is in it.
  static int64_t inChannel(const ConvShape &s, int64_t z, int64_t y,
                           int64_t x) {
    if (s.xStride[2])
      return z * s.xStride[0] + y * s.xStride[1] + x * s.xStride[2];
    return (z * s.in[1] + y) * s.in[2] + x;
  }

  /// What the epilogue gets at one output position.
  static float sumAt(const ConvShape &s, const std::vector<float> &x,
                     const std::vector<float> &w, int64_t n, int64_t f,
                     int64_t oz, int64_t oy, int64_t ox) {
    const int64_t cPerGroup = s.c / s.groups, fPerGroup = s.f / s.groups;
    float sum = 0;
    for (int64_t c = 0; c < cPerGroup; ++c)
      for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
        for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
          for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
            const int64_t iz =
                oz * s.stride[0] + kz * s.dilation[0] - s.padBegin[0];
            const int64_t iy =
                oy * s.stride[1] + ky * s.dilation[1] - s.padBegin[1];
            const int64_t ix =
                ox * s.stride[2] + kx * s.dilation[2] - s.padBegin[2];
            if (iz < 0 || iz >= s.in[0] * s.upsample[0] || iy < 0 ||
                iy >= s.in[1] * s.upsample[1] || ix < 0 ||
                ix >= s.in[2] * s.upsample[2])
              continue;
            const int64_t channel = f / fPerGroup * cPerGroup + c;
            sum += x[size_t(n * s.xStrideN + channel * s.xStrideC +
                            inChannel(s, iz / s.upsample[0], iy / s.upsample[1],
                                      ix / s.upsample[2]))] *
                   w[size_t(
                       (((f * cPerGroup + c) * s.kernel[0] + kz) * s.kernel[1] +
                        ky) *
                           s.kernel[2] +
                       kx)];
          }
    return sum;
  }

  /// Where in an image of y a filter's results are.
  static int64_t channelOf(const ConvShape &s, int64_t f) {
    const int64_t perGroup = s.f / s.groups;
    return (s.interleaved ? f % perGroup * s.groups + f / perGroup : f) *
           s.yStrideF;
  }

  /// Runs with each kernel that can, and compares every element of y's memory.
  template <bool Upsampled = false>
  void check(const ConvShape &s) {
    SCOPED_TRACE(testing::Message()
                 << "n " << s.n << " c " << s.c << " f " << s.f << " groups "
                 << s.groups << " in " << s.in[0] << "x" << s.in[1] << "x"
                 << s.in[2] << " kernel " << s.kernel[0] << "x" << s.kernel[1]
                 << "x" << s.kernel[2] << " out " << s.out[0] << "x" << s.out[1]
                 << "x" << s.out[2]);
    const int64_t cPerGroup = s.c / s.groups;
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t pixels = s.out[0] * s.out[1] * s.out[2];
    std::vector<float> x = numbers(s.n * s.xStrideN + s.c * s.xStrideC + 1);
    std::vector<float> w = numbers(s.f * cPerGroup * taps + 1);
    std::vector<float> y = numbers(s.n * s.yStrideN + s.f * s.yStrideF + 4);
    std::vector<float> bias = numbers(s.f + 1);
    std::vector<float> added = numbers(s.n * s.f * pixels + 1);

    std::vector<float> expected = y; // what isn't a result stays
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t f = 0; f < s.f; ++f)
        for (int64_t oz = 0, p = 0; oz < s.out[0]; ++oz)
          for (int64_t oy = 0; oy < s.out[1]; ++oy)
            for (int64_t ox = 0; ox < s.out[2]; ++ox, ++p) {
              float sum = sumAt(s, x, w, n, f, oz, oy, ox);
              sum += bias[size_t(f)];
              expected[size_t(n * s.yStrideN + channelOf(s, f) + p)] =
                  (sum > 0 ? sum : 0) +
                  added[size_t((n * s.f + f) * pixels + p)];
            }

    const Epilogue epilogue{bias.data(), added.data(), int(s.f), int(pixels)};
    auto run = [&](ConvKernel kernel) {
      std::vector<float> result = y;
      const memplan_status status = conv<NoPool, Upsampled>(
          "c", s, x.data(), w.data(), result.data(), epilogue, nullptr, kernel);
      ASSERT_EQ(status, MEMPLAN_OK) << memplan_last_error();
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(result[i], expected[i])
            << "at " << i << " with kernel " << int(kernel);
    };
    for (ConvKernel kernel : kGemmKernels)
      run(kernel);
    if (cPerGroup == 1 && !Upsampled)
      run(ConvKernel::Depthwise);
  }

  /// The same with a pool: of the plain sums, window by window.
  template <class Pool>
  void checkPooled(ConvShape s, int64_t z, int64_t y, int64_t x) {
    const int64_t pool[3] = {z, y, x};
    SCOPED_TRACE(testing::Message()
                 << "n " << s.n << " c " << s.c << " f " << s.f << " out "
                 << s.out[0] << "x" << s.out[1] << "x" << s.out[2] << " pool "
                 << z << "x" << y << "x" << x);
    int64_t windows[3];
    for (int d = 0; d < 3; ++d)
      windows[d] = s.out[d] / pool[d], s.pool[d] = pool[d];
    s.yStrideF = windows[0] * windows[1] * windows[2] + 2;
    s.yStrideN = s.f * s.yStrideF + 1;
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t pixels = s.out[0] * s.out[1] * s.out[2];
    std::vector<float> in = numbers(s.n * s.xStrideN + s.c * s.xStrideC + 1);
    std::vector<float> w = numbers(s.f * (s.c / s.groups) * taps + 1);
    std::vector<float> out = numbers(s.n * s.yStrideN + 4);
    std::vector<float> bias = numbers(s.f + 1);
    std::vector<float> added = numbers(s.n * s.f * pixels + 1);

    std::vector<float> expected = out;
    auto inWindow = [&](int64_t n, int64_t f, int64_t wz, int64_t wy,
                        int64_t wx) {
      float result = Pool::Op::template identity<float>();
      for (int64_t oz = wz * z; oz < (wz + 1) * z; ++oz)
        for (int64_t oy = wy * y; oy < (wy + 1) * y; ++oy)
          for (int64_t ox = wx * x; ox < (wx + 1) * x; ++ox) {
            float sum = sumAt(s, in, w, n, f, oz, oy, ox) + bias[size_t(f)];
            const int64_t p = (oz * s.out[1] + oy) * s.out[2] + ox;
            sum =
                (sum > 0 ? sum : 0) + added[size_t((n * s.f + f) * pixels + p)];
            result = Pool::Op::combine(result, sum);
          }
      return std::is_same<typename Pool::Op, MaxOp>()
                 ? result
                 : result / float(z * y * x);
    };
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t f = 0; f < s.f; ++f)
        for (int64_t wz = 0, q = 0; wz < windows[0]; ++wz)
          for (int64_t wy = 0; wy < windows[1]; ++wy)
            for (int64_t wx = 0; wx < windows[2]; ++wx, ++q)
              expected[size_t(n * s.yStrideN + channelOf(s, f) + q)] =
                  inWindow(n, f, wz, wy, wx);

    const Epilogue epilogue{bias.data(), added.data(), int(s.f), int(pixels)};
    for (ConvKernel kernel : kGemmKernels) {
      std::vector<float> result = out;
      ASSERT_EQ(conv<Pool>("c", s, in.data(), w.data(), result.data(), epilogue,
                           nullptr, kernel),
                MEMPLAN_OK)
          << memplan_last_error();
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(result[i], expected[i])
            << "at " << i << " with kernel " << int(kernel);
    }
  }
};

TEST_F(Conv, LayersOfKnownNetworks) {
  check(shape2D(2, 1, 20, 1, 28, 5, 1, 0));   // the first CNN of tutorials
  check(shape2D(1, 3, 64, 1, 33, 7, 2, 3));   // the stem of ResNet
  check(shape2D(1, 70, 130, 1, 14, 1, 1, 0)); // pointwise
  check(shape2D(1, 40, 40, 1, 14, 3, 1, 1));
  check(shape2D(3, 48, 48, 48, 15, 3, 2, 1)); // depthwise
  check(shape2D(1, 12, 36, 12, 9, 3, 1, 1));  // with a channel multiplier of 3
  check(shape2D(2, 24, 60, 4, 8, 1, 1, 0));   // grouped pointwise
  check(shape2D(1, 8, 160, 8, 6, 3, 1, 1));   // one channel, many filters
}

TEST_F(Conv, RandomGeometries) {
  for (int i = 0; i < 150; ++i) {
    ConvShape s;
    s.groups = upTo(3) ? 1 : 1 + upTo(4);
    s.n = 1 + upTo(3);
    s.c = s.groups * (1 + upTo(6));
    s.f = s.groups * (1 + upTo(upTo(4) ? 10 : 80));
    const int rank = 1 + int(upTo(3));
    for (int d = 3 - rank; d < 3; ++d) {
      s.kernel[d] = 1 + upTo(4);
      s.stride[d] = 1 + upTo(3);
      s.dilation[d] = 1 + upTo(3);
      s.padBegin[d] = upTo(4) - (upTo(5) ? 0 : 2); // negative ones too
      const int64_t padEnd = upTo(4);
      const int64_t extent = (s.kernel[d] - 1) * s.dilation[d] + 1;
      s.in[d] = extent + 1 + upTo(rank == 3 ? 4 : 12);
      s.out[d] = (s.in[d] + s.padBegin[d] + padEnd - extent) / s.stride[d] + 1;
      if (s.in[d] + s.padBegin[d] + padEnd < extent)
        s.out[d] = 1;
    }
    setDense(s);
    check(s);
  }
}

// Windows within a thread's run, over two and over many threads; extents that
// windows don't divide; images that end within a tile.
TEST_F(Conv, Pooled) {
  for (int64_t size : {2, 7, 16, 33}) {
    checkPooled<MaxPool<4>>(shape2D(2, 3, 40, 1, size, 3, 1, 1), 1, 2, 2);
    checkPooled<AveragePool<4>>(shape2D(3, 5, 9, 1, size, 1, 1, 0), 1, 2, 2);
    checkPooled<MaxPool<2>>(shape2D(1, 4, 6, 2, size, 3, 1, 1), 1, 1, 2);
    checkPooled<MaxPool<2>>(shape2D(2, 4, 6, 2, size, 3, 1, 1), 1, 2, 1);
  }
  checkPooled<MaxPool<16>>(shape2D(2, 3, 40, 1, 13, 3, 1, 1), 1, 4, 4);
  checkPooled<AveragePool<32>>(shape2D(2, 3, 70, 1, 17, 3, 1, 1), 1, 8, 4);
  checkPooled<MaxPool<4>>(shape2D(2, 3, 40, 1, 1, 1, 1, 0), 1, 2, 2); // nothing
  ConvShape s = shape2D(2, 3, 5, 1, 9, 3, 1, 1);
  s.in[0] = 5, s.kernel[0] = 2, s.out[0] = 4;
  setDense(s);
  checkPooled<MaxPool<8>>(s, 2, 2, 2);
}

TEST_F(Conv, Interleaved) {
  for (int64_t groups : {1, 2, 4, 12}) {
    ConvShape s = shape2D(2, 24, 60, groups, 6, 3, 1, 1);
    s.interleaved = true;
    check(s);
    s.yStrideF += 3, s.yStrideN = s.f * s.yStrideF + 1;
    check(s);
    checkPooled<MaxPool<4>>(s, 1, 2, 2);
  }
  ConvShape s = shape2D(2, 10, 30, 10, 6, 3, 1, 1); // depthwise, 3 a channel
  s.interleaved = true;
  check(s);
}

TEST_F(Conv, Upsampled) {
  for (int64_t factor : {1, 2, 4})
    for (int64_t stride : {1, 2}) {
      ConvShape s = shape2D(2, 3, 40, 1, 5 * factor, 3, stride, 1);
      s.in[1] = s.in[2] = 5, s.upsample[1] = s.upsample[2] = factor;
      s.xStrideC = 25, s.xStrideN = 25 * 3;
      check<true>(s);
    }
  ConvShape s = shape2D(1, 3, 5, 1, 6, 2, 1, 0);
  s.in[0] = 3, s.upsample[0] = 2, s.out[0] = 6; // and depth, one factor only
  setDense(s);
  s.out[1] = 6 - 1, s.out[2] = 6 - 1;
  check<true>(s);
}

TEST_F(Conv, EveryOtherColumnOfATensor) {
  for (int64_t groups : {1, 4}) // with the tiled kernels, and depthwise
    for (int64_t step : {1, 2})
      for (int64_t factor : {1, 2}) {
        ConvShape s = shape2D(2, 4, 12, groups, 6 * factor, 3, 1, 1);
        // 6 rows of 6 in tensors of 12 rows of 20: the first ones, or every
        // other one.
        s.in[1] = s.in[2] = 6, s.upsample[1] = s.upsample[2] = factor;
        s.xStride[0] = 240, s.xStride[1] = 20 * step, s.xStride[2] = step;
        s.xStrideC = 240, s.xStrideN = 240 * 4;
        factor == 1 ? check(s) : check<true>(s);
      }
}

TEST_F(Conv, ViewsIntoLargerTensors) {
  for (int i = 0; i < 30; ++i) {
    ConvShape s = shape2D(1 + upTo(3), 4, 9, 1, 4 + upTo(9), 3, 1, 1);
    // A slice of the channels of a tensor, as a concatenation's parts are.
    s.xStrideN = (s.c + upTo(4)) * s.xStrideC + upTo(2);
    s.yStrideN = (s.f + upTo(4)) * s.yStrideF + upTo(2);
    if (upTo(2)) // each channel a part of something larger
      s.xStrideC += 5, s.xStrideN = s.c * s.xStrideC;
    if (upTo(2))
      s.yStrideF += 3, s.yStrideN = s.f * s.yStrideF + 1;
    check(s);
  }
}

// Strides that would allow wide stores, with images that don't: 25 positions.
TEST_F(Conv, PaddedChannels) {
  ConvShape s = shape2D(3, 4, 9, 1, 5, 3, 1, 1);
  s.yStrideF = 28, s.yStrideN = 9 * 28;
  check(s);
  s = shape2D(3, 4, 9, 1, 6, 3, 1, 1); // and 36, whose images are misaligned
  s.yStrideN = 9 * 36 + 2;
  check(s);
}

TEST_F(Conv, NothingToSumAndNothingToDo) {
  ConvShape none = shape2D(2, 0, 5, 1, 6, 3, 1, 1);
  check(none); // no channels: the epilogue of 0
  const int64_t before = hostCounters().launches;
  for (ConvShape s :
       {shape2D(0, 3, 5, 1, 6, 3, 1, 1), shape2D(2, 3, 0, 1, 6, 3, 1, 1),
        shape2D(2, 3, 5, 1, 1, 2, 1, 0)}) // no output position
    EXPECT_EQ(conv("c", s, static_cast<const float *>(nullptr),
                   static_cast<const float *>(nullptr),
                   static_cast<float *>(nullptr), Epilogue{}, nullptr),
              MEMPLAN_OK);
  EXPECT_EQ(hostCounters().launches, before);
}

TEST_F(Conv, GeometriesThatCantBeAreRefused) {
  auto refused = [](ConvShape s, const char *text,
                    ConvKernel kernel = ConvKernel::Auto) {
    EXPECT_EQ(conv("node3", s, static_cast<const float *>(nullptr),
                   static_cast<const float *>(nullptr),
                   static_cast<float *>(nullptr), Epilogue{}, nullptr, kernel),
              MEMPLAN_ERROR_ARGUMENT);
    EXPECT_NE(std::strstr(memplan_last_error(), "node3"), nullptr);
    EXPECT_NE(std::strstr(memplan_last_error(), text), nullptr)
        << memplan_last_error();
  };
  const ConvShape good = shape2D(1, 4, 6, 2, 8, 3, 1, 1);
  ConvShape s = good;
  s.groups = 4; // doesn't divide 6
  refused(s, "groups");
  s = good, s.groups = 0;
  refused(s, "groups");
  s = good, s.stride[1] = 0;
  refused(s, "out of range");
  s = good, s.kernel[2] = 0;
  refused(s, "out of range");
  s = good, s.out[1] = 65536, s.out[2] = 32768; // 2^31 positions
  refused(s, "2^31");
  refused(good, "depthwise", ConvKernel::Depthwise);
  s = good, s.pool[2] = 2; // with a kernel that does not pool
  refused(s, "pool");
  s = good, s.upsample[1] = 2; // with a kernel that does not upsample
  refused(s, "upsample");
  s = good, s.upsample[1] = 3;
  refused(s, "power of two");
  s = good, s.c = s.f = s.groups = 70000;
  refused(s, "65535", ConvKernel::Gemm32x32);
}

} // namespace
