//===- Gemm.h - matrix products ---------------------------------*- C++ -*-===//
//
// D[m, n] = act(alpha * op(A)[m, k] op(B)[k, n] + beta * C[m, n] + bias[n])
//
// for `batch` matrices, all row-major. On CUDA through cuBLASLt, with as much
// workspace as it is given and no more; on the host by blocked loops. Sums are
// kept in AccumOf<T>; 32-bit floats are not rounded to TF32.
//
// Descriptors and the algorithm are settled in `create`, when a model is
// loaded; `run` allocates nothing and may be captured into a CUDA graph.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_GEMM_H
#define MEMPLAN_RUNTIME_GEMM_H

#include "memplan/Runtime/Element.h"
#include "memplan/Runtime/Math.h"

#include <cinttypes>

namespace memplan::rt {

/// Extents and strides, all in elements.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transA = false;               ///< A is stored [k, m] instead of [m, k].
  bool transB = false;               ///< B is stored [n, k] instead of [k, n].
  int64_t lda = 0, ldb = 0, ldd = 0; ///< From row to row, as stored.
  int64_t batch = 1;
  /// From matrix to matrix. 0 for A or B gives all the same matrix.
  int64_t strideA = 0, strideB = 0, strideD = 0;
  int64_t ldc = 0, strideC = 0; ///< Looked at only where C is used.
};

/// What follows the product. `Gelu` is the form with tanh,
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), since that is what cuBLASLt
/// has; the form with erf is a kernel of its own.
enum class GemmEpilogue { None, Relu, Gelu, Bias, BiasRelu, BiasGelu };

constexpr bool hasBias(GemmEpilogue epilogue) {
  return epilogue >= GemmEpilogue::Bias;
}

template <class T>
__host__ __device__ T applyRelu(T x) {
  return x > T(0) || x != x ? x : T(0);
}
template <class T>
__host__ __device__ T applyGeluTanh(T x) {
  const T scaled =
      T(0.7978845608028653558798921198687) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + tanhOf(scaled));
}
template <class T>
__host__ __device__ T applyActivation(GemmEpilogue epilogue, T x) {
  switch (epilogue) {
  case GemmEpilogue::None:
  case GemmEpilogue::Bias:
    return x;
  case GemmEpilogue::Relu:
  case GemmEpilogue::BiasRelu:
    return applyRelu(x);
  case GemmEpilogue::Gelu:
  case GemmEpilogue::BiasGelu:
    return applyGeluTanh(x);
  }
  return x;
}

/// True if D has no elements, so that there is nothing to do.
inline bool isEmpty(const GemmShape &s) {
  return s.m == 0 || s.n == 0 || s.batch == 0;
}

inline memplan_status checkShape(const char *what, const GemmShape &s,
                                 bool usesC) {
  constexpr int64_t kMost = INT32_MAX; // what cuBLASLt's kernels count to
  if (s.m < 0 || s.n < 0 || s.k < 0 || s.batch < 0 || s.m > kMost ||
      s.n > kMost || s.k > kMost || s.batch > kMost)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: matrix product of m = %" PRId64 ", n = %" PRId64
                ", k = %" PRId64 ", batch = %" PRId64
                "; each must be from 0 to 2147483647",
                what, s.m, s.n, s.k, s.batch);
  if (isEmpty(s))
    return MEMPLAN_OK;
  if (s.lda < (s.transA ? s.m : s.k) || s.ldb < (s.transB ? s.k : s.n) ||
      s.ldd < s.n || (usesC && s.ldc < s.n))
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: rows of a matrix product overlap: lda = %" PRId64
                ", ldb = %" PRId64 ", ldc = %" PRId64 ", ldd = %" PRId64,
                what, s.lda, s.ldb, s.ldc, s.ldd);
  if (s.strideA < 0 || s.strideB < 0 || s.strideC < 0 ||
      (s.batch > 1 && s.strideD < (s.m - 1) * s.ldd + s.n &&
       // Matrices may interleave, as the heads of an attention layer do.
       (s.strideD < s.n || s.strideD * s.batch > s.ldd)))
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: results of a batch of matrix products overlap: "
                "%" PRId64 " elements apart",
                what, s.strideD);
  return MEMPLAN_OK;
}

