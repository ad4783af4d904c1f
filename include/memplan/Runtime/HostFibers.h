//===- HostFibers.h - the threads of a block as fibers ----------*- C++ -*-===//
//
// A block runs on one OS thread; each of its CUDA threads is a fiber with its
// own stack, which runs until it meets a barrier or returns. Warps take turns:
// a warp's fibers run shuffle by shuffle, and the block goes on when all have
// reached __syncthreads. A barrier that some threads of the warp or block will
// not reach is found as such and reported; nothing hangs.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_HOSTFIBERS_H
#define MEMPLAN_RUNTIME_HOSTFIBERS_H

#include "memplan/Runtime/HostSwitch.h"

#include <cstdio>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define MEMPLAN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMPLAN_ASAN 1
#endif
#endif
#ifdef MEMPLAN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) noexcept
      : x(x), y(y), z(z) {}
};

// Named as CUDA names them, since kernels do. A fiber's are set each time it is
// resumed.
inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace memplan::rt::host {

class FiberBlock {
public:
  static constexpr unsigned kLanes = 32;

  /// Runs entry(context) once for each thread of the current block, whose size
  /// is `blockDim`. Returns "", or what rule of CUDA the kernel broke.
  std::string run(void (*entry)(const void *), const void *context) {
    kernelEntry = entry;
    kernelContext = context;
    error.clear();
    prepareFibers();
    while (error.empty()) {
      for (unsigned first = 0; first < count && error.empty(); first += kLanes)
        runWarp(first, first + kLanes < count ? first + kLanes : count);
      if (error.empty() && !blockMet())
        break;
    }
    if (!marksAreWhole())
      error = "a thread's stack of 64 KiB overflowed";
    return error;
  }

  /// Called by a fiber: goes on when every thread of the block has called it.
  void syncBlock() { suspend(AtBlockBarrier); }
  /// The same for the warp.
  void syncWarp() { suspend(AtWarpBarrier); }

  /// Called by a fiber: what lane `source` of the warp passed as `value`; its
  /// own value if there is no such lane.
  template <class T>
  T shuffle(T value, unsigned source) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes");
    Fiber &self = fibers[current];
    // Two sets of slots in turn: a lane can't reach the set's next use before
    // all lanes have passed the barrier between, and so have read this one.
    uint64_t *slots = &exchange[self.shuffleParity][0];
    self.shuffleParity ^= 1;
    unsigned lane = current % kLanes, first = current - lane;
    std::memcpy(&slots[lane], &value, sizeof(T));
    syncWarp();
    if (source < kLanes && first + source < count)
      std::memcpy(&value, &slots[source], sizeof(T));
    return value;
  }

  unsigned lane() const { return current % kLanes; }
  /// One bit for each thread that the calling fiber's warp has.
  uint32_t warpMask() const {
    unsigned left = count - (current - lane());
    return left >= kLanes ? ~uint32_t(0) : (uint32_t(1) << left) - 1;
  }

  /// Called by a fiber: ends the block with `text`.
  void abandon(const char *text) {
    error = text;
    suspend(Stuck);
  }

  /// The block that this OS thread is running, or null.
  static FiberBlock *&active() {
    static thread_local FiberBlock *block = nullptr;
    return block;
  }

  ~FiberBlock() { releaseStacks(); }

private:
  enum State : uint8_t {
    Ready,
    AtWarpBarrier,
    AtBlockBarrier,
    Returned,
    Stuck
  };

  struct Fiber {
    Continuation at;
    dim3 index;
    State state = Ready;
    uint8_t shuffleParity = 0;
#ifdef MEMPLAN_ASAN
    void *fakeStack = nullptr;
#endif
  };

  // Stacks lie 17 pages apart and start at one of four offsets: at a distance
  // of a power of two, all of a block's stacks would share a few cache sets.
#ifdef MEMPLAN_ASAN
  static constexpr size_t kStackBytes = 65 * 4096;
#else
  static constexpr size_t kStackBytes = 17 * 4096;
#endif
  char *stackBottom(unsigned i) const { return stacks + i * kStackBytes; }
  char *stackTop(unsigned i) const {
    return stackBottom(i) + kStackBytes - (i % 4) * 1088;
  }

  void prepareFibers() {
    count = blockDim.x * blockDim.y * blockDim.z;
    reserveStacks(count);
    unsigned i = 0;
    for (unsigned z = 0; z < blockDim.z; ++z)
      for (unsigned y = 0; y < blockDim.y; ++y)
        for (unsigned x = 0; x < blockDim.x; ++x, ++i) {
          Fiber &fiber = fibers[i];
          fiber.index = dim3(x, y, z);
          fiber.state = Ready;
          fiber.shuffleParity = 0;
#ifdef MEMPLAN_ASAN
          __asan_unpoison_memory_region(stackBottom(i), kStackBytes);
#endif
          prepare(fiber.at, stackBottom(i), stackTop(i), fiberMain);
        }
  }

  void reserveStacks(unsigned wanted) {
    if (wanted <= reserved)
      return;
    releaseStacks();
    fibers = std::make_unique<Fiber[]>(wanted);
    void *memory = mmap(nullptr, wanted * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("memplan: no memory for the stacks of a block's threads");
      std::abort();
    }
    stacks = static_cast<char *>(memory);
    reserved = wanted;
    // A guard page for each warp, not for each thread: a guard costs two of the
    // process's mappings, of which Linux gives 65530, and a process may have
    // loaded many models. The other stacks have a mark that is looked at when
    // the block has ended.
    for (unsigned i = 0; i < wanted; ++i) {
      if (i % kLanes == 0)
        (void)mprotect(stackBottom(i), kGuardBytes, PROT_NONE);
      setMark(i);
    }
  }

  static constexpr size_t kGuardBytes = 4096;
  static constexpr uint64_t kMark = 0x6d656d706c616e21;
  void setMark(unsigned i) {
    std::memcpy(stackBottom(i) + kGuardBytes, &kMark, sizeof kMark);
  }

  /// False if a thread has used more stack than it has; mends the marks.
  bool marksAreWhole() {
    bool whole = true;
#ifndef MEMPLAN_ASAN // which watches stacks itself
    for (unsigned i = 0; i < count; ++i) {
      if (std::memcmp(stackBottom(i) + kGuardBytes, &kMark, sizeof kMark) == 0)
        continue;
      setMark(i);
      whole = false;
    }
#endif
    return whole;
  }

  void releaseStacks() {
    if (stacks)
      munmap(stacks, reserved * kStackBytes);
    stacks = nullptr;
    reserved = 0;
  }

  static void fiberMain() {
    FiberBlock &block = *active();
    block.enteredFiber(nullptr);
    block.kernelEntry(block.kernelContext);
    block.fibers[block.current].state = Returned;
    block.leaveFiber(nullptr);
    switchTo(block.fibers[block.current].at, block.scheduler);
    std::abort(); // a fiber that returned is not resumed
  }

  void suspend(State state) {
    Fiber &self = fibers[current];
    self.state = state;
#ifdef MEMPLAN_ASAN
    leaveFiber(&self.fakeStack);
#endif
    switchTo(self.at, scheduler);
#ifdef MEMPLAN_ASAN
    enteredFiber(self.fakeStack);
#endif
  }

  void resume(unsigned i) {
    current = i;
    threadIdx = fibers[i].index;
#ifdef MEMPLAN_ASAN
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stackBottom(i), kStackBytes);
    switchTo(scheduler, fibers[i].at);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    switchTo(scheduler, fibers[i].at);
#endif
  }

  void enteredFiber([[maybe_unused]] void *fakeStack) {
#ifdef MEMPLAN_ASAN
    __sanitizer_finish_switch_fiber(fakeStack, &schedulerBottom,
                                    &schedulerBytes);
#endif
  }
  void leaveFiber([[maybe_unused]] void **fakeStack) {
#ifdef MEMPLAN_ASAN
    __sanitizer_start_switch_fiber(fakeStack, schedulerBottom, schedulerBytes);
#endif
  }

  /// Runs a warp until its threads have returned or wait for the block.
  void runWarp(unsigned first, unsigned end) {
    for (;;) {
      unsigned atWarpBarrier = 0;
      for (unsigned i = first; i < end; ++i) {
        if (fibers[i].state != Returned)
          resume(i);
        if (!error.empty())
          return;
        atWarpBarrier += fibers[i].state == AtWarpBarrier;
      }
      if (atWarpBarrier == 0)
        return;
      if (atWarpBarrier != end - first)
        return complain(first, end, AtWarpBarrier, "a warp shuffle or barrier");
    }
  }

  /// True if the block goes on; false if it is done or in error.
  bool blockMet() {
    unsigned waiting = 0;
    for (unsigned i = 0; i < count; ++i)
      waiting += fibers[i].state == AtBlockBarrier;
    if (waiting == count)
      return true;
    if (waiting != 0)
      complain(0, count, AtBlockBarrier, "__syncthreads");
    return false;
  }

  void complain(unsigned first, unsigned end, State met, const char *barrier) {
    unsigned inside = first, outside = first;
    while (inside + 1 < end && fibers[inside].state != met)
      ++inside;
    while (outside + 1 < end && fibers[outside].state == met)
      ++outside;
    const dim3 &a = fibers[inside].index, &b = fibers[outside].index;
    char text[256];
    std::snprintf(text, sizeof text,
                  "in block (%u, %u, %u), thread (%u, %u, %u) waits at %s, "
                  "which thread (%u, %u, %u) doesn't reach: it %s",
                  blockIdx.x, blockIdx.y, blockIdx.z, a.x, a.y, a.z, barrier,
                  b.x, b.y, b.z,
                  fibers[outside].state == Returned
                      ? "has returned"
                      : "waits at another barrier");
    error = text;
  }

  std::unique_ptr<Fiber[]> fibers;
  unsigned count = 0, reserved = 0, current = 0;
  char *stacks = nullptr;
  Continuation scheduler;
  void (*kernelEntry)(const void *) = nullptr;
  const void *kernelContext = nullptr;
  std::string error;
  // Warps take turns, so one warp's slots do for all: no warp is left while its
  // threads are within a shuffle.
  uint64_t exchange[2][kLanes] = {};
#ifdef MEMPLAN_ASAN
  const void *schedulerBottom = nullptr;
  size_t schedulerBytes = 0;
#endif
};

} // namespace memplan::rt::host

#endif // MEMPLAN_RUNTIME_HOSTFIBERS_H
