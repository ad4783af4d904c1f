//===- PlatformTest.cpp - CUDA's semantics on the host --------------------===//

#include "memplan/Runtime/Platform.h"
#include "memplan/Runtime/Memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace memplan::rt;

namespace {

bool lastErrorHas(const char *text) {
  return std::strstr(memplan_last_error(), text) != nullptr;
}

//===----------------------------------------------------------------------===//
// Grids and blocks
//===----------------------------------------------------------------------===//

struct Where {
  unsigned block[3], thread[3], grid[3], size[3];
};

__global__ void recordKernel(Where *out, int *visits) {
  unsigned block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  out[i] = {{blockIdx.x, blockIdx.y, blockIdx.z},
            {threadIdx.x, threadIdx.y, threadIdx.z},
            {gridDim.x, gridDim.y, gridDim.z},
            {blockDim.x, blockDim.y, blockDim.z}};
  ++visits[i];
}

TEST(Platform, EachThreadOfA3DGridRunsOnceWithItsIndices) {
  const dim3 grid(5, 3, 2), block(4, 2, 3);
  const size_t threads = 30 * 24;
  for (bool barriers : {false, true}) {
    std::vector<Where> out(threads);
    std::vector<int> visits(threads, 0);
    ASSERT_EQ((barriers ? launchWithBarriers("r", recordKernel, grid, block,
                                             nullptr, out.data(), visits.data())
                        : launch("r", recordKernel, grid, block, nullptr,
                                 out.data(), visits.data())),
              MEMPLAN_OK);
    size_t i = 0;
    for (unsigned bz = 0; bz < 2; ++bz)
      for (unsigned by = 0; by < 3; ++by)
        for (unsigned bx = 0; bx < 5; ++bx)
          for (unsigned tz = 0; tz < 3; ++tz)
            for (unsigned ty = 0; ty < 2; ++ty)
              for (unsigned tx = 0; tx < 4; ++tx, ++i) {
                Where expected = {
                    {bx, by, bz}, {tx, ty, tz}, {5, 3, 2}, {4, 2, 3}};
                EXPECT_EQ(std::memcmp(&out[i], &expected, sizeof expected), 0);
                EXPECT_EQ(visits[i], 1);
              }
  }
}

__global__ void countKernel(unsigned char *visits, int64_t count) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    ++visits[i];
}

TEST(Platform, ManyBlocksAreCutIntoStepsThatMeet) {
  for (int64_t blocks : {1, 2, 63, 127, 128, 129, 1000, 12347}) {
    std::vector<unsigned char> visits(size_t(blocks) * 8, 0);
    ASSERT_EQ(launch("c", countKernel, dim3(unsigned(blocks)), dim3(8), nullptr,
                     visits.data(), int64_t(visits.size())),
              MEMPLAN_OK);
    EXPECT_EQ(visits, std::vector<unsigned char>(visits.size(), 1));
  }
}

TEST(Platform, SeveralThreadsMayLaunchAtOnce) {
  std::vector<std::vector<unsigned char>> visits(4);
  std::vector<std::thread> callers;
  callers.reserve(visits.size());
  for (auto &mine : visits)
    callers.emplace_back([&mine] {
      mine.assign(4000, 0);
      for (int i = 0; i < 50; ++i)
        EXPECT_EQ(launch("c", countKernel, dim3(500), dim3(8), nullptr,
                         mine.data(), int64_t(mine.size())),
                  MEMPLAN_OK);
    });
  for (std::thread &caller : callers)
    caller.join();
  for (const auto &mine : visits)
    EXPECT_EQ(mine, std::vector<unsigned char>(4000, 50));
}

TEST(Platform, AnEmptyGridIsNoLaunch) {
  const int64_t before = hostCounters().launches;
  EXPECT_EQ(launch("none", countKernel, dim3(0), dim3(8), nullptr,
                   static_cast<unsigned char *>(nullptr), 0),
            MEMPLAN_OK);
  EXPECT_EQ(hostCounters().launches, before);
}

TEST(Platform, LaunchesOverCudasLimitsAreRefused) {
  auto status = [](dim3 grid, dim3 block) {
    return launch("node7", countKernel, grid, block, nullptr,
                  static_cast<unsigned char *>(nullptr), 0);
  };
  EXPECT_EQ(status(dim3(1), dim3(1025)), MEMPLAN_ERROR_DEVICE);
  EXPECT_TRUE(lastErrorHas("node7"));
  EXPECT_TRUE(lastErrorHas("1024 threads"));
  EXPECT_EQ(status(dim3(1), dim3(0)), MEMPLAN_ERROR_DEVICE);
  EXPECT_EQ(status(dim3(1), dim3(1, 1, 65)), MEMPLAN_ERROR_DEVICE);
  EXPECT_EQ(status(dim3(1, 65536), dim3(1)), MEMPLAN_ERROR_DEVICE);
  EXPECT_EQ(status(dim3(1, 1, 65536), dim3(1)), MEMPLAN_ERROR_DEVICE);
  EXPECT_EQ(status(dim3(0x80000000u), dim3(1)), MEMPLAN_ERROR_DEVICE);
}

