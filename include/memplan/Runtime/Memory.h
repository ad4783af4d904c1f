//===- Memory.h - the block, and copies to and from it ----------*- C++ -*-===//
//
// For load and free, and for test programs. Nothing here is used while a model
// runs.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_MEMORY_H
#define MEMPLAN_RUNTIME_MEMORY_H

#include "memplan/Runtime/Platform.h"

#include <cstdlib>
#include <cstring>

namespace memplan::rt {

/// At least what cudaMalloc promises; host memory is given the same.
inline constexpr size_t kBlockAlignment = 256;

/// One allocation of `bytes` bytes of device memory; null for 0 bytes.
inline memplan_status deviceAllocate(const char *what, size_t bytes,
                                     void **out) {
  *out = nullptr;
  if (bytes == 0)
    return MEMPLAN_OK;
#ifdef __CUDACC__
  cudaError_t error = cudaMalloc(out, bytes);
  if (error == cudaSuccess)
    return MEMPLAN_OK;
  *out = nullptr;
  (void)cudaGetLastError(); // or the next launch would report it again
  return fail(MEMPLAN_ERROR_MEMORY, "%s: can't allocate %zu bytes: %s", what,
              bytes, cudaGetErrorString(error));
#else
  host::counters().allocations.fetch_add(1, std::memory_order_relaxed);
  size_t rounded = ceilDiv(bytes, kBlockAlignment) * kBlockAlignment;
  if (rounded >= bytes)
    *out = std::aligned_alloc(kBlockAlignment, rounded);
  if (*out)
    return MEMPLAN_OK;
  return fail(MEMPLAN_ERROR_MEMORY, "%s: can't allocate %zu bytes", what,
              bytes);
#endif
}

/// Gives back what deviceAllocate gave; null is allowed.
inline void deviceFree(void *memory) {
  if (!memory)
    return;
#ifdef __CUDACC__
  (void)cudaFree(memory);
#else
  host::counters().frees.fetch_add(1, std::memory_order_relaxed);
  std::free(memory);
#endif
}

/// Complete on return.
inline memplan_status copyToDevice(const char *what, void *device,
                                   const void *hostData, size_t bytes) {
  if (bytes == 0)
    return MEMPLAN_OK;
#ifdef __CUDACC__
  return checkCuda(cudaMemcpy(device, hostData, bytes, cudaMemcpyHostToDevice),
                   what);
#else
  (void)what;
  std::memcpy(device, hostData, bytes);
  return MEMPLAN_OK;
#endif
}

/// Complete on return.
inline memplan_status copyToHost(const char *what, void *hostData,
                                 const void *device, size_t bytes) {
  if (bytes == 0)
    return MEMPLAN_OK;
#ifdef __CUDACC__
  return checkCuda(cudaMemcpy(hostData, device, bytes, cudaMemcpyDeviceToHost),
                   what);
#else
  (void)what;
  std::memcpy(hostData, device, bytes);
  return MEMPLAN_OK;
#endif
}

/// Waits for all work on `stream`.
inline memplan_status synchronize(const char *what, cudaStream_t stream) {
#ifdef __CUDACC__
  return checkCuda(cudaStreamSynchronize(stream), what);
#else
  (void)what;
  (void)stream;
  host::counters().synchronisations.fetch_add(1, std::memory_order_relaxed);
  return MEMPLAN_OK;
#endif
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_MEMORY_H
