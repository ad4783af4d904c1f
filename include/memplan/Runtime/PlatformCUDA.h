//===- PlatformCUDA.h - launches on the GPU ---------------------*- C++ -*-===//
//
// Included by Platform.h under nvcc.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_PLATFORMCUDA_H
#define MEMPLAN_RUNTIME_PLATFORMCUDA_H

#include "memplan/Runtime/Error.h"

#include <cuda_runtime.h>

namespace memplan::rt {

/// MEMPLAN_OK, or an error that says `what` failed and why.
inline memplan_status checkCuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return MEMPLAN_OK;
  return fail(error == cudaErrorMemoryAllocation ? MEMPLAN_ERROR_MEMORY
                                                 : MEMPLAN_ERROR_DEVICE,
              "%s: %s (%s)", what, cudaGetErrorString(error),
              cudaGetErrorName(error));
}

template <class... P, class... A>
memplan_status launch(const char *what, void (*kernel)(P...), dim3 grid,
                      dim3 block, cudaStream_t stream, A... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return MEMPLAN_OK;
  kernel<<<grid, block, 0, stream>>>(static_cast<P>(arguments)...);
  return checkCuda(cudaGetLastError(), what);
}

template <class... P, class... A>
memplan_status launchWithBarriers(const char *what, void (*kernel)(P...),
                                  dim3 grid, dim3 block, cudaStream_t stream,
                                  A... arguments) {
  return launch(what, kernel, grid, block, stream, arguments...);
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_PLATFORMCUDA_H