//===----------------------------------------------------------------------===//
// Barriers and shared memory
//===----------------------------------------------------------------------===//

// Each round, every thread passes its number to its neighbour through shared
// memory. After `rounds` of them, thread t holds t - rounds (mod the block).
__global__ void rotateKernel(int *out, int rounds) {
  __shared__ int shared[1024];
  const int n = int(blockDim.x), t = int(threadIdx.x);
  int mine = t;
  for (int i = 0; i < rounds; ++i) {
    shared[(t + 1) % n] = mine;
    __syncthreads();
    mine = shared[t];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}

TEST(Platform, SharedMemoryIsExchangedAtBarriers) {
  for (int n : {1, 31, 32, 33, 256, 1000, 1024}) {
    std::vector<int> out(size_t(n) * 20);
    ASSERT_EQ(launchWithBarriers("rotate", rotateKernel, dim3(20),
                                 dim3(unsigned(n)), nullptr, out.data(), 7),
              MEMPLAN_OK);
    for (int i = 0; i < n * 20; ++i)
      ASSERT_EQ(out[size_t(i)], ((i % n - 7) % n + n) % n) << n;
  }
}

__global__ void returnEarlyKernel(int *out, unsigned who) {
  if (threadIdx.x == who)
    return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

TEST(Platform, ReturningBeforeABarrierIsReported) {
  std::vector<int> out(128);
  // 3 and 127: in the first and in the last warp.
  for (unsigned who : {3u, 127u}) {
    EXPECT_EQ(launchWithBarriers("node1", returnEarlyKernel, dim3(1), dim3(128),
                                 nullptr, out.data(), who),
              MEMPLAN_ERROR_CHECK);
    EXPECT_TRUE(lastErrorHas("node1")) << memplan_last_error();
    EXPECT_TRUE(lastErrorHas("__syncthreads"));
    EXPECT_TRUE(lastErrorHas(
        ("(" + std::to_string(who) + ", 0, 0) doesn't reach: it has returned")
            .c_str()));
  }
  // The block's stacks can be used again.
  EXPECT_EQ(launchWithBarriers("node2", returnEarlyKernel, dim3(4), dim3(128),
                               nullptr, out.data(), 1000u),
            MEMPLAN_OK);
}

__global__ void shuffleWhileOthersWaitKernel(int *out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_sync(0xffffffffu, int(threadIdx.x), 0);
  __syncthreads();
}

TEST(Platform, AShuffleThatNotAllLanesReachIsReported) {
  std::vector<int> out(32);
  EXPECT_EQ(launchWithBarriers("node3", shuffleWhileOthersWaitKernel, dim3(1),
                               dim3(32), nullptr, out.data()),
            MEMPLAN_ERROR_CHECK);
  EXPECT_TRUE(lastErrorHas("shuffle")) << memplan_last_error();
  EXPECT_TRUE(lastErrorHas("waits at another barrier"));
}

__global__ void partialMaskKernel(int *out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0);
}

TEST(Platform, AMaskThatLeavesOutThreadsIsReported) {
  std::vector<int> out(32);
  EXPECT_EQ(launchWithBarriers("node4", partialMaskKernel, dim3(1), dim3(32),
                               nullptr, out.data()),
            MEMPLAN_ERROR_CHECK);
  EXPECT_TRUE(lastErrorHas("mask")) << memplan_last_error();
  // Those 16 are all there are.
  EXPECT_EQ(launchWithBarriers("node4", partialMaskKernel, dim3(1), dim3(16),
                               nullptr, out.data()),
            MEMPLAN_OK);
}

TEST(Platform, ABarrierUnderPlainLaunchIsReported) {
  std::vector<int> out(64);
  EXPECT_EQ(
      launch("node5", rotateKernel, dim3(1), dim3(64), nullptr, out.data(), 1),
      MEMPLAN_ERROR_CHECK);
  EXPECT_TRUE(lastErrorHas("launchWithBarriers")) << memplan_last_error();
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

enum class Kind { Index, Up, Down, Xor };

__global__ void shuffleKernel(int *out, Kind kind, int argument, int width) {
  const int t = int(threadIdx.x);
  const unsigned all = 0xffffffffu;
  int got = -1;
  switch (kind) {
  case Kind::Index:
    got = __shfl_sync(all, t, argument, width);
    break;
  case Kind::Up:
    got = __shfl_up_sync(all, t, unsigned(argument), width);
    break;
  case Kind::Down:
    got = __shfl_down_sync(all, t, unsigned(argument), width);
    break;
  case Kind::Xor:
    got = __shfl_xor_sync(all, t, argument, width);
    break;
  }
  out[t] = got;
}

// From the PTX manual, `shfl.sync`: c packs the segment's mask and the clamp.
int shuffleSource(Kind kind, int lane, int argument, int width) {
  const int segment = lane / width * width, last = segment + width - 1;
  int source = lane;
  bool valid = true;
  switch (kind) {
  case Kind::Index:
    source = segment + argument % width;
    break;
  case Kind::Up:
    source = lane - argument;
    valid = source >= segment;
    break;
  case Kind::Down:
    source = lane + argument;
    valid = source <= last;
    break;
  case Kind::Xor:
    source = lane ^ argument;
    valid = source <= last;
    break;
  }
  return valid ? source : lane;
}

TEST(Platform, ShufflesFollowThePtxManual) {
  for (int threads : {32, 96, 8, 41}) // full warps, and a short last one
    for (Kind kind : {Kind::Index, Kind::Up, Kind::Down, Kind::Xor})
      for (int width : {32, 16, 8, 4, 2, 1})
        for (int argument : {0, 1, 3, 5, 16, 31}) {
          std::vector<int> out(size_t(threads), -1);
          ASSERT_EQ(launchWithBarriers("s", shuffleKernel, dim3(1),
                                       dim3(unsigned(threads)), nullptr,
                                       out.data(), kind, argument, width),
                    MEMPLAN_OK);
          for (int t = 0; t < threads; ++t) {
            int source =
                t / 32 * 32 + shuffleSource(kind, t % 32, argument, width);
            if (source >= threads)
              source = t; // undefined in CUDA; here one's own
            ASSERT_EQ(out[size_t(t)], source)
                << threads << " " << int(kind) << " " << width << " "
                << argument;
          }
        }
}

__global__ void chainedShuffleKernel(double *out) {
  // No barrier between: a fast lane must not overwrite what a slow one reads.
  double v = threadIdx.x;
  for (int i = 0; i < 9; ++i)
    v = __shfl_sync(0xffffffffu, v, (int(threadIdx.x) + 1) % 32);
  out[threadIdx.x] = v;
}

TEST(Platform, ShufflesCanFollowEachOther) {
  std::vector<double> out(64);
  ASSERT_EQ(launchWithBarriers("s", chainedShuffleKernel, dim3(1), dim3(64),
                               nullptr, out.data()),
            MEMPLAN_OK);
  for (int t = 0; t < 64; ++t)
    EXPECT_EQ(out[size_t(t)], t / 32 * 32 + (t + 9) % 32);
}

//===----------------------------------------------------------------------===//
// Memory and counters
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_ASAN // it finds the overflow first
void deepKernel(bool deep) {
  __syncthreads();
  if (threadIdx.x == 7 && deep) {
    // The stack starts 3264 bytes below its top (7 % 4 * 1088) and has 65536
    // more before the last page, which 65000 reaches into.
    [[maybe_unused]] volatile char bytes[65000];
    for (int i = 0; i < 65000; ++i)
      bytes[i] = 1;
  }
  __syncthreads();
}

TEST(Platform, AStackThatOverflowsIsAnError) {
  auto run = [](bool deep) {
    return launchWithBarriers("deep", deepKernel, dim3(1), dim3(64), nullptr,
                              deep);
  };
  EXPECT_EQ(run(false), MEMPLAN_OK);
  EXPECT_EQ(run(true), MEMPLAN_ERROR_CHECK);
  EXPECT_TRUE(lastErrorHas("stack"));
  EXPECT_EQ(run(false), MEMPLAN_OK);
}
#endif

TEST(Memory, BlocksAreAlignedAndCounted) {
  const HostCounters before = hostCounters();
  void *block = nullptr;
  ASSERT_EQ(deviceAllocate("block", 1000, &block), MEMPLAN_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
  char in[3] = {1, 2, 3}, out[3] = {};
  EXPECT_EQ(copyToDevice("in", block, in, 3), MEMPLAN_OK);
  EXPECT_EQ(copyToHost("out", out, block, 3), MEMPLAN_OK);
  EXPECT_EQ(std::memcmp(in, out, 3), 0);
  deviceFree(block);
  deviceFree(nullptr);
  EXPECT_EQ(synchronize("end", nullptr), MEMPLAN_OK);
  const HostCounters after = hostCounters();
  EXPECT_EQ(after.allocations - before.allocations, 1);
  EXPECT_EQ(after.frees - before.frees, 1);
  EXPECT_EQ(after.synchronisations - before.synchronisations, 1);

  ASSERT_EQ(deviceAllocate("nothing", 0, &block), MEMPLAN_OK);
  EXPECT_EQ(block, nullptr);
}

TEST(Memory, AnAllocationThatCantBeIsAnError) {
  char other;
  void *block = &other;
  EXPECT_EQ(deviceAllocate("huge", SIZE_MAX - 5, &block), MEMPLAN_ERROR_MEMORY);
  EXPECT_EQ(block, nullptr);
  EXPECT_TRUE(lastErrorHas("huge"));
}

TEST(Error, StatusesHaveNames) {
  EXPECT_STREQ(memplan_status_name(MEMPLAN_OK), "MEMPLAN_OK");
  EXPECT_STREQ(memplan_status_name(MEMPLAN_ERROR_CHECK), "MEMPLAN_ERROR_CHECK");
}

} // namespace
