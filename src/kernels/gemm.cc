#include "kernels/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace transept {
namespace {

// Tile extents: from 256 x 256 and k = 64 up, a product on one core reaches the library's large-matrix rate (bench
// gemm, two AVX-512 servers). The C tile of at most 512 KiB is half a second-level cache, so the epilogue meets it
// there.
constexpr int64_t kTileRows = 256;
constexpr int64_t kTileColumns = 512;
// Fewer rows than this are a matrix-vector product in all but name: the split is then over columns alone.
constexpr int64_t kFewRows = 16;
constexpr int64_t kFewRowsColumns = 256;

// Splits [0, extent) into equal parts of at most `tile`, each but the last a multiple of 16 floats.
struct Split {
  int64_t extent, part, count;
  Split(int64_t extent_, int64_t tile) : extent(extent_) {
    count = std::max<int64_t>(1, (extent + tile - 1) / tile);
    part = (extent + count - 1) / count;
    part = std::max<int64_t>(16, (part + 15) / 16 * 16);
    count = std::max<int64_t>(1, (extent + part - 1) / part);
  }
  int64_t begin(int64_t i) const { return i * part; }
  int64_t size(int64_t i) const { return std::min(part, extent - i * part); }
};

struct Grid {
  Split rows, columns;
  Grid(int64_t m, int64_t n)
      : rows(m, m <= kFewRows ? kFewRows : kTileRows), columns(n, m <= kFewRows ? kFewRowsColumns : kTileColumns) {}
  int64_t count() const { return rows.count * columns.count; }
  Tile tile(int64_t i) const {
    const int64_t r = i / columns.count, c = i % columns.count;
    return {rows.begin(r), rows.size(r), columns.begin(c), columns.size(c)};
  }
};

}  // namespace

void for_tiles(ThreadPool& pool, int64_t m, int64_t n, const std::function<void(const Tile&)>& body) {
  const Grid grid(m, n);
  pool.run(grid.count(), [&](int64_t i, int) { body(grid.tile(i)); });
}

void for_group_tiles(ThreadPool& pool, std::span<const int64_t> rows, int64_t n,
                     const std::function<void(const GroupTile&)>& body) {
  // ends[g]: the tiles of the groups up to g. An empty group has none.
  std::vector<int64_t> ends(rows.size());
  int64_t count = 0;
  for (size_t g = 0; g < rows.size(); ++g) {
    if (rows[g] > 0) count += Grid(rows[g], n).count();
    ends[g] = count;
  }
  pool.run(count, [&](int64_t i, int) {
    const size_t g = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), i) - ends.begin());
    const Grid grid(rows[g], n);
    const int64_t at = i - (g == 0 ? 0 : ends[g - 1]);
    body({static_cast<int64_t>(g), grid.tile(at), at % grid.columns.count});
  });
}

// The narrowest tiles are those of few rows.
int64_t column_tiles(int64_t n) { return Split(n, kFewRowsColumns).count; }

void gemm_tile(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  // The library would otherwise start an OpenMP team of its own from each of our threads.
  thread_local const bool held = (omp_set_num_threads(1), true);
  static_cast<void>(held);
  const dnnl_status_t status = dnnl_sgemm(ta == Transpose::kYes ? 'T' : 'N', tb == Transpose::kYes ? 'T' : 'N', m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  TRANSEPT_CHECK(status == dnnl_success);
}

void gemm_xwt(ThreadPool& pool, ConstRows x, const float* w, int64_t n, float beta, Rows y,
              const TileEpilogue& epilogue) {
  TRANSEPT_CHECK(x.rows == y.rows && n == y.width);
  for_tiles(pool, x.rows, n, [&](const Tile& t) {
    float* out = y.row(t.row) + t.column;
    gemm_tile(Transpose::kNo, Transpose::kYes, t.rows, t.columns, x.width, 1.f, x.row(t.row), x.stride,
              w + t.column * x.width, x.width, beta, out, y.stride);
    if (epilogue) epilogue({out, t.rows, t.columns, y.stride}, t.row, t.column);
  });
}

void gemm_xw(ThreadPool& pool, ConstRows dy, const float* w, int64_t k, float beta, Rows dx,
             const TileEpilogue& epilogue) {
  TRANSEPT_CHECK(dy.rows == dx.rows && k == dx.width);
  for_tiles(pool, dy.rows, k, [&](const Tile& t) {
    float* out = dx.row(t.row) + t.column;
    gemm_tile(Transpose::kNo, Transpose::kNo, t.rows, t.columns, dy.width, 1.f, dy.row(t.row), dy.stride, w + t.column,
              k, beta, out, dx.stride);
    if (epilogue) epilogue({out, t.rows, t.columns, dx.stride}, t.row, t.column);
  });
}

void gemm_ytx(ThreadPool& pool, ConstRows dy, ConstRows x, float* dw) {
  TRANSEPT_CHECK(dy.rows == x.rows);
  if (dy.rows == 0) return;
  for_tiles(pool, dy.width, x.width, [&](const Tile& t) {
    gemm_tile(Transpose::kYes, Transpose::kNo, t.rows, t.columns, dy.rows, 1.f, dy.data + t.row, dy.stride,
              x.data + t.column, x.stride, 1.f, dw + t.row * x.width + t.column, x.width);
  });
}

}  // namespace transept
