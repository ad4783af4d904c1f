//===- Kernels.cu - every library kernel, for nvcc to look at -------------===//
//
// Compiled by check-nvcc.sh, which reads what ptxas says of it. Not run here.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Runtime.h"

using namespace memplan::rt;

namespace {

template <class T>
struct BiasRelu {
  const T *bias;
  __device__ T operator()(AccumOf<T> sum, int, int f, int) const {
    return T(applyRelu(sum + AccumOf<T>(bias[f])));
  }
};

template <class T>
struct BiasAdd {
  const T *bias, *added;
  int filters, pixels;
  __device__ T operator()(AccumOf<T> sum, int n, int f, int p) const {
    return T(sum + AccumOf<T>(bias[f]) +
             AccumOf<T>(added[(int64_t(n) * filters + f) * pixels + p]));
  }
};

template <class Op, class T>
__global__ void reduceRowsKernel(const T *in, T *out, int columns) {
  const T *row = in + int64_t(blockIdx.x) * columns;
  T value = Op::template identity<T>();
  for (int i = int(threadIdx.x); i < columns; i += int(blockDim.x))
    value = Op::combine(value, row[i]);
  value = blockReduce<Op>(value);
  if (threadIdx.x == 0)
    out[blockIdx.x] = value;
}

template __global__ void reduceRowsKernel<MaxOp>(const int8_t *, int8_t *, int);
template __global__ void reduceRowsKernel<MinOp>(const bool *, bool *, int);
template __global__ void reduceRowsKernel<MaxOp>(const int64_t *, int64_t *,
                                                 int);

__global__ void mathKernel(const float *in, float *out) {
  const float x = in[threadIdx.x];
  out[threadIdx.x] = erfOf(x) + tanhOf(x) + rsqrtOf(x) + roundevenOf(x) +
                     maxnumOf(x, maximumOf(x, 0.5f)) + fpowiOf(x, 3) +
                     (isfiniteOf(x) ? powfOf(x, 1.5f) : 0.0f);
}

template <class T>
memplan_status useAll(T *p, cudaStream_t stream) {
  ConvShape shape;
  MEMPLAN_TRY(conv("c", shape, p, p, p, BiasRelu<T>{p}, stream));
  MEMPLAN_TRY(conv("c", shape, p, p, p, BiasAdd<T>{p, p, 1, 1}, stream));
  MEMPLAN_TRY(conv<MaxPool<4>>("c", shape, p, p, p, BiasRelu<T>{p}, stream));
  MEMPLAN_TRY(conv<AveragePool<32>>("c", shape, p, p, p, BiasAdd<T>{p, p, 1, 1},
                                    stream));
  MEMPLAN_TRY(convUpsampled("c", shape, p, p, p, BiasRelu<T>{p}, stream));
  GemmContext context;
  Gemm<T> gemm;
  MEMPLAN_TRY(context.create());
  MEMPLAN_TRY(gemm.create(context, "g", GemmShape(), GemmEpilogue::BiasGelu));
  MEMPLAN_TRY(gemm.run(stream, p, p, p, p));
  gemm.destroy();
  context.destroy();
  return MEMPLAN_OK;
}

} // namespace

memplan_status useRuntime(float *p, Half *half, BFloat16 *brain,
                          cudaStream_t stream);
memplan_status useRuntime(float *p, Half *half, BFloat16 *brain,
                          cudaStream_t stream) {
  MEMPLAN_TRY(useAll(p, stream));
  MEMPLAN_TRY(useAll(half, stream));
  MEMPLAN_TRY(useAll(brain, stream));
  MEMPLAN_TRY(launchWithBarriers("r", reduceRowsKernel<SumOp, float>, dim3(1),
                                 dim3(256), stream, p, p, 1));
  MEMPLAN_TRY(launchWithBarriers("r", reduceRowsKernel<MaxOp, float>, dim3(1),
                                 dim3(256), stream, p, p, 1));
  MEMPLAN_TRY(launch("m", mathKernel, dim3(1), dim3(32), stream, p, p));
  ArenaGuard guard;
  MEMPLAN_TRY(guard.enter(p, 4));
  WeightEntry entry = {"w", 0, 4, 0};
  MEMPLAN_TRY(loadWeights("w", WeightsFile{4, 0, 0}, &entry, 1, p, 4));
  void *block = nullptr;
  MEMPLAN_TRY(deviceAllocate("b", 4, &block));
  MEMPLAN_TRY(copyToHost("b", block, p, 4));
  deviceFree(block);
  return synchronize("end", stream);
}
