//===- PlatformHost.h - CUDA's kernel language in plain C++ -----*- C++ -*-===//
//
// Included by Platform.h outside nvcc. Blocks run on OS threads, in any order;
// the threads of a block run one after the other (`launch`) or as fibers
// (`launchWithBarriers`). `__shared__` data belongs to the OS thread, hence to
// one block at a time, and like CUDA's starts with whatever was there.
//
// Left out, and an error where it could be used unseen: masks that leave out
// some of a warp's threads, and barriers under `launch`.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_PLATFORMHOST_H
#define MEMPLAN_RUNTIME_PLATFORMHOST_H

#include "memplan/Runtime/Error.h"
#include "memplan/Runtime/HostFibers.h"
#include "memplan/Runtime/HostThreads.h"

#include <atomic>
#include <mutex>

// CUDA's names are reserved ones; here we are the implementation.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static thread_local
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __launch_bounds__(...)
// NOLINTEND(bugprone-reserved-identifier)

namespace memplan::rt {

/// Calls of the runtime since the program started, all threads together.
struct HostCounters {
  int64_t allocations = 0, frees = 0, synchronisations = 0, launches = 0;
};

namespace host {

struct Counters {
  std::atomic<int64_t> allocations{0}, frees{0}, synchronisations{0},
      launches{0};
};
inline Counters &counters() {
  static Counters all;
  return all;
}

/// The first error of a launch, from whichever OS thread.
class LaunchError {
public:
  void set(const std::string &text) {
    std::lock_guard<std::mutex> lock(mutex);
    if (message.empty())
      message = text;
    failed.store(true, std::memory_order_relaxed);
  }
  bool isSet() const { return failed.load(std::memory_order_relaxed); }
  const char *text() const { return message.c_str(); }

private:
  std::mutex mutex;
  std::atomic<bool> failed{false};
  std::string message;
};

inline thread_local const char *misusedBarrier = nullptr;

/// The limits of compute capability 5.0 and later, so that the host refuses
/// what the GPU would.
inline memplan_status checkLaunch(const char *what, dim3 grid, dim3 block) {
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return fail(MEMPLAN_ERROR_DEVICE,
                "%s: grid (%u, %u, %u) is over (2147483647, 65535, 65535)",
                what, grid.x, grid.y, grid.z);
  uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64)
    return fail(MEMPLAN_ERROR_DEVICE,
                "%s: block (%u, %u, %u) is empty or has more than 1024 threads "
                "or more than 64 in z",
                what, block.x, block.y, block.z);
  return MEMPLAN_OK;
}

/// Runs call() for each thread of one block, in turn.
template <class Call>
void runThreadsInTurn(const Call &call) {
  const dim3 size = blockDim;
  for (unsigned z = 0; z < size.z; ++z)
    for (unsigned y = 0; y < size.y; ++y)
      for (unsigned x = 0; x < size.x; ++x) {
        threadIdx = dim3(x, y, z);
        call();
      }
}

template <class Call>
void runBlock(const Call &call, bool fibers, LaunchError &error) {
  misusedBarrier = nullptr;
  if (fibers) {
    static thread_local FiberBlock threads;
    FiberBlock::active() = &threads;
    std::string broken = threads.run(
        [](const void *opaque) { (*static_cast<const Call *>(opaque))(); },
        &call);
    FiberBlock::active() = nullptr;
    if (!broken.empty())
      error.set(broken);
    return;
  }
  runThreadsInTurn(call);
  if (misusedBarrier)
    error.set(std::string(misusedBarrier) +
              " in a kernel that was launched with `launch`; use "
              "`launchWithBarriers`");
}

template <class Call>
memplan_status runGrid(const char *what, dim3 grid, dim3 block, bool fibers,
                       const Call &call) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return MEMPLAN_OK;
  MEMPLAN_TRY(checkLaunch(what, grid, block));
  counters().launches.fetch_add(1, std::memory_order_relaxed);
  LaunchError error;
  // Several blocks a step: taking a step costs an atomic operation, and blocks
  // can be tiny.
  const int64_t blocks = int64_t(grid.x) * grid.y * grid.z;
  const int64_t steps = blocks < 64 * ThreadPool::get().size()
                            ? blocks
                            : 64 * ThreadPool::get().size();
  ThreadPool::get().forEach(steps, [&](int64_t step) {
    gridDim = grid;
    blockDim = block;
    // Rounded so that the steps' ends meet; no overflow: steps is small.
    int64_t first = blocks / steps * step + blocks % steps * step / steps;
    int64_t next =
        blocks / steps * (step + 1) + blocks % steps * (step + 1) / steps;
    for (int64_t i = first; i < next && !error.isSet(); ++i) {
      blockIdx.x = static_cast<unsigned>(i % grid.x);
      blockIdx.y = static_cast<unsigned>(i / grid.x % grid.y);
      blockIdx.z = static_cast<unsigned>(i / grid.x / grid.y);
      runBlock(call, fibers, error);
    }
  });
  if (error.isSet())
    return fail(MEMPLAN_ERROR_CHECK, "%s: %s", what, error.text());
  return MEMPLAN_OK;
}

