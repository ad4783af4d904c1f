//===- HostThreads.h - loops over OS threads --------------------*- C++ -*-===//
//
// A pool of threads, started at the first parallel loop and kept: starting
// threads for each launch would cost more than most launches.
// MEMPLAN_HOST_THREADS in the environment sets their number.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_HOSTTHREADS_H
#define MEMPLAN_RUNTIME_HOSTTHREADS_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace memplan::rt::host {

class ThreadPool {
public:
  static ThreadPool &get() {
    static ThreadPool pool;
    return pool;
  }

  /// OS threads that a loop runs on, the caller's included.
  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls body(0) ... body(count - 1), each once, in no particular order, and
  /// returns when all are done. A loop inside a loop runs on its own thread.
  template <class Body>
  void forEach(int64_t count, const Body &body) {
    if (count <= 1 || workers.empty() || insideLoop()) {
      for (int64_t i = 0; i < count; ++i)
        body(i);
      return;
    }
    std::lock_guard<std::mutex> oneLoopAtATime(loopMutex);
    {
      std::lock_guard<std::mutex> lock(mutex);
      call = [](const void *opaque, int64_t i) {
        (*static_cast<const Body *>(opaque))(i);
      };
      callee = &body;
      end = count;
      next.store(0, std::memory_order_relaxed);
      busy = workers.size();
      ++generation;
    }
    wake.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex);
    finished.wait(lock, [&] { return busy == 0; });
  }

  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

private:
  ThreadPool() {
    for (int i = 1, n = wantedThreads(); i < n; ++i)
      workers.emplace_back([this] { workerMain(); });
  }

  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread &worker : workers)
      worker.join();
  }

  static int wantedThreads() {
    if (const char *text = std::getenv("MEMPLAN_HOST_THREADS")) {
      long wanted = std::strtol(text, nullptr, 10);
      if (wanted >= 1 && wanted <= 1024)
        return static_cast<int>(wanted);
    }
    unsigned available = std::thread::hardware_concurrency();
    return available ? static_cast<int>(available) : 1;
  }

  static bool &insideLoop() {
    static thread_local bool inside = false;
    return inside;
  }

  void work() {
    insideLoop() = true;
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < end;)
      call(callee, i);
    insideLoop() = false;
  }

  void workerMain() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping)
          return;
        seen = generation;
      }
      work();
      std::lock_guard<std::mutex> lock(mutex);
      if (--busy == 0)
        finished.notify_one();
    }
  }

  std::mutex loopMutex; // held for the length of a loop
  std::mutex mutex;     // guards all below but `next`
  std::condition_variable wake, finished;
  void (*call)(const void *, int64_t) = nullptr;
  const void *callee = nullptr;
  int64_t end = 0;
  std::atomic<int64_t> next{0};
  size_t busy = 0;
  uint64_t generation = 0;
  bool stopping = false;
  std::vector<std::thread> workers;
};

} // namespace memplan::rt::host

#endif // MEMPLAN_RUNTIME_HOSTTHREADS_H
