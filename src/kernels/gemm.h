// Matrix products. The product itself is oneDNN's dnnl_sgemm, held to one thread in each of our workers; tiles are the
// unit of work, so that an epilogue meets its tile while it is still in cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.h"
#include "tensor/rows.h"

namespace transept {

enum class Transpose : bool { kNo, kYes };

// One product on the calling thread: C[m,n] = alpha * op(A)[m,k] op(B)[k,n] + beta * C, all row-major, ld* the floats
// between rows of the stored matrix. float32 accumulation in the library's order. beta = 0 does not read C.
void gemm_tile(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

// Splits the matrix [m, n] into tiles that depend on m and n alone, never on the number of threads, and calls body for
// each on some worker. Every op that makes its result tile by tile uses this one grid.
struct Tile {
  int64_t row, rows, column, columns;
};
void for_tiles(ThreadPool& pool, int64_t m, int64_t n, const std::function<void(const Tile&)>& body);

// The same for a group of matrices [rows[g], n], all in one run. column_tile counts the tiles of a matrix from its
// left, and stays below column_tiles(n).
struct GroupTile {
  int64_t group;
  Tile tile;
  int64_t column_tile;
};
void for_group_tiles(ThreadPool& pool, std::span<const int64_t> rows, int64_t n,
                     const std::function<void(const GroupTile&)>& body);
int64_t column_tiles(int64_t n);

// Called on each finished tile of C, on the worker that made it: rows [row, row + tile.rows), columns [column, column +
// tile.width).
using TileEpilogue = std::function<void(Rows tile, int64_t row, int64_t column)>;

// Y[rows, n] = X W^T + beta * Y, with W [n, X.width] row-major: the forward product of a linear layer.
void gemm_xwt(ThreadPool& pool, ConstRows x, const float* w, int64_t n, float beta, Rows y,
              const TileEpilogue& epilogue = {});

// dX[rows, k] = dY W + beta * dX, with W [dY.width, k]: the gradient of the input.
void gemm_xw(ThreadPool& pool, ConstRows dy, const float* w, int64_t k, float beta, Rows dx,
             const TileEpilogue& epilogue = {});

// dW[dY.width, X.width] += dY^T X: the gradient of the weight. The sum over rows is one product a tile, so its order is
// fixed.
void gemm_ytx(ThreadPool& pool, ConstRows dy, ConstRows x, float* dw);

}  // namespace transept
