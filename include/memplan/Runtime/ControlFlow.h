//===- ControlFlow.h - loops and branches around launches -------*- C++ -*-===//
//
// For the host code of models that choose their way while they run. A value
// that decides lies in device memory, where a launch has put it; `Readback`
// fetches it, which means to wait for the stream.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CONTROLFLOW_H
#define MEMPLAN_RUNTIME_CONTROLFLOW_H

#include "memplan/Runtime/Platform.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace memplan::rt {

/// Fetches scalars from the device. Made when a model is loaded: pinned host
/// memory is allocated once.
class Readback {
public:
  memplan_status create() {
#ifdef __CUDACC__
    return checkCuda(cudaMallocHost(&pinned, kMostBytes),
                     "pinned host memory to read values back");
#else
    return MEMPLAN_OK;
#endif
  }
  void destroy() {
#ifdef __CUDACC__
    if (pinned)
      (void)cudaFreeHost(pinned);
    pinned = nullptr;
#endif
  }

  /// `result` is `*device` after all that is on the stream, which this waits
  /// for. An error while the stream is captured into a graph: nothing has run
  /// then, so that there is no value.
  template <class T>
  memplan_status read(const char *what, const T *device, T &result,
                      cudaStream_t stream) {
    static_assert(sizeof(T) <= kMostBytes);
#ifdef __CUDACC__
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    MEMPLAN_TRY(checkCuda(cudaStreamIsCapturing(stream, &capture), what));
    if (capture != cudaStreamCaptureStatusNone)
      return fail(MEMPLAN_ERROR_ARGUMENT,
                  "%s: the stream is being captured into a CUDA graph, but "
                  "this model reads a value back from the device to go on; run "
                  "it without capturing",
                  what);
    MEMPLAN_TRY(checkCuda(cudaMemcpyAsync(pinned, device, sizeof(T),
                                          cudaMemcpyDeviceToHost, stream),
                          what));
    MEMPLAN_TRY(checkCuda(cudaStreamSynchronize(stream), what));
    copy(pinned, result);
#else
    (void)what;
    (void)stream;
    host::counters().synchronisations.fetch_add(1, std::memory_order_relaxed);
    copy(device, result);
#endif
    return MEMPLAN_OK;
  }

private:
  static constexpr size_t kMostBytes = 8;

  template <class T>
  static void copy(const void *from, T &result) {
    if constexpr (std::is_same_v<T, bool>) {
      unsigned char byte; // that of a caller may be neither 0 nor 1
      std::memcpy(&byte, from, 1);
      result = byte != 0;
    } else {
      std::memcpy(&result, from, sizeof(T));
    }
  }

#ifdef __CUDACC__
  void *pinned = nullptr;
#endif
};

/// What C++ leaves undefined, and processors trap on, is an error of the run.
template <class T>
memplan_status checkDivisor(const char *what, T divisor) {
  if (divisor != 0)
    return MEMPLAN_OK;
  return fail(MEMPLAN_ERROR_ARGUMENT, "%s: division by zero", what);
}
template <class T>
memplan_status checkDivision(const char *what, T dividend, T divisor) {
  MEMPLAN_TRY(checkDivisor(what, divisor));
  if (divisor != T(-1) || dividend != std::numeric_limits<T>::min())
    return MEMPLAN_OK;
  return fail(MEMPLAN_ERROR_ARGUMENT,
              "%s: the least number has no quotient by -1", what);
}

/// What must hold for the run to go on, such as that a branch is possible.
inline memplan_status checkThat(bool holds, const char *what,
                                const char *message) {
  if (holds)
    return MEMPLAN_OK;
  return fail(MEMPLAN_ERROR_ARGUMENT, "%s: %s", what, message);
}

/// A loop's step that is not known before.
template <class T>
memplan_status checkStep(const char *what, T step) {
  if (step > 0)
    return MEMPLAN_OK;
  return fail(MEMPLAN_ERROR_ARGUMENT,
              "%s: the loop's step is %lld; it must be positive", what,
              static_cast<long long>(step));
}

/// i + step, or `upper` if that is less; without overflow for i < upper.
template <class T>
constexpr T stepTo(T i, std::common_type_t<T> step,
                   std::common_type_t<T> upper) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(static_cast<U>(upper) - static_cast<U>(i)) >
                 static_cast<U>(step)
             ? static_cast<T>(i + step)
             : upper;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CONTROLFLOW_H
