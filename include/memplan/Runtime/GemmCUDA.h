//===- GemmCUDA.h - matrix products through cuBLASLt ------------*- C++ -*-===//
//
// Included by Gemm.h, which states the interface. cuBLASLt counts columns
// first, so that a row-major matrix is its own transpose to it; we ask for
// D^T = op(B)^T op(A)^T, whose operands are ours in the other order. D^T has n
// rows, which makes cuBLASLt's bias, one number a row, our bias along n.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_GEMMCUDA_H
#define MEMPLAN_RUNTIME_GEMMCUDA_H

#include "memplan/Runtime/Gemm.h"

#include <cublasLt.h>

namespace memplan::rt {

inline memplan_status checkCublas(cublasStatus_t status, const char *what,
                                  const char *call) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return MEMPLAN_OK;
  return fail(status == CUBLAS_STATUS_ALLOC_FAILED ? MEMPLAN_ERROR_MEMORY
                                                   : MEMPLAN_ERROR_LIBRARY,
              "%s: %s: %s", what, call, cublasLtGetStatusName(status));
}

#define MEMPLAN_TRY_CUBLAS(WHAT, CALL, ARGUMENTS)                              \
  MEMPLAN_TRY(checkCublas(CALL ARGUMENTS, WHAT, #CALL))

/// Data, scale and compute types for elements of type T.
template <class T>
struct GemmTypes;
template <>
struct GemmTypes<float> {
  static constexpr cudaDataType_t data = CUDA_R_32F;
};
template <>
struct GemmTypes<Half> {
  static constexpr cudaDataType_t data = CUDA_R_16F;
};
template <>
struct GemmTypes<BFloat16> {
  static constexpr cudaDataType_t data = CUDA_R_16BF;
};

class GemmContext {
public:
  memplan_status create() {
    destroy();
    MEMPLAN_TRY_CUBLAS("cuBLASLt", cublasLtCreate, (&handle));
    return MEMPLAN_OK;
  }
  void destroy() {
    if (handle)
      (void)cublasLtDestroy(handle);
    handle = nullptr;
  }
  cublasLtHandle_t get() const { return handle; }

private:
  cublasLtHandle_t handle = nullptr;
};

template <class T>
class Gemm {
public:
  memplan_status create(const GemmContext &sharedContext, const char *name,
                        const GemmShape &gemmShape, GemmEpilogue gemmEpilogue,
                        bool gemmUsesC = false, size_t workspaceSize = 0) {
    context = &sharedContext;
    what = name;
    shape = gemmShape;
    epilogue = gemmEpilogue;
    usesC = gemmUsesC;
    workspaceBytes = workspaceSize;
    MEMPLAN_TRY(checkShape(what, shape, usesC));
    if (isEmpty(shape) || shape.k == 0)
      return MEMPLAN_OK;
    MEMPLAN_TRY(describeProduct());
    const GemmShape &s = shape;
    // The first operand is our B: [k, n] row-major is n by k, columns first.
    MEMPLAN_TRY(describeMatrix(layoutB, s.transB ? s.k : s.n,
                               s.transB ? s.n : s.k, s.ldb, s.strideB));
    MEMPLAN_TRY(describeMatrix(layoutA, s.transA ? s.m : s.k,
                               s.transA ? s.k : s.m, s.lda, s.strideA));
    MEMPLAN_TRY(describeMatrix(layoutD, s.n, s.m, s.ldd, s.strideD));
    if (usesC)
      MEMPLAN_TRY(describeMatrix(layoutC, s.n, s.m, s.ldc, s.strideC));
    else
      layoutC = layoutD;
    return chooseAlgorithm();
  }

  void destroy() {} // all descriptors are members

  memplan_status run(cudaStream_t stream, const T *a, const T *b, T *d,
                     const T *bias = nullptr, float alpha = 1,
                     const T *c = nullptr, float beta = 0,
                     void *workspace = nullptr) const {
    if (isEmpty(shape))
      return MEMPLAN_OK;
    MEMPLAN_TRY(
        checkOperands<T>(what, epilogue, usesC, a, b, d, bias, c, beta));
    MEMPLAN_TRY(checkWorkspace(what, workspaceBytes, workspace));
    if (shape.k == 0)
      return runEmptyProduct(what, shape, epilogue, stream, d, bias,
                             beta != 0 ? c : nullptr, beta);
    // A copy, so that one Gemm can run on several streams at once.
    cublasLtMatmulDescOpaque_t called = product;
    if (bias)
      MEMPLAN_TRY_CUBLAS(
          what, cublasLtMatmulDescSetAttribute,
          (&called, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    auto layout = [](const cublasLtMatrixLayoutOpaque_t &l) {
      return const_cast<cublasLtMatrixLayoutOpaque_t *>(&l);
    };
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatmul,
                       (context->get(), &called, &alpha, b, layout(layoutB), a,
                        layout(layoutA), &beta, usesC ? c : d, layout(layoutC),
                        d, layout(layoutD), &algorithm, workspace,
                        workspaceBytes, stream));
    return MEMPLAN_OK;
  }

private:
  static cublasLtEpilogue_t libraryEpilogue(GemmEpilogue epilogue) {
    switch (epilogue) {
    case GemmEpilogue::None:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case GemmEpilogue::Relu:
      return CUBLASLT_EPILOGUE_RELU;
    case GemmEpilogue::Gelu:
      return CUBLASLT_EPILOGUE_GELU;
    case GemmEpilogue::Bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case GemmEpilogue::BiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case GemmEpilogue::BiasGelu:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
  }

  memplan_status describeProduct() {
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatmulDescInit,
                       (&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t first = shape.transB ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = shape.transA ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t after = libraryEpilogue(epilogue);
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatmulDescSetAttribute,
        (&product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatmulDescSetAttribute,
        (&product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatmulDescSetAttribute,
        (&product, CUBLASLT_MATMUL_DESC_EPILOGUE, &after, sizeof after));
    if (!hasBias(epilogue))
      return MEMPLAN_OK;
    // The bias comes with each run. Until then a pointer of the same alignment
    // stands for it: a null one could change which algorithms are offered.
    const auto stand = reinterpret_cast<const void *>(uintptr_t(256));
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatmulDescSetAttribute,
        (&product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &stand, sizeof stand));
    const cudaDataType_t type = GemmTypes<T>::data;
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatmulDescSetAttribute,
        (&product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
    return MEMPLAN_OK;
  }

  memplan_status describeMatrix(cublasLtMatrixLayoutOpaque_t &layout,
                                int64_t rows, int64_t columns, int64_t ld,
                                int64_t stride) {
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatrixLayoutInit,
        (&layout, GemmTypes<T>::data, uint64_t(rows), uint64_t(columns), ld));
    const auto count = static_cast<int32_t>(shape.batch);
    MEMPLAN_TRY_CUBLAS(
        what, cublasLtMatrixLayoutSetAttribute,
        (&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatrixLayoutSetAttribute,
                       (&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                        &stride, sizeof stride));
    return MEMPLAN_OK;
  }

  memplan_status chooseAlgorithm() {
    cublasLtMatmulPreferenceOpaque_t preference;
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatmulPreferenceInit, (&preference));
    const uint64_t most = workspaceBytes;
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatmulPreferenceSetAttribute,
                       (&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                        &most, sizeof most));
    // Buffers lie anywhere in the arena that their plan allows.
    const cublasLtMatmulPreferenceAttributes_t operands[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t alignment = kGemmAlignment;
    for (cublasLtMatmulPreferenceAttributes_t operand : operands)
      MEMPLAN_TRY_CUBLAS(what, cublasLtMatmulPreferenceSetAttribute,
                         (&preference, operand, &alignment, sizeof alignment));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    MEMPLAN_TRY_CUBLAS(what, cublasLtMatmulAlgoGetHeuristic,
                       (context->get(), &product, &layoutB, &layoutA, &layoutC,
                        &layoutD, &preference, 1, &found, &count));
    if (count == 0)
      return fail(MEMPLAN_ERROR_LIBRARY,
                  "%s: cuBLASLt has no algorithm within %zu bytes of "
                  "workspace for m = %" PRId64 ", n = %" PRId64
                  ", k = %" PRId64,
                  what, workspaceBytes, shape.m, shape.n, shape.k);
    if (found.workspaceSize > workspaceBytes)
      return fail(MEMPLAN_ERROR_LIBRARY,
                  "%s: cuBLASLt needs %zu bytes of workspace, the plan has %zu "
                  "for it",
                  what, found.workspaceSize, workspaceBytes);
    algorithm = found.algo;
    return MEMPLAN_OK;
  }

  const GemmContext *context = nullptr;
  const char *what = "";
  GemmShape shape;
  GemmEpilogue epilogue = GemmEpilogue::None;
  bool usesC = false;
  size_t workspaceBytes = 0;
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t layoutA, layoutB, layoutC, layoutD;
  cublasLtMatmulAlgo_t algorithm;
};

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_GEMMCUDA_H