/// In bytes, of each operand: what the algorithm on the GPU is chosen for.
inline constexpr uint32_t kGemmAlignment = 16;

/// In bytes, of a workspace: what cuBLASLt demands.
inline constexpr uint32_t kWorkspaceAlignment = 256;

/// The operands of one run. Alignment matters to the GPU alone, but what would
/// fail there is to fail everywhere.
template <class T>
memplan_status checkOperands(const char *what, GemmEpilogue epilogue,
                             bool usesC, const T *a, const T *b, const T *d,
                             const T *bias, const T *c, float beta) {
  if (hasBias(epilogue) != (bias != nullptr) ||
      usesC != (c != nullptr || beta != 0))
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: bias or C is given and wasn't announced, or the other "
                "way round",
                what);
  for (const T *pointer : {a, b, c, d, bias})
    if (reinterpret_cast<uintptr_t>(pointer) % kGemmAlignment != 0)
      return fail(MEMPLAN_ERROR_ARGUMENT,
                  "%s: an operand at %p isn't aligned to %u bytes", what,
                  static_cast<const void *>(pointer), kGemmAlignment);
  return MEMPLAN_OK;
}

/// The workspace of one run is there if one was announced.
inline memplan_status checkWorkspace(const char *what, size_t bytes,
                                     const void *workspace) {
  if ((bytes > 0) != (workspace != nullptr) ||
      reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return fail(MEMPLAN_ERROR_ARGUMENT,
                "%s: workspace at %p for %zu bytes announced; it must be given "
                "if announced, and aligned to %u bytes",
                what, workspace, bytes, kWorkspaceAlignment);
  return MEMPLAN_OK;
}

/// D = act(beta * C + bias): what is left of the product if k is 0.
template <class T>
__global__ void emptyProductKernel(GemmShape shape, GemmEpilogue epilogue, T *d,
                                   const T *bias, const T *c, float beta) {
  const int64_t column =
      int64_t(blockIdx.x) * blockDim.x + static_cast<int64_t>(threadIdx.x);
  if (column >= shape.n)
    return;
  for (int64_t matrix = blockIdx.z; matrix < shape.batch; matrix += gridDim.z)
    for (int64_t row = blockIdx.y; row < shape.m; row += gridDim.y) {
      AccumOf<T> sum = 0;
      if (c)
        sum = AccumOf<T>(beta) *
              AccumOf<T>(c[matrix * shape.strideC + row * shape.ldc + column]);
      if (bias)
        sum += AccumOf<T>(bias[column]);
      d[matrix * shape.strideD + row * shape.ldd + column] =
          T(applyActivation(epilogue, sum));
    }
}

template <class T>
memplan_status runEmptyProduct(const char *what, const GemmShape &s,
                               GemmEpilogue epilogue, cudaStream_t stream, T *d,
                               const T *bias, const T *c, float beta) {
  constexpr int64_t kMostBlocks = 65535;
  dim3 grid(
      static_cast<unsigned>(ceilDiv<int64_t>(s.n, 128)),
      static_cast<unsigned>(s.m < kMostBlocks ? s.m : kMostBlocks),
      static_cast<unsigned>(s.batch < kMostBlocks ? s.batch : kMostBlocks));
  return launch(what, emptyProductKernel<T>, grid, dim3(128), stream, s,
                epilogue, d, bias, c, beta);
}

} // namespace memplan::rt

// Both define:
//
//   class GemmContext     what the products of a model share
//     create(), destroy()
//   class Gemm<T>         one product
//     create(context, what, shape, epilogue, usesC = false, workspace = 0)
//         `what` must outlive it; context must stay in place and alive;
//         `workspace` is the size in bytes of that of each run. An algorithm
//         that needs more is never chosen
//     run(stream, a, b, d, bias = null, alpha = 1, c = null, beta = 0,
//         workspace = null) const
//         every pointer is to be aligned to kGemmAlignment; c may be d
//     destroy()
#ifdef __CUDACC__
#include "memplan/Runtime/GemmCUDA.h" // IWYU pragma: export
#else
#include "memplan/Runtime/GemmHost.h" // IWYU pragma: export
#endif

#endif // MEMPLAN_RUNTIME_GEMM_H
