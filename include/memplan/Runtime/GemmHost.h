//===- GemmHost.h - matrix products by blocked loops ------------*- C++ -*-===//
//
// Included by Gemm.h, which states the interface. Results are cut into tiles of
// 64 by 64, one task each; a task copies its operands' panels into dense ones,
// whatever their strides and transpositions, and multiplies those. Each sum
// runs over k in order, so results don't depend on the number of OS threads.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_GEMMHOST_H
#define MEMPLAN_RUNTIME_GEMMHOST_H

#include "memplan/Runtime/Gemm.h"

#include <algorithm>
#include <cstring>

namespace memplan::rt {

class GemmContext {
public:
  memplan_status create() { return MEMPLAN_OK; }
  void destroy() {}
};

template <class T>
class Gemm {
public:
  memplan_status create(const GemmContext &, const char *name,
                        const GemmShape &gemmShape, GemmEpilogue gemmEpilogue,
                        bool gemmUsesC = false, size_t workspaceSize = 0) {
    what = name;
    shape = gemmShape;
    epilogue = gemmEpilogue;
    usesC = gemmUsesC;
    workspaceBytes = workspaceSize;
    return checkShape(what, shape, usesC);
  }

  void destroy() {}

  memplan_status run(cudaStream_t stream, const T *a, const T *b, T *d,
                     const T *bias = nullptr, float alpha = 1,
                     const T *c = nullptr, float beta = 0,
                     void *workspace = nullptr) const {
    if (isEmpty(shape))
      return MEMPLAN_OK;
    MEMPLAN_TRY(
        checkOperands<T>(what, epilogue, usesC, a, b, d, bias, c, beta));
    MEMPLAN_TRY(checkWorkspace(what, workspaceBytes, workspace));
#ifdef MEMPLAN_CHECKED
    // Nothing is needed here, but the GPU's algorithm overwrites all of it.
    if (workspace)
      std::memset(workspace, 0xA5, workspaceBytes);
#endif
    if (shape.k == 0)
      return runEmptyProduct(what, shape, epilogue, stream, d, bias,
                             beta != 0 ? c : nullptr, beta);
    host::counters().launches.fetch_add(1, std::memory_order_relaxed);
    const int64_t rowTiles = ceilDiv(shape.m, kTile);
    const int64_t columnTiles = ceilDiv(shape.n, kTile);
    const Operands operands{a, b, bias, c, d, alpha, beta};
    host::ThreadPool::get().forEach(
        shape.batch * rowTiles * columnTiles, [&](int64_t task) {
          computeTile(operands, task / columnTiles / rowTiles,
                      task / columnTiles % rowTiles * kTile,
                      task % columnTiles * kTile);
        });
    return MEMPLAN_OK;
  }

private:
  using Accum = AccumOf<T>;
  static constexpr int64_t kTile = 64, kDepth = 128;
  static constexpr int kRows = 4, kColumns = 8;

  struct Operands {
    const T *a, *b, *bias, *c;
    T *d;
    float alpha, beta;
  };

  /// Panels of a tile, padded with zeros: columns k of A in groups of kRows
  /// rows, rows k of B in groups of kColumns columns.
  struct Panels {
    alignas(64) Accum a[kTile / kRows][kDepth][kRows];
    alignas(64) Accum b[kTile / kColumns][kDepth][kColumns];
    alignas(64) Accum sums[kTile][kTile];
  };

  void computeTile(const Operands &operands, int64_t matrix, int64_t row,
                   int64_t column) const {
    static thread_local Panels panels;
    const int64_t rows = std::min(kTile, shape.m - row);
    const int64_t columns = std::min(kTile, shape.n - column);
    const T *a = operands.a + matrix * shape.strideA;
    const T *b = operands.b + matrix * shape.strideB;
    for (int64_t i = 0; i < rows; ++i)
      std::fill_n(panels.sums[i], kTile, Accum(0));
    for (int64_t k = 0; k < shape.k; k += kDepth) {
      const int64_t depth = std::min(kDepth, shape.k - k);
      packPanel(panels.a, rows, depth, a, shape.transA ? 1 : shape.lda,
                shape.transA ? shape.lda : 1, row, k);
      packPanel(panels.b, columns, depth, b, shape.transB ? shape.ldb : 1,
                shape.transB ? 1 : shape.ldb, column, k);
      for (int64_t i = 0; i < rows; i += kRows)
        for (int64_t j = 0; j < columns; j += kColumns) {
          Accum *sums = &panels.sums[i][j];
          if (rows - i == 1)
            multiply<1>(panels.a[i / kRows], panels.b[j / kColumns], depth,
                        sums);
          else
            multiply<kRows>(panels.a[i / kRows], panels.b[j / kColumns], depth,
                            sums);
        }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        store(operands, matrix, row + i, column + j, panels.sums[i][j]);
  }

  /// Copies elements [first, first + count) by [k, k + depth) of a matrix, with
  /// the given distances between neighbours in each direction.
  template <int kGroup>
  static void packPanel(Accum (*panel)[kDepth][kGroup], int64_t count,
                        int64_t depth, const T *matrix, int64_t step,
                        int64_t stepK, int64_t first, int64_t k) {
    const T *start = matrix + first * step + k * stepK;
    for (int64_t group = 0; group < count; group += kGroup)
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t i = 0; i < kGroup; ++i)
          panel[group / kGroup][p][i] =
              group + i < count ? Accum(start[(group + i) * step + p * stepK])
                                : Accum(0);
  }

  template <int kUsedRows>
  static void multiply(const Accum (*a)[kRows], const Accum (*b)[kColumns],
                       int64_t depth, Accum *sums) {
    Accum tile[kUsedRows][kColumns];
    for (int i = 0; i < kUsedRows; ++i)
      for (int j = 0; j < kColumns; ++j)
        tile[i][j] = sums[i * kTile + j];
    for (int64_t p = 0; p < depth; ++p) {
      MEMPLAN_UNROLL
      for (int i = 0; i < kUsedRows; ++i) {
        MEMPLAN_UNROLL
        for (int j = 0; j < kColumns; ++j)
          tile[i][j] += a[p][i] * b[p][j];
      }
    }
    for (int i = 0; i < kUsedRows; ++i)
      for (int j = 0; j < kColumns; ++j)
        sums[i * kTile + j] = tile[i][j];
  }

  void store(const Operands &operands, int64_t matrix, int64_t row,
             int64_t column, Accum sum) const {
    sum *= Accum(operands.alpha);
    if (operands.c && operands.beta != 0) // 0 * NaN isn't added, as in BLAS
      sum +=
          Accum(operands.beta) *
          Accum(operands.c[matrix * shape.strideC + row * shape.ldc + column]);
    if (operands.bias)
      sum += Accum(operands.bias[column]);
    operands.d[matrix * shape.strideD + row * shape.ldd + column] =
        T(applyActivation(epilogue, sum));
  }

  const char *what = "";
  GemmShape shape;
  GemmEpilogue epilogue = GemmEpilogue::None;
  bool usesC = false;
  size_t workspaceBytes = 0;
};

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_GEMMHOST_H