/// The running block of fibers; null, noted as an error, under `launch`.
inline FiberBlock *blockFor(const char *barrier) {
  FiberBlock *block = FiberBlock::active();
  if (!block)
    misusedBarrier = barrier;
  return block;
}

template <class T, class SourceOf>
T shuffle(const char *name, uint32_t mask, T value, int width,
          SourceOf sourceOf) {
  FiberBlock *block = blockFor(name);
  if (!block)
    return value;
  if ((mask & block->warpMask()) != block->warpMask())
    block->abandon("a warp shuffle's mask leaves out threads of the warp");
  if (width < 1 || width > 32 || (width & (width - 1)) != 0)
    block->abandon("a warp shuffle's width isn't 1, 2, 4, 8, 16 or 32");
  return block->shuffle(value, sourceOf(block->lane(), unsigned(width)));
}

} // namespace host

inline HostCounters hostCounters() {
  const host::Counters &all = host::counters();
  HostCounters copy;
  copy.allocations = all.allocations.load();
  copy.frees = all.frees.load();
  copy.synchronisations = all.synchronisations.load();
  copy.launches = all.launches.load();
  return copy;
}

template <class... P, class... A>
memplan_status launch(const char *what, void (*kernel)(P...), dim3 grid,
                      dim3 block, cudaStream_t, A... arguments) {
  return host::runGrid(what, grid, block, /*fibers=*/false,
                       [&] { kernel(static_cast<P>(arguments)...); });
}

template <class... P, class... A>
memplan_status launchWithBarriers(const char *what, void (*kernel)(P...),
                                  dim3 grid, dim3 block, cudaStream_t,
                                  A... arguments) {
  return host::runGrid(what, grid, block, /*fibers=*/true,
                       [&] { kernel(static_cast<P>(arguments)...); });
}

} // namespace memplan::rt

// Barriers and shuffles under CUDA's own names.
// NOLINTBEGIN(bugprone-reserved-identifier)

inline void __syncthreads() {
  if (auto *block = memplan::rt::host::blockFor("__syncthreads"))
    block->syncBlock();
}

inline void __syncwarp(unsigned = 0xffffffffu) {
  if (auto *block = memplan::rt::host::blockFor("__syncwarp"))
    block->syncWarp();
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return memplan::rt::host::shuffle(
      "__shfl_sync", mask, value, width, [&](unsigned lane, unsigned w) {
        return (lane & ~(w - 1)) + (unsigned(source) & (w - 1));
      });
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return memplan::rt::host::shuffle(
      "__shfl_up_sync", mask, value, width, [&](unsigned lane, unsigned w) {
        return (lane & (w - 1)) >= delta ? lane - delta : lane;
      });
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return memplan::rt::host::shuffle(
      "__shfl_down_sync", mask, value, width, [&](unsigned lane, unsigned w) {
        return (lane & (w - 1)) + delta < w ? lane + delta : lane;
      });
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int laneMask, int width = 32) {
  return memplan::rt::host::shuffle(
      "__shfl_xor_sync", mask, value, width, [&](unsigned lane, unsigned w) {
        unsigned source = lane ^ unsigned(laneMask);
        return source <= (lane | (w - 1)) ? source : lane;
      });
}

// NOLINTEND(bugprone-reserved-identifier)

#endif // MEMPLAN_RUNTIME_PLATFORMHOST_H
